//! What a reader needs, in one piece that never changes: the memtables and a version of the tables.
//!
//! A reader loads the whole piece at once and keeps it as long as it likes; writers of the piece replace it. A
//! reader takes the piece first and the visible sequence number second: then every operation it may see is in
//! the piece or newer than it, and nothing in the piece is ever dropped under it. What is newer is in the active
//! memtable all the same, and may point into a segment that the piece does not hold; so whoever reads at the present
//! takes both anew if the piece has been replaced meanwhile ([`Current::at_present`]).
//!
//! A memtable leaves the piece with the first version whose tables have its operations, whoever installs that. Beside a
//! later version its pointers would lead to segments that are forgotten, once compactions have replaced the pointers.

#[cfg(all(test, loom))]
mod loom_tests;

use super::publish::Ticket;
use crate::base::ids::{LogPosition, Sequence};
use crate::base::names::FileName;
use crate::base::swap::{ArcSwap, Guard};
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
    /// Bytes of log, counted from opening, whose operations are in `version`.
    pub flushed_log_bytes: u64,
    /// Bytes of log that opening has replayed, until the first flush, which takes all of it.
    pub replayed_log_bytes: u64,
}

impl ReadState {
    /// The files that holding it keeps.
    pub fn files(&self) -> impl Iterator<Item = FileName> {
        let tables = self.version.tables().map(|(_, table)| FileName::Table(table.id));
        let sealed = self.version.segments().sealed().map(|entry| FileName::Segment(entry.meta.id));
        tables.chain(sealed).chain(self.unregistered.iter().map(|handle| handle.name()))
    }

    /// Whether holding it keeps `file`.
    pub fn holds(&self, file: FileName) -> bool {
        let listed = match file {
            FileName::Segment(id) => self.version.segments().get(id).is_some(),
            FileName::Table(id) => self.version.tables().any(|(_, table)| table.id == id),
            _ => false,
        };
        listed || self.unregistered.iter().any(|handle| handle.name() == file)
    }

    /// Bytes of log whose operations are in memtables, where `log_bytes` were written since the cube was opened.
    pub fn unflushed_log_bytes(&self, log_bytes: u64) -> u64 {
        self.replayed_log_bytes + log_bytes.saturating_sub(self.flushed_log_bytes)
    }
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
    pub fn peek(&self) -> Guard<Arc<ReadState>> {
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

    /// Replaces the active memtable by one that has all of its operations.
    pub fn replace_active(&self, active: Arc<Memtable>) {
        self.replace(|old| ReadState { active, ..old.clone() });
    }

    /// The present state and the present moment, which `now` tells: every operation up to then points into segments
    /// that the state holds, because a segment is added before anything in it becomes visible (I-06).
    pub fn at_present(&self, now: impl Fn() -> Sequence) -> (Guard<Arc<ReadState>>, Sequence) {
        loop {
            let state = self.state.load();
            let sequence = now();
            if Arc::ptr_eq(&state, &self.state.load()) {
                return (state, sequence);
            }
        }
    }

    /// Keeps the file of a new segment in place.
    pub fn add_segment(&self, handle: Arc<FileHandle>) {
        self.replace(|old| {
            let mut state = old.clone();
            state.unregistered.push(handle);
            state
        });
    }

    /// Shows the tables of `version`, and drops the memtables that were flushed into it or into one before.
    pub fn install(&self, version: impl FnOnce() -> Arc<Version>) {
        self.replace(|old| {
            let mut state = ReadState { version: version(), ..old.clone() };
            let (segments, head) = (state.version.segments(), state.version.numbers().log_head);
            let flushed = state.frozen.iter().filter(|frozen| frozen.end <= head);
            if let Some(log_bytes) = flushed.map(|frozen| frozen.log_bytes).max() {
                (state.flushed_log_bytes, state.replayed_log_bytes) = (log_bytes, 0);
            }
            state.frozen.retain(|frozen| frozen.end > head);
            // One before the head may have been registered and collected or dropped since the version shown last.
            state.unregistered.retain(|handle| match handle.name() {
                FileName::Segment(id) => id >= head.segment && segments.get(id).is_none(),
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

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::cell::Cell;
    use std::path::Path;

    use super::*;
    use crate::base::comparator::Bytewise;
    use crate::base::ids::SegmentId;
    use crate::base::keys::KeyOrder;
    use crate::index::testing::{MemoryFs, RecordedFiles};
    use crate::index::version::{Files, VersionEdit};

    fn order() -> KeyOrder {
        KeyOrder::new(Arc::new(Bytewise))
    }

    fn files() -> Arc<Files> {
        Files::new(MemoryFs::new(), Path::new("cube"), Box::new(RecordedFiles::default()))
    }

    fn memtable() -> Arc<Memtable> {
        Arc::new(Memtable::new(order(), 4096, None))
    }

    fn empty(files: &Arc<Files>) -> Current {
        let version = Arc::new(Version::empty(order(), Arc::clone(files)));
        Current::new(ReadState {
            active: memtable(),
            frozen: Vec::new(),
            version,
            unregistered: Vec::new(),
            flushed_log_bytes: 0,
            replayed_log_bytes: 50,
        })
    }

    /// I-06.
    #[test]
    fn a_segment_begun_before_the_moment_is_held() {
        let files = files();
        let current = empty(&files);
        let begun = Cell::new(false);
        // Between a look at the state and one at the visible sequence a segment is begun and written to.
        let (state, sequence) = current.at_present(|| {
            if !begun.replace(true) {
                current.add_segment(files.segment(SegmentId(1)));
            }
            Sequence(7)
        });
        assert_eq!((state.unregistered.len(), sequence), (1, Sequence(7)));
    }

    /// I-06.
    #[test]
    fn a_memtable_leaves_with_the_first_version_that_has_its_operations() {
        let files = files();
        let current = empty(&files);
        let end = |segment| LogPosition { segment: SegmentId(segment), offset: 500 };
        for id in 1..=3 {
            current.add_segment(files.segment(SegmentId(id)));
            let frozen = Frozen {
                memtable: memtable(),
                end: end(id),
                log_bytes: u64::from(id) * 100,
                barrier: Ticket(0),
                last_sequence: Sequence(id.into()),
            };
            current.rotate(memtable(), Some(frozen));
        }
        // The flush that made this version is still about to show it; a collection or a compaction comes first.
        let edit = VersionEdit { log_head: Some(end(2)), ..VersionEdit::default() };
        let flushed = Arc::new(current.load().version.apply(&edit).expect("a head alone"));
        assert_eq!(current.load().unflushed_log_bytes(350), 400);
        current.install(|| flushed);
        let state = current.load();
        assert_eq!(state.unflushed_log_bytes(350), 150, "what is in tables does not count twice");
        assert_eq!(state.frozen.iter().map(|frozen| frozen.end).collect::<Vec<_>>(), [end(3)]);
        // Segment 1 was registered and is gone again by this version; 2 may still be written to.
        let held: Vec<_> = state.unregistered.iter().map(|handle| handle.name()).collect();
        assert_eq!(held, [FileName::Segment(SegmentId(2)), FileName::Segment(SegmentId(3))]);
    }
}
