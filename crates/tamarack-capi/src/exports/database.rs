//! `leveldb/c.h`: operations on an open database.

use std::ffi::c_int;

use crate::batch::Batch;
use crate::boundary::arguments::{Bytes, ErrorPointer, Lengths, ManyBytes, Results, Text};
use crate::boundary::guard::{contained, reported};
use crate::boundary::handle::{Given, New, Returned};
use crate::boundary::memory::Allocated;
use crate::database::Database;
use crate::iterator::Walk;
use crate::options::OpenOptions;
use crate::reads::{Moment, Reading, Writing};

/// Opens the database in the directory `name`; `NULL` after an error.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_open(
    options: Given<OpenOptions>,
    name: Text,
    errptr: ErrorPointer,
) -> New<Database> {
    reported("leveldb_open", errptr, New::none(), || Database::open(options.get(), name.path()).map(New::of))
}

/// Closes a database. LevelDB's function tells no errors; `tamarack_close` does.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_close(db: Returned<Database>) {
    contained("leveldb_close", || {
        // What was acknowledged is in the log, whatever comes of closing it tidily.
        drop(db.take().map(Database::close));
    });
}

/// Sets `key` to `val`.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_put(
    db: Given<Database>,
    options: Given<Writing>,
    key: Bytes,
    keylen: usize,
    val: Bytes,
    vallen: usize,
    errptr: ErrorPointer,
) {
    reported("leveldb_put", errptr, (), || {
        let writing = options.get().to_options();
        Ok(db.get().db().put_with(key.slice(keylen), val.slice(vallen), &writing)?)
    });
}

/// Removes `key`.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_delete(
    db: Given<Database>,
    options: Given<Writing>,
    key: Bytes,
    keylen: usize,
    errptr: ErrorPointer,
) {
    reported("leveldb_delete", errptr, (), || {
        Ok(db.get().db().delete_with(key.slice(keylen), &options.get().to_options())?)
    });
}

/// Writes all operations of `batch` or none.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_write(
    db: Given<Database>,
    options: Given<Writing>,
    batch: Given<Batch>,
    errptr: ErrorPointer,
) {
    reported("leveldb_write", errptr, (), || {
        let (db, writing) = (db.get().db(), options.get().to_options());
        batch.get().write(|operations| db.write(operations, &writing))
    });
}

/// The value of `key` in memory that the client frees; `NULL`, and no error, if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_get(
    db: Given<Database>,
    options: Given<Reading>,
    key: Bytes,
    keylen: usize,
    vallen: Results<usize>,
    errptr: ErrorPointer,
) -> Allocated {
    reported("leveldb_get", errptr, Allocated::NONE, || {
        vallen.set(0);
        let Some(value) = db.get().get(options.get(), key.slice(keylen))? else { return Ok(Allocated::NONE) };
        vallen.set(value.len());
        Ok(Allocated::bytes(&value))
    })
}

/// An iterator over all keys; what is wrong with it, it tells itself.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_iterator(db: Given<Database>, options: Given<Reading>) -> New<Walk> {
    contained("leveldb_create_iterator", || New::of(db.get().walk(options.get(), None, None, false)))
}

/// Holds the present moment.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_snapshot(db: Given<Database>) -> New<Moment> {
    contained("leveldb_create_snapshot", || New::of(Moment::new(db.get().db().snapshot())))
}

/// Releases a snapshot. It may be done after the database was closed, too.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_release_snapshot(_db: Given<Database>, snapshot: Returned<Moment>) {
    contained("leveldb_release_snapshot", || snapshot.destroy());
}

/// A property as a text that the client frees; `NULL` for one that there is not.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_property_value(db: Given<Database>, propname: Text) -> Allocated {
    contained("leveldb_property_value", || {
        let name = std::str::from_utf8(propname.bytes()).ok();
        let value = name.and_then(|name| db.get().db().property(name));
        value.map_or(Allocated::NONE, |value| Allocated::text(&value))
    })
}

/// About how many bytes the keys of each range take on disk. A range that cannot be looked up counts 0, as in LevelDB.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_approximate_sizes(
    db: Given<Database>,
    num_ranges: c_int,
    range_start_key: ManyBytes,
    range_start_key_len: Lengths,
    range_limit_key: ManyBytes,
    range_limit_key_len: Lengths,
    sizes: Results<u64>,
) {
    contained("leveldb_approximate_sizes", || {
        let number = usize::try_from(num_ranges).unwrap_or(0);
        let starts = range_start_key.slices(&range_start_key_len, number);
        let limits = range_limit_key.slices(&range_limit_key_len, number);
        for (index, (start, limit)) in starts.into_iter().zip(limits).enumerate() {
            sizes.set_at(index, db.get().db().approximate_size(Some(start), Some(limit)).unwrap_or(0));
        }
    });
}

/// Compacts the keys between two, which count; `NULL` is before or behind all. `tamarack_compact_range` tells errors.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_compact_range(
    db: Given<Database>,
    start_key: Bytes,
    start_key_len: usize,
    limit_key: Bytes,
    limit_key_len: usize,
) {
    contained("leveldb_compact_range", || {
        let (start, limit) = (start_key.slice_if_any(start_key_len), limit_key.slice_if_any(limit_key_len));
        // Nothing is lost by a compaction that fails, and the database remembers what stands in its way.
        drop(db.get().db().compact_range(start, limit));
    });
}
