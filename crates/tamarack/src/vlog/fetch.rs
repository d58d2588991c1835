//! Reads many values at once: sorted by place, neighbours joined into one read, reads done in parallel.
//!
//! An SSD serves scattered reads well only if many are under way (WiscKey, section 3.2 and figure 3). Scans and
//! multi-gets collect what they want and hand it over here. The reads are dealt into *shares*; whoever has a thread takes
//! one after the other, and the values of a share stay in one buffer. Where the system has queues of reads, one thread
//! has all reads of a share under way, and there are few shares; elsewhere each share has one read at a time, and there are
//! many. [`plan`] is pure; which threads there are is the caller's business.

mod share;

use std::ops::Range;

use self::share::{Share, Wait};
use super::loads::Loads;
use super::open_segments::OpenSegment;
use super::piece::{Piece, pieces};
use super::plan::{
    RUN_BYTES_MAX, RUN_BYTES_MAX_PAST_CACHE, Run, WALK_BYTES_MIN, Wanted, plan, stretch_at, stretches, walk,
};
use super::queues;
use super::reader::{SegmentReader, StoredValue, tells};
use super::walk_pages::{Lent, WalkPages};
use crate::base::error::Error;
use crate::base::ids::SegmentId;
use crate::base::large_pages::LARGE_PAGE_BYTES;
use crate::base::pointer::ValuePointer;
use crate::base::sync::{Arc, AtomicBool, Mutex, Ordering};
use crate::env::pool::Job;

/// So many bytes of a walk are worth a thread: it reads them in their order, as the kernel expects, who reads ahead of it.
const WALK_SHARE_BYTES: u64 = 4 * 1024 * 1024;
/// A walk that goes over so many bytes at a time has come a long way: what else is in the large pages that it reads will be wanted, too.
const LONG_WALK_BYTES_MIN: u64 = LARGE_PAGE_BYTES / 2;
/// So many reads that find nothing in memory, beyond those that do, show that not much is there. Each has the device begin with it alone, and
/// telling the device costs a virtual machine more than copying.
const MISSES_MAX: usize = 8;
/// Of those that tell whether memory is scarce, one of 64, so many are looked for at most.
const TELLING_MAX: usize = 8;

/// Reads through the cache of so many bytes, on average, are left to threads: what comes out of a queue is copied once more.
const QUEUED_RUN_BYTES_MAX: u64 = 32 * 1024;
/// So many bytes of reads are under way at a time in a queue ...
const QUEUED_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// ... past the cache of so many segments, which take two descriptors each ...
const SEGMENTS_MAX: usize = 8;
/// ... and the device begins as soon as it has been given so many: not before all are.
const BEGUN_TOGETHER: usize = 8;

/// How values are read.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// Whether their checksums are looked at.
    pub verify: bool,
    /// Whether the system's cache of files may be filled with what is part of a walk; else that is read past it.
    pub fill_cache: bool,
}

/// Values to be read, and what has become of them.
#[derive(Debug)]
pub struct Fetch {
    reader: Arc<SegmentReader>,
    keys: Arc<Vec<u8>>,
    how: How,
    /// What the walk that it is part of has had loaded, and the last segment of the log.
    loads: Option<(Arc<Loads>, SegmentId)>,
    wanted: Vec<Wanted>,
    /// Those that wait for the device, or may.
    runs: Vec<Run>,
    /// How each of them is read; empty if all are as usual.
    routes: Vec<Route>,
    /// What goes past the system's cache goes into these.
    pages: Option<Arc<WalkPages>>,
    /// In how many shares they are dealt at most, if each has one read under way.
    ways: usize,
    manner: Manner,
    runs_of_share: usize,
    progress: Mutex<Progress>,
    /// Nobody waits for it any more.
    is_given_up: AtomicBool,
}

#[derive(Debug)]
struct Progress {
    /// The first run that nobody has begun.
    next: usize,
    /// Memory for the values of the next shares.
    buffers: Vec<Vec<u8>>,
    done: Vec<Fetched>,
}

/// A value that was read and checked.
#[derive(Debug)]
pub struct FetchedValue {
    /// What the caller knows it by.
    pub place: usize,
    /// Where its record is.
    pub pointer: ValuePointer,
    /// Where it lies in the bytes of its share.
    pub stored: StoredValue,
}

