//! Fills memtables from the log when a cube is opened. One thread; no I/O.

use super::publish::Ticket;
use super::state::{Frozen, ReadState};
use crate::base::ids::Sequence;
use crate::base::keys::{EntryKind, KeyOrder};
use crate::base::sync::Arc;
use crate::index::key_shape::KeyShape;
use crate::index::memtable::Memtable;
use crate::index::version::Version;
use crate::vlog::recover::{Effect, Recovered, Replayed};

/// Operations from whose keys the shape of all is learned before the first memtable is made.
const SAMPLE_OPERATIONS: usize = 1024;

/// Memtables being filled.
pub struct Replay {
    keys: KeyOrder,
    memtable_bytes: usize,
    sample: Vec<Held>,
    full: Vec<Arc<Memtable>>,
    active: Option<Arc<Memtable>>,
}

/// What replay leaves behind.
pub struct Refilled {
    /// The state to begin with.
    pub state: ReadState,
    /// Bytes left in its active memtable.
    pub active_left: usize,
    /// Whether the active memtable holds anything.
    pub active_used: bool,
}

/// An operation of the sample.
struct Held {
    key: Vec<u8>,
    sequence: Sequence,
    kind: EntryKind,
    payload: Vec<u8>,
}

impl Replay {
    /// Nothing yet, for memtables of `memtable_bytes`.
    pub fn new(keys: &KeyOrder, memtable_bytes: usize) -> Self {
        Self { keys: keys.clone(), memtable_bytes, sample: Vec::new(), full: Vec::new(), active: None }
    }

    /// Takes the next operation of the log.
    pub fn apply(&mut self, operation: &Replayed<'_>) {
        let (kind, payload): (_, &[u8]) = match operation.effect {
            Effect::Delete => (EntryKind::Delete, &[]),
            Effect::Inline(value) => (EntryKind::Inline, value),
            Effect::Pointer(pointer) => (EntryKind::Pointer, &pointer.to_bytes()),
        };
        if self.active.is_some() {
            self.insert(operation.key, operation.sequence, kind, payload);
            return;
        }
        let (key, payload) = (operation.key.to_vec(), payload.to_vec());
        self.sample.push(Held { key, sequence: operation.sequence, kind, payload });
        if self.sample.len() == SAMPLE_OPERATIONS {
            self.end_sample();
        }
    }

    /// Makes the first memtable and puts the sample into it.
    fn end_sample(&mut self) {
        let sample = std::mem::take(&mut self.sample);
        let keys: Vec<&[u8]> = sample.iter().map(|held| &held.key[..]).collect();
        let shape = (!keys.is_empty()).then(|| KeyShape::of(&keys));
        self.active = Some(Arc::new(Memtable::new(self.keys.clone(), self.memtable_bytes, shape)));
        for held in &sample {
            self.insert(&held.key, held.sequence, held.kind, &held.payload);
        }
    }

    fn insert(&mut self, key: &[u8], sequence: Sequence, kind: EntryKind, payload: &[u8]) {
        let active = self.active.as_mut().expect("operations are sampled until there is a memtable");
        let need = Memtable::entry_bytes_max(key.len(), payload.len());
        if need > active.capacity() - active.memory_bytes() {
            let bytes = self.memtable_bytes.max(need);
            let next = Arc::new(Memtable::new(self.keys.clone(), bytes, active.key_shape()));
            self.full.push(std::mem::replace(active, next));
        }
        active.insert(key, sequence, kind, payload);
    }

    /// Ends the replay. A log that fits one memtable is gone on with; more than that is frozen as a whole, to be
    /// flushed as a whole.
    pub fn finish(mut self, recovered: &Recovered, version: &Arc<Version>) -> Refilled {
        if self.active.is_none() {
            self.end_sample();
        }
        let mut active = self.active.expect("the end of the sample makes one");
        let mut frozen = Vec::new();
        if !self.full.is_empty() {
            let next = Memtable::new(self.keys.clone(), self.memtable_bytes, active.key_shape());
            self.full.push(std::mem::replace(&mut active, Arc::new(next)));
            frozen = self.full.iter().rev().map(|memtable| freeze(memtable, recovered)).collect();
        }
        let active_left = active.capacity() - active.memory_bytes();
        let active_used = !active.is_empty();
        let state = ReadState {
            active,
            frozen,
            version: Arc::clone(version),
            unregistered: Vec::new(),
            flushed_log_bytes: 0,
            replayed_log_bytes: recovered.report.log_bytes,
        };
        Refilled { state, active_left, active_used }
    }
}

/// A memtable of replayed operations. All of them end where the log does: they are flushed together.
fn freeze(memtable: &Arc<Memtable>, recovered: &Recovered) -> Arc<Frozen> {
    Arc::new(Frozen {
        memtable: Arc::clone(memtable),
        end: recovered.tail,
        log_bytes: 0,
        barrier: Ticket(0),
        last_sequence: recovered.last_sequence,
    })
}
