//! The head-room: space on the file system that is left to whatever makes space.
//!
//! A log that took the last byte could never give any back: flushes need space for their tables, collections for
//! their copies, and deletions, which make space, are records of the log. So before more of the file system is taken,
//! it is seen how much is free. New data leave the whole head-room, compactions half of it, deletions a quarter, and
//! collections nothing but what memtables need to become tables, which is left by all. What deletions took is not open
//! to data before the head-room is whole again, so that one deletion after another finds space, whatever is tried in
//! between. Nothing is set aside on the disk: other programs can still take all there is.
//!
//! A job that copies promises how much it will write before it begins, and nobody else counts on that space; what it has
//! written is on the disk, and promised no more. Who finds no room waits for jobs that run, because they may make some.
//!
//! Called by whoever clears an obstacle for the log, and by jobs before they begin. No lock is held.

use std::path::Path;

use super::Cube;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::sync::{Arc, AtomicU64, Mutex, Ordering};

/// What space is wanted for; what makes more space comes later here and leaves less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// New data in the log.
    Data,
    /// The outputs of a compaction.
    Compaction,
    /// The copies of a collection.
    Collection,
    /// Deletions in the log.
    Deletions,
}

/// Deletions are given space in steps of at most this.
const DELETIONS_STEP_BYTES: u64 = 64 << 10;
/// Who finds no room waits for the end of so many jobs, and is refused then: they make less space than others take.
const JOBS_WAITED_FOR_MAX: u32 = 8;
/// If nothing else was asked for, the head-room is the database's size divided by this ...
const SIZE_PER_HEADROOM: u64 = 8;
/// ... and at most so many full segments, so that a quarter is enough to collect one.
const SEGMENTS_MAX: u64 = 8;

/// The head-room of one cube. Lock rank: a leaf.
#[derive(Debug, Default)]
pub struct Headroom {
    jobs: Mutex<Vec<Arc<Filling>>>,
    /// What a compaction would write that waits, or will soon be due.
    wanted: AtomicU64,
    /// How long one has waited, in thousandths of long.
    waited: AtomicU64,
    /// What compactions will write that wait for a thread.
    starting: AtomicU64,
}

/// What a job fills.
#[derive(Debug)]
struct Filling {
    claim: Claim,
    promised: u64,
    written: Arc<AtomicU64>,
    /// Bytes of a file that was there to be written to.
    blank: AtomicU64,
}

/// For how many jobs more, which may make space, a writer waits.
#[derive(Debug)]
pub(super) struct Patience(u32);

impl Default for Patience {
    fn default() -> Self {
        Self(JOBS_WAITED_FOR_MAX)
    }
}

impl Patience {
    /// The room that was found, or `None` if a job is to be waited for.
    ///
    /// # Errors
    /// That there is no room, once there is no patience.
    pub(super) fn or_wait(&mut self, room: Result<u64>) -> Result<Option<u64>> {
        match room {
            Err(refusal) if self.0 == 0 => Err(refusal),
            Err(_) => {
                self.0 -= 1;
                Ok(None)
            }
            Ok(bytes) => Ok(Some(bytes)),
        }
    }
}

/// Space that a job may fill, until it is dropped.
#[derive(Debug)]
pub(super) struct Promise<'a> {
    headroom: &'a Headroom,
    filling: Arc<Filling>,
}

impl Promise<'_> {
    /// Bytes that the job has written; it counts them here.
    pub fn written(&self) -> &Arc<AtomicU64> {
        &self.filling.written
    }

    /// Bytes that it was promised.
    pub fn bytes(&self) -> u64 {
        self.filling.promised
    }

    /// The job begins to write to a file that takes `bytes` already.
    pub fn fill_blank(&self, bytes: u64) {
        self.filling.blank.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        self.headroom.jobs.lock().retain(|job| !Arc::ptr_eq(job, &self.filling));
    }
}

/// What running jobs fill, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filled {
    /// What they may write yet.
    pub promised: u64,
    /// What the files take that they write, which no version mentions before they have ended.
    pub written: u64,
    /// What compactions write in all, those parts of it included.
    pub compacting: u64,
    /// What one would write that has not begun ...
    pub wanted: u64,
    /// ... and how long it has waited for room, in thousandths of long.
    pub waited: u64,
}

impl Headroom {
    /// What running jobs fill.
    pub fn filled(&self) -> Filled {
        let waited = self.waited.load(Ordering::Relaxed);
        let none = Filled { wanted: self.wanted(), waited, ..Filled::default() };
        self.jobs.lock().iter().fold(none, |sum, job| {
            let written = job.written.load(Ordering::Relaxed).max(job.blank.load(Ordering::Relaxed));
            let compacts = job.claim == Claim::Compaction;
            Filled {
                promised: sum.promised + job.promised.saturating_sub(written),
                written: sum.written + written,
                compacting: sum.compacting + if compacts { job.promised.max(written) } else { 0 },
                ..sum
            }
        })
    }

