//! Which moments of the past somebody still looks at.

use std::collections::BTreeMap;
use std::time::Duration;

use super::publish::Publisher;
use crate::base::ids::Sequence;
use crate::base::sync::{Arc, Mutex};

/// The snapshots of one cube. Lock rank: a leaf.
///
/// A snapshot is taken, and the list is read for a compaction, under one lock. So a compaction that does not
/// see a snapshot began before the snapshot was taken; everything the compaction reads was visible then, and its
/// newest versions, which it keeps, are the ones that the snapshot sees.
#[derive(Debug, Default)]
pub struct Snapshots {
    live: Mutex<BTreeMap<Sequence, Holders>>,
}

#[derive(Debug)]
struct Holders {
    count: u64,
    oldest: Duration,
}

/// One moment, held until this is dropped.
#[derive(Debug)]
pub struct HeldSequence {
    owner: Arc<Snapshots>,
    sequence: Sequence,
}

impl HeldSequence {
    /// The last operation that is seen at this moment.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Whether this moment belongs to `snapshots`.
    pub fn belongs_to(&self, snapshots: &Arc<Snapshots>) -> bool {
        Arc::ptr_eq(&self.owner, snapshots)
    }
}

impl Drop for HeldSequence {
    fn drop(&mut self) {
        let mut live = self.owner.live.lock();
        let holders = live.get_mut(&self.sequence).expect("a held sequence is in the list");
        holders.count -= 1;
        if holders.count == 0 {
            live.remove(&self.sequence);
        }
    }
}

impl Snapshots {
    /// Holds the present moment. `now` is the monotonic time, for the age that `stats` shows.
    pub fn take(self: &Arc<Self>, publisher: &Publisher, now: Duration) -> HeldSequence {
        let mut live = self.live.lock();
        let sequence = publisher.visible();
        live.entry(sequence).or_insert(Holders { count: 0, oldest: now }).count += 1;
        HeldSequence { owner: Arc::clone(self), sequence }
    }

    /// Every held moment, ascending, without repeats.
    pub fn list(&self) -> Vec<Sequence> {
        self.live.lock().keys().copied().collect()
    }

    /// How many snapshots are held, and when the oldest of them was taken.
    pub fn summary(&self) -> (u64, Option<Duration>) {
        let live = self.live.lock();
        (live.values().map(|holders| holders.count).sum(), live.values().map(|holders| holders.oldest).min())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_held_until_its_last_holder_is_gone() {
        let publisher = Publisher::new(Sequence(7));
        let snapshots = Arc::new(Snapshots::default());
        let first = snapshots.take(&publisher, Duration::from_secs(1));
        let second = snapshots.take(&publisher, Duration::from_secs(2));
        assert_eq!(snapshots.list(), [Sequence(7)]);
        assert_eq!(snapshots.summary(), (2, Some(Duration::from_secs(1))));
        drop(first);
        assert_eq!(snapshots.list(), [Sequence(7)]);
        drop(second);
        assert!(snapshots.list().is_empty());
    }
}
