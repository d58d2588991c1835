//! Reads of single keys, and of many at once.

use super::{Db, ReadOptions};
use crate::base::error::Result;
use crate::cube::pinned::PinnedValue;

impl Db {
    /// The value of `key`, or `None`. One read of the log, if the value is there and not in the row cache; another one if
    /// the first finds that what was known of its place is out of date, or is damage. Reads of index blocks that are not cached.
    ///
    /// # Errors
    /// `Io`; `Corruption`, with file and offset, when what was read is not what was written.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(key, &ReadOptions::default())
    }

    /// Like [`get`](Self::get), with options.
    ///
    /// # Errors
    /// As for [`get`](Self::get); `InvalidArgument` for a snapshot of another database.
    pub fn get_with(&self, key: &[u8], options: &ReadOptions) -> Result<Option<Vec<u8>>> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value, options)?.then_some(value))
    }

    /// Replaces `value` by the value of `key`; `false`, and an empty `value`, if there is none. Saves an
    /// allocation where a buffer is reused.
    ///
    /// # Errors
    /// As for [`get_with`](Self::get_with).
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>, options: &ReadOptions) -> Result<bool> {
        value.clear();
        self.inner.cube.get(key, self.settings(options)?, value)
    }

    /// The value of `key` where it is in memory, or `None`. What [`get`](Self::get) would copy out of a cache is held there instead,
    /// so that a value that is read again and again costs neither memory nor a copy; a value from the log is
    /// read into memory of its own, which becomes the row cache's if it is kept there. [`PinnedValue`] says what is held. A value that
    /// is to be changed, or kept for long, is better read by `get` or [`get_into`](Self::get_into). Blocks as `get` does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let db = tamarack::Db::open(directory.path(), tamarack::Options::default())?;
    /// db.put(b"key", b"value")?;
    /// let value = db.get_pinned(b"key", &tamarack::ReadOptions::default())?.expect("it was put");
    /// db.put(b"key", b"another")?;
    /// db.close()?;
    /// assert_eq!(value, b"value");
    /// assert!(value.starts_with(b"val"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`get_with`](Self::get_with).
    pub fn get_pinned(&self, key: &[u8], options: &ReadOptions) -> Result<Option<PinnedValue>> {
        let mut value = None;
        self.inner.cube.get(key, self.settings(options)?, &mut value)?;
        Ok(value)
    }

    /// Whether `key` has a value. Reads nothing of the log.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        self.inner.cube.contains(key, self.settings(&ReadOptions::default())?)
    }

    /// The values of `keys`, in their order, all of the same moment. Reads of the log are sorted by place and done
    /// in parallel. One key's failure is no other's.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let db = tamarack::Db::open(directory.path(), tamarack::Options::default())?;
    /// db.put(b"a", b"1")?;
    /// let mut values = db.multi_get(&["a", "b"], &tamarack::ReadOptions::default()).into_iter();
    /// assert_eq!(values.next().unwrap()?, Some(b"1".to_vec()));
    /// assert_eq!(values.next().unwrap()?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        options: &ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>>> {
        match self.settings(options) {
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
            Ok(settings) => {
                let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
                self.inner.cube.multi_get(&keys, settings)
            }
        }
    }
}
