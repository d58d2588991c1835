//! `leveldb_writebatch_t`: operations that are written together.
//!
//! Whoever reads a batch, to write, append or walk over it, has its content as it was when the call began, and no lock. So
//! threads may read one at the same time, as LevelDB promises, and a client's function may do with it what it likes.

use std::sync::Arc;

use parking_lot::Mutex;
use tamarack::{Operation, WriteBatch};

use crate::boundary::callbacks::Listener;
use crate::boundary::handle::Kind;
use crate::status::Status;

/// Operations so far.
#[derive(Default)]
pub struct Batch {
    /// Copied when it is changed while somebody reads it.
    content: Mutex<Arc<Content>>,
}

#[derive(Clone, Default)]
struct Content {
    operations: WriteBatch,
    /// Why the batch cannot be written: an operation was refused where there is no way to say so.
    refused: Option<Status>,
}

impl Content {
    fn add(&mut self, operation: Operation<'_>) {
        let added = match operation {
            Operation::Put { key, value } => self.operations.put(key, value),
            Operation::Delete { key } => self.operations.delete(key),
        };
        if let Err(error) = added {
            self.refused.get_or_insert(Status::from(error));
        }
    }

    fn append(&mut self, other: &Self) {
        other.operations.iter().for_each(|operation| self.add(operation));
        if let Some(refused) = &other.refused {
            self.refused.get_or_insert_with(|| refused.clone());
        }
    }
}

impl Batch {
    /// Adds "set `key` to `value`". What Tamarack cannot take makes the whole batch one that cannot be written.
    pub fn put(&self, key: &[u8], value: &[u8]) {
        self.change(|content| content.add(Operation::Put { key, value }));
    }

    /// Adds "remove `key`".
    pub fn delete(&self, key: &[u8]) {
        self.change(|content| content.add(Operation::Delete { key }));
    }

    /// Removes every operation.
    pub fn clear(&self) {
        self.change(|content| {
            content.operations.clear();
            content.refused = None;
        });
    }

    /// Adds the operations of `other`, which may be the batch itself.
    pub fn append(&self, other: &Self) {
        let other = other.read();
        self.change(|content| content.append(&other));
    }

    /// Tells `listener` the operations in their order. What it adds to this batch meanwhile is not told.
    pub fn iterate(&self, listener: &Listener) {
        for operation in self.read().operations.iter() {
            match operation {
                Operation::Put { key, value } => listener.put(key, value),
                Operation::Delete { key } => listener.delete(key),
            }
        }
    }

    /// Gives the operations to `write`.
    ///
    /// # Errors
    /// If an operation was refused, and those of `write`.
    pub fn write(&self, write: impl FnOnce(&WriteBatch) -> tamarack::Result<()>) -> Result<(), Status> {
        let content = self.read();
        match &content.refused {
            Some(refused) => Err(refused.clone()),
            None => Ok(write(&content.operations)?),
        }
    }

    fn read(&self) -> Arc<Content> {
        Arc::clone(&self.content.lock())
    }

    fn change(&self, change: impl FnOnce(&mut Content)) {
        change(Arc::make_mut(&mut self.content.lock()));
    }
}

impl Kind for Batch {
    const NAME: &'static str = "a write batch";
    const TAG: u64 = u64::from_le_bytes(*b"batch...");
}
