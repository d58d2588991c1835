//! An order of keys written in Python, called by whatever thread of the engine searches or merges.
//!
//! An exception in it is either another's, such as that of a signal's handler, which Python runs wherever it happens to be:
//! then asking again succeeds, and the exception comes out of the call that was disturbed. Or the order itself is broken: then no
//! key can be placed, the search unwinds, the engine refuses writes, and the database every further call.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::fmt;
use std::panic::resume_unwind;

use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors;

/// Longest name in bytes that the engine stores.
const NAME_BYTES_MAX: usize = 255;

thread_local! {
    /// Whether this thread is inside a comparator.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Whether it is inside a listener.
    static LISTENING: Cell<bool> = const { Cell::new(false) };
    /// What was raised in a comparator of this thread and is not its own failure.
    static DISTURBANCE: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// The order of a callable that takes two keys.
pub struct PythonOrder {
    name: String,
    compare: Py<PyAny>,
    /// Why it cannot be asked any more.
    failure: Mutex<Option<PyErr>>,
}

/// Unwinds a search that the order has failed.
struct Broken;

impl PythonOrder {
    /// The order of `compare` under `name`, which is stored with the database.
    ///
    /// # Errors
    /// `TypeError` and `ValueError`, as plyvel's.
    pub fn new(compare: &Bound<'_, PyAny>, name: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !compare.is_callable() {
            return Err(PyTypeError::new_err("comparator must be callable with two keys"));
        }
        let name = if let Ok(name) = name.cast::<PyBytes>() {
            std::str::from_utf8(name.as_bytes()).ok().map(str::to_owned)
        } else if let Ok(name) = name.cast::<PyString>() {
            Some(name.extract()?)
        } else {
            return Err(PyTypeError::new_err("comparator_name must be bytes"));
        };
        let name = name.filter(|name| (1..=NAME_BYTES_MAX).contains(&name.len())).ok_or_else(|| {
            PyValueError::new_err(format!("comparator_name must have 1 to {NAME_BYTES_MAX} bytes of UTF-8"))
        })?;
        Ok(Self { name, compare: compare.clone().unbind(), failure: Mutex::new(None) })
    }

    /// Refuses to go on after a failure.
    ///
    /// # Errors
    /// `ComparatorError`, because of what the callable raised.
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        let failure = self.failure.lock().as_ref().map(|failure| failure.clone_ref(py));
        failure.map_or(Ok(()), |cause| Err(errors::comparator(py, cause)))
    }

    /// Whether it cannot be asked any more.
    pub fn has_failed(&self) -> bool {
        self.failure.lock().is_some()
    }

    fn ask(&self, py: Python<'_>, left: &[u8], right: &[u8]) -> PyResult<Ordering> {
        let answer = self.compare.bind(py).call1((PyBytes::new(py, left), PyBytes::new(py, right)))?;
        if answer.lt(0)? {
            Ok(Ordering::Less)
        } else if answer.gt(0)? {
            Ok(Ordering::Greater)
        } else {
            Ok(Ordering::Equal)
        }
    }

    /// Asks, and again if something was raised, because that may not have been the order's.
    fn ask_twice(&self, py: Python<'_>, left: &[u8], right: &[u8]) -> Result<Ordering, Broken> {
        let was_inside = INSIDE.replace(true);
        let first = self.ask(py, left, right);
        let answer = first.or_else(|disturbance| {
            let second = self.ask(py, left, right)?;
            DISTURBANCE.set(Some(disturbance));
            Ok(second)
        });
        INSIDE.set(was_inside);
        answer.map_err(|failure: PyErr| {
            self.failure.lock().get_or_insert(failure);
            Broken
        })
    }
}

impl fmt::Debug for PythonOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonOrder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl tamarack::Comparator for PythonOrder {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        if !self.has_failed()
            && let Some(Ok(order)) = Python::try_attach(|py| self.ask_twice(py, left, right))
        {
            return order;
        }
        // The engine takes a panic for a failure of its own: what it was doing ends, and nothing wrong is stored.
        resume_unwind(Box::new(Broken))
    }
}

/// Refuses a call from inside a comparator: the engine may hold locks around it.
///
/// # Errors
/// `RuntimeError`.
pub fn check_outside() -> PyResult<()> {
    if INSIDE.get() {
        return Err(PyRuntimeError::new_err("a comparator must not use a database"));
    }
    Ok(())
}

/// Calls a listener by `call`.
pub fn listen<R>(call: impl FnOnce() -> R) -> R {
    let was_listening = LISTENING.replace(true);
    let result = call();
    LISTENING.set(was_listening);
    result
}

/// Refuses a close from inside a comparator or a listener, which would wait for the work that has called it.
///
/// # Errors
/// `RuntimeError`.
pub fn check_may_close() -> PyResult<()> {
    if LISTENING.get() {
        return Err(PyRuntimeError::new_err("a listener must not close a database"));
    }
    check_outside()
}

/// What was raised in a comparator while the engine was at work for this thread.
///
/// # Errors
/// Just that.
pub fn check_undisturbed() -> PyResult<()> {
    DISTURBANCE.take().map_or(Ok(()), Err)
}

/// Whether nothing was.
pub fn is_undisturbed() -> bool {
    DISTURBANCE.with_borrow(Option::is_none)
}
