//! `DB`: an open database; and what is done to one that is not.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tamarack::{CheckLevel, GcGoal, RepairOptions};

use crate::batch::WriteBatch;
use crate::bytes::{bound, given};
use crate::errors;
use crate::iterator::Iterator;
use crate::options::{self, Chosen, one_of};
use crate::patience;
use crate::prefixed::PrefixedDatabase;
use crate::raw_iterator::RawIterator;
use crate::report;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::view::View;

const CHECK_LEVELS: &[(&str, CheckLevel)] = &[
    ("structure", CheckLevel::Structure),
    ("checksums", CheckLevel::Checksums),
    ("liveness", CheckLevel::Liveness),
    ("values", CheckLevel::Values),
];

/// An open database: ``DB(name, *, create_if_missing=False, ...)`` opens or creates the one in the directory ``name``.
///
/// Keys and values are bytes: ``bytes``, or anything contiguous with the buffer protocol, such as ``bytearray``, ``memoryview`` and
/// NumPy's arrays. Text is refused. What is read is ``bytes``.
///
/// A write returns when it survives the death of the process; with ``sync=True``, or after ``sync()``, it survives that of the machine.
/// Any number of threads may use it at once; they do not hold the GIL while the engine works. A forked child must not use it:
/// there every call raises ``ForkError``. As a context manager it is closed at the end of the block.
///
/// Other options, with defaults and meaning, are in the package's README; ``options()`` tells what a database was opened with.
///
/// Raises ``InvalidArgumentError`` (an option out of range, a missing or existing database, another comparator), ``LockedError``
/// (open elsewhere), ``CorruptionError``, ``UnsupportedError``, ``IOError``, ``NoSpaceError``.
///
/// >>> with tamarack.DB("fruit.db", create_if_missing=True) as db:
/// ...     db.put(b"apple", b"green")
/// ...     db.get(b"apple")
/// b'green'
#[pyclass(frozen, weakref, name = "DB", module = "tamarack")]
pub struct Database {
    view: View,
    /// What the caller passed.
    name: Py<PyAny>,
}

impl Database {
    /// The whole of it, at the present.
    pub fn view(&self) -> &View {
        &self.view
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.view.shared
    }
}

/// The path that `name` means, a `str`, `bytes` or path-like object.
fn path(name: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    name.py().import("os")?.call_method1("fsdecode", (name,))?.extract()
}

