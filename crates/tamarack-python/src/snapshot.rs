//! `Snapshot`: a moment of a database, or of a part of it.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors;
use crate::iterator::Iterator;
use crate::raw_iterator::RawIterator;
use crate::view::View;

/// A database as it was at one moment. Reads like a ``DB``.
///
/// What it alone still sees takes up space until it is closed; ``DB.stats()["readers"]`` lists the snapshots there are.
#[pyclass(frozen, weakref, module = "tamarack")]
pub struct Snapshot {
    view: View,
    name: Option<String>,
}

impl Snapshot {
    /// The present moment of `view`.
    ///
    /// # Errors
    /// Those of [`View::now`].
    pub fn take(py: Python<'_>, view: &View, name: Option<String>) -> PyResult<Self> {
        Ok(Self { view: view.now(py, name.as_deref())?, name })
    }
}

#[pymethods]
impl Snapshot {
    /// The name it was taken under, or ``None``.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The value of ``key``, or ``default``. See ``DB.get``.
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

    /// Writes the value of ``key`` to the beginning of ``buffer``. See ``DB.get_into``.
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

    /// The values of ``keys``, in their order; ``None`` for those that are not there. See ``DB.multi_get``.
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

    fn __iter__(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.view.iterator(py, None)
    }

    /// An iterator over a range. See ``DB.iterator``.
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

    /// An iterator over ``(key, value)`` tuples, as ``iter(snapshot)`` is.
    fn items(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.view.all(py, true, true)
    }

    /// A raw iterator over everything. See ``DB.raw_iterator``.
    #[pyo3(signature = (*, verify_checksums=true, fill_cache=true))]
    fn raw_iterator(
        &self,
        py: Python<'_>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<RawIterator> {
        self.view.raw(py, verify_checksums, fill_cache).map(RawIterator::new)
    }

    /// Lets the moment go. Iterators over it go on. A second call does nothing.
    fn close(&self, py: Python<'_>) {
        self.view.close(py);
    }

    /// The same as ``close()``.
    fn release(&self, py: Python<'_>) {
        self.view.close(py);
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
    ) -> bool {
        self.view.close(py);
        false
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        errors::refuse_pickling("a Snapshot")
    }
}
