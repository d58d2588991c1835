//! Fills memtables from the log when a cube is opened. No I/O.
//!
//! Operations are held until there is a memtable of them: a *run*. Then a thread of the pool inserts them in the order of keys,
//! while the next run is read. In that order each entry goes behind the one before; in the order of the log it would be searched
//! for among hundreds of thousands, which takes several times as long as reading and checking it.

use std::collections::VecDeque;

use super::publish::Ticket;
use super::state::{Frozen, ReadState};
use crate::base::ids::Sequence;
use crate::base::key_sort::places_by_key;
use crate::base::keys::{EntryKind, KeyOrder};
use crate::base::sync::{Arc, Mutex};
use crate::env::pool::{Started, WorkerPool};
use crate::index::key_shape::KeyShape;
use crate::index::memtable::Memtable;
use crate::index::version::Version;
use crate::vlog::recover::{Effect, Recovered, Replayed};

/// Of each run, about so many keys tell the shape of all.
const SAMPLE_KEYS: usize = 1024;

/// Runs under way beside the one that is being read, at most: each is held once more beside its memtable.
const BUILDING_MAX: usize = 2;

/// A log of more segments than this is flushed, however short they are: a process that writes little each time that it opens the
/// database leaves one each time.
const SEGMENTS_MAX: usize = 16;

/// Memtables being filled.
pub struct Replay {
    keys: KeyOrder,
    memtable_bytes: usize,
    workers: Arc<WorkerPool>,
    run: Run,
    /// The oldest first.
    building: VecDeque<Building>,
    /// Runs whose memory serves the next ones.
    idle: Vec<Run>,
    /// The oldest first, all older than those under way.
    full: Vec<Arc<Memtable>>,
}

/// A memtable under way.
struct Building {
    started: Started,
    built: Arc<Mutex<Option<(Memtable, Run)>>>,
}

/// What replay leaves behind.
pub struct Refilled {
    /// The state to begin with.
    pub state: ReadState,
    /// Bytes left in its active memtable.
    pub active_left: usize,
    /// Whether the active memtable holds anything.
    pub active_used: bool,
    /// Bytes of log that it stands for.
    pub active_log_bytes: u64,
}

/// Operations that are held.
#[derive(Default)]
struct Run {
    operations: Vec<Held>,
    /// Their keys, each with its payload behind it.
    bytes: Vec<u8>,
    /// Bytes that they take in a memtable.
    memtable_bytes: usize,
}

/// One of them.
struct Held {
    start: usize,
    payload_len: u32,
    key_len: u16,
    kind: EntryKind,
    sequence: Sequence,
}

impl Run {
    fn push(&mut self, key: &[u8], sequence: Sequence, kind: EntryKind, payload: &[u8]) {
        let (need, start) = (self.need(key, payload), self.bytes.len());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(payload);
        let key_len = u16::try_from(key.len()).expect("limits keep keys below 64 KiB");
        let payload_len = u32::try_from(payload.len()).expect("limits keep values below 4 GiB");
        self.operations.push(Held { start, payload_len, key_len, kind, sequence });
        self.memtable_bytes += need;
    }

    /// Bytes that one operation more takes in a memtable.
    fn need(&self, key: &[u8], payload: &[u8]) -> usize {
        Memtable::entry_bytes(self.operations.len(), key.len(), payload.len())
    }

    fn key(&self, held: &Held) -> &[u8] {
        &self.bytes[held.start..held.start + usize::from(held.key_len)]
    }

    fn payload(&self, held: &Held) -> &[u8] {
        let start = held.start + usize::from(held.key_len);
        &self.bytes[start..start + held.payload_len as usize]
    }

    /// A memtable of `bytes`, or as many as it needs, with all of it; one that is to grow if there is nothing.
    fn memtable(&self, order: &KeyOrder, bytes: usize) -> Memtable {
        let sample = self.operations.iter().step_by(self.operations.len().div_ceil(SAMPLE_KEYS).max(1));
        let sample: Vec<&[u8]> = sample.map(|held| self.key(held)).collect();
        let shape = (!sample.is_empty()).then(|| KeyShape::of(&sample));
        let memtable = Memtable::begin(order.clone(), bytes, self.memtable_bytes, shape);
        let count = u32::try_from(self.operations.len()).expect("a memtable holds fewer");
        let held = |place: u32| &self.operations[place as usize];
        for place in places_by_key(order, count, |place| (self.key(held(place)), held(place).sequence)) {
            let held = held(place);
            memtable.insert(self.key(held), held.sequence, held.kind, self.payload(held));
        }
        memtable
    }

    fn clear(&mut self) {
        self.operations.clear();
        self.bytes.clear();
        self.memtable_bytes = 0;
    }
}

impl Replay {
    /// Nothing yet, for memtables of `memtable_bytes`.
    pub fn new(keys: &KeyOrder, memtable_bytes: usize, workers: Arc<WorkerPool>) -> Self {
        let (run, building) = (Run::default(), VecDeque::new());
        Self {
            keys: keys.clone(),
            memtable_bytes,
            workers,
            run,
            building,
            idle: Vec::new(),
            full: Vec::new(),
        }
    }