#[pymethods]
impl Database {
    #[new]
    #[pyo3(
        signature = (name, **options),
        text_signature = "(name, *, create_if_missing=False, error_if_exists=False, paranoid_checks=None, write_buffer_size=None, max_open_files=None, lru_cache_size=None, block_size=None, block_restart_interval=None, max_file_size=None, compression='snappy', bloom_filter_bits=None, comparator=None, comparator_name=None, read_only=None, durability='process', memory_max=None, memtable_bytes=None, memtables_max=None, segment_bytes_max=None, recovery_log_max=None, max_space_amplification=None, gc=None, gc_bytes_per_second=None, value_runs_max=None, reserved_bytes=None, log_mode=None, inline_value_max=None, value_codec=None, block_codec=None, block_bytes=None, filter_bits_per_key=None, table_bytes_max=None, level_bytes_base=None, block_cache_bytes=None, row_cache_bytes=None, direct_reads=None, relocation_cache_bytes=None, open_files_max=None, background_threads=None, listener=None)"
    )]
    fn new(name: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let chosen = options::parse("DB", options)?;
        let shared = Shared::open(name.py(), path(name)?, chosen)?;
        Ok(Self { view: View::present(shared, Vec::new()), name: name.clone().unbind() })
    }

    /// What it was opened by.
    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyAny> {
        self.name.clone_ref(py)
    }

    /// Whether it has been closed; true in a forked child, too.
    #[getter]
    fn closed(&self) -> bool {
        self.shared().is_closed()
    }

    fn __repr__(slf: Bound<'_, Self>) -> PyResult<String> {
        let name = slf.get().name.bind(slf.py()).repr()?;
        let closed = if slf.get().closed() { " (closed)" } else { "" };
        Ok(format!("<tamarack.DB with name {name}{closed} at {:#x}>", slf.as_ptr().addr()))
    }

    /// Closes it: waits for the calls of other threads, ending those that take long, closes its iterators, and gives the directory
    /// free. A second call does nothing.
    ///
    /// Raises ``IOError`` or ``NoSpaceError`` if that fails; everything acknowledged is in the log nevertheless.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.shared().close(py)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _type: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.shared().close(py)
    }

    /// The value of ``key``, or ``default`` if it has none.
    ///
    /// ``verify_checksums=False`` leaves out the check of the value's checksum; ``fill_cache=False`` keeps index blocks and values that are read out of
    /// the caches. Raises ``CorruptionError`` if what was read is not what was written.
    #[pyo3(signature = (key, default=None, *, verify_checksums=true, fill_cache=true))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.view.get(key, verify_checksums, fill_cache)?.map(Bound::into_any).or(default))
    }

    /// Writes the value of ``key`` to the beginning of ``buffer``, a writable one, and returns its length; ``None``, and nothing
    /// written, if it has no value. No object is made for the value.
    ///
    /// Raises ``ValueError``, and leaves the buffer as it was, if that has no room for the whole value.
    #[pyo3(signature = (key, buffer, *, verify_checksums=true, fill_cache=true))]
    fn get_into(
        &self,
        key: &Bound<'_, PyAny>,
        buffer: &Bound<'_, PyAny>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<Option<usize>> {
        self.view.get_into(key, buffer, verify_checksums, fill_cache)
    }

    /// The values of ``keys``, in their order, all of one moment; ``None`` for those that are not there. Values are read from
    /// the device in parallel.
    ///
    /// Raises what the first failure says; ``get`` then tells which others can be read.
    #[pyo3(signature = (keys, *, verify_checksums=true, fill_cache=true))]
    fn multi_get<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        self.view.multi_get(keys, verify_checksums, fill_cache)
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.view.get_item(key)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.view.contains(key)
    }

    /// Sets ``key`` to ``value``; returns when that is visible and survives the death of the process, with ``sync=True`` that of the
    /// machine. Without ``sync``, the ``durability`` decides that the database was opened with.
    ///
    /// Raises ``InvalidArgumentError`` (a key over 65,535 bytes, a value over 4 GiB - 1), ``NoSpaceError``, ``ReadOnlyError``: nothing
    /// was written. After ``IOError`` the write is in doubt until the database is opened again.
    #[pyo3(signature = (key, value, *, sync=None))]
    fn put(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, sync: Option<bool>) -> PyResult<()> {
        self.view.put(key, value, sync)
    }

    /// Removes ``key``. That it is not there is no error. Durable and raises as ``put``.
    #[pyo3(signature = (key, *, sync=None))]
    fn delete(&self, key: &Bound<'_, PyAny>, sync: Option<bool>) -> PyResult<()> {
        self.view.delete(key, sync)
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.view.put(key, value, None)
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.view.delete_item(key)
    }

    /// Sets all keys of a mapping, or of an iterable of pairs, in one atomic batch.
    #[pyo3(signature = (other, *, sync=None))]
    fn update(&self, other: &Bound<'_, PyAny>, sync: Option<bool>) -> PyResult<()> {
        self.view.update(other, sync)
    }

    /// A batch of operations that take effect together or not at all.
    ///
    /// With ``transaction=True``, a batch that is a context manager is not written if its block raises an exception.
    #[pyo3(signature = (*, transaction=false, sync=None))]
    fn write_batch(&self, py: Python<'_>, transaction: bool, sync: Option<bool>) -> PyResult<WriteBatch> {
        self.shared().admit(py)?;
        Ok(WriteBatch::new(self.shared(), &self.view.prefix, transaction, sync))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.view.iterator(py, None)
    }

    /// An iterator over the entries from ``start`` to ``stop``, or over those whose keys begin with ``prefix``, in the order of
    /// keys or against it. It sees the database as it is now.
    ///
    /// ``start`` is in the range and ``stop`` is not, unless ``include_start`` and ``include_stop`` say otherwise. It gives ``(key, value)``
    /// tuples; keys or values alone without the other; ``None`` without both. With ``expected_entries`` the values of so many are read
    /// together from where it begins, and none behind them before it is asked for; it is no limit.
    #[pyo3(
        signature = (**options),
        text_signature = "($self, *, reverse=False, start=None, stop=None, include_start=True, include_stop=False, prefix=None, include_key=True, include_value=True, expected_entries=None, verify_checksums=True, fill_cache=True)"
    )]
    fn iterator(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Iterator> {
        self.view.iterator(py, options)
    }

    /// An iterator over the keys.
    fn keys(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.view.all(py, true, false)
    }

    /// An iterator over the values, in the order of their keys.
    fn values(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.view.all(py, false, true)
    }

    /// An iterator over ``(key, value)`` tuples, as ``iter(db)`` is.
    fn items(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.view.all(py, true, true)
    }

    /// A raw iterator over everything, which stands nowhere until it is put somewhere.
    #[pyo3(signature = (*, verify_checksums=true, fill_cache=true))]
    fn raw_iterator(
        &self,
        py: Python<'_>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<RawIterator> {
        self.view.raw(py, verify_checksums, fill_cache).map(RawIterator::new)
    }

    /// The present moment, for reads. ``stats()["readers"]`` calls it by ``name``.
    #[pyo3(signature = (*, name=None))]
    fn snapshot(&self, py: Python<'_>, name: Option<String>) -> PyResult<Snapshot> {
        Snapshot::take(py, &self.view, name)
    }

    /// The part of the database whose keys begin with ``prefix``, which is added and cut off by it.
    fn prefixed_db(slf: Bound<'_, Self>, prefix: &Bound<'_, PyAny>) -> PyResult<PrefixedDatabase> {
        let prefix = given(prefix, "a prefix")?.into_owned();
        Ok(PrefixedDatabase::new(slf.unbind(), prefix))
    }

    /// A property as text, or ``None`` if there is none of that name: LevelDB's four, under ``leveldb.`` or ``tamarack.``.
    fn get_property<'py>(&self, name: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let py = name.py();
        let name = given(name, "a property's name")?;
        let Ok(name) = std::str::from_utf8(&name) else { return Ok(None) };
        let text = self.shared().run(py, |db| Ok(db.property(name)))?;
        Ok(text.map(|text| PyBytes::new(py, text.as_bytes())))
    }

    /// About how many bytes of disk the keys from ``start`` to before ``stop`` take, values included; those only in memory are not
    /// counted.
    fn approximate_size(&self, start: &Bound<'_, PyAny>, stop: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = start.py();
        let (start, stop) = (given(start, "start")?, given(stop, "stop")?);
        self.shared().run(py, |db| db.approximate_size(Some(&start), Some(&stop)))
    }

    /// The same for several ranges, each a ``(start, stop)`` tuple.
    #[pyo3(signature = (*ranges))]
    fn approximate_sizes(
        &self,
        py: Python<'_>,
        ranges: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    ) -> PyResult<Vec<u64>> {
        self.shared().admit(py)?;
        ranges.iter().map(|(start, stop)| self.approximate_size(start, stop)).collect()
    }

    /// Compacts all tables between ``start`` and ``stop``, so that nothing deleted or overwritten is left in them. Values stay where they
    /// are; ``gc()`` gives the space of dead ones back.
    ///
    /// Like all long calls it can be interrupted, as by Ctrl-C: the work then goes on by itself until the database is closed.
    #[pyo3(signature = (*, start=None, stop=None))]
    fn compact_range(
        &self,
        py: Python<'_>,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let key = |key: Option<Bound<'_, PyAny>>, what| key.map_or(Ok(None), |key| bound(&key, what));
        let (start, stop) = (key(start, "start")?, key(stop, "stop")?);
        self.shared().run_long(py, move |db| db.compact_range(start.as_deref(), stop.as_deref()))
    }

    /// Collects garbage of the value log now, beside what happens by itself: once, or, with ``until``, until the database takes at most so
    /// many bytes on disk for each live byte. Returns what was done. ``flush()`` first: what only memory knows to be dead is not freed.
    #[pyo3(signature = (*, until=None))]
    fn gc<'py>(&self, py: Python<'py>, until: Option<f64>) -> PyResult<Bound<'py, PyDict>> {
        let goal = until.map_or(GcGoal::Once, GcGoal::Until);
        report::gc(py, &self.shared().run_long(py, move |db| db.gc(goal))?)
    }

    /// Keeps garbage collection from beginning by itself until ``resume_gc()`` has been called as often.
    fn pause_gc(&self, py: Python<'_>) -> PyResult<()> {
        self.shared().run(py, |db| {
            db.pause_gc();
            Ok(())
        })
    }

    /// Ends a pause of garbage collection. Raises ``InvalidArgumentError`` if it is not paused.
    fn resume_gc(&self, py: Python<'_>) -> PyResult<()> {
        self.shared().run(py, tamarack::Db::resume_gc)
    }

    /// Changes how many bytes a second garbage collection may copy, as the option ``gc_bytes_per_second`` does; 0 is no limit.
    fn set_gc_bytes_per_second(&self, py: Python<'_>, bytes: u64) -> PyResult<()> {
        self.shared().run(py, move |db| {
            db.set_gc_bytes_per_second(bytes);
            Ok(())
        })
    }

    /// Sorts values by key now, until scans find no more than ``value_runs_max`` sorted runs of them anywhere; by itself that is done while
    /// nothing is written.
    fn sort_values(&self, py: Python<'_>) -> PyResult<()> {
        self.shared().run_long(py, tamarack::Db::sort_values)
    }

    /// Makes a copy of the database in the directory ``path``, while reads and writes go on, and returns what it shares and copies. On the
    /// same file system, files are shared by hard links.
    fn checkpoint<'py>(&self, path: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let (py, target) = (path.py(), self::path(path)?);
        report::checkpoint(py, &self.shared().run_long(py, move |db| db.checkpoint(target))?)
    }

    /// Makes everything that was written so far survive the machine.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.shared().run(py, tamarack::Db::sync)
    }

    /// Turns what is in memory into tables, so that opening has nothing to replay.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.shared().run_long(py, tamarack::Db::flush)
    }

    /// Waits until flushes and compactions have nothing left to do.
    fn wait_idle(&self, py: Python<'_>) -> PyResult<()> {
        self.shared().run_long(py, tamarack::Db::wait_idle)
    }

    /// Figures about the database: all fields of the engine's ``Stats``.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        report::stats(py, &self.shared().run(py, |db| Ok(db.stats()))?)
    }

    /// What opening found in the log.
    fn recovery<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        report::recovery(py, &self.shared().run(py, |db| Ok(db.recovery().clone()))?)
    }

    /// Checks what is on disk, and returns what was found. ``level`` is ``"structure"``, ``"checksums"``, ``"liveness"`` or ``"values"``, each
    /// reading more.
    #[pyo3(signature = (level=None))]
    fn check<'py>(&self, py: Python<'py>, level: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyDict>> {
        let level = level.map_or(Ok(CheckLevel::default()), |level| one_of("level", level, CHECK_LEVELS))?;
        report::check(py, &self.shared().run_long(py, move |db| Ok(db.check(level)))?)
    }

    /// What the database was opened with, by Tamarack's names.
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = report::options(py, &self.shared().options)?;
        all.set_item("durability", if self.shared().synced { "machine" } else { "process" })?;
        Ok(all)
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        errors::refuse_pickling("a DB")
    }
}

