//! What a reader needs, in one piece that never changes: the memtables and a version of the tables.
//!
//! A reader loads the whole piece at once and keeps it as long as it likes; writers of the piece replace it. A
//! reader takes the piece first and the visible sequence number second: then every operation it may see is in
//! the piece or newer than it, and nothing in the piece is ever dropped under it.

use arc_swap::ArcSwap;

use super::publish::Ticket;
use crate::base::ids::{LogPosition, Sequence};
use crate::base::names::FileName;
use crate::base::sync::{Arc, Mutex};
use crate::index::memtable::Memtable;
use crate::index::version::{FileHandle, Version};

/// A memtable that takes no more operations and waits to be flushed.
#[derive(Debug)]
pub struct Frozen {
    /// The memtable.
    pub memtable: Arc<Memtable>,
    /// The log position behind its last operation: the log head once it is flushed (I-05).
    pub end: LogPosition,
    /// Bytes of log written before `end` since the cube was opened.
    pub log_bytes: u64,
    /// Once this ticket is published, all its operations are in it.
    pub barrier: Ticket,
    /// Its last operation.
    pub last_sequence: Sequence,
}

/// Everything a reader looks into.
#[derive(Debug, Clone)]
pub struct ReadState {
    /// Where new operations go.
    pub active: Arc<Memtable>,
    /// Memtables waiting to be flushed, newest first.
    pub frozen: Vec<Arc<Frozen>>,
    /// The tables.
    pub version: Arc<Version>,
    /// The files of segments that memtables point into and that `version` does not know yet; holding them keeps
    /// them in place (I-06).
    pub unregistered: Vec<Arc<FileHandle>>,
}

/// The present [`ReadState`]. Lock rank: `replacing`, a leaf held for the replacement alone.
#[derive(Debug)]
pub struct Current {
    state: ArcSwap<ReadState>,
    replacing: Mutex<()>,
}

impl Current {
    /// Starts with `state`.
    pub fn new(state: ReadState) -> Self {
        Self { state: ArcSwap::from_pointee(state), replacing: Mutex::new(()) }
    }

    /// The present state, to keep.
    pub fn load(&self) -> Arc<ReadState> {
        self.state.load_full()
    }

    /// The present state, for a short look.
    pub fn peek(&self) -> arc_swap::Guard<Arc<ReadState>> {
        self.state.load()
    }

    /// Replaces the active memtable, whose operations are now in `frozen` (or which was empty, if `None`).
    pub fn rotate(&self, active: Arc<Memtable>, frozen: Option<Frozen>) {
        self.replace(|old| ReadState {
            active,
            frozen: frozen.map(Arc::new).into_iter().chain(old.frozen.iter().cloned()).collect(),
            ..old.clone()
        });
    }

    /// Keeps the file of a new segment in place.
    pub fn add_segment(&self, handle: Arc<FileHandle>) {
        self.replace(|old| {
            let mut state = old.clone();
            state.unregistered.push(handle);
            state
        });
    }

    /// Shows the tables of `version`, and drops the memtables `flushed` into it.
    pub fn install(&self, version: impl FnOnce() -> Arc<Version>, flushed: &[Arc<Frozen>]) {
        self.replace(|old| {
            let mut state = ReadState { version: version(), ..old.clone() };
            state.frozen.retain(|frozen| !flushed.iter().any(|other| Arc::ptr_eq(frozen, other)));
            let segments = state.version.segments();
            state.unregistered.retain(|handle| match handle.name() {
                FileName::Segment(id) => segments.get(id).is_none(),
                _ => false,
            });
            state
        });
    }

    fn replace(&self, next: impl FnOnce(&ReadState) -> ReadState) {
        let _replacing = self.replacing.lock();
        let state = next(&self.state.load());
        self.state.store(Arc::new(state));
    }
}
