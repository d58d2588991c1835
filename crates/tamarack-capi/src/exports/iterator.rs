//! `leveldb/c.h`: iterators.

use tamarack::Iter;

use crate::boundary::arguments::{Bytes, ErrorPointer, Lent, Results};
use crate::boundary::guard::{contained, reported};
use crate::boundary::handle::{Given, Returned};
use crate::iterator::Walk;

/// Destroys an iterator. It may outlive its database.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_destroy(iterator: Returned<Walk>) {
    contained("leveldb_iter_destroy", || iterator.destroy());
}

/// Whether it stands on an entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_valid(iterator: Given<Walk>) -> u8 {
    contained("leveldb_iter_valid", || iterator.get().valid().into())
}

/// Goes to the first entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek_to_first(iterator: Given<Walk>) {
    contained("leveldb_iter_seek_to_first", || iterator.get().place(Iter::seek_to_first));
}

/// Goes to the last entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek_to_last(iterator: Given<Walk>) {
    contained("leveldb_iter_seek_to_last", || iterator.get().place(Iter::seek_to_last));
}

/// Goes to the first entry at or behind a key.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek(iterator: Given<Walk>, k: Bytes, klen: usize) {
    contained("leveldb_iter_seek", || iterator.get().place(|iter| iter.seek(k.slice(klen))));
}

/// Goes to the next entry; does nothing if it stands nowhere.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_next(iterator: Given<Walk>) {
    contained("leveldb_iter_next", || iterator.get().step(Iter::next));
}

/// Goes to the previous entry; does nothing if it stands nowhere.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_prev(iterator: Given<Walk>) {
    contained("leveldb_iter_prev", || iterator.get().step(Iter::prev));
}

/// The key, lent until the iterator moves; `NULL` if it stands nowhere.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_key(iterator: Given<Walk>, klen: Results<usize>) -> Lent {
    contained("leveldb_iter_key", || {
        let (key, length) = iterator.get().key();
        klen.set(length);
        key
    })
}

/// The value, lent until the iterator moves; `NULL` if it stands nowhere, or if the value cannot be read.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_value(iterator: Given<Walk>, vlen: Results<usize>) -> Lent {
    contained("leveldb_iter_value", || {
        let (value, length) = iterator.get().value();
        vlen.set(length);
        value
    })
}

/// Tells why it is not valid, if that is not the end of the range.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_get_error(iterator: Given<Walk>, errptr: ErrorPointer) {
    reported("leveldb_iter_get_error", errptr, (), || iterator.get().error());
}
