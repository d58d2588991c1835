//! Events: what a database tells its user of the work that it does by itself.
//!
//! Owns the trait that a user implements and the events themselves, which are plain data. Never calls a listener: the
//! cube does (`cube::events`). A kind of work that is to be told of later gets an event type and a method of its own
//! here, whose default does nothing.

use std::fmt;

use super::error::Error;
use super::gc::GcReport;

/// Hears what a database does in the background; see [`Options::listener`](crate::Options::listener).
///
/// A method is called on the thread that does the work: one of the database's own, or that of the caller of
/// [`Db::gc`](crate::Db::gc). The work waits until it returns, so it should not block for long: count, log, or send the
/// event, which owns all it says, to another thread. Collections run side by side, and so may calls.
///
/// The engine holds no lock during a call: [`Db::stats`](crate::Db::stats) and reads are fine in it. It must not
/// wait for the database, for that may wait for the very work that called: no writes, no
/// [`flush`](crate::Db::flush), [`gc`](crate::Db::gc) or [`wait_idle`](crate::Db::wait_idle). A
/// [`close`](crate::Db::close) is refused; where the last handle is dropped in it, another thread closes the database. A listener that keeps a [`Db`](crate::Db) keeps its database open for ever.
///
/// A panic in a listener does not harm the database. The listener is not called again, and
/// [`Stats::warnings`](crate::Stats::warnings) says so.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::sync::Arc;
/// use tamarack::{Db, EventListener, GcEvent, GcGoal, Options};
///
/// #[derive(Debug, Default)]
/// struct Freed(AtomicU64);
///
/// impl EventListener for Freed {
///     fn on_gc(&self, event: &GcEvent) {
///         if let GcEvent::Ended { report, .. } = event {
///             let freed = report.bytes_before.saturating_sub(report.bytes_after);
///             self.0.fetch_add(freed, Ordering::Relaxed);
///         }
///     }
/// }
///
/// # let directory = tempfile::tempdir()?;
/// let freed = Arc::new(Freed::default());
/// let options = Options { listener: Some(freed.clone()), segment_bytes_max: 64 << 10, ..Options::default() };
/// let db = Db::open(directory.path(), options)?;
/// for round in 0..4 {
///     for key in 0..50_u32 {
///         db.put(&key.to_be_bytes(), &[round; 4000])?;
///     }
/// }
/// db.flush()?;
/// db.gc(GcGoal::Until(1.5))?;
/// assert!(freed.0.load(Ordering::Relaxed) > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait EventListener: Send + Sync + fmt::Debug {
    /// Garbage of the value log is collected.
    fn on_gc(&self, event: &GcEvent) {
        let _ignored = event;
    }
}

/// What happens to a collection of garbage, or to a run that sorts values ([`Options::value_runs_max`](crate::Options)), which
/// is one of segments that need not have any; it ends when all is copied. `job` counts collections from opening, to tell those apart that run at
/// the same time. Each that has [begun](Self::Begun) has [ended](Self::Ended) or [failed](Self::Failed) later, once,
/// unless the process ends or the engine panics. Segments go by their ids, as in
/// [`SegmentStats`](crate::SegmentStats).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum GcEvent {
    /// Victims have been chosen.
    #[non_exhaustive]
    Begun {
        /// The collection.
        job: u64,
        /// The segments whose space is to be freed.
        victims: Vec<u32>,
        /// Bytes of their files.
        bytes: u64,
        /// About so many bytes of them are alive and will be copied.
        live_bytes: u64,
    },
    /// Another few MiB of what the victims hold have been copied or left behind. Small collections end without.
    #[non_exhaustive]
    Progress {
        /// The collection.
        job: u64,
        /// Bytes of records that are done with.
        bytes_done: u64,
        /// Bytes of records that tables point to in the victims: what there is to do in all.
        bytes_to_do: u64,
    },
    /// What was alive is elsewhere; the victims' files go with their last readers.
    #[non_exhaustive]
    Ended {
        /// The collection.
        job: u64,
        /// What it did.
        report: GcReport,
    },
    /// It was given up, and nothing has changed.
    #[non_exhaustive]
    Failed {
        /// The collection.
        job: u64,
        /// Why: `Closed` if the database was closed meanwhile.
        error: Error,
    },
    /// A victim is damaged where something in it is alive. It is kept, and left alone until the database is opened
    /// again; the collection fails, and others go on.
    #[non_exhaustive]
    Quarantined {
        /// The collection that met the damage.
        job: u64,
        /// The segment.
        segment: u32,
        /// What is wrong, with file and offset.
        error: Error,
    },
}
