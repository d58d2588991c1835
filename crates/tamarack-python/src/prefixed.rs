//! `PrefixedDB`: the part of a database whose keys begin with a prefix.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::batch::WriteBatch;
use crate::bytes::given;
use crate::database::Database;
use crate::errors;
use crate::iterator::Iterator;
use crate::snapshot::Snapshot;
use crate::view::View;

/// The part of a database whose keys begin with a prefix. Used like a ``DB``, with keys that lack the prefix.
#[pyclass(frozen, weakref, name = "PrefixedDB", module = "tamarack")]
pub struct PrefixedDatabase {
    database: Py<Database>,
    view: View,
}

impl PrefixedDatabase {
    /// What is below `prefix` in `database`.
    pub fn new(database: Py<Database>, prefix: Vec<u8>) -> Self {
        let view = View::present(Arc::clone(&database.get().view().shared), prefix);
        Self { database, view }
    }
}

#[pymethods]
impl PrefixedDatabase {
    /// The database.
    #[getter]
    fn db(&self, py: Python<'_>) -> Py<Database> {
        self.database.clone_ref(py)
    }

    /// The prefix.
    #[getter]
    fn prefix<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.view.prefix)
    }

    fn __repr__(slf: Bound<'_, Self>) -> PyResult<String> {
        let prefix = slf.get().prefix(slf.py()).repr()?.to_string();
        Ok(format!("<tamarack.PrefixedDB with prefix {prefix} at {:#x}>", slf.as_ptr().addr()))
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

    /// Sets ``key`` to ``value``. See ``DB.put``.
    #[pyo3(signature = (key, value, *, sync=None))]
    fn put(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, sync: Option<bool>) -> PyResult<()> {
        self.view.put(key, value, sync)
    }

    /// Removes ``key``. See ``DB.delete``.
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

    /// A batch of operations on keys without the prefix. See ``DB.write_batch``.
    #[pyo3(signature = (*, transaction=false, sync=None))]
    fn write_batch(&self, py: Python<'_>, transaction: bool, sync: Option<bool>) -> PyResult<WriteBatch> {
        self.view.shared.admit(py)?;
        Ok(WriteBatch::new(&self.view.shared, &self.view.prefix, transaction, sync))
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

    /// An iterator over ``(key, value)`` tuples, as ``iter(db)`` is.
    fn items(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.view.all(py, true, true)
    }

    /// The present moment of this part. See ``DB.snapshot``.
    #[pyo3(signature = (*, name=None))]
    fn snapshot(&self, py: Python<'_>, name: Option<String>) -> PyResult<Snapshot> {
        Snapshot::take(py, &self.view, name)
    }

    /// The part of this part whose keys begin with ``prefix``.
    fn prefixed_db(&self, prefix: &Bound<'_, PyAny>) -> PyResult<Self> {
        let whole = [&self.view.prefix, &*given(prefix, "a prefix")?].concat();
        Ok(Self::new(self.database.clone_ref(prefix.py()), whole))
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        errors::refuse_pickling("a PrefixedDB")
    }
}
