//! Which collections run, and how far each is: for `Stats`, and for the listener.
//!
//! Owns the register of those that run and the numbers of jobs. A collection is in it from its `Begun` to just before
//! its `Ended` or `Failed`. Called by the job alone; never decides anything.

use std::collections::{BTreeMap, HashMap};

use super::super::Cube;
use super::GcReport;
use super::job::Prepared;
use super::survivors::Victim;
use crate::base::error::Result;
use crate::base::ids::SegmentId;
use crate::base::listener::GcEvent;
use crate::base::segment::SegmentMeta;
use crate::base::sync::{Arc, AtomicU64, Mutex, Ordering};
use crate::index::Collection;

/// Bytes that are copied or left behind from one event to the next.
const PROGRESS_BYTES: u64 = 4 << 20;

/// A run of garbage collection that is under way; see [`GcEvent`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectionStats {
    /// The same number as in its events.
    pub job: u64,
    /// The segments whose space is to be freed.
    pub victims: Vec<u32>,
    /// Bytes of their files.
    pub bytes: u64,
    /// About so many of them are alive.
    pub live_bytes: u64,
    /// Bytes of records that have been copied or left behind.
    pub bytes_done: u64,
    /// Bytes of records that tables point to in the victims.
    pub bytes_to_do: u64,
}

/// The collections of one cube that run. Lock rank: a leaf.
#[derive(Debug, Default)]
pub struct Running {
    last_job: AtomicU64,
    works: Mutex<BTreeMap<u64, Arc<Work>>>,
}

/// What one of them has to do. Written by its thread, read by anybody.
#[derive(Debug, Default)]
struct Work {
    victims: Vec<u32>,
    bytes: u64,
    live_bytes: u64,
    bytes_to_do: u64,
    records: u64,
    records_done: AtomicU64,
}

impl Running {
    /// The number of another one.
    pub fn next_job(&self) -> u64 {
        self.last_job.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Those that run, in the order in which they began.
    pub fn list(&self) -> Vec<CollectionStats> {
        self.works.lock().iter().map(|(&job, work)| work.stats(job)).collect()
    }
}

impl Work {
    /// Records count alike: only of those that are copied it is known how long they are.
    fn bytes_done(&self, records_done: u64) -> u64 {
        let done = u128::from(self.bytes_to_do) * u128::from(records_done) / u128::from(self.records.max(1));
        done as u64
    }

    /// Records from one event to the next.
    fn records_per_event(&self) -> u64 {
        let records =
            u128::from(PROGRESS_BYTES) * u128::from(self.records) / u128::from(self.bytes_to_do.max(1));
        u64::try_from(records).unwrap_or(u64::MAX).max(1)
    }

    fn stats(&self, job: u64) -> CollectionStats {
        CollectionStats {
            job,
            victims: self.victims.clone(),
            bytes: self.bytes,
            live_bytes: self.live_bytes,
            bytes_done: self.bytes_done(self.records_done.load(Ordering::Relaxed)),
            bytes_to_do: self.bytes_to_do,
        }
    }
}

/// One collection, which runs until this is dropped.
pub struct Progress<'a> {
    cube: &'a Cube,
    job: u64,
    work: Arc<Work>,
    /// How many records are done when the next event is due.
    next_event: u64,
}

impl<'a> Progress<'a> {
    /// A collection of what is `prepared` begins, or, if that failed, one of all that was chosen fails soon.
    /// `estimates` say how much of each is alive.
    pub fn begin(
        cube: &'a Cube,
        collection: &Collection,
        prepared: Option<&Prepared>,
        estimates: &HashMap<SegmentId, u64>,
    ) -> Self {
        let chosen = collection.victims().iter().map(|entry| entry.meta);
        let is_taken = |meta: &SegmentMeta| {
            prepared.is_none_or(|prepared| {
                prepared.victims.iter().any(|victim| victim.meta.id == meta.id)
                    || prepared.dead.iter().any(|(id, _)| *id == meta.id)
            })
        };
        let metas: Vec<SegmentMeta> = chosen.filter(is_taken).collect();
        let victims = prepared.map_or(&[][..], |prepared| &prepared.victims);
        let alive = |victim: &Victim| victim.survivor_bytes_max().min(estimates[&victim.meta.id]);
        let work = Arc::new(Work {
            victims: metas.iter().map(|meta| meta.id.0).collect(),
            bytes: metas.iter().map(|meta| meta.file_bytes).sum(),
            live_bytes: victims.iter().map(alive).sum(),
            bytes_to_do: victims.iter().map(Victim::survivor_bytes_max).sum(),
            records: victims.iter().map(|victim| victim.referenced.len() as u64).sum(),
            records_done: AtomicU64::new(0),
        });
        let running = &cube.collector.running;
        let job = running.next_job();
        running.works.lock().insert(job, Arc::clone(&work));
        let next_event = work.records_per_event();
        let progress = Self { cube, job, work, next_event };
        let Work { bytes, live_bytes, .. } = *progress.work;
        cube.events.gc(|| GcEvent::Begun { job, victims: progress.work.victims.clone(), bytes, live_bytes });
        progress
    }

    /// Its number.
    pub fn job(&self) -> u64 {
        self.job
    }

    /// About so many bytes will be copied.
    pub fn live_bytes(&self) -> u64 {
        self.work.live_bytes
    }

    /// Another `records` have been copied or left behind.
    pub fn advance(&mut self, records: usize) {
        let done = self.work.records_done.fetch_add(records as u64, Ordering::Relaxed) + records as u64;
        if done < self.next_event {
            return;
        }
        self.next_event = done + self.work.records_per_event();
        let (job, bytes_to_do) = (self.job, self.work.bytes_to_do);
        let bytes_done = self.work.bytes_done(done);
        self.cube.events.gc(|| GcEvent::Progress { job, bytes_done, bytes_to_do });
    }

    /// It has ended with `done`.
    pub fn end(self, done: &Result<GcReport>) {
        let (cube, job) = (self.cube, self.job);
        drop(self);
        cube.events.gc(|| match done {
            Ok(report) => GcEvent::Ended { job, report: *report },
            Err(error) => GcEvent::Failed { job, error: error.clone() },
        });
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.cube.collector.running.works.lock().remove(&self.job);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn events_come_every_few_bytes_and_never_say_more_than_all() {
        let work = |bytes_to_do, records| Work { bytes_to_do, records, ..Work::default() };
        assert_eq!(work(64 << 20, 64_000).records_per_event(), 4000);
        assert_eq!(work(1 << 40, 3).records_per_event(), 1, "each record is more than that");
        assert!(work(1 << 20, 100).records_per_event() > 100, "a small collection has none");
        assert_eq!(work(0, 0).records_per_event(), 1);
        assert_eq!([0, 50, 100].map(|done| work(1000, 100).bytes_done(done)), [0, 500, 1000]);
        assert_eq!(work(u64::MAX, 3).bytes_done(3), u64::MAX);
        assert_eq!(work(0, 0).bytes_done(0), 0);
    }
}
