//! The public iterator.

use super::{Db, Snapshot};
use crate::base::error::{Error, Result};
use crate::cube::iter::CubeIter;

/// A walk over a range of a database; see [`Db::iter`]. It keeps the database open.
///
/// It may be turned around at any entry. Where values are asked for step after step, those that follow are read
/// together: as many as most walks before have wanted, and then as many as there were. After an error of a seek or a step it stands nowhere; a later seek may succeed.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let db = tamarack::Db::open(directory.path(), tamarack::Options::default())?;
/// for key in ["apple", "banana", "cherry"] {
///     db.put(key.as_bytes(), b"fruit")?;
/// }
/// let mut iter = db.iter(&tamarack::IterOptions { keys_only: true, ..Default::default() })?;
/// iter.seek(b"b")?;
/// while iter.valid() {
///     println!("{}", String::from_utf8_lossy(iter.key()));
///     iter.next()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Iter {
    inner: CubeIter,
    keys_only: bool,
    positioned: bool,
    _snapshot: Option<Snapshot>,
    _db: Db,
}

impl std::fmt::Debug for Iter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Iter").field("valid", &self.valid()).finish_non_exhaustive()
    }
}

impl Iter {
    pub(super) fn new(inner: CubeIter, keys_only: bool, snapshot: Option<Snapshot>, db: Db) -> Self {
        Self { inner, keys_only, positioned: false, _snapshot: snapshot, _db: db }
    }

    /// Whether it stands on an entry.
    pub fn valid(&self) -> bool {
        self.inner.valid()
    }

    /// Goes to the first entry of the range at or after `key`.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.positioned = true;
        self.inner.seek(key)
    }

    /// Goes to the first entry of the range.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.positioned = true;
        self.inner.seek_to_first()
    }

    /// Goes to the last entry of the range.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.positioned = true;
        self.inner.seek_to_last()
    }

    /// Goes to the next entry.
    ///
    /// # Errors
    /// `Io`, `Corruption`; `InvalidArgument` if the iterator stands nowhere.
    #[expect(clippy::should_implement_trait, reason = "the name that LevelDB's users know, beside `prev`")]
    pub fn next(&mut self) -> Result<()> {
        self.check_valid("next")?;
        self.inner.next()
    }

    /// Goes to the previous entry.
    ///
    /// # Errors
    /// `Io`, `Corruption`; `InvalidArgument` if the iterator stands nowhere.
    pub fn prev(&mut self) -> Result<()> {
        self.check_valid("prev")?;
        self.inner.prev()
    }

    /// The key it stands on.
    ///
    /// # Panics
    /// If it stands nowhere.
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// The value it stands on; read from the device unless it was read ahead.
    ///
    /// # Errors
    /// `Io`, `Corruption`: the iterator stays where it is and can go on. `InvalidArgument` if it stands nowhere, or
    /// was asked for keys only.
    pub fn value(&mut self) -> Result<&[u8]> {
        self.check_valid("value")?;
        if self.keys_only {
            return Err(Error::invalid_argument("a value of an iterator that was opened with keys_only"));
        }
        self.inner.value()
    }

    /// The entries from where it stands (from the first, if it was never placed) to the end of the range, as a
    /// standard iterator of keys and values. Values are empty with `keys_only`. Ends after an error.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let db = tamarack::Db::open(directory.path(), tamarack::Options::default())?;
    /// db.put(b"a", b"1")?;
    /// db.put(b"b", b"2")?;
    /// for entry in db.iter(&tamarack::IterOptions::default())?.entries() {
    ///     let (key, value) = entry?;
    ///     println!("{key:?} = {value:?}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn entries(self) -> Entries {
        Entries { iter: self, is_given: false, failed: false }
    }

    fn check_valid(&self, call: &str) -> Result<()> {
        if self.valid() {
            return Ok(());
        }
        Err(Error::invalid_argument(format!("{call} of an iterator that stands nowhere: check valid first")))
    }
}

/// Keys and values as a standard iterator; see [`Iter::entries`].
#[derive(Debug)]
pub struct Entries {
    iter: Iter,
    /// Whether the entry that the iterator stands on was returned.
    is_given: bool,
    failed: bool,
}

impl Entries {
    fn step(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        if self.is_given {
            self.iter.next()?;
        } else if !self.iter.positioned {
            self.iter.seek_to_first()?;
        }
        self.is_given = self.iter.valid();
        if !self.is_given {
            return Ok(None);
        }
        let key = self.iter.key().to_vec();
        let value = if self.iter.keys_only { Vec::new() } else { self.iter.value()?.to_vec() };
        Ok(Some((key, value)))
    }
}

impl Iterator for Entries {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let step = self.step();
        self.failed = step.is_err();
        step.transpose()
    }
}
