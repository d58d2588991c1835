//! A walk over a range, and the place that holds it until it or its database is closed.
//!
//! A walk stands in a gap: before the first entry, between two, or behind the last. Going on gives the entry behind the gap and
//! steps over it, going back the one before it; so a turn gives the same entry again, as in plyvel.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use tamarack::{Iter, Result};

use crate::errors;
use crate::kept::Kept;
use crate::shared::Shared;

/// How many steps are made between two looks for signals.
const STEPS_BETWEEN_SIGNALS: u32 = 256;

/// Where a walk is; empty once it is closed.
pub type Place = Mutex<Option<Walk>>;

/// Where the gap is, seen from the engine's iterator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    /// Before the first entry.
    Start,
    /// Before the entry that it stands on.
    Before,
    /// Behind the entry that it stands on.
    After,
    /// Behind the last entry.
    End,
}

/// A walk over a range.
pub struct Walk {
    /// The engine's iterator.
    pub iter: Iter,
    gap: Gap,
    steps: u32,
}

impl Walk {
    /// A walk that stands before the first entry of `iter`.
    pub fn new(iter: Iter) -> Self {
        Self { iter, gap: Gap::Start, steps: 0 }
    }

    /// Goes before the first entry.
    pub fn go_to_start(&mut self) {
        self.gap = Gap::Start;
    }

    /// Goes behind the last entry.
    pub fn go_to_end(&mut self) {
        self.gap = Gap::End;
    }

    /// Goes before the first entry at or behind `key`.
    ///
    /// # Errors
    /// The engine's.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.iter.seek(key)?;
        self.gap = if self.iter.valid() { Gap::Before } else { Gap::End };
        Ok(())
    }

    /// Steps over the next entry, which the iterator then stands on; `false` at the end.
    ///
    /// # Errors
    /// The engine's.
    pub fn forward(&mut self) -> Result<bool> {
        match self.gap {
            Gap::Start => self.iter.seek_to_first()?,
            Gap::Before => {}
            Gap::After => self.iter.next()?,
            Gap::End => return Ok(false),
        }
        let found = self.iter.valid();
        self.gap = if found { Gap::After } else { Gap::End };
        Ok(found)
    }

    /// Steps back over the entry before, which the iterator then stands on; `false` at the start.
    ///
    /// # Errors
    /// The engine's.
    pub fn back(&mut self) -> Result<bool> {
        match self.gap {
            Gap::End => self.iter.seek_to_last()?,
            Gap::After => {}
            Gap::Before => self.iter.prev()?,
            Gap::Start => return Ok(false),
        }
        let found = self.iter.valid();
        self.gap = if found { Gap::Before } else { Gap::Start };
        Ok(found)
    }

    /// Whether it is time to look for signals.
    pub fn is_signal_due(&mut self) -> bool {
        self.steps = (self.steps + 1) % STEPS_BETWEEN_SIGNALS;
        self.steps == 0
    }
}

/// A walk as an object of Python's owns it.
pub struct Owned {
    shared: Arc<Shared>,
    kept: Kept<Registered>,
}

/// Leaves its database's list when it is dropped.
struct Registered {
    shared: Arc<Shared>,
    place: Arc<Place>,
    number: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.shared.forget(self.number);
    }
}

impl Owned {
    /// Owns what `open` makes.
    ///
    /// # Errors
    /// Those of [`Shared::run`].
    pub fn open(
        py: Python<'_>,
        shared: &Arc<Shared>,
        open: impl FnOnce(&tamarack::Db) -> Result<Iter> + Send,
    ) -> PyResult<Self> {
        // Registered within the call, so that a close that comes between finds it.
        let registered = shared.run(py, |db| {
            let place = Arc::new(Mutex::new(Some(Walk::new(open(db)?))));
            let number = shared.remember(&place);
            Ok(Registered { shared: Arc::clone(shared), place, number })
        })?;
        Ok(Self { shared: Arc::clone(shared), kept: Kept::new(registered) })
    }

    /// Moves the walk by `work`, detached, and then makes of it what Python gets by `show`, which must not run Python code, nor make
    /// an exception.
    ///
    /// # Errors
    /// `ClosedError`; those of [`Shared::admit`] and of the engine.
    pub fn with<T: Send, R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Walk) -> Result<T> + Send,
        show: impl FnOnce(T, &mut Walk) -> PyResult<R>,
    ) -> PyResult<R> {
        self.admit(py)?;
        let mut place = self.kept.get().place.lock_py_attached(py);
        let Some(walk) = place.as_mut() else {
            drop(place);
            return Err(errors::closed(py, "the iterator or its database"));
        };
        let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(|| work(walk))));
        let is_undisturbed = self.shared.is_undisturbed();
        let failed = match outcome {
            Ok(Ok(moved)) if is_undisturbed => return show(moved, walk),
            failed => failed,
        };
        // A new exception may begin a garbage collection, and what that finalizes may use the iterator.
        drop(place);
        match self.shared.settle(py, failed) {
            Err(error) => Err(error),
            Ok(_) => unreachable!("a failure, or a disturbance, is an exception"),
        }
    }

    fn admit(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.admit(py)
    }

    /// Closes it; a second time does nothing.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        if !self.shared.process().is_current() {
            return Ok(());
        }
        crate::order::check_outside()?;
        py.detach(|| drop(self.kept.get().place.lock().take()));
        Ok(())
    }
}
