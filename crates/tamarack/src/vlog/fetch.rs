//! Reads many values at once: sorted by place, neighbours joined into one read, reads done in parallel.
//!
//! An SSD serves scattered reads well only if many are under way (WiscKey, section 3.2 and figure 3). Scans and
//! multi-gets collect what they want and hand it over here. The reads are dealt into *shares*; whoever has a thread takes
//! one after the other, and the values of a share stay in one buffer. Where the system has queues of reads, one thread
//! has all reads of a share under way, and there are few shares; elsewhere each share has one read at a time, and there are
//! many. [`plan`] is pure; which threads there are is the caller's business.

use std::ops::Range;

use super::loads::Loads;
use super::open_segments::OpenSegment;
use super::plan::{
    RUN_BYTES_MAX, RUN_BYTES_MAX_PAST_CACHE, Run, WALK_BYTES_MIN, Wanted, plan, stretches, walk,
};
use super::queues;
use super::reader::{SegmentReader, StoredValue};
use crate::base::error::{Error, Result};
use crate::base::ids::SegmentId;
use crate::base::pointer::ValuePointer;
use crate::base::sync::{Arc, Mutex};
use crate::env::pool::Job;
use crate::env::{LARGE_PAGE_BYTES, PAGE_BYTES};

/// So many bytes of a walk are worth a thread: it reads them in their order, as the kernel expects, who reads ahead of it.
const WALK_SHARE_BYTES: u64 = 4 * 1024 * 1024;
/// A walk that goes over so many bytes at a time has come a long way: what else is in the large pages that it reads will be wanted, too.
const LONG_WALK_BYTES_MIN: u64 = LARGE_PAGE_BYTES / 2;
/// So many reads that find nothing in memory, beyond those that do, show that not much is there.
const MISSES_MAX: usize = 8;

