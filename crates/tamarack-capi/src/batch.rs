//! `leveldb_writebatch_t`: operations that are written together.

use parking_lot::Mutex;
use tamarack::{Operation, WriteBatch};

use crate::boundary::callbacks::Listener;
use crate::boundary::handle::Kind;
use crate::status::Status;

/// Operations so far.
#[derive(Default)]
pub struct Batch {
    content: Mutex<Content>,
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
        self.content.lock().add(Operation::Put { key, value });
    }

    /// Adds "remove `key`".
    pub fn delete(&self, key: &[u8]) {
        self.content.lock().add(Operation::Delete { key });
    }

    /// Removes every operation.
    pub fn clear(&self) {
        let mut content = self.content.lock();
        content.operations.clear();
        content.refused = None;
    }

    /// Adds the operations of `other`, which may be the batch itself.
    pub fn append(&self, other: &Self) {
        // Copied, so that the two locks are not held together.
        let other = other.content.lock().clone();
        self.content.lock().append(&other);
    }

    /// Tells `listener` the operations in their order. What it adds to this batch meanwhile comes after them.
    pub fn iterate(&self, listener: &Listener) {
        // Without the lock, for the listener is the client's.
        let mut content = std::mem::take(&mut *self.content.lock());
        for operation in content.operations.iter() {
            match operation {
                Operation::Put { key, value } => listener.put(key, value),
                Operation::Delete { key } => listener.delete(key),
            }
        }
        let mut there = self.content.lock();
        content.append(&there);
        *there = content;
    }

    /// Gives the operations to `write`.
    ///
    /// # Errors
    /// If an operation was refused, and those of `write`.
    pub fn write(&self, write: impl FnOnce(&WriteBatch) -> tamarack::Result<()>) -> Result<(), Status> {
        let content = self.content.lock();
        match &content.refused {
            Some(refused) => Err(refused.clone()),
            None => Ok(write(&content.operations)?),
        }
    }
}

impl Kind for Batch {
    const NAME: &'static str = "a write batch";
    const TAG: u64 = u64::from_le_bytes(*b"batch...");
}