/// The values of a share.
#[derive(Debug, Default)]
pub struct Fetched {
    /// Where they are.
    pub bytes: Vec<u8>,
    /// Those that were read.
    pub found: Vec<FetchedValue>,
    /// Those that were not, by what the caller knows them by: one bad record spoils no other.
    pub failed: Vec<(usize, Error)>,
}

impl Fetch {
    /// All of `wanted`, whose keys are among `keys`, to be read in up to `ways` shares.
    pub fn new(
        reader: &Arc<SegmentReader>,
        keys: Arc<Vec<u8>>,
        mut wanted: Vec<Wanted>,
        how: How,
        ways: usize,
    ) -> Self {
        wanted.sort_unstable_by_key(Wanted::position);
        let how = How { fill_cache: how.fill_cache && !reader.segments().are_direct(), ..how };
        let runs = plan(&wanted, if how.fill_cache { RUN_BYTES_MAX } else { RUN_BYTES_MAX_PAST_CACHE });
        let progress = Mutex::new(Progress { next: 0, buffers: Vec::new(), done: Vec::new() });
        let reader = Arc::clone(reader);
        let manner = Manner::Shared(1);
        let mut fetch = Self {
            reader,
            keys,
            how,
            loads: None,
            wanted,
            runs,
            routes: Vec::new(),
            pages: None,
            ways,
            manner,
            runs_of_share: 1,
            progress,
            is_given_up: AtomicBool::new(false),
        };
        fetch.deal();
        fetch
    }

    /// Takes as many of `buffers` as it has shares, and has none yet: values are read into their memory.
    pub fn borrow(&self, buffers: &mut Vec<Vec<u8>>) {
        let taken = &mut self.progress.lock().buffers;
        let lacking = self.shares().saturating_sub(taken.len());
        taken.extend(buffers.drain(buffers.len().saturating_sub(lacking)..));
    }

    /// Deals the runs into shares.
    fn deal(&mut self) {
        self.manner =
            manner(&self.runs, self.ways, self.pages.is_some(), || self.reader.queues().are_there());
        let shares = if let Manner::Shared(shares) = self.manner { shares } else { 1 };
        self.runs_of_share = self.runs.len().div_ceil(shares.max(1)).max(1);
    }

    /// Reads what is in memory, here and now: handing that to other threads would take longer. What waits for the device is left,
    /// as are what is long and all that follows once little was found; or all but a few that tell whether memory is scarce. Returns whether
    /// more was found than not; what was not looked for was not found.
    pub fn read_cached(&mut self, those_that_tell: bool) -> bool {
        let mut left = std::mem::take(&mut self.runs);
        let buffer = self.progress.lock().buffers.pop();
        let mut share = Share::new(buffer.unwrap_or_default());
        let (is_direct, mut hits, mut misses) = (self.reader.segments().are_direct(), 0, 0);
        let mut telling = 0..TELLING_MAX;
        left.retain(|run| {
            let is_worth_it = if those_that_tell {
                tells(run.start) && telling.next().is_some()
            } else {
                misses <= hits + MISSES_MAX
            };
            let tried = is_worth_it && run.len() <= RUN_BYTES_MAX;
            let found = tried && share.read_run(self, run, is_direct, Wait::No);
            *(if found { &mut hits } else { &mut misses }) += 1;
            !found
        });
        self.done(share);
        self.runs = left;
        self.deal();
        hits > misses
    }

    /// The reads that are too short to be part of a walk along the log, and large values that are alone: each with its number.
    pub fn scattered(&self) -> impl Iterator<Item = (usize, Scattered)> {
        let (mut next, wanted, fill_cache) = (0, &self.wanted, self.how.fill_cache);
        stretches(&self.runs).flat_map(move |stretch| {
            let (first, is_alone) = (next, walk(stretch).is_none());
            next += stretch.len();
            let scattered = stretch.iter().enumerate();
            let scattered = scattered.filter(move |(_, run)| {
                (is_alone || fill_cache) && (!run.is_walk() || is_alone && fill_cache)
            });
            scattered.map(move |(at, run)| {
                let first_value = wanted[run.members.start].pointer;
                let is_one_value = is_alone && run.members.len() == 1;
                (first + at, Scattered { bytes: run.len(), first_value, is_one_value })
            })
        })
    }

