//! An open database, as all objects of it share it.
//!
//! Calls of the engine hold the lock of the handle for reading, so that a close waits for them; it marks the database as closed
//! first, ends long calls by the engine's own close, and then takes the handle and every iterator away. When it
//! returns, the directory can be opened again.
//!
//! Locks are waited for detached only. They rank: `closing`, `handle`, then the list of walks, and the lock of one walk.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;

use parking_lot::{Mutex, RwLock};
use pyo3::prelude::*;
use tamarack::{Db, Error, Options, Result};

use crate::errors;
use crate::fork::Process;
use crate::kept::Kept;
use crate::options::Chosen;
use crate::order::{self, PythonOrder};
use crate::patience;
use crate::walk::Place;

/// What a call of the engine came to; an error is what it panicked with.
pub type Outcome<T> = thread::Result<Result<T>>;

/// An open database.
pub struct Shared {
    kept: Kept<Inner>,
    closed: AtomicBool,
    order: Option<Arc<PythonOrder>>,
    /// Whether writes survive the machine unless they say otherwise.
    pub synced: bool,
    /// What it was opened with.
    pub options: Options,
}

struct Inner {
    handle: RwLock<Option<Db>>,
    closing: Mutex<()>,
    walks: Mutex<Walks>,
}

/// Iterators, to be closed with the database.
#[derive(Default)]
struct Walks {
    last: u64,
    open: HashMap<u64, Weak<Place>>,
}

/// Every database of this process that may be open. Its lock is held for moments, and only while attached: in a child, whose
/// forking thread was attached, nobody holds it.
static OPEN: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

