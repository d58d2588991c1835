//! `WriteBatch`: operations that take effect together or not at all.

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use tamarack::{Operation, WriteOptions};

use crate::bytes::given;
use crate::errors;
use crate::shared::Shared;
use crate::view::View;

/// Bytes that an empty batch of LevelDB's takes, and each of its operations besides key and value.
const HEADER_BYTES: usize = 12;
const OPERATION_BYTES: usize = 3;

/// Operations that are applied in order and atomically: other threads see all of them or none, and so does whoever opens the
/// database after a crash.
///
/// As a context manager it is written and cleared at the end of the block; also after an exception, as in plyvel, unless it was made
/// with ``transaction=True``.
#[pyclass(frozen, weakref, module = "tamarack")]
pub struct WriteBatch {
    view: View,
    transaction: bool,
    writing: WriteOptions,
    batch: Mutex<tamarack::WriteBatch>,
}

impl WriteBatch {
    /// An empty batch for what is below `prefix`.
    pub fn new(shared: &Arc<Shared>, prefix: &[u8], transaction: bool, sync: Option<bool>) -> Self {
        let view = View::present(Arc::clone(shared), prefix.to_vec());
        let writing = view.writing(sync);
        Self { view, transaction, writing, batch: Mutex::default() }
    }

    /// Changes the operations, in memory.
    fn change<R>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut tamarack::WriteBatch) -> tamarack::Result<R>,
    ) -> PyResult<R> {
        self.view.shared.admit(py)?;
        let mut batch = self.batch.lock_py_attached(py);
        let changed = change(&mut batch);
        // A new exception may begin a garbage collection, and what that finalizes may use the batch.
        drop(batch);
        changed.map_err(|error| errors::raise(py, &error))
    }
}

#[pymethods]
impl WriteBatch {
    /// Adds "set ``key`` to ``value``".
    pub fn put(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        let (key, value) = (self.view.key(key)?, given(value, "a value")?);
        self.change(py, |batch| batch.put(&key, &value))
    }

    /// Adds "remove ``key``". That it is not there is no error.
    pub fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        let key = self.view.key(key)?;
        self.change(py, |batch| batch.delete(&key))
    }

    /// Removes every operation.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |batch| {
            batch.clear();
            Ok(())
        })
    }

    /// Adds the operations of another batch, of whatever database, behind those of this one.
    fn append(&self, py: Python<'_>, source: &Self) -> PyResult<()> {
        // One lock at a time: the other may be this one.
        let added = source.change(py, |batch| Ok(batch.clone()))?;
        self.change(py, |batch| {
            added.iter().try_for_each(|operation| match operation {
                Operation::Put { key, value } => batch.put(key, value),
                Operation::Delete { key } => batch.delete(key),
            })
        })
    }

    /// About how many bytes it would take as a batch of LevelDB's.
    fn approximate_size(&self, py: Python<'_>) -> PyResult<usize> {
        self.change(py, |batch| Ok(HEADER_BYTES + OPERATION_BYTES * batch.len() + batch.user_bytes()))
    }

    /// Applies the operations; when it returns, they are visible and survive the death of the process, with ``sync`` that of the
    /// machine. The batch keeps them.
    pub fn write(&self, py: Python<'_>) -> PyResult<()> {
        self.view.shared.admit(py)?;
        let batch = self.batch.lock_py_attached(py);
        let (operations, writing) = (&*batch, &self.writing);
        let outcome = py.detach(|| self.view.shared.call(|db| db.write(operations, writing)));
        drop(batch);
        self.view.shared.settle(py, outcome)
    }

    fn __enter__<'py>(slf: Bound<'py, Self>, py: Python<'py>) -> PyResult<Bound<'py, Self>> {
        slf.get().view.shared.admit(py)?;
        Ok(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !self.transaction || kind.is_none() {
            self.write(py)?;
        }
        self.clear(py)
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        errors::refuse_pickling("a WriteBatch")
    }
}
