//! Which moments of the past somebody still looks at.

use std::collections::BTreeMap;
use std::time::Duration;

use super::publish::Publisher;
use super::readers::{ReaderKind, ReaderStats};
use crate::base::ids::Sequence;
use crate::base::sync::{Arc, Mutex};
use crate::index::version::HeldBytes;

/// The snapshots of one cube. Lock rank: a leaf.
///
/// A snapshot is taken, and the list is read for a compaction, under one lock. So a compaction that does not
/// see a snapshot began before the snapshot was taken; everything the compaction reads was visible then, and its
/// newest versions, which it keeps, are the ones that the snapshot sees.
#[derive(Debug, Default)]
pub struct Snapshots {
    live: Mutex<Live>,
}

#[derive(Debug, Default)]
struct Live {
    last: u64,
    /// By moment, and by number, in the order in which they were taken.
    held: BTreeMap<(Sequence, u64), Taken>,
}

#[derive(Debug)]
struct Taken {
    at: Duration,
    name: Option<Arc<str>>,
}

/// One moment, held until this is dropped.
#[derive(Debug)]
pub struct HeldSequence {
    owner: Arc<Snapshots>,
    sequence: Sequence,
    number: u64,
    name: Option<Arc<str>>,
}

impl HeldSequence {
    /// The name that it was taken under.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

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
        let gone = self.owner.live.lock().held.remove(&(self.sequence, self.number));
        debug_assert!(gone.is_some(), "a held sequence is in the list");
    }
}

impl Snapshots {
    /// Holds the present moment. `now` is the monotonic time, for the age that `stats` shows.
    pub fn take(self: &Arc<Self>, publisher: &Publisher, now: Duration, name: Option<&str>) -> HeldSequence {
        let name: Option<Arc<str>> = name.map(Arc::from);
        let taken = Taken { at: now, name: name.clone() };
        let mut live = self.live.lock();
        let sequence = publisher.visible();
        live.last += 1;
        let number = live.last;
        live.held.insert((sequence, number), taken);
        drop(live);
        HeldSequence { owner: Arc::clone(self), sequence, number, name }
    }

    /// Every held moment, ascending, without repeats.
    pub fn list(&self) -> Vec<Sequence> {
        let mut list: Vec<_> = self.live.lock().held.keys().map(|&(sequence, _)| sequence).collect();
        list.dedup();
        list
    }

    /// How many snapshots are held, and the oldest of them, with its number, as it is at time `now`.
    pub fn summary(&self, now: Duration) -> (u64, Option<(u64, ReaderStats)>) {
        let live = self.live.lock();
        let oldest = live.held.iter().min_by_key(|&(&(_, number), taken)| (taken.at, number));
        let oldest = oldest.map(|(key, taken)| (key.1, taken.stats(key.0, now)));
        (live.held.len() as u64, oldest)
    }

    /// Every snapshot, with its number, as it is at time `now`; `held` is what is kept for snapshots alone.
    pub fn stats(&self, now: Duration, held: &HeldBytes) -> Vec<(u64, ReaderStats)> {
        let live = self.live.lock();
        let stats = |(&(sequence, number), taken): (&(Sequence, u64), &Taken)| {
            let (held_bytes, held_alone_bytes) = live.share(sequence, held);
            (number, ReaderStats { held_bytes, held_alone_bytes, ..taken.stats(sequence, now) })
        };
        live.held.iter().map(stats).collect()
    }
}

impl Live {
    /// How much of `held` a snapshot at `sequence` sees, and how much no other.
    fn share(&self, sequence: Sequence, held: &HeldBytes) -> (u64, u64) {
        let (mut all, mut alone) = (0, 0);
        let seen = held.iter().filter(|&(&(first, last), _)| (first..=last).contains(&sequence));
        for (&(first, last), &bytes) in seen {
            all += bytes;
            let others = self.held.range((first, 0)..=(last, u64::MAX)).nth(1).is_some();
            alone += if others { 0 } else { bytes };
        }
        (all, alone)
    }
}

impl Taken {
    fn stats(&self, sequence: Sequence, now: Duration) -> ReaderStats {
        ReaderStats {
            kind: ReaderKind::Snapshot,
            name: self.name.as_deref().map(str::to_owned),
            sequence: sequence.0,
            age_seconds: now.saturating_sub(self.at).as_secs_f64(),
            ..ReaderStats::default()
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_held_until_its_last_holder_is_gone() {
        let publisher = Publisher::new(Sequence(7));
        let snapshots = Arc::new(Snapshots::default());
        let first = snapshots.take(&publisher, Duration::from_secs(1), Some("first"));
        let second = snapshots.take(&publisher, Duration::from_secs(2), None);
        assert_eq!(snapshots.list(), [Sequence(7)]);
        let now = Duration::from_secs(5);
        let (count, oldest) = snapshots.summary(now);
        let (number, oldest) = oldest.expect("two are held");
        assert_eq!((count, number, oldest.name.as_deref(), oldest.sequence), (2, 1, Some("first"), 7));
        assert!((oldest.age_seconds - 4.0).abs() < f64::EPSILON);
        assert_eq!(first.name(), Some("first"));
        drop(first);
        assert_eq!(snapshots.list(), [Sequence(7)]);
        let left = snapshots.stats(now, &HeldBytes::new());
        assert_eq!(left.iter().map(|(number, held)| (*number, &held.name)).collect::<Vec<_>>(), [(2, &None)]);
        drop(second);
        assert!(snapshots.list().is_empty());
        assert_eq!(snapshots.summary(now), (0, None));
    }
    #[test]
    fn what_is_kept_is_shared_by_those_who_see_it() {
        let snapshots = Arc::new(Snapshots::default());
        let take = |sequence| snapshots.take(&Publisher::new(Sequence(sequence)), Duration::ZERO, None);
        let mut all = vec![take(10), take(20), take(20), take(30)];
        let range = |first, last| (Sequence(first), Sequence(last));
        let held = HeldBytes::from([
            (range(10, 10), 1),
            (range(10, 20), 10),
            (range(10, 30), 100),
            (range(20, 20), 1000),
            (range(30, 30), 10_000),
            // Kept for one that is gone.
            (range(15, 15), 100_000),
        ]);
        let shares = || -> Vec<_> {
            let stats = snapshots.stats(Duration::ZERO, &held).into_iter();
            stats.map(|(_, held)| (held.held_bytes, held.held_alone_bytes)).collect()
        };
        assert_eq!(shares(), [(111, 1), (1110, 0), (1110, 0), (10_100, 10_000)]);
        all.remove(1);
        assert_eq!(shares(), [(111, 1), (1110, 1000), (10_100, 10_000)]);
        all.remove(0);
        assert_eq!(shares(), [(1110, 1010), (10_100, 10_000)]);
    }
}