impl Shared {
    /// Opens the database in the directory `path`.
    ///
    /// # Errors
    /// Those of [`Db::open`]; of a comparator; of a signal's handler.
    pub fn open(py: Python<'_>, path: PathBuf, chosen: Chosen) -> PyResult<Arc<Self>> {
        let Chosen { options, order, synced } = chosen;
        let asked = options.clone();
        let opened = patience::wait_for(py, move || catch_unwind(AssertUnwindSafe(|| Db::open(path, asked))));
        let db = settle(py, order.as_deref(), opened)?;
        let inner = Inner {
            handle: RwLock::new(Some(db)),
            closing: Mutex::new(()),
            walks: Mutex::new(Walks::default()),
        };
        let closed = AtomicBool::new(false);
        let shared = Arc::new(Self { kept: Kept::new(inner), closed, order, synced, options });
        let mut open = OPEN.lock();
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&shared));
        Ok(shared)
    }

    /// Whether it cannot be used here: closed, or of another process.
    pub fn is_closed(&self) -> bool {
        !self.kept.process().is_current() || self.closed.load(Ordering::Acquire)
    }

    /// Refuses what must not go on.
    ///
    /// # Errors
    /// `ForkError`, `ClosedError`, `ComparatorError`, and `RuntimeError` inside a comparator.
    pub fn admit(&self, py: Python<'_>) -> PyResult<()> {
        self.kept.process().check(py)?;
        if self.closed.load(Ordering::Acquire) {
            return Err(errors::closed(py, "the database"));
        }
        match &self.order {
            None => order::check_outside(),
            Some(order) => order::check_outside().and_then(|()| order.check(py)),
        }
    }

    /// The process that opened it.
    pub fn process(&self) -> Process {
        self.kept.process()
    }

    /// Calls the engine, detached.
    ///
    /// # Errors
    /// Those of [`admit`](Self::admit) and of `work`.
    pub fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Db) -> Result<T> + Send) -> PyResult<T> {
        self.admit(py)?;
        let outcome = py.detach(|| self.call(work));
        self.settle(py, outcome)
    }

    /// Calls the engine so that signals are handled meanwhile; see [`patience::wait_for`].
    ///
    /// # Errors
    /// Those of [`run`](Self::run), and of a signal's handler.
    pub fn run_long<T: Send + 'static>(
        self: &Arc<Self>,
        py: Python<'_>,
        work: impl FnOnce(&Db) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        self.admit(py)?;
        let shared = Arc::clone(self);
        let outcome = patience::wait_for(py, move || shared.call(work));
        self.settle(py, outcome?)
    }

    /// Calls the engine. To be called detached, after [`admit`](Self::admit), and to be [`settle`](Self::settle)d.
    pub fn call<T>(&self, work: impl FnOnce(&Db) -> Result<T>) -> Outcome<T> {
        let handle = self.kept.get().handle.read();
        match handle.as_ref() {
            Some(db) => catch_unwind(AssertUnwindSafe(|| work(db))),
            None => Ok(Err(Error::closed())),
        }
    }

    /// Whether no comparator has raised anything that [`settle`](Self::settle) would tell.
    pub fn is_undisturbed(&self) -> bool {
        self.order.as_ref().is_none_or(|order| !order.has_failed() && order::is_undisturbed())
    }

    /// What an outcome means for the caller.
    ///
    /// # Errors
    /// The engine's; what disturbed a comparator, or why it failed.
    pub fn settle<T: Send>(&self, py: Python<'_>, outcome: Outcome<T>) -> PyResult<T> {
        settle(py, self.order.as_deref(), Ok(outcome))
    }

    /// Remembers an iterator until [`forget`](Self::forget) or the close. Called by a thread that [`run`](Self::run)s.
    pub fn remember(&self, place: &Arc<Place>) -> u64 {
        let mut walks = self.kept.get().walks.lock();
        walks.last += 1;
        let number = walks.last;
        walks.open.insert(number, Arc::downgrade(place));
        number
    }

    /// An iterator is gone. Called detached, in the process that opened it.
    pub fn forget(&self, number: u64) {
        self.kept.get().walks.lock().open.remove(&number);
    }

    /// Closes it. Waits for calls of other threads. A second call does nothing, and neither does one in a forked child.
    ///
    /// # Errors
    /// `RuntimeError` inside a comparator or a listener. Those of [`Db::close`]: it is closed nevertheless.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        if !self.kept.process().is_current() {
            return Ok(());
        }
        order::check_may_close()?;
        let outcome = py.detach(|| self.close_detached());
        match &self.order {
            // Why has been told, and nothing more can be done about it.
            Some(order) if order.check(py).is_err() => Ok(()),
            _ => self.settle(py, outcome),
        }
    }

    fn close_detached(&self) -> Outcome<()> {
        let inner = self.kept.get();
        let _one_at_a_time = inner.closing.lock();
        self.closed.store(true, Ordering::Release);
        let Some(db) = inner.handle.read().clone() else { return Ok(Ok(())) };
        // Ends calls that take long; whoever is in one has the handle locked until then.
        let outcome = catch_unwind(AssertUnwindSafe(|| db.close()));
        let handle = inner.handle.write().take();
        let open = std::mem::take(&mut inner.walks.lock().open);
        for place in open.into_values().filter_map(|place| place.upgrade()) {
            drop(place.lock().take());
        }
        drop(handle);
        outcome
    }
}

fn settle<T: Send>(
    py: Python<'_>,
    order: Option<&PythonOrder>,
    outcome: PyResult<Outcome<T>>,
) -> PyResult<T> {
    let outcome = outcome?;
    // The failure before the disturbance: with it, nothing was done.
    let checked = order.map_or(Ok(()), |order| order.check(py).and_then(|()| order::check_undisturbed()));
    if let Err(error) = checked {
        // It may be a database, which waits for threads that wait for the interpreter.
        py.detach(|| drop(outcome));
        return Err(error);
    }
    match outcome {
        Ok(result) => result.map_err(|error| errors::raise(py, &error)),
        Err(panic) => Err(errors::internal(py, &*panic)),
    }
}

/// Closes what is open when the interpreter ends, while threads of the engine can still call into it.
#[pyfunction]
fn close_all(py: Python<'_>) {
    let open = std::mem::take(&mut *OPEN.lock());
    for shared in open.iter().filter_map(Weak::upgrade) {
        if let Err(error) = shared.close(py) {
            error.write_unraisable(py, None);
        }
    }
}

/// Has [`close_all`] called at the end.
pub fn close_at_exit(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let close_all = wrap_pyfunction!(close_all, module)?;
    module.py().import("atexit")?.call_method1("register", (close_all,)).map(drop)
}