    /// Whether the system's cache is filled with what is part of a walk.
    pub fn fills_cache(&self) -> bool {
        self.how.fill_cache
    }

    /// Has reads, by their numbers, take these routes, and those past the cache go into `pages`. Nobody has begun.
    pub fn take_routes(&mut self, routes: Vec<(usize, Route)>, pages: Option<&Arc<WalkPages>>) {
        for (number, route) in routes {
            self.routes.resize(self.runs.len(), Route::Usual);
            self.routes[number] = route;
        }
        let fit = |number: usize| self.runs[number].len() <= RUN_BYTES_MAX_PAST_CACHE;
        let use_them = (0..self.runs.len()).any(|number| self.is_past_cache(number) && fit(number));
        self.pages = pages.filter(|_| use_them).cloned();
        self.deal();
    }

    /// Whether run `number` is read past the system's cache of files.
    fn is_past_cache(&self, number: usize) -> bool {
        match self.routes.get(number) {
            Some(Route::PastCache) => true,
            Some(Route::Behind(_)) => false,
            Some(Route::Usual) | None => {
                let is_part_of_walk = || {
                    // What is left of a walk behind its last large read goes with it.
                    let before = number.checked_sub(1).map(|before| &self.runs[before]);
                    let goes_on = before
                        .is_some_and(|before| before.is_walk() && before.goes_on_with(&self.runs[number]));
                    self.runs[number].is_walk() || goes_on
                };
                self.reader.segments().are_direct() || !self.how.fill_cache && is_part_of_walk()
            }
        }
    }

    /// Nobody wants its values any more: whoever reads them ends with what is under way.
    pub fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }

    fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// Whether its segment counts among those that may be open for reads past the cache: where all reads are such, there are files enough for them.
    fn is_bounded(&self, number: usize) -> bool {
        !self.reader.segments().are_direct() && self.is_past_cache(number)
    }

    /// Waits until the piece was read that is to be before run `number`, if there is one.
    fn wait_for_piece(&self, number: usize) {
        if let Some(Route::Behind(piece)) = self.routes.get(number)
            && let Ok(segment) = self.reader.segments().get(self.runs[number].segment)
        {
            piece.read(&segment);
        }
    }

    /// How many threads could do something.
    pub fn shares(&self) -> usize {
        self.runs.len().div_ceil(self.runs_of_share)
    }

    /// As many jobs as there are shares. Any of them does whatever nobody has begun.
    pub fn jobs(self: &Arc<Self>) -> Vec<Job> {
        let job = |_| {
            let fetch = Arc::clone(self);
            Box::new(move || fetch.work()) as Job
        };
        (0..self.shares()).map(job).collect()
    }

    /// Has the device begin with the first share, if its reads go into a queue and one is to be had: the caller has something else to do
    /// meanwhile. [`finish`](Self::finish) ends it.
    pub fn begin(&self) -> Option<Begun> {
        let is_left = self.progress.lock().next < self.runs.len();
        if self.manner != Manner::Queued || !is_left {
            return None;
        }
        let mut queue = self.reader.queues().take()?;
        let mut lent = None;
        if let Some(pages) = &self.pages {
            // Without one it is better without a queue: its own memory would be in small pages, and too much.
            lent.insert(pages.lend()?).give_to(&mut *queue);
        }
        let (runs, buffer) = self.begin_share()?;
        let mut begun = Begun::new(self, runs, Share::new(buffer), queue, lent);
        begun.fill(self);
        begun.queue.submit();
        Some(begun)
    }

    /// Waits until all reads of `begun` have ended.
    pub fn finish(&self, mut begun: Begun) {
        loop {
            begun.fill(self);
            if begun.queue.is_empty() {
                break;
            }
            begun.take_some(self);
        }
        if let Some(lent) = &mut begun.lent {
            lent.take_from(&mut *begun.queue);
        }
        self.done(begun.share);
    }

    /// Reads one share after the other, until there is none that nobody has begun.
    pub fn work(&self) {
        while let Some(begun) = self.begin() {
            self.finish(begun);
        }
        while let Some((runs, buffer)) = self.begin_share() {
            let mut share = Share::new(buffer);
            let values = self.runs[runs.clone()].iter().map(|run| run.members.len());
            share.out.found.reserve_exact(values.sum());
            for number in runs.clone().take_while(|_| !self.is_given_up()) {
                if let Some(stretch) = stretch_at(&self.runs[runs.clone()], number - runs.start) {
                    share.is_loaded = self.load(stretch);
                }
                self.wait_for_piece(number);
                share.read_run(self, &self.runs[number], self.is_past_cache(number), Wait::Yes);
            }
            self.done(share);
        }
    }

    /// Lets what is walked over be loaded, as far as that is worth it for the walk that `loads` knows, and [done](SegmentId::is_done) while `tail`
    /// is the last segment of the log.
    pub fn may_load(&mut self, loads: &Arc<Loads>, tail: SegmentId) {
        let bytes = self.runs.iter().map(Run::len).sum::<u64>();
        if self.how.fill_cache && bytes >= LONG_WALK_BYTES_MIN {
            self.loads = Some((Arc::clone(loads), tail));
        }
    }

    /// Has the device read `stretch` into large pages, if it is a walk. Returns whether all of it is in memory now: who reads it need not
    /// have the kernel read ahead.
    fn load(&self, stretch: &[Run]) -> bool {
        let (Some((loads, tail)), Some((id, range))) = (&self.loads, walk(stretch)) else { return false };
        if !id.is_done(*tail) || !loads.are_worth_it() {
            return false;
        }
        let (wanted, mut is_there, mut is_read) = (range.end - range.start, true, false);
        for place in pieces(id, range) {
            let loaded = self.reader.segments().load(id, place.range());
            if loaded.read > 0 {
                for passed in loads.note_loaded(place, loaded.read) {
                    self.reader.segments().unload(passed.segment(), passed.range());
                }
            }
            is_there &= loaded.is_there;
            is_read |= loaded.read > 0;
        }
        if is_there || is_read {
            loads.note_wanted(wanted);
        }
        is_there
    }

    fn begin_share(&self) -> Option<(Range<usize>, Vec<u8>)> {
        if self.is_given_up() {
            return None;
        }
        let mut progress = self.progress.lock();
        let start = progress.next;
        let end = (start + self.runs_of_share).min(self.runs.len());
        progress.next = end;
        (start < end).then(|| (start..end, progress.buffers.pop().unwrap_or_default()))
    }

    fn done(&self, share: Share) {
        self.progress.lock().done.push(share.out);
    }

    /// What was read by the threads that have worked so far, and the buffers that none has used.
    pub fn take(&self) -> (Vec<Fetched>, Vec<Vec<u8>>) {
        let mut progress = self.progress.lock();
        (std::mem::take(&mut progress.done), std::mem::take(&mut progress.buffers))
    }
}

