//! Group commit under loom: who is served by whose sync.

use std::path::Path;

use loom::thread;

use super::*;
use crate::base::ids::{CubeId, SegmentId, Sequence};
use crate::base::options::LogMode;
use crate::base::sync::explore;
use crate::cube::publish::{Publisher, Ticket};
use crate::env::Fs;
use crate::env::fault::{Call, FaultEnv};
use crate::env::posix::posix_env;
use crate::index::testing::MemoryFs;
use crate::vlog::format::SegmentHeader;
use crate::vlog::segment::{Blocks, PreparedSegment, SegmentSize};

const BATCHES: usize = 2;

/// What the device knows of each batch. Relaxed: the log is memory that nothing orders but what is under test.
#[derive(Debug, Default)]
struct Log {
    written: [AtomicU64; BATCHES],
    synced: [AtomicU64; BATCHES],
}

impl Log {
    /// What is written when a sync begins is in it.
    fn sync(&self) {
        for (written, synced) in self.written.iter().zip(&self.synced) {
            if written.load(Ordering::Relaxed) == 1 {
                synced.store(1, Ordering::Relaxed);
            }
        }
    }
}

struct World {
    env: Env,
    log: Arc<Log>,
    publisher: Arc<Publisher>,
    durability: Durability,
}

fn segment(fs: &dyn Fs) -> Arc<SegmentFile> {
    let size = SegmentSize { capacity: 4096, reserve: 4096, blocks: Blocks::Noted };
    let prepared = PreparedSegment::create(fs, Path::new("cube").join("1"), size, LogMode::Mapped);
    let header = SegmentHeader {
        cube: CubeId(1),
        id: SegmentId(1),
        salt: 0,
        predecessor: LogPosition::default(),
        first_sequence: Sequence(1),
        durable: LogPosition::default(),
    };
    let segment = prepared.and_then(|prepared| prepared.begin(header)).expect("memory does not fail");
    Arc::clone(segment.shared())
}

impl World {
    fn new() -> Arc<Self> {
        let (env, faults) = FaultEnv::new(Env { fs: MemoryFs::new(), ..posix_env() });
        let durability = Durability::new(LogPosition::default());
        durability.add_segment(segment(&*env.fs));
        let log = Arc::new(Log::default());
        let device = Arc::clone(&log);
        faults.watch(move |call, _| {
            if call == Call::SyncData {
                device.sync();
            }
        });
        Arc::new(Self { env, log, publisher: Publisher::with_ring(Sequence(0), 2), durability })
    }

    /// Writes batch `index`, publishes it and has it made durable. Returns whether its own sync did that.
    fn commit(&self, index: usize) -> bool {
        let number = index as u64 + 1;
        self.log.written[index].store(1, Ordering::Relaxed);
        self.publisher.publish(Ticket(number), Sequence(number)).expect("nothing fails");
        let position = LogPosition { segment: SegmentId(1), offset: number * 100 };
        let synced = self.durability.sync_to(&self.env, position).expect("nothing fails");
        for earlier in &self.log.synced[..=index] {
            assert_eq!(earlier.load(Ordering::Relaxed), 1, "acknowledged before it was synced");
        }
        assert!(self.durability.durable() >= position);
        synced != Synced::Already
    }
}

/// Whoever returns is covered by a sync that began after its write, its own or another's.
#[test]
fn loom_a_sync_that_returns_began_after_the_write() {
    let who = explore("two writers that sync", 2, || {
        let world = World::new();
        let other = Arc::clone(&world);
        let writer = thread::spawn(move || other.commit(1));
        let first = world.commit(0);
        let second = writer.join().expect("no panic");
        assert_eq!(world.durability.syncs(), u64::from(first) + u64::from(second));
        (first, second)
    });
    assert_eq!(who, [(false, true), (true, true)]);
}