    /// Takes the next operation of the log.
    pub fn apply(&mut self, operation: &Replayed<'_>) {
        let (kind, payload): (_, &[u8]) = match operation.effect {
            Effect::Delete => (EntryKind::Delete, &[]),
            Effect::Inline(value) => (EntryKind::Inline, value),
            Effect::Pointer(pointer) => (EntryKind::Pointer, &pointer.to_bytes()),
        };
        let is_full = self.run.memtable_bytes + self.run.need(operation.key, payload) > self.memtable_bytes;
        if is_full && !self.run.operations.is_empty() {
            self.build();
        }
        self.run.push(operation.key, operation.sequence, kind, payload);
    }

    /// Has the memtable of the present run built, and begins the next run.
    fn build(&mut self) {
        if self.building.len() == BUILDING_MAX {
            self.take_built();
        }
        let run = std::mem::replace(&mut self.run, self.idle.pop().unwrap_or_default());
        let built = Arc::new(Mutex::new(None));
        let (keys, bytes, slot) = (self.keys.clone(), self.memtable_bytes, Arc::clone(&built));
        let job = Box::new(move || {
            let memtable = run.memtable(&keys, bytes);
            *slot.lock() = Some((memtable, run));
        });
        self.building.push_back(Building { started: self.workers.start(vec![job]), built });
    }

    /// Waits for the oldest memtable that is under way, if there is one.
    fn take_built(&mut self) {
        let Some(Building { started, built }) = self.building.pop_front() else { return };
        started.finish();
        let (memtable, mut run) = built.lock().take().expect("a job that has not panicked has built it");
        self.full.push(Arc::new(memtable));
        run.clear();
        self.idle.push(run);
    }

    /// Ends the replay. A log that fits one memtable is gone on with; more than that, or than one may stand for, which is
    /// `memtable_log_max` bytes, is frozen as a whole, to be flushed as a whole.
    pub fn finish(
        mut self,
        recovered: &Recovered,
        version: &Arc<Version>,
        memtable_log_max: u64,
    ) -> Refilled {
        let mut active = Arc::new(self.run.memtable(&self.keys, self.memtable_bytes));
        while !self.building.is_empty() {
            self.take_built();
        }
        let (log_bytes, mut frozen) = (recovered.report.log_bytes, Vec::new());
        let is_long = log_bytes > memtable_log_max || recovered.segments.len() > SEGMENTS_MAX;
        if is_long || !self.full.is_empty() {
            let next = Memtable::begin(self.keys.clone(), self.memtable_bytes, 0, active.key_shape());
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
            replayed_log_bytes: log_bytes,
        };
        let active_log_bytes = if active_used { log_bytes } else { 0 };
        Refilled { state, active_left, active_used, active_log_bytes }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::base::comparator::{Bytewise, Descending};
    use crate::env::sim::{SimDisk, SimOptions};

    const MEMTABLE_BYTES: usize = 1000;

    proptest! {
        /// What is newer is in a newer memtable, or before what is older in the same; and none is larger than asked for.
        #[test]
        fn the_newest_of_each_key_is_found_first(
            operations in proptest::collection::vec((0..20_u8, proptest::collection::vec(any::<u8>(), 0..100), any::<bool>()), 0..200),
            descending: bool,
        ) {
            let keys = if descending { KeyOrder::new(Arc::new(Descending)) } else { KeyOrder::new(Arc::new(Bytewise)) };
            let workers = WorkerPool::new(&SimDisk::new(&SimOptions::default()).env(), "replay", 2).expect("threads start");
            let mut replay = Replay::new(&keys, MEMTABLE_BYTES, workers);
            let mut expected = BTreeMap::new();
            for ((key, value, deleted), sequence) in operations.iter().zip(1..) {
                let effect = if *deleted { Effect::Delete } else { Effect::Inline(value) };
                let sequence = Sequence(sequence);
                replay.apply(&Replayed { sequence, key: &[*key], effect });
                expected.insert(*key, (sequence, (!deleted).then_some(&value[..])));
            }
            while !replay.building.is_empty() {
                replay.take_built();
            }
            let last = replay.run.memtable(&keys, MEMTABLE_BYTES);
            prop_assert_eq!(last.memory_bytes(), replay.run.memtable_bytes, "what a run counts is what it takes");
            let memtables: Vec<&Memtable> = [&last].into_iter().chain(replay.full.iter().rev().map(|full| &**full)).collect();
            prop_assert!(memtables.iter().all(|memtable| memtable.capacity() <= MEMTABLE_BYTES));
            for key in 0..20_u8 {
                let found = memtables.iter().find_map(|memtable| memtable.get(&[key], Sequence::MAX));
                let found = found.map(|entry| (entry.sequence, (entry.kind != EntryKind::Delete).then_some(entry.payload)));
                prop_assert_eq!(found, expected.get(&key).copied());
            }
        }
    }
}
