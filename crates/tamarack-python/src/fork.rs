//! Which process this is, counted in forks. A child has memory like its parent's, but none of its threads: whatever locks
//! they held stay locked. Owns the count and the hook that raises it; asking costs one load, where a process id would cost
//! a system call.
//!
//! A fork by C code that goes on in Python without telling the interpreter is not noticed. That is forbidden anyway.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;

static FORKS: AtomicU64 = AtomicU64::new(0);

/// The process in which something was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(u64);

impl Process {
    /// This one.
    pub fn current() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this is still the same process.
    pub fn is_current(self) -> bool {
        self == Self::current()
    }

    /// Refuses what was made before a fork.
    ///
    /// # Errors
    /// `ForkError`.
    pub fn check(self, py: Python<'_>) -> PyResult<()> {
        if self.is_current() { Ok(()) } else { Err(errors::forked(py)) }
    }
}

/// Called by the interpreter in a child that has just been forked.
#[pyfunction]
fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Asks the interpreter to tell of forks.
pub fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let hooks = PyDict::new(py);
    hooks.set_item("after_in_child", wrap_pyfunction!(forked, module)?)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
    Ok(())
}