/// Reads of so many bytes, on average, are left to threads: what comes out of a queue is copied once more.
const QUEUED_RUN_BYTES_MAX: u64 = 32 * 1024;
/// So many bytes of reads are under way at a time in a queue ...
const QUEUED_BYTES_MAX: u64 = 4 * 1024 * 1024;
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
    /// In how many shares they are dealt at most, if each has one read under way.
    ways: usize,
    manner: Manner,
    runs_of_share: usize,
    progress: Mutex<Progress>,
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
    /// All of `wanted`, whose keys are among `keys`, to be read in up to `ways` shares, into `buffers` as far as there are any.
    pub fn new(
        reader: &Arc<SegmentReader>,
        keys: Arc<Vec<u8>>,
        mut wanted: Vec<Wanted>,
        how: How,
        ways: usize,
        buffers: Vec<Vec<u8>>,
    ) -> Self {
        wanted.sort_unstable_by_key(Wanted::position);
        let how = How { fill_cache: how.fill_cache && !reader.segments().are_direct(), ..how };
        let runs = plan(&wanted, if how.fill_cache { RUN_BYTES_MAX } else { RUN_BYTES_MAX_PAST_CACHE });
        let progress = Mutex::new(Progress { next: 0, buffers, done: Vec::new() });
        let reader = Arc::clone(reader);
        let manner = Manner::Shared(1);
        let mut fetch =
            Self { reader, keys, how, loads: None, wanted, runs, ways, manner, runs_of_share: 1, progress };
        fetch.deal();
        fetch
    }

    /// Deals the runs into shares.
    fn deal(&mut self) {
        self.manner = manner(&self.runs, self.ways, || self.reader.queues().are_there());
        let shares = if let Manner::Shared(shares) = self.manner { shares } else { 1 };
        self.runs_of_share = self.runs.len().div_ceil(shares.max(1)).max(1);
    }

    /// Reads what is in memory, here and now: handing that to other threads would take longer. What waits for the device is left,
    /// as is what is long, and all that follows once little was found. Returns whether
    /// more was found than not.
    pub fn read_cached(&mut self) -> bool {
        let mut left = std::mem::take(&mut self.runs);
        let buffer = self.progress.lock().buffers.pop();
        let mut share = Share::new(buffer.unwrap_or_default());
        let (mut hits, mut misses) = (0, 0);
        left.retain(|run| {
            let tried = misses <= hits + MISSES_MAX && run.len() <= RUN_BYTES_MAX;
            let found = tried && share.read_run(self, run, Wait::No);
            *(if found { &mut hits } else { &mut misses }) += 1;
            !found
        });
        self.done(share);
        self.runs = left;
        self.deal();
        hits > misses
    }

    /// The reads that are not part of a walk along the log: segment, bytes, and the first value.
    pub fn scattered(&self) -> impl Iterator<Item = (SegmentId, u64, ValuePointer)> {
        let scattered = self.runs.iter().filter(|run| !run.is_walk());
        scattered.map(|run| (run.segment, run.len(), self.wanted[run.members.start].pointer))
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
        let queue = self.reader.queues().take()?;
        let (runs, buffer) = self.begin_share()?;
        let mut begun = Begun::new(self, runs, Share::new(buffer), queue);
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
        self.done(begun.share);
    }

    /// Reads one share after the other, until there is none that nobody has begun.
    pub fn work(&self) {
        while let Some(begun) = self.begin() {
            self.finish(begun);
        }
        while let Some((runs, buffer)) = self.begin_share() {
            let mut share = Share::new(buffer);
            let runs = &self.runs[runs];
            share.out.found.reserve_exact(runs.iter().map(|run| run.members.len()).sum());
            for stretch in stretches(runs) {
                share.is_loaded = self.load(stretch);
                for run in stretch {
                    share.read_run(self, run, Wait::Yes);
                }
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
        let Ok(segment) = self.reader.segments().get(id) else { return false };
        let wanted = range.end - range.start;
        let loaded = segment.load(range);
        if loaded.is_there || loaded.read > 0 {
            loads.note(wanted, loaded.read);
        }
        loaded.is_there
    }

    fn begin_share(&self) -> Option<(Range<usize>, Vec<u8>)> {
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

/// How the reads of a fetch are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Those of a share are under way together, and one share has all.
    Queued,
    /// One at a time, in so many shares.
    Shared(usize),
}

/// How `runs` are read, if there are to be up to `ways` shares with one read under way, and there may be queues.
fn manner(runs: &[Run], ways: usize, are_queues: impl FnOnce() -> bool) -> Manner {
    let (count, bytes) = (runs.len() as u64, runs.iter().map(Run::len).sum::<u64>());
    if bytes >= WALK_BYTES_MIN * count {
        return Manner::Shared(ways.min(bytes.div_ceil(WALK_SHARE_BYTES) as usize));
    }
    let small = bytes < QUEUED_RUN_BYTES_MAX * count;
    if small && count > 1 && are_queues() { Manner::Queued } else { Manner::Shared(ways) }
}

/// Whether a read may wait for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Yes,
    No,
}

/// A share whose reads are under way.
pub struct Begun {
    runs: Range<usize>,
    share: Share,
    queue: queues::Taken,
    /// The first of the runs that is not in the queue yet.
    next: usize,
    /// The segments of those that are, by their place among the runs.
    segments: Vec<Option<Arc<OpenSegment>>>,
    bytes: u64,
}

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Begun").field("runs", &self.runs).field("next", &self.next).finish_non_exhaustive()
    }
}

impl Begun {
    /// `runs` of `fetch`, with nothing under way; `queue` is empty.
    fn new(fetch: &Fetch, runs: Range<usize>, mut share: Share, queue: queues::Taken) -> Self {
        let values = fetch.runs[runs.clone()].iter().flat_map(|run| &fetch.wanted[run.members.clone()]);
        let (count, bytes) = values
            .fold((0, 0), |(count, bytes), want| (count + 1, bytes + u64::from(want.pointer.stored_len)));
        share.out.found.reserve_exact(count);
        share.make_room(usize::try_from(bytes).unwrap_or(0));
        Self { share, queue, next: runs.start, segments: vec![None; runs.len()], bytes: 0, runs }
    }

    /// Has as many reads under way as the queue takes.
    fn fill(&mut self, fetch: &Fetch) {
        let first = self.next;
        while self.next < self.runs.end && self.queue.room() > 0 && self.bytes < QUEUED_BYTES_MAX {
            let run = &fetch.runs[self.next];
            if run.is_walk() {
                self.queue.submit();
                self.share.read_run(fetch, run, Wait::Yes);
            } else if let Some(segment) = self.share.segment_of(fetch, run) {
                let len = usize::try_from(run.len()).expect("runs are bounded");
                self.queue.begin(self.next, segment.shared_file(), run.start, len);
                fetch.reader.count_read(run.len());
                self.bytes += run.len();
                self.segments[self.next - self.runs.start] = Some(segment);
            }
            self.next += 1;
            if (self.next - first).is_multiple_of(BEGUN_TOGETHER) {
                self.queue.submit();
            }
        }
    }

