//! Write batches: operations that take effect together or not at all.

use super::error::{Error, Result};
use super::limits::{BATCH_OPERATIONS_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// Operations applied in order and atomically: after any crash either all of them are there or none.
///
/// ```
/// let mut batch = tamarack::WriteBatch::new();
/// batch.put(b"from", b"0")?;
/// batch.put(b"to", b"100")?;
/// batch.delete(b"pending")?;
/// assert_eq!(batch.len(), 3);
/// # Ok::<(), tamarack::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    operations: Vec<Span>,
}

/// Where an operation's key and value lie in the batch's bytes; the value follows the key.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    key_len: u32,
    value_len: u32,
    delete: bool,
}

/// One operation of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Set `key` to `value`.
    Put {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// Remove `key`.
    Delete {
        /// The key.
        key: &'a [u8],
    },
}

impl<'a> Operation<'a> {
    /// The key.
    pub fn key(&self) -> &'a [u8] {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }

    /// The value: empty for a deletion.
    pub fn value(&self) -> &'a [u8] {
        match self {
            Self::Put { value, .. } => value,
            Self::Delete { .. } => &[],
        }
    }

    /// Refuses keys and values over the format's limits, before anything is written.
    pub fn check(&self) -> Result<()> {
        if self.key().len() > KEY_BYTES_MAX {
            return Err(Error::invalid_argument(format!(
                "a key of {} bytes: keys have at most {KEY_BYTES_MAX} bytes",
                self.key().len()
            )));
        }
        if self.value().len() as u64 > VALUE_BYTES_MAX {
            return Err(Error::invalid_argument(format!(
                "a value of {} bytes: values have at most {VALUE_BYTES_MAX} bytes",
                self.value().len()
            )));
        }
        Ok(())
    }
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds "set `key` to `value`".
    ///
    /// # Errors
    /// [`InvalidArgument`](super::error::ErrorKind::InvalidArgument) if the key is longer than 65,535 bytes or
    /// the value longer than 4 GiB − 1; the batch is then unchanged.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.push(Operation::Put { key, value })
    }

    /// Adds "remove `key`". Removing a key that is not there is no error.
    ///
    /// # Errors
    /// [`InvalidArgument`](super::error::ErrorKind::InvalidArgument) if the key is longer than 65,535 bytes.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.push(Operation::Delete { key })
    }

    fn push(&mut self, operation: Operation<'_>) -> Result<()> {
        operation.check()?;
        if self.operations.len() == BATCH_OPERATIONS_MAX {
            return Err(Error::invalid_argument(format!(
                "a batch of more than {BATCH_OPERATIONS_MAX} operations: split it"
            )));
        }
        self.operations.push(Span {
            start: self.bytes.len(),
            key_len: operation.key().len() as u32,
            value_len: operation.value().len() as u32,
            delete: matches!(operation, Operation::Delete { .. }),
        });
        self.bytes.extend_from_slice(operation.key());
        self.bytes.extend_from_slice(operation.value());
        Ok(())
    }

    /// The operations in the order in which they were added.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Operation<'_>> + Clone {
        self.operations.iter().map(|span| {
            let key_end = span.start + span.key_len as usize;
            let key = &self.bytes[span.start..key_end];
            if span.delete {
                Operation::Delete { key }
            } else {
                Operation::Put { key, value: &self.bytes[key_end..key_end + span.value_len as usize] }
            }
        })
    }

    /// How many operations it holds.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether it holds no operation.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Bytes of keys and values in it.
    pub fn user_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Removes every operation and keeps the memory for the next use.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.operations.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    #[test]
    fn operations_come_back_in_order() {
        let mut batch = WriteBatch::new();
        batch.put(b"", b"").expect("within the limits");
        batch.put(b"key", b"value").expect("within the limits");
        batch.delete(b"key").expect("within the limits");
        let all: Vec<_> = batch.iter().collect();
        assert_eq!(
            all,
            [
                Operation::Put { key: b"", value: b"" },
                Operation::Put { key: b"key", value: b"value" },
                Operation::Delete { key: b"key" }
            ]
        );
        batch.clear();
        assert!(batch.is_empty() && batch.user_bytes() == 0);
    }

    #[test]
    fn long_keys_are_refused_and_change_nothing() {
        let mut batch = WriteBatch::new();
        let error = batch.put(&vec![0; KEY_BYTES_MAX + 1], b"").expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(batch.is_empty());
        batch.delete(&vec![0; KEY_BYTES_MAX]).expect("the longest key is allowed");
    }
}