/// A read that is by itself.
#[derive(Debug)]
pub struct Scattered {
    /// How much is read.
    pub bytes: u64,
    /// What is read first.
    pub first_value: ValuePointer,
    /// Whether that is all, and nothing else lies close.
    pub is_one_value: bool,
}

/// How a run is read that is no part of a walk along the log.
#[derive(Debug, Clone)]
pub enum Route {
    /// Through the system's cache of files, unless neither what is part of a walk is, nor anything.
    Usual,
    /// So as well, when this piece, which has it, was read.
    Behind(Arc<Piece>),
    /// Past the cache, but for what is there already.
    PastCache,
}

/// How the reads of a fetch are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Those of a share are under way together, and one share has all.
    Queued,
    /// One at a time, in so many shares.
    Shared(usize),
}

/// How `runs`, which may go `into_pages`, are read, if there are to be up to `ways` shares with one read under way, and there may be queues.
fn manner(runs: &[Run], ways: usize, into_pages: bool, are_queues: impl FnOnce() -> bool) -> Manner {
    let (count, bytes) = (runs.len() as u64, runs.iter().map(Run::len).sum::<u64>());
    let is_walk = bytes >= WALK_BYTES_MIN * count;
    let goes_into_queue = into_pages || bytes < QUEUED_RUN_BYTES_MAX * count;
    if goes_into_queue && count > 1 && are_queues() {
        Manner::Queued
    } else {
        Manner::Shared(if is_walk { ways.min(bytes.div_ceil(WALK_SHARE_BYTES) as usize) } else { ways })
    }
}