    /// Takes the values of reads that have ended; waits for one.
    fn take_some(&mut self, fetch: &Fetch) {
        let Self { runs, share, queue, segments, bytes, .. } = self;
        queue.finish_some(&mut |at, read| {
            let (run, segment) = (&fetch.runs[at], segments[at - runs.start].take().expect("it was begun"));
            *bytes -= run.len();
            share.take_run(fetch, &segment, run, read.unwrap_or_default());
        });
    }
}

/// What has been read of a share.
struct Share {
    /// The segment of the last run.
    segment: Option<(SegmentId, Arc<OpenSegment>)>,
    /// What is read at present was loaded.
    is_loaded: bool,
    /// Bytes at the front of the buffer that values lie in.
    used: usize,
    out: Fetched,
}

impl Share {
    fn new(buffer: Vec<u8>) -> Self {
        Self {
            segment: None,
            is_loaded: false,
            used: 0,
            out: Fetched { bytes: buffer, ..Fetched::default() },
        }
    }

    /// Whether the members of `run` are done with, one way or another; otherwise it would have to wait.
    fn read_run(&mut self, fetch: &Fetch, run: &Run, wait: Wait) -> bool {
        let Some(segment) = self.segment_of(fetch, run) else { return true };
        let members = &fetch.wanted[run.members.clone()];
        if wait == Wait::No {
            // What fails is read again, by those who tell why.
            return self.read_joined(fetch, &segment, run, members, wait).unwrap_or(false);
        }
        if members.len() > 1 && self.read_joined(fetch, &segment, run, members, wait).is_ok() {
            return true;
        }
        // A member by itself; or the joined read failed, and each member is to have its own outcome.
        let past_cache = (run.is_walk() && !fetch.how.fill_cache)
            .then(|| fetch.reader.segments().past_cache(run.segment).ok())
            .flatten();
        for want in members {
            self.read_one(fetch, past_cache.as_deref().unwrap_or(&segment), want);
        }
        true
    }

    /// Takes the values of `run` out of its `bytes`. Where these are not all there are, each value is to have its own outcome.
    fn take_run(&mut self, fetch: &Fetch, segment: &OpenSegment, run: &Run, bytes: &[u8]) {
        let Fetch { reader, keys, how, wanted, .. } = fetch;
        for want in &wanted[run.members.clone()] {
            let at = (u64::from(want.pointer.offset) - run.start) as usize;
            let key = &keys[want.key.clone()];
            let whole = bytes.len() as u64 == run.len();
            let found =
                whole.then(|| reader.find_value(segment, want.pointer, key, how.verify, &bytes[at..]));
            match found {
                Some(Ok(Some(StoredValue { codec, range }))) => {
                    let value = &bytes[at..][range];
                    let range = self.used..self.used + value.len();
                    self.make_room(value.len());
                    self.out.bytes[range.clone()].copy_from_slice(value);
                    self.used = range.end;
                    let stored = StoredValue { codec, range };
                    self.out.found.push(FetchedValue { place: want.place, pointer: want.pointer, stored });
                }
                Some(Err(error)) => self.out.failed.push((want.place, error)),
                Some(Ok(None)) | None => self.read_one(fetch, segment, want),
            }
        }
    }

    /// Makes the buffer so long that `bytes` more fit into it.
    fn make_room(&mut self, bytes: usize) {
        if self.out.bytes.len() < self.used + bytes {
            self.out.bytes.resize(self.used + bytes, 0);
        }
    }

    /// The segment of `run`, or the reason why its members cannot be read.
    fn segment_of(&mut self, fetch: &Fetch, run: &Run) -> Option<Arc<OpenSegment>> {
        let segment = self.segment(fetch, run.segment);
        if let Err(error) = &segment {
            let members = &fetch.wanted[run.members.clone()];
            self.out.failed.extend(members.iter().map(|want| (want.place, error.clone())));
        }
        segment.ok()
    }

