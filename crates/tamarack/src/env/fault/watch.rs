//! Shows each call to whoever wants to see it before it is made.

use std::fmt;
use std::path::Path;

use super::Call;
use crate::base::sync::{Arc, Mutex};

/// Is told of calls.
pub type Watcher = dyn Fn(Call, &Path) + Send + Sync;

/// The watcher, if there is one. Lock rank: a leaf, held to copy the handle alone.
#[derive(Default)]
pub struct Watch {
    watcher: Mutex<Option<Arc<Watcher>>>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Shows every call to `watcher` from now on.
    pub fn begin(&self, watcher: Arc<Watcher>) {
        *self.watcher.lock() = Some(watcher);
    }

    /// Shows no more calls.
    pub fn end(&self) {
        *self.watcher.lock() = None;
    }

    /// Shows a call.
    pub fn show(&self, call: Call, path: &Path) {
        let watcher = self.watcher.lock().clone();
        if let Some(watcher) = watcher {
            watcher(call, path);
        }
    }
}
