//! `RawIterator`: a walk that is moved and looked at by separate calls, as plyvel's and LevelDB's own.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tamarack::Result;

use crate::bytes::given;
use crate::errors;
use crate::walk::{Owned, Walk};

/// A walk over all entries of a database, as it was when the walk began. It stands on an entry or nowhere.
///
/// Unlike an ``Iterator``, it is no Python iterator: ``seek_to_first()``, ``seek_to_last()`` or ``seek()`` put it somewhere,
/// ``next()`` and ``prev()`` move it, and ``key()``, ``value()`` and ``item()`` look. Where it stands nowhere, those raise
/// ``IteratorInvalidError``. Keys are whole, also for a snapshot of a prefixed database.
#[pyclass(frozen, weakref, module = "tamarack")]
pub struct RawIterator {
    owned: Owned,
}

impl RawIterator {
    /// One that stands nowhere.
    pub fn new(owned: Owned) -> Self {
        Self { owned }
    }

    /// Places it by `seek`.
    fn place(&self, py: Python<'_>, seek: impl FnOnce(&mut Walk) -> Result<()> + Send) -> PyResult<()> {
        self.owned.with(py, seek, |(), _| Ok(()))
    }

    /// Does `work` if it stands on an entry.
    fn there<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Walk) -> Result<()> + Send,
        show: impl FnOnce(&mut Walk) -> PyResult<R>,
    ) -> PyResult<R> {
        let work = |walk: &mut Walk| if walk.iter.valid() { work(walk).map(|()| true) } else { Ok(false) };
        let show = |there: bool, walk: &mut Walk| there.then(|| show(walk)).transpose();
        self.owned.with(py, work, show)?.ok_or_else(|| errors::iterator_invalid(py))
    }
}

#[pymethods]
impl RawIterator {
    /// Whether it stands on an entry.
    fn valid(&self, py: Python<'_>) -> PyResult<bool> {
        self.owned.with(py, |walk| Ok(walk.iter.valid()), |valid, _| Ok(valid))
    }

    /// Goes to the first entry.
    fn seek_to_first(&self, py: Python<'_>) -> PyResult<()> {
        self.place(py, |walk| walk.iter.seek_to_first())
    }

    /// Goes to the last entry.
    fn seek_to_last(&self, py: Python<'_>) -> PyResult<()> {
        self.place(py, |walk| walk.iter.seek_to_last())
    }

    /// Goes to the first entry at or behind ``target``, a key.
    fn seek(&self, py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<()> {
        let target = given(target, "a key")?;
        self.place(py, |walk| walk.iter.seek(&target))
    }

    /// Goes to the next entry, or nowhere behind the last.
    fn next(&self, py: Python<'_>) -> PyResult<()> {
        self.there(py, |walk| walk.iter.next(), |_| Ok(()))
    }

    /// Goes to the entry before, or nowhere before the first.
    fn prev(&self, py: Python<'_>) -> PyResult<()> {
        self.there(py, |walk| walk.iter.prev(), |_| Ok(()))
    }

    /// The key it stands on.
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.there(py, |_| Ok(()), |walk| Ok(PyBytes::new(py, walk.iter.key())))
    }

    /// The value it stands on; read from the device if need be.
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let show = |walk: &mut Walk| match walk.iter.value() {
            Ok(value) => Ok(PyBytes::new(py, value)),
            Err(error) => Err(errors::raise(py, &error)),
        };
        self.there(py, |walk| walk.iter.value().map(drop), show)
    }

    /// The key and the value it stands on.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        Ok((self.key(py)?, self.value(py)?))
    }

    /// Closes it, and lets go of what it needed. A second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.owned.close(py)
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
    ) -> PyResult<bool> {
        self.owned.close(py)?;
        Ok(false)
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        errors::refuse_pickling("a RawIterator")
    }
}
