//! What belongs to the engine and is dropped with care: detached, because that may wait for engine threads, and not at all in a
//! forked child, whose copy of it is no more than a memory.

use pyo3::Python;

use crate::fork::Process;

/// Something of the engine's, in the process that made it.
pub struct Kept<T: Send> {
    value: Option<T>,
    process: Process,
}

impl<T: Send> Kept<T> {
    /// Keeps `value`.
    pub fn new(value: T) -> Self {
        Self { value: Some(value), process: Process::current() }
    }

    /// The process that made it.
    pub fn process(&self) -> Process {
        self.process
    }

    /// The value.
    pub fn get(&self) -> &T {
        self.value.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: Send> Drop for Kept<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else { return };
        if !self.process.is_current() {
            std::mem::forget(value);
            return;
        }
        let mut value = Some(value);
        // Without an interpreter, which may be gone, nobody waits for it.
        Python::try_attach(|py| py.detach(|| drop(value.take())));
    }
}
