//! `leveldb/c.h`: write batches.

use crate::batch::Batch;
use crate::boundary::arguments::Bytes;
use crate::boundary::callbacks::{Listener, OnDelete, OnPut, State};
use crate::boundary::guard::{contained, misuse};
use crate::boundary::handle::{Given, New, Returned};

/// An empty batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_create() -> New<Batch> {
    contained("leveldb_writebatch_create", || New::of(Batch::default()))
}

/// Destroys a batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_destroy(batch: Returned<Batch>) {
    contained("leveldb_writebatch_destroy", || batch.destroy());
}

/// Removes every operation.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_clear(batch: Given<Batch>) {
    contained("leveldb_writebatch_clear", || batch.get().clear());
}

/// Adds a put. What cannot be written is told by `leveldb_write`.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_put(
    batch: Given<Batch>,
    key: Bytes,
    klen: usize,
    val: Bytes,
    vlen: usize,
) {
    contained("leveldb_writebatch_put", || batch.get().put(key.slice(klen), val.slice(vlen)));
}

/// Adds a deletion. What cannot be written is told by `leveldb_write`.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_delete(batch: Given<Batch>, key: Bytes, klen: usize) {
    contained("leveldb_writebatch_delete", || batch.get().delete(key.slice(klen)));
}

/// Calls `put` or `deleted` for each operation, in order.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_iterate(
    batch: Given<Batch>,
    state: State,
    put: Option<OnPut>,
    deleted: Option<OnDelete>,
) {
    contained("leveldb_writebatch_iterate", || {
        let (Some(put), Some(deleted)) = (put, deleted) else {
            misuse("NULL instead of a function".to_owned())
        };
        batch.get().iterate(&Listener::new(state, put, deleted));
    });
}

/// Adds the operations of `source`, which may be `destination` itself.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_append(destination: Given<Batch>, source: Given<Batch>) {
    contained("leveldb_writebatch_append", || destination.get().append(source.get()));
}
