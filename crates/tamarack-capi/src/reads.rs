//! How reads and writes are done, and the moments that reads are done at.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::RwLock;
use tamarack::{PinnedValue, ReadOptions, WriteOptions};

use crate::boundary::handle::Kind;
use crate::status::Status;

/// `leveldb_snapshot_t`.
pub struct Moment(Arc<tamarack::Snapshot>);

impl Moment {
    /// The moment that `snapshot` holds.
    pub fn new(snapshot: tamarack::Snapshot) -> Self {
        Self(Arc::new(snapshot))
    }
}

impl Kind for Moment {
    const NAME: &'static str = "a snapshot";
    const TAG: u64 = u64::from_le_bytes(*b"snapshot");
}

/// `tamarack_pinned_t`.
impl Kind for PinnedValue {
    const NAME: &'static str = "a pinned value";
    const TAG: u64 = u64::from_le_bytes(*b"pinnedvl");
}

/// `leveldb_readoptions_t`. Threads that read with the same one do not wait for each other, unless it has a snapshot:
/// then they touch one lock, which nobody holds for long.
pub struct Reading {
    verify_checksums: AtomicBool,
    fill_cache: AtomicBool,
    /// How many entries iterators are expected to be asked for; 0 if that is not known.
    expected_entries: AtomicUsize,
    /// Whether there is a snapshot, so that reads at the present take no lock.
    at_moment: AtomicBool,
    /// It belongs to the client, who may release it: reads fail then, and nothing is held on disk any more.
    moment: RwLock<Option<Weak<tamarack::Snapshot>>>,
}

impl Default for Reading {
    fn default() -> Self {
        let ReadOptions { verify_checksums, fill_cache, .. } = ReadOptions::default();
        Self {
            verify_checksums: verify_checksums.into(),
            fill_cache: fill_cache.into(),
            expected_entries: 0.into(),
            at_moment: false.into(),
            moment: RwLock::default(),
        }
    }
}

impl Reading {
    /// As Tamarack calls them.
    ///
    /// # Errors
    /// If the snapshot has been released.
    pub fn to_options(&self) -> Result<ReadOptions, Status> {
        let moment = if self.at_moment.load(Ordering::Acquire) { self.moment.read().clone() } else { None };
        let released = || Status::invalid_argument("the snapshot to read at was released");
        let held = moment.map(|moment| moment.upgrade().ok_or_else(released)).transpose()?;
        let snapshot = held.map(|held| tamarack::Snapshot::clone(&held));
        Ok(ReadOptions {
            snapshot,
            verify_checksums: self.verify_checksums.load(Ordering::Relaxed),
            fill_cache: self.fill_cache.load(Ordering::Relaxed),
        })
    }

    /// Sets whether checksums of values are checked.
    pub fn set_verify_checksums(&self, on: bool) {
        self.verify_checksums.store(on, Ordering::Relaxed);
    }

    /// Sets whether blocks that are read stay in the cache.
    pub fn set_fill_cache(&self, on: bool) {
        self.fill_cache.store(on, Ordering::Relaxed);
    }

    /// How many entries an iterator is expected to be asked for, if that is known.
    pub fn expected_entries(&self) -> Option<usize> {
        Some(self.expected_entries.load(Ordering::Relaxed)).filter(|&entries| entries > 0)
    }

    /// Sets that; 0 is that it is not known.
    pub fn set_expected_entries(&self, entries: usize) {
        self.expected_entries.store(entries, Ordering::Relaxed);
    }

    /// Sets the moment to read at; `None` is the present.
    pub fn set_snapshot(&self, moment: Option<&Moment>) {
        let mut held = self.moment.write();
        *held = moment.map(|moment| Arc::downgrade(&moment.0));
        // Under the lock, so that of two who set it at once the flag is that of the one whose moment stays.
        self.at_moment.store(held.is_some(), Ordering::Release);
    }
}

impl Kind for Reading {
    const NAME: &'static str = "read options";
    const TAG: u64 = u64::from_le_bytes(*b"readopts");
}

/// `leveldb_writeoptions_t`.
#[derive(Default)]
pub struct Writing {
    sync: AtomicBool,
}

impl Writing {
    /// As Tamarack calls them.
    pub fn to_options(&self) -> WriteOptions {
        WriteOptions { sync: self.sync.load(Ordering::Relaxed) }
    }

    /// Sets whether writes survive the machine when they return.
    pub fn set_sync(&self, on: bool) {
        self.sync.store(on, Ordering::Relaxed);
    }
}

impl Kind for Writing {
    const NAME: &'static str = "write options";
    const TAG: u64 = u64::from_le_bytes(*b"writeopt");
}
