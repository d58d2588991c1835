//! Who syncs the log once a sync of it has failed.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, ThreadId};

use tamarack::testing::{Call, Faults};

use crate::life::DATABASE;

/// Watches the syncs of the log's segments. Two kinds are forbidden until the database is opened again: any by a thread
/// that has seen one fail, and any by the program once it was told that nothing is written any more. What another thread
/// syncs between the failure and the news of it was in progress, and is of other bytes.
pub struct LogSyncs {
    state: Arc<Mutex<State>>,
}

struct State {
    program: ThreadId,
    /// Failed calls before the database was opened last.
    strikes_before: usize,
    refused: bool,
    forbidden: Vec<String>,
}

impl LogSyncs {
    /// Watches the calls of a program that runs on this thread.
    pub fn watch(faults: &Arc<Faults>) -> Self {
        let program = thread::current().id();
        let state = State { program, strikes_before: 0, refused: false, forbidden: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let (seen, watched) = (Arc::clone(&state), Arc::downgrade(faults));
        faults.watch(move |call, path| {
            if let Some(faults) = watched.upgrade().filter(|_| is_log_sync(call, path)) {
                seen.lock().unwrap().see(path, &faults);
            }
        });
        Self { state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The database is about to be opened.
    pub fn begin(&self, faults: &Faults) {
        let mut state = self.state();
        state.strikes_before = faults.strikes().len();
        state.refused = false;
    }

    /// A write was refused because of an earlier failure.
    pub fn note_refusal(&self) {
        self.state().refused = true;
    }

    pub fn assert_none_forbidden(&self, what: &str) {
        let forbidden = &self.state().forbidden;
        assert!(forbidden.is_empty(), "{what}: the log was synced after a sync had failed: {forbidden:?}");
    }
}

impl State {
    fn see(&mut self, path: &Path, faults: &Faults) {
        let me = thread::current().id();
        let told = self.refused && me == self.program;
        let failed = faults.strikes().into_iter().skip(self.strikes_before);
        let mut failed = failed.filter(|strike| is_log_sync(strike.call, &strike.path));
        if failed.any(|strike| told || strike.thread == me) {
            self.forbidden.push(path.display().to_string());
        }
    }
}

/// Whether a call syncs a segment. Those of a checkpoint are another matter.
fn is_log_sync(call: Call, path: &Path) -> bool {
    call == Call::SyncData
        && path.starts_with(DATABASE)
        && path.extension().is_some_and(|kind| kind == "vlog")
}