    /// From now on a compaction wants room for so many bytes before it begins, 0 if none does, and has waited for so many thousandths of long.
    pub fn want(&self, bytes: u64, waited: u64) {
        self.wanted.store(bytes, Ordering::Relaxed);
        self.waited.store(waited, Ordering::Relaxed);
    }

    /// A compaction that will write so many bytes waits for a thread, until [`started`](Self::started) is called.
    pub fn starting(&self, bytes: u64) {
        self.starting.fetch_add(bytes, Ordering::Relaxed);
    }

    /// It has one.
    pub fn started(&self, bytes: u64) {
        self.starting.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What compactions would write that have not begun.
    fn wanted(&self) -> u64 {
        self.wanted.load(Ordering::Relaxed) + self.starting.load(Ordering::Relaxed)
    }

    fn promise(&self, bytes: u64, claim: Claim) -> Promise<'_> {
        let filling =
            Arc::new(Filling { claim, promised: bytes, written: Arc::default(), blank: AtomicU64::new(0) });
        self.jobs.lock().push(Arc::clone(&filling));
        Promise { headroom: self, filling }
    }
}

/// What is free, and what is to stay so.
#[derive(Debug, Clone, Copy)]
struct Room {
    free: u64,
    /// Bytes of them that jobs may write.
    promised: u64,
    /// What was asked for.
    reserved: u64,
    /// What memtables need to become tables.
    unflushed: u64,
}

impl Room {
    /// Bytes that must stay free.
    fn kept(&self, claim: Claim) -> u64 {
        let kept = |part: u64| (self.reserved / part).saturating_add(self.unflushed);
        match claim {
            Claim::Data => kept(1),
            Claim::Compaction => kept(2),
            Claim::Deletions => kept(4),
            Claim::Collection => self.unflushed,
        }
    }

    fn has(&self, bytes: u64, claim: Claim) -> bool {
        // Deletions are small, and come before any job.
        let promised = if claim == Claim::Deletions { 0 } else { self.promised };
        self.free >= self.kept(claim).saturating_add(bytes).saturating_add(promised)
    }
}

impl Cube {
    /// Removes what waits to be removed, or waits for a job that may make space, without the turn: deletions are not held up by it. Where there is
    /// neither, there is no use in more patience.
    pub(super) fn wait_for_room(&self, patience: &mut Patience) {
        let files = self.index.files();
        // Whoever is to do it may be a caller who collects and has not come to that yet.
        let wait_to_be_removed = files.has_doomed();
        // What another removes at this moment is gone then, too.
        files.finish_removal();
        if !wait_to_be_removed && !self.wait_for_a_job() {
            patience.0 = 0;
        }
    }

    /// How much the log may take for its file at `path`: `best` bytes, or else `least`.
    ///
    /// # Errors
    /// `NoSpace` if even that would take what must stay free.
    pub(super) fn room_for(&self, path: &Path, best: u64, least: u64, claim: Claim) -> Result<u64> {
        let best = if claim == Claim::Deletions { best.min(DELETIONS_STEP_BYTES) } else { best }.max(least);
        let Some(room) = self.room_with(least, claim) else { return Ok(best) };
        let fitting = [best, least].into_iter().find(|&bytes| room.has(bytes, claim));
        fitting.ok_or_else(|| no_room(&path.display().to_string(), least, claim, &room))
    }