/// A share whose reads are under way.
pub struct Begun {
    runs: Range<usize>,
    share: Share,
    queue: queues::Taken,
    /// What it reads into.
    lent: Option<Lent>,
    /// The first of the runs that is not in the queue yet.
    next: usize,
    /// The segments of those that are, by their place among the runs.
    segments: Vec<Option<Arc<OpenSegment>>>,
    /// Of how many reads past the cache each segment is open.
    past_cache: Vec<(SegmentId, usize)>,
    bytes: u64,
}

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Begun").field("runs", &self.runs).field("next", &self.next).finish_non_exhaustive()
    }
}

impl Begun {
    /// `runs` of `fetch`, with nothing under way; `queue` is empty.
    fn new(
        fetch: &Fetch,
        runs: Range<usize>,
        mut share: Share,
        queue: queues::Taken,
        lent: Option<Lent>,
    ) -> Self {
        let values = fetch.runs[runs.clone()].iter().flat_map(|run| &fetch.wanted[run.members.clone()]);
        let (count, bytes) = values
            .fold((0, 0), |(count, bytes), want| (count + 1, bytes + u64::from(want.pointer.stored_len)));
        share.out.found.reserve_exact(count);
        share.make_room(usize::try_from(bytes).unwrap_or(0));
        let segments = vec![None; runs.len()];
        Self { share, queue, lent, next: runs.start, segments, past_cache: Vec::new(), bytes: 0, runs }
    }

    /// Has as many reads under way as the queue takes.
    fn fill(&mut self, fetch: &Fetch) {
        let first = self.next;
        while self.next < self.runs.end && self.bytes < QUEUED_BYTES_MAX && !fetch.is_given_up() {
            let (run, past_cache) = (&fetch.runs[self.next], fetch.is_past_cache(self.next));
            let len = usize::try_from(run.len()).expect("runs are bounded");
            if !self.queue.has_room(len) || fetch.is_bounded(self.next) && !self.may_open(run.segment) {
                break;
            }
            let waits = matches!(fetch.routes.get(self.next), Some(Route::Behind(_)));
            let stretch = stretch_at(&fetch.runs[self.runs.clone()], self.next - self.runs.start);
            let stretch = stretch.filter(|_| !past_cache);
            let is_here = !past_cache && (run.is_walk() || waits);
            if is_here || stretch.is_some_and(|stretch| walk(stretch).is_some()) {
                self.queue.submit();
            }
            if let Some(stretch) = stretch {
                self.share.is_loaded = fetch.load(stretch);
            }
            if is_here {
                fetch.wait_for_piece(self.next);
                self.share.read_run(fetch, run, false, Wait::Yes);
            } else if let Some(segment) = self.share.segment_of(fetch, run, past_cache) {
                self.queue.begin(self.next, segment.shared_file(), run.start, len);
                fetch.reader.count_read(run.len());
                self.bytes += run.len();
                if fetch.is_bounded(self.next) {
                    self.opened(run.segment);
                }
                self.segments[self.next - self.runs.start] = Some(segment);
            }
            self.next += 1;
            if (self.next - first).is_multiple_of(BEGUN_TOGETHER) {
                self.queue.submit();
            }
        }
    }

    /// Whether a segment that is read past the cache may be open beside the others that are: each takes descriptors.
    fn may_open(&self, id: SegmentId) -> bool {
        self.past_cache.len() < SEGMENTS_MAX || self.past_cache.iter().any(|(open, _)| *open == id)
    }

    /// Notes a read past the cache of a segment.
    fn opened(&mut self, id: SegmentId) {
        match self.past_cache.iter_mut().find(|(open, _)| *open == id) {
            Some((_, reads)) => *reads += 1,
            None => self.past_cache.push((id, 1)),
        }
    }

    /// Takes the values of reads that have ended; waits for one.
    fn take_some(&mut self, fetch: &Fetch) {
        let Self { runs, share, queue, segments, past_cache, bytes, .. } = self;
        queue.finish_some(&mut |at, read| {
            if fetch.is_bounded(at) {
                past_cache.retain_mut(|(open, reads)| {
                    *reads -= usize::from(*open == fetch.runs[at].segment);
                    *reads > 0
                });
            }
            let (run, segment) = (&fetch.runs[at], segments[at - runs.start].take().expect("it was begun"));
            *bytes -= run.len();
            share.take_run(fetch, &segment, run, read.unwrap_or_default());
        });
    }
}