/// Removes the database in the directory ``name``: every file that is one of ours, and the directory if nothing else is in it. That there is
/// none is no error.
///
/// Raises ``LockedError`` if it is open, ``InvalidArgumentError`` if it is a database of LevelDB's, ``IOError``.
#[pyfunction]
pub fn destroy_db(name: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, path) = (name.py(), path(name)?);
    let outcome = patience::wait_for(py, move || tamarack::Db::destroy(path))?;
    outcome.map_err(|error| errors::raise(py, &error))
}

/// Repairs the database in the directory ``name``: makes one that can be opened out of what is whole, and returns a report of what is not.
///
/// Nothing is removed: what is not used any more is in the directory ``lost``. With ``dry_run=True`` nothing is changed at all. Takes the
/// options of ``DB``.
///
/// Raises ``InvalidArgumentError`` if there is none, ``LockedError`` if it is open, ``CorruptionError`` if nothing tells which database it
/// was, ``IOError``, ``NoSpaceError``.
#[pyfunction]
#[pyo3(
    signature = (name, *, dry_run=false, **options),
    text_signature = "(name, *, dry_run=False, paranoid_checks=None, write_buffer_size=None, max_open_files=None, lru_cache_size=None, block_size=None, block_restart_interval=None, max_file_size=None, compression='snappy', bloom_filter_bits=None, comparator=None, comparator_name=None, **options)"
)]
pub fn repair_db<'py>(
    name: &Bound<'py, PyAny>,
    dry_run: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (py, path) = (name.py(), path(name)?);
    let chosen = options::parse("repair_db", options)?;
    let how = RepairOptions { dry_run, ..RepairOptions::default() };
    let Chosen { options, order, .. } = chosen;
    let outcome = patience::wait_for(py, move || tamarack::Db::repair_with(path, &options, how));
    if let Some(order) = order {
        order.check(py)?;
    }
    let outcome = outcome?;
    report::repair(py, &outcome.map_err(|error| errors::raise(py, &error))?)
}
