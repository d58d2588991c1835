//! Calls that may take long: they run on a thread of their own, so that the caller's can be interrupted.

#![expect(
    clippy::disallowed_methods,
    reason = "a call of the user's is waited for; no world is simulated here"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors;

/// How often signals are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What `work` returns. If a signal's handler raises meanwhile, as for Ctrl-C, its exception comes out at once; the work goes on
/// alone, and what it returns is dropped.
///
/// # Errors
/// The exception of a signal's handler; `RuntimeError` if there can be no thread; `Error` for a panic.
pub fn wait_for<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let (done, mut outcome) = channel();
    let run = move || {
        // Nobody may wait for it any more.
        let _unwanted = done.send(catch_unwind(AssertUnwindSafe(work)));
    };
    let thread = std::thread::Builder::new().name("tamarack-call".to_owned()).spawn(run);
    thread.map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
    loop {
        // A receiver is used by one thread at a time: it goes with the call and comes back.
        let (back, received) = py.detach(move || {
            let received = outcome.recv_timeout(LOOK_EVERY);
            (outcome, received)
        });
        outcome = back;
        match received {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(panic)) => return Err(errors::internal(py, &*panic)),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(raised) = py.check_signals() {
                    // What has come meanwhile may be a database, which waits for threads that wait for the interpreter.
                    py.detach(move || drop(outcome));
                    return Err(raised);
                }
            }
            Err(RecvTimeoutError::Disconnected) => unreachable!("the thread sends before it ends"),
        }
    }
}
