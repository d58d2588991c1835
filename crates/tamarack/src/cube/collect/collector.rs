//! What garbage collection remembers from one collection to the next.

use std::collections::BTreeSet;

use super::pace::Pace;
use super::progress::{CollectionStats, Running};
use super::sort::Shapes;
use crate::base::error::{Error, Result};
use crate::base::ids::SegmentId;
use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::index::version::Version;

/// The collector of one cube. Lock rank: a leaf.
#[derive(Debug)]
pub struct Collector {
    /// The id of the next cold segment. Ids are not used again while the cube is open.
    next_id: AtomicU64,
    quarantined: Mutex<BTreeSet<SegmentId>>,
    /// How fast copies may be made.
    pub pace: Pace,
    /// Those that run.
    pub(super) running: Running,
    /// What segments look like to who walks over keys.
    pub(super) shapes: Shapes,
    /// The most runs over one key when that was last looked at.
    pub most_runs: AtomicU64,
}

impl Collector {
    /// A collector whose cold segments get ids that `version` does not know, and that copies at most `rate` bytes a
    /// second; 0 is no limit.
    pub fn new(version: &Version, rate: u64) -> Self {
        let segments = version.segments();
        let sealed = segments.sealed().map(|entry| entry.meta.id);
        let known = sealed.chain(segments.moved().map(|(id, _)| id)).filter(|id| id.is_cold());
        let next = known.max().map_or(u64::from(SegmentId::COLD_FIRST.0), |id| u64::from(id.0) + 1);
        Self {
            next_id: AtomicU64::new(next),
            quarantined: Mutex::default(),
            pace: Pace::new(rate),
            running: Running::default(),
            shapes: Shapes::default(),
            most_runs: AtomicU64::new(0),
        }
    }

    /// An id for a cold segment.
    ///
    /// # Errors
    /// `Unsupported` after 2^31 − 1 of them.
    pub fn next_id(&self) -> Result<SegmentId> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let id = u32::try_from(id).ok().filter(|&id| id < u32::MAX).map(SegmentId);
        id.ok_or_else(|| {
            Error::unsupported("there are no more ids for cold segments: load the database into a new one")
        })
    }

    /// The collections that run, and how far they are.
    pub fn running(&self) -> Vec<CollectionStats> {
        self.running.list()
    }

    /// Leaves `segment` alone from now on, because it is damaged.
    pub fn quarantine(&self, segment: SegmentId) {
        self.quarantined.lock().insert(segment);
    }

    /// The segments that were found damaged since the cube was opened.
    pub fn quarantined(&self) -> BTreeSet<SegmentId> {
        self.quarantined.lock().clone()
    }
}
