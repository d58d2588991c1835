//! Who reads at a moment that has passed, since when, and what that keeps on disk: for `Stats` and for warnings.
//!
//! Owns the register of iterators and checkpoints, which hold the files of the state that they began with (I-06).
//! Snapshots hold no file, only a moment; they have a register of their own (`cube::snapshot`). Point reads and
//! background jobs are not listed: they end soon.
//!
//! The register shares the states with their readers, so that a look at it neither prolongs a state's life nor ends it:
//! what a reader has kept goes when the reader does, on its thread and under no lock.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use super::Cube;
use super::state::ReadState;
use crate::base::ids::Sequence;
use crate::base::names::FileName;
use crate::base::sync::{Arc, Mutex};

/// What a reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ReaderKind {
    /// A [`Snapshot`](crate::Snapshot).
    #[default]
    Snapshot,
    /// An [`Iter`](crate::Iter).
    Iterator,
    /// A checkpoint that is being made.
    Checkpoint,
}

impl fmt::Display for ReaderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Snapshot => "snapshot",
            Self::Iterator => "iterator",
            Self::Checkpoint => "checkpoint",
        })
    }
}

/// Somebody who reads at a moment that has passed, and what that keeps on disk.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReaderStats {
    /// What it is.
    pub kind: ReaderKind,
    /// The name given to [`Db::snapshot_named`](crate::Db::snapshot_named).
    pub name: Option<String>,
    /// The last operation that it sees.
    pub sequence: u64,
    /// For how long it has been there, in seconds.
    pub age_seconds: f64,
    /// Bytes on disk that it needs and the present does not, whoever else needs them. Iterators and checkpoints keep
    /// the files they began with. A snapshot keeps the entries and values that it sees and that have been overwritten or
    /// deleted since, as far as memtables have been flushed; estimated where newer and older versions are in
    /// different tables. They count as live until it is dropped, and go with compactions and garbage collection then.
    pub held_bytes: u64,
    /// Those of them that no other snapshot, or no other iterator or checkpoint, needs.
    pub held_alone_bytes: u64,
}

/// The iterators and checkpoints of one cube. Lock rank: a leaf; nothing that is in it is dropped under the lock.
#[derive(Debug, Default)]
pub struct Readers {
    open: Mutex<Register>,
}

#[derive(Debug, Default)]
struct Register {
    last: u64,
    /// By number, in the order in which they began.
    readers: BTreeMap<u64, Reader>,
}

#[derive(Debug)]
struct Reader {
    kind: ReaderKind,
    sequence: Sequence,
    since: Duration,
    state: Arc<ReadState>,
}

/// A state that a reader holds until this is dropped.
#[derive(Debug)]
pub struct HeldState {
    owner: Arc<Readers>,
    number: u64,
    state: Arc<ReadState>,
}

impl std::ops::Deref for HeldState {
    type Target = ReadState;

    fn deref(&self) -> &ReadState {
        &self.state
    }
}

impl Drop for HeldState {
    fn drop(&mut self) {
        let reader = self.owner.open.lock().readers.remove(&self.number);
        // The lock is free again: with the state, files may go.
        drop(reader);
    }
}

impl Readers {
    /// Lists a reader of `kind`, which sees `state` up to `sequence` from the monotonic time `now` on.
    pub fn hold(
        self: &Arc<Self>,
        kind: ReaderKind,
        state: Arc<ReadState>,
        sequence: Sequence,
        now: Duration,
    ) -> HeldState {
        let reader = Reader { kind, sequence, since: now, state: Arc::clone(&state) };
        let mut open = self.open.lock();
        open.last += 1;
        let number = open.last;
        open.readers.insert(number, reader);
        drop(open);
        HeldState { owner: Arc::clone(self), number, state }
    }

    /// Bytes of those of the files `leaving` that some reader holds.
    pub fn held_bytes(&self, leaving: &HashMap<FileName, u64>) -> u64 {
        if leaving.is_empty() {
            return 0;
        }
        let open = self.open.lock();
        // Many readers may share a state.
        let states: HashMap<_, _> =
            open.readers.values().map(|reader| (Arc::as_ptr(&reader.state), &reader.state)).collect();
        let held = leaving.iter().filter(|(name, _)| states.values().any(|state| state.holds(**name)));
        held.map(|(_, bytes)| bytes).sum()
    }

    /// Every reader with its number at time `now`, oldest first; `leaving` are the files that no version mentions any
    /// more.
    pub fn list(&self, now: Duration, leaving: &HashMap<FileName, u64>) -> Vec<(u64, ReaderStats)> {
        let open = self.open.lock();
        // Many readers may share a state.
        let mut held: HashMap<*const ReadState, Vec<FileName>> = HashMap::new();
        let mut holders: HashMap<FileName, u64> = HashMap::new();
        for reader in open.readers.values().filter(|_| !leaving.is_empty()) {
            let files = held
                .entry(Arc::as_ptr(&reader.state))
                .or_insert_with(|| reader.state.files().filter(|name| leaving.contains_key(name)).collect());
            files.iter().for_each(|name| *holders.entry(*name).or_default() += 1);
        }
        let stats = |(&number, reader): (&u64, &Reader)| {
            let files = held.get(&Arc::as_ptr(&reader.state)).map_or(&[][..], Vec::as_slice);
            let alone = files.iter().filter(|name| holders[name] == 1);
            let stats = ReaderStats {
                kind: reader.kind,
                name: None,
                sequence: reader.sequence.0,
                age_seconds: now.saturating_sub(reader.since).as_secs_f64(),
                held_bytes: files.iter().map(|name| leaving[name]).sum(),
                held_alone_bytes: alone.map(|name| leaving[name]).sum(),
            };
            (number, stats)
        };
        open.readers.iter().map(stats).collect()
    }
}

impl Cube {
    /// Everybody who reads at a moment that has passed, oldest first.
    pub(super) fn reader_stats(&self) -> Vec<ReaderStats> {
        let now = self.env.clock.monotonic();
        let leaving = self.index.files().leaving();
        let mut all: Vec<_> =
            self.readers.list(now, &leaving).into_iter().map(|(_, reader)| reader).collect();
        let snapshots = self.snapshots.stats(now, &self.held_for_snapshots());
        all.extend(snapshots.into_iter().map(|(_, snapshot)| snapshot));
        all.sort_by(|left, right| right.age_seconds.total_cmp(&left.age_seconds));
        all
    }
}