    /// Promises `job` that it may write `bytes`.
    ///
    /// # Errors
    /// `NoSpace` if that would take what must stay free.
    pub(super) fn promise(&self, job: &str, bytes: u64, claim: Claim) -> Result<Promise<'_>> {
        match self.room_with(bytes, claim) {
            Some(room) if bytes > 0 && !room.has(bytes, claim) => {
                let what = format!("{job} in {}", self.directory.display());
                Err(no_room(&what, bytes, claim, &room))
            }
            _ => Ok(self.headroom.promise(bytes, claim)),
        }
    }

    /// Bytes that a collection should copy at most: what fits into one segment, and into half of what it may take.
    pub(super) fn collection_bytes_max(&self) -> u64 {
        self.copied_bytes_max(self.options.segment_bytes_max)
    }

    /// Bytes up to `most` that a job should copy at most: what fits into half of what a collection may take.
    pub(super) fn copied_bytes_max(&self, most: u64) -> u64 {
        self.room().map_or(most, |room| {
            most.min(room.free.saturating_sub(room.promised + room.kept(Claim::Collection)) / 2)
        })
    }

    /// The room, once what is only kept to be recycled was given back if there is too little.
    fn room_with(&self, bytes: u64, claim: Claim) -> Option<Room> {
        let room = self.room()?;
        if room.has(bytes, claim) || !self.give_up_stock() {
            return Some(room);
        }
        self.room()
    }

    /// Removes the files that are kept to become new ones. Returns whether there were any. Blocks on the device.
    pub(super) fn give_up_stock(&self) -> bool {
        let any = self.index.files().release_stock();
        if any {
            self.index.files().finish_removal();
        }
        any
    }

    /// The same if the disk was full for a job that ended like this.
    pub(super) fn give_up_stock_after<T>(&self, done: &Result<T>) -> bool {
        done.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) && self.give_up_stock()
    }

    /// Whether the disk has so much room that files of `bytes` may lie idle in it.
    pub(super) fn has_idle_room(&self, bytes: u64) -> bool {
        self.room().is_none_or(|room| room.has(bytes, Claim::Data))
    }

    /// `None` if nothing is to stay free, or the file system does not tell what is: then it will say whether it is
    /// full when the space is taken.
    fn room(&self) -> Option<Room> {
        if self.options.reserved_bytes == Some(0) {
            return None;
        }
        let free = self.env.fs.free_bytes(&self.directory).ok()?;
        let state = self.current.load();
        let by_size = || {
            let most = SEGMENTS_MAX * self.options.segment_bytes_max;
            (self.disk_bytes(&state) / SIZE_PER_HEADROOM).min(most)
        };
        let reserved = self.options.reserved_bytes.unwrap_or_else(by_size);
        let memtables = state.frozen.iter().map(|frozen| &frozen.memtable).chain([&state.active]);
        let unflushed = memtables.map(|memtable| memtable.memory_bytes() as u64).sum();
        Some(Room { free, promised: self.headroom.filled().promised, reserved, unflushed })
    }
}

fn no_room(what: &str, bytes: u64, claim: Claim, room: &Room) -> Error {
    Error::no_space(format!(
        "{what} would take {bytes} bytes of the {} that are free on its file system, of which {} are kept for what makes \
         space and for jobs that run: delete keys, make room, or lower the option reserved_bytes",
        room.free,
        room.kept(claim).saturating_add(room.promised)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_has_written_is_promised_no_more() {
        let headroom = Headroom::default();
        let (first, second) =
            (headroom.promise(100, Claim::Collection), headroom.promise(10, Claim::Collection));
        first.written().fetch_add(30, Ordering::Relaxed);
        let filled = |promised, written| Filled { promised, written, ..Filled::default() };
        assert_eq!(headroom.filled(), filled(80, 30));
        second.written().fetch_add(15, Ordering::Relaxed);
        assert_eq!(headroom.filled(), filled(70, 45), "it was an estimate");
        drop(second);
        assert_eq!(headroom.filled(), filled(70, 30));
        drop(first);
        assert_eq!(headroom.filled(), Filled::default());
    }

    #[test]
    fn what_compactions_write_is_known_before_they_begin_and_until_they_end() {
        let headroom = Headroom::default();
        headroom.want(60, 300);
        let _other = headroom.promise(7, Claim::Collection);
        assert_eq!(headroom.filled(), Filled { promised: 7, wanted: 60, waited: 300, ..Filled::default() });
        headroom.want(0, 0);
        headroom.starting(60);
        assert_eq!(headroom.filled().wanted, 60, "it waits for a thread");
        headroom.started(60);
        let compaction = headroom.promise(60, Claim::Compaction);
        compaction.written().fetch_add(20, Ordering::Relaxed);
        let filled = Filled { promised: 47, written: 20, compacting: 60, ..Filled::default() };
        assert_eq!(headroom.filled(), filled);
        compaction.written().fetch_add(50, Ordering::Relaxed);
        assert_eq!(headroom.filled().compacting, 70, "it was an estimate");
    }

    #[test]
    fn what_makes_more_space_leaves_less() {
        let room = Room { free: 170, promised: 20, reserved: 80, unflushed: 10 };
        let most = |claim| (0..=200).rev().find(|&bytes| room.has(bytes, claim));
        let claims = [Claim::Data, Claim::Compaction, Claim::Deletions, Claim::Collection];
        assert_eq!(claims.map(most), [Some(60), Some(100), Some(140), Some(140)]);
        let full = Room { free: 5, ..room };
        assert!(!full.has(0, Claim::Data) && !full.has(0, Claim::Deletions));
        let message = no_room("db/000001.vlog", 7, Claim::Data, &full).to_string();
        assert!(message.contains("db/000001.vlog") && message.contains("110"), "{message}");
    }
}
