//! Which moments of the past somebody still looks at.

use std::collections::BTreeMap;
use std::time::Duration;

use super::publish::Publisher;
use super::readers::{ReaderKind, ReaderStats};
use crate::base::ids::Sequence;
use crate::base::sync::{Arc, Mutex};

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

    /// Every snapshot as it is at time `now`.
    pub fn stats(&self, now: Duration) -> Vec<ReaderStats> {
        let live = self.live.lock();
        live.held.iter().map(|(&(sequence, _), taken)| taken.stats(sequence, now)).collect()
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
        assert_eq!(snapshots.stats(now).iter().map(|held| &held.name).collect::<Vec<_>>(), [&None]);
        drop(second);
        assert!(snapshots.list().is_empty());
        assert_eq!(snapshots.summary(now), (0, None));
    }
}
