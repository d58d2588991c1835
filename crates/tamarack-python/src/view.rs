//! What a database, a part of it below a prefix, and a snapshot have in common: reads and walks, and ranges as plyvel says them.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tamarack::{Comparator, Db, IterOptions, ReadOptions, WriteOptions};

use crate::batch::WriteBatch;
use crate::bytes::{Target, bound, given};
use crate::errors::{self, keywords, unknown_keyword};
use crate::iterator::{Iterator, Shape};
use crate::kept::Kept;
use crate::shared::Shared;
use crate::walk::Owned;

/// Memory for a value that stays with a thread, at most.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

thread_local! {
    /// Where values are read to before Python gets them.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A database, or a part of it, at a moment.
pub struct View {
    /// The database.
    pub shared: Arc<Shared>,
    /// What stands before each key.
    pub prefix: Vec<u8>,
    moment: Moment,
}

enum Moment {
    Present,
    /// Taken by a snapshot, which may be closed.
    Taken(Kept<Mutex<Option<tamarack::Snapshot>>>),
}

impl View {
    /// The keys below `prefix`, whenever they are looked at.
    pub fn present(shared: Arc<Shared>, prefix: Vec<u8>) -> Self {
        Self { shared, prefix, moment: Moment::Present }
    }

    /// The same, as they are now, under a name.
    ///
    /// # Errors
    /// Those of [`Shared::run`].
    pub fn now(&self, py: Python<'_>, name: Option<&str>) -> PyResult<Self> {
        let taken = self
            .shared
            .run(py, |db| Ok(name.map_or_else(|| db.snapshot(), |name| db.snapshot_named(name))))?;
        let moment = Moment::Taken(Kept::new(Mutex::new(Some(taken))));
        Ok(Self { shared: Arc::clone(&self.shared), prefix: self.prefix.clone(), moment })
    }

    /// Lets the moment go, if it is a snapshot's.
    pub fn close(&self, py: Python<'_>) {
        if let Moment::Taken(taken) = &self.moment
            && taken.process().is_current()
        {
            py.detach(|| drop(taken.get().lock().take()));
        }
    }

    /// A key of the view as the database has it.
    pub fn key<'a>(&self, key: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
        let key = given(key, "a key")?;
        Ok(if self.prefix.is_empty() { key } else { Cow::Owned([&self.prefix, &*key].concat()) })
    }

    fn reading(
        &self,
        py: Python<'_>,
        verify: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<ReadOptions> {
        // Before the lock of the moment, which in a child may be held for ever.
        self.shared.admit(py)?;
        let snapshot = match &self.moment {
            Moment::Present => None,
            Moment::Taken(taken) => {
                let taken = taken.get().lock().clone();
                Some(taken.ok_or_else(|| errors::closed(py, "the snapshot"))?)
            }
        };
        let default = ReadOptions::default();
        Ok(ReadOptions {
            snapshot,
            verify_checksums: verify.unwrap_or(default.verify_checksums),
            fill_cache: fill_cache.unwrap_or(default.fill_cache),
        })
    }

    /// Reads the value of `key` and shows it.
    fn read<R>(
        &self,
        key: &Bound<'_, PyAny>,
        verify: Option<bool>,
        fill_cache: Option<bool>,
        show: impl FnOnce(Python<'_>, &[u8]) -> PyResult<R>,
    ) -> PyResult<Option<R>> {
        let py = key.py();
        let key = self.key(key)?;
        let options = self.reading(py, verify, fill_cache)?;
        let mut value = SCRATCH.take();
        let found = self.shared.run(py, |db| db.get_into(&key, &mut value, &options));
        let shown = found.and_then(|found| if found { show(py, &value).map(Some) } else { Ok(None) });
        if value.capacity() <= SCRATCH_BYTES_MAX {
            SCRATCH.set(value);
        }
        shown
    }

    /// The value of `key`.
    pub fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        verify: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let py = key.py();
        self.read(key, verify, fill_cache, |_, value| Ok(PyBytes::new(py, value)))
    }

    /// The value of `key`, or `KeyError`.
    pub fn get_item<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.get(key, None, None)?.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    /// The value of `key` at the beginning of `target`, and its length.
    pub fn get_into(
        &self,
        key: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        verify: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<Option<usize>> {
        let target = Target::new(target)?;
        self.read(key, verify, fill_cache, |_, value| target.fill(value).map(|()| value.len()))
    }

    /// Whether `key` has a value.
    pub fn contains(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        if matches!(self.moment, Moment::Taken(_)) {
            return self.read(key, None, None, |_, _| Ok(())).map(|found| found.is_some());
        }
        let py = key.py();
        let key = self.key(key)?;
        self.shared.run(py, |db| db.contains(&key))
    }

    /// The values of `keys`, all of one moment.
    pub fn multi_get<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        verify: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let py = keys.py();
        let objects = keys.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let keys = objects.iter().map(|key| self.key(key)).collect::<PyResult<Vec<_>>>()?;
        let options = self.reading(py, verify, fill_cache)?;
        let values = self
            .shared
            .run(py, |db| db.multi_get(&keys, &options).into_iter().collect::<tamarack::Result<Vec<_>>>())?;
        Ok(values.into_iter().map(|value| value.map(|value| PyBytes::new(py, &value))).collect())
    }

    /// Sets `key` to `value`.
    pub fn put(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, sync: Option<bool>) -> PyResult<()> {
        let py = key.py();
        let (key, value, writing) = (self.key(key)?, given(value, "a value")?, self.writing(sync));
        self.shared.run(py, |db| db.put_with(&key, &value, &writing))
    }

    /// Removes `key`, which must be there.
    ///
    /// # Errors
    /// `KeyError`; those of [`delete`](Self::delete).
    pub fn delete_item(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if !self.contains(key)? {
            return Err(PyKeyError::new_err(key.clone().unbind()));
        }
        self.delete(key, None)
    }

    /// Removes `key`.
    pub fn delete(&self, key: &Bound<'_, PyAny>, sync: Option<bool>) -> PyResult<()> {
        let py = key.py();
        let (key, writing) = (self.key(key)?, self.writing(sync));
        self.shared.run(py, |db| db.delete_with(&key, &writing))
    }

    /// Sets every key of a mapping, or of pairs, in one batch.
    pub fn update(&self, other: &Bound<'_, PyAny>, sync: Option<bool>) -> PyResult<()> {
        let py = other.py();
        let pairs = if other.hasattr("items")? { other.call_method0("items")? } else { other.clone() };
        let batch = WriteBatch::new(&self.shared, &self.prefix, true, sync);
        for pair in pairs.try_iter()? {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            batch.put(&key, &value)?;
        }
        batch.write(py)
    }

    /// How a write is done that says `sync`, or nothing.
    pub fn writing(&self, sync: Option<bool>) -> WriteOptions {
        WriteOptions { sync: sync.unwrap_or(self.shared.synced) }
    }

    /// An iterator as plyvel's keyword arguments say it.
    pub fn iterator(&self, py: Python<'_>, given: Option<&Bound<'_, PyDict>>) -> PyResult<Iterator> {
        let asked = Asked::parse(given, &self.prefix)?;
        let reading = self.reading(py, asked.verify, asked.fill_cache)?;
        let order = Arc::clone(&self.shared.options.comparator);
        let Asked { range, shape, expected, .. } = asked;
        let walk = IterOptions { keys_only: !shape.value, expected_entries: expected, ..walking(reading) };
        let owned = Owned::open(py, &self.shared, move |db| range.open(db, &*order, walk))?;
        Iterator::new(py, owned, shape, self.prefix.clone())
    }

    /// An iterator over keys, values or both, without a range of its own.
    pub fn all(&self, py: Python<'_>, key: bool, value: bool) -> PyResult<Iterator> {
        let given = PyDict::new(py);
        given.set_item("include_key", key)?;
        given.set_item("include_value", value)?;
        self.iterator(py, Some(&given))
    }

    /// The engine's iterator over everything, prefix or not.
    pub fn raw(&self, py: Python<'_>, verify: Option<bool>, fill_cache: Option<bool>) -> PyResult<Owned> {
        let reading = self.reading(py, verify, fill_cache)?;
        Owned::open(py, &self.shared, move |db| db.iter(&walking(reading)))
    }
}

/// A walk over everything that reads so.
fn walking(reading: ReadOptions) -> IterOptions {
    let ReadOptions { snapshot, verify_checksums, fill_cache } = reading;
    IterOptions { snapshot, verify_checksums, fill_cache, ..IterOptions::default() }
}

/// What an iterator was asked for.
struct Asked {
    range: Range,
    shape: Shape,
    expected: Option<usize>,
    verify: Option<bool>,
    fill_cache: Option<bool>,
}

/// A range with each bound in it or not.
struct Range {
    start: Option<Vec<u8>>,
    stop: Option<Vec<u8>>,
    include_start: bool,
    include_stop: bool,
}

impl Asked {
    fn parse(given: Option<&Bound<'_, PyDict>>, outer: &[u8]) -> PyResult<Self> {
        let range = Range { start: None, stop: None, include_start: true, include_stop: false };
        let shape = Shape { reverse: false, key: true, value: true };
        let mut asked = Self { range, shape, expected: None, verify: None, fill_cache: None };
        let mut prefix = None;
        let Self { range, shape, expected, verify, fill_cache } = &mut asked;
        for (name, value) in keywords(given)? {
            match name.as_str() {
                "start" => range.start = bound(&value, "start")?,
                "stop" => range.stop = bound(&value, "stop")?,
                "prefix" => prefix = bound(&value, "prefix")?,
                "reverse" => shape.reverse = value.is_truthy()?,
                "include_start" => range.include_start = value.is_truthy()?,
                "include_stop" => range.include_stop = value.is_truthy()?,
                "include_key" => shape.key = value.is_truthy()?,
                "include_value" => shape.value = value.is_truthy()?,
                "expected_entries" => *expected = value.extract()?,
                "verify_checksums" => *verify = value.extract()?,
                "fill_cache" => *fill_cache = value.extract()?,
                _ => return Err(unknown_keyword("iterator", &name)),
            }
        }
        if prefix.is_some() && (range.start.is_some() || range.stop.is_some()) {
            return Err(PyTypeError::new_err("prefix cannot be used together with start or stop"));
        }
        asked.range = asked.range.below(outer, prefix);
        Ok(asked)
    }
}

impl Range {
    /// The same below the prefix of a view, or all that begins with `prefix` there.
    fn below(self, outer: &[u8], prefix: Option<Vec<u8>>) -> Self {
        let all = [outer, prefix.as_deref().unwrap_or_default()].concat();
        if prefix.is_some() || (!outer.is_empty() && self.start.is_none() && self.stop.is_none()) {
            return Self { stop: behind(&all), start: Some(all), include_start: true, include_stop: false };
        }
        if outer.is_empty() {
            return self;
        }
        let bound = |key: Vec<u8>| [outer, &key].concat();
        Self {
            include_start: self.include_start || self.start.is_none(),
            include_stop: self.include_stop && self.stop.is_some(),
            start: Some(bound(self.start.unwrap_or_default())),
            stop: self.stop.map(bound).or_else(|| behind(outer)),
        }
    }

    /// The engine's iterator over it, whose ranges begin with their start and end before their end, and which is otherwise as `walk` says.
    fn open(
        self,
        db: &Db,
        order: &dyn Comparator,
        mut walk: IterOptions,
    ) -> tamarack::Result<tamarack::Iter> {
        let Self { mut start, mut stop, include_start, include_stop } = self;
        if order.is_bytewise() {
            start.iter_mut().filter(|_| !include_start).for_each(|key| key.push(0));
            stop.iter_mut().filter(|_| include_stop).for_each(|key| key.push(0));
            return db.iter(&IterOptions { start, end: stop, ..walk });
        }
        // In another order the key behind a bound is known only by looking, at the moment that is then walked.
        if let Some(key) = start.as_mut().filter(|_| !include_start) {
            let next = key_behind(db, order, &mut walk, key)?;
            // Nothing is behind it, and nothing is between a key and itself.
            let Some(next) = next else {
                return db.iter(&IterOptions { start: Some(key.clone()), end: Some(key.clone()), ..walk });
            };
            *key = next;
        }
        if let Some(key) = stop.as_ref().filter(|_| include_stop) {
            stop = key_behind(db, order, &mut walk, key)?;
        }
        db.iter(&IterOptions { start, end: stop, ..walk })
    }
}

/// The first key behind `key` that there is, at the moment of `walk`, which is then held.
fn key_behind(
    db: &Db,
    order: &dyn Comparator,
    walk: &mut IterOptions,
    key: &[u8],
) -> tamarack::Result<Option<Vec<u8>>> {
    walk.snapshot.get_or_insert_with(|| db.snapshot());
    let start = Some(key.to_vec());
    let mut iter =
        db.iter(&IterOptions { start, keys_only: true, expected_entries: None, ..walk.clone() })?;
    iter.seek_to_first()?;
    if iter.valid() && order.compare(iter.key(), key).is_eq() {
        iter.next()?;
    }
    Ok(iter.valid().then(|| iter.key().to_vec()))
}

/// The first key behind all that begin with `prefix`, in the order of bytes; `None` if there is none.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut key = prefix[..=last].to_vec();
    key[last] += 1;
    Some(key)
}