    fn segment(&mut self, fetch: &Fetch, id: SegmentId) -> Result<Arc<OpenSegment>> {
        if let Some((open, segment)) = &self.segment
            && *open == id
        {
            return Ok(Arc::clone(segment));
        }
        let segment = fetch.reader.segments().for_values(id)?;
        self.segment = Some((id, Arc::clone(&segment)));
        Ok(segment)
    }

    fn read_one(&mut self, fetch: &Fetch, segment: &OpenSegment, want: &Wanted) {
        let Fetch { reader, keys, how, .. } = fetch;
        let key = &keys[want.key.clone()];
        match reader.read_record(segment, want.pointer, key, how.verify, &mut self.out.bytes, self.used) {
            Ok(stored) => {
                self.used = stored.range.end;
                self.out.found.push(FetchedValue { place: want.place, pointer: want.pointer, stored });
            }
            Err(error) => self.out.failed.push((want.place, error)),
        }
    }

    /// Reads all of `run` at once; `false` if that would have to wait.
    fn read_joined(
        &mut self,
        fetch: &Fetch,
        segment: &OpenSegment,
        run: &Run,
        members: &[Wanted],
        wait: Wait,
    ) -> Result<bool> {
        let Fetch { reader, keys, how, .. } = fetch;
        let len = usize::try_from(run.len()).expect("runs are bounded");
        let base = if run.is_walk() && !fetch.how.fill_cache && wait == Wait::Yes {
            self.read_pages(reader, run)?
        } else {
            self.make_room(len);
            let bytes = &mut self.out.bytes[self.used..][..len];
            match wait {
                Wait::No if !reader.read_bytes_cached(segment, run.start, bytes) => return Ok(false),
                Wait::No => {}
                Wait::Yes if run.is_walk() && !self.is_loaded => {
                    reader.read_bytes(&*reader.segments().for_walks(run.segment)?, run.start, bytes)?;
                }
                Wait::Yes => reader.read_bytes(segment, run.start, bytes)?,
            }
            self.used
        };
        self.used = base + len;
        let (first, mut spelled_otherwise) = (self.out.found.len(), Vec::new());
        for want in members {
            let at = base + (u64::from(want.pointer.offset) - run.start) as usize;
            let bytes = &self.out.bytes[at..base + len];
            match reader.find_value(segment, want.pointer, &keys[want.key.clone()], how.verify, bytes) {
                Ok(Some(StoredValue { codec, range })) => {
                    let stored = StoredValue { codec, range: at + range.start..at + range.end };
                    self.out.found.push(FetchedValue { place: want.place, pointer: want.pointer, stored });
                }
                Ok(None) => spelled_otherwise.push(want),
                Err(error) => self.out.failed.push((want.place, error)),
            }
        }
        if run.has_gaps {
            self.close_gaps(base, first);
        }
        for want in spelled_otherwise {
            self.read_one(fetch, segment, want);
        }
        Ok(true)
    }

    /// Reads all of `run` past the system's cache of files, as whole pages into pages of memory: nothing has to be copied then.
    /// Returns where in the buffer it begins.
    fn read_pages(&mut self, reader: &SegmentReader, run: &Run) -> Result<usize> {
        let start = run.start - run.start % PAGE_BYTES;
        let len = usize::try_from(run.end.next_multiple_of(PAGE_BYTES) - start).expect("runs are bounded");
        let page = PAGE_BYTES as usize;
        self.make_room(len + page);
        let begins = self.used + self.out.bytes[self.used..].as_ptr().align_offset(page).min(page);
        let pages = &mut self.out.bytes[begins..begins + len];
        let wanted = (run.start - start) as usize..(run.end - start) as usize;
        reader.read_around(&*reader.segments().past_cache(run.segment)?, start, pages, wanted.clone())?;
        Ok(begins + wanted.start)
    }

    /// Moves the values found from `first` on together, so that they begin at `base` and what lay between them takes no
    /// memory.
    fn close_gaps(&mut self, base: usize, first: usize) {
        self.used = base;
        for FetchedValue { stored, .. } in &mut self.out.found[first..] {
            let to = self.used;
            self.out.bytes.copy_within(stored.range.clone(), to);
            self.used += stored.range.len();
            stored.range = to..self.used;
        }
    }
}
