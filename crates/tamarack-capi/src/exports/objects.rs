//! `leveldb/c.h`: what options refer to: comparators, filter policies, caches and envs; and the utilities.

use std::ffi::c_int;

use crate::boundary::callbacks::{
    ClientOrder, Compare, CreateFilter, Destructor, KeyMayMatch, Name, Owner, State,
};
use crate::boundary::guard::{contained, misuse};
use crate::boundary::handle::{Given, New, Returned};
use crate::boundary::memory::Allocated;
use crate::directory::test_directory;
use crate::options::{Cache, Comparator, Env, FilterPolicy};

/// An order of keys, by the client's functions.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_comparator_create(
    state: State,
    destructor: Destructor,
    compare: Option<Compare>,
    name: Option<Name>,
) -> New<Comparator> {
    contained("leveldb_comparator_create", || {
        let (Some(compare), Some(name)) = (compare, name) else {
            misuse("NULL instead of a function".to_owned())
        };
        New::of(Comparator::new(ClientOrder::new(Owner::new(state, destructor), compare, name)))
    })
}

/// Destroys a comparator, and calls its destructor unless a database is open with it: then that is done when it is
/// closed.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_comparator_destroy(comparator: Returned<Comparator>) {
    contained("leveldb_comparator_destroy", || comparator.destroy());
}

/// A filter policy by the client's functions. Of these only the destructor is ever called.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_create(
    state: State,
    destructor: Destructor,
    _create_filter: CreateFilter,
    _key_may_match: KeyMayMatch,
    _name: Option<Name>,
) -> New<FilterPolicy> {
    contained("leveldb_filterpolicy_create", || {
        New::of(FilterPolicy::Client { _owner: Owner::new(state, destructor) })
    })
}

/// Destroys a filter policy, and calls its destructor.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_destroy(policy: Returned<FilterPolicy>) {
    contained("leveldb_filterpolicy_destroy", || policy.destroy());
}

/// A Bloom filter.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> New<FilterPolicy> {
    contained("leveldb_filterpolicy_create_bloom", || New::of(FilterPolicy::bloom(bits_per_key)))
}

/// A cache of so many bytes, for each database that is opened with it.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_create_lru(capacity: usize) -> New<Cache> {
    contained("leveldb_cache_create_lru", || New::of(Cache { capacity_bytes: capacity }))
}

/// Destroys a cache. Databases opened with it keep theirs.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_destroy(cache: Returned<Cache>) {
    contained("leveldb_cache_destroy", || cache.destroy());
}

/// The env of the operating system.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_default_env() -> New<Env> {
    contained("leveldb_create_default_env", || New::of(Env))
}

/// Destroys an env.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_env_destroy(env: Returned<Env>) {
    contained("leveldb_env_destroy", || env.destroy());
}

/// A directory for tests, which is made; `NULL` if it cannot be.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_env_get_test_directory(env: Given<Env>) -> Allocated {
    contained("leveldb_env_get_test_directory", || {
        env.get();
        let directory = test_directory();
        directory.map_or(Allocated::NONE, |path| Allocated::bytes(&[&path[..], &[0]].concat()))
    })
}

/// Frees what a function has given.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_free(ptr: Allocated) {
    contained("leveldb_free", || ptr.free());
}

/// 1: the interface is that of LevelDB 1.23.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_major_version() -> c_int {
    1
}

/// 23: the interface is that of LevelDB 1.23.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_minor_version() -> c_int {
    23
}
