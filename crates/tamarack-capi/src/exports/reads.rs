//! `leveldb/c.h`: how reads and writes are done.

use crate::boundary::guard::contained;
use crate::boundary::handle::{Given, New, Returned};
use crate::reads::{Moment, Reading, Writing};

/// Reads at the present, with Tamarack's defaults.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_create() -> New<Reading> {
    contained("leveldb_readoptions_create", || New::of(Reading::default()))
}

/// Destroys read options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_destroy(options: Returned<Reading>) {
    contained("leveldb_readoptions_destroy", || options.destroy());
}

/// Whether the checksums of values are checked.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_verify_checksums(options: Given<Reading>, on: u8) {
    contained("leveldb_readoptions_set_verify_checksums", || options.get().set_verify_checksums(on != 0));
}

/// Whether index blocks that are read stay in the cache.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_fill_cache(options: Given<Reading>, on: u8) {
    contained("leveldb_readoptions_set_fill_cache", || options.get().set_fill_cache(on != 0));
}

/// The moment to read at; `NULL`: the present.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_snapshot(options: Given<Reading>, snapshot: Given<Moment>) {
    contained("leveldb_readoptions_set_snapshot", || options.get().set_snapshot(snapshot.get_if_any()));
}

/// Writes that survive the process but not the machine.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_create() -> New<Writing> {
    contained("leveldb_writeoptions_create", || New::of(Writing::default()))
}

/// Destroys write options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_destroy(options: Returned<Writing>) {
    contained("leveldb_writeoptions_destroy", || options.destroy());
}

/// Whether writes survive the machine when they return.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_set_sync(options: Given<Writing>, on: u8) {
    contained("leveldb_writeoptions_set_sync", || options.get().set_sync(on != 0));
}
