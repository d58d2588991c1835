//! Reads that are under way together, by io_uring: the kernel has a queue of them, and another of their outcomes, and one call
//! tells it of many. What lies in the page cache is there when that call returns.
//!
//! The kernel writes into memory that it was told of earlier. So a read's memory belongs to its slot, which nobody touches
//! from the moment it is begun until its outcome has come; and a queue that is dropped waits for all outcomes. Should the kernel
//! refuse to tell them, the memory and the files of what is under way are given up for ever, and plain calls do the rest.
#![expect(unsafe_code, reason = "the kernel is handed addresses of memory that it fills later")]

use std::any::Any;
use std::fmt;
use std::io;
use std::ops::Range;
use std::time::Duration;

use io_uring::{IoUring, opcode, types};
use rustix::io::Errno;

use super::file::PosixFile;
use super::large_memory::LargeMemory;
use crate::base::sync::Arc;
use crate::env::{File, PAGE_BYTES, ReadPages, ReadQueue};

/// Memory of at most so many bytes stays with its slot from one read to the next; larger reads may go into large pages ...
const KEPT_BYTES_MAX: usize = 32 * 1024;
/// ... which has to have so many more: whole sectors are read, to where one may begin.
const ROUNDED_BYTES: usize = 4 * PAGE_BYTES as usize;
/// Memory of so many stays with its slot while the queue rests.
const RESTING_BYTES_MAX: usize = 8 * 1024;
/// A call that may succeed when it is made again is made so often without any progress.
const ROUNDS_MAX: u32 = 1000;
/// It is made again after so long.
const ROUND_PAUSE: Duration = Duration::from_millis(1);

/// A queue of reads.
pub struct Ring {
    /// `None` once it was given up.
    ring: Option<IoUring>,
    slots: Vec<Slot>,
    large: Large,
    /// Slots without a read.
    free: Vec<usize>,
    /// Slots whose reads have ended, and how many bytes they have. Whatever is missing is read by a plain call, which tells why.
    ended: Vec<(usize, usize)>,
    /// Reads whose outcome the ring has not told.
    under_way: usize,
}

/// A read.
#[derive(Default)]
struct Slot {
    ticket: usize,
    /// `None` if there is none.
    file: Option<Arc<dyn File>>,
    offset: u64,
    len: usize,
    memory: Vec<u8>,
    /// The large memory that is used instead of its own.
    lent: Option<Range<usize>>,
    /// Where in the memory the kernel's bytes begin ...
    begins: usize,
    /// ... and how many of them come before those that are wanted.
    lead: usize,
}

/// Memory in large pages.
#[derive(Debug, Default)]
enum Large {
    /// Nobody has asked for any.
    #[default]
    Unused,
    /// It is taken when there is something to read into it.
    Untaken,
    Taken(Box<LargeMemory>),
    /// There is none to be had, or the kernel may still write there.
    Gone,
}

impl Large {
    /// Lends `len` bytes, if there are as many.
    fn lend(&mut self, len: usize) -> Option<Range<usize>> {
        if matches!(self, Self::Untaken) {
            *self = LargeMemory::new().map_or(Self::Gone, |memory| Self::Taken(Box::new(memory)));
        }
        if let Self::Taken(memory) = self { memory.lend(len) } else { None }
    }

    /// Whether a read of `len` bytes need not wait for what others were lent.
    fn has_room(&self, len: usize) -> bool {
        if let Self::Taken(memory) = self { memory.has_room(len + ROUNDED_BYTES) } else { true }
    }

    /// What was lent.
    fn memory(&mut self) -> &mut LargeMemory {
        let Self::Taken(memory) = self else { panic!("something was lent, so it is there") };
        memory
    }
}

impl Slot {
    /// Readies memory for a read by the kernel: of which file, and which of its bytes. `None` if it cannot be asked.
    fn prepare(&mut self, large: &mut Large) -> Option<(types::Fd, Range<u64>)> {
        let file = self.file.as_deref().expect("a read is of a file");
        let file = (file as &dyn Any).downcast_ref::<PosixFile>();
        let direct = file.and_then(|file| file.direct(self.offset, self.len));
        let wanted = self.offset..self.offset + self.len as u64;
        let (bytes, slack) = match direct {
            Some(direct) => (direct.sectors(self.offset, self.len), direct.slack()),
            None => (wanted, 0),
        };
        let needed = (bytes.end - bytes.start) as usize + slack;
        self.lent = if needed > KEPT_BYTES_MAX { large.lend(needed) } else { None };
        if self.lent.is_none() && self.memory.len() < needed {
            self.memory.resize(needed, 0);
        }
        let memory = memory(&mut self.memory, self.lent.as_ref(), large);
        self.begins = direct.map_or(0, |direct| direct.begins(memory));
        self.lead = (self.offset - bytes.start) as usize;
        let descriptor = direct.map_or_else(|| file.map(PosixFile::descriptor), |it| Some(it.descriptor()));
        Some((types::Fd(descriptor?), bytes))
    }
}

/// The memory that a slot reads into: what it was `lent`, or its `own`.
fn memory<'a>(own: &'a mut [u8], lent: Option<&Range<usize>>, large: &'a mut Large) -> &'a mut [u8] {
    match lent {
        Some(lent) => large.memory().bytes(lent),
        None => own,
    }
}

impl Ring {
    /// A queue of up to `depth` reads; `None` where the system has none, or does not let this process have one.
    pub fn new(depth: u32) -> Option<Self> {
        // Kernels before that feature cannot read like this.
        let ring = IoUring::new(depth).ok().filter(|ring| ring.params().is_feature_rw_cur_pos())?;
        let slots = std::iter::repeat_with(Slot::default).take(depth as usize).collect();
        let free = (0..depth as usize).rev().collect();
        let large = Large::default();
        Some(Self { ring: Some(ring), slots, large, free, ended: Vec::new(), under_way: 0 })
    }

    /// Has the ring begin to read into slot `at`. Returns whether it will.
    fn push(&mut self, at: usize) -> bool {
        let slot = &mut self.slots[at];
        let (Some((file, bytes)), Some(ring)) = (slot.prepare(&mut self.large), &mut self.ring) else {
            return false;
        };
        let Ok(len) = u32::try_from(bytes.end - bytes.start) else { return false };
        let begins = slot.begins;
        let memory = memory(&mut slot.memory, slot.lent.as_ref(), &mut self.large);
        let memory = &mut memory[begins..][..len as usize];
        let read = opcode::Read::new(file, memory.as_mut_ptr(), len);
        let entry = read.offset(bytes.start).build().user_data(at as u64);
        // SAFETY: the memory is the slot's, or lent to it, and has `len` bytes, and the slot keeps the file open; nobody touches either
        // before the outcome has come, or else both are given up for ever.
        let pushed = unsafe { ring.submission().push(&entry) };
        pushed.is_ok()
    }

    /// Tells the kernel of what was begun, and takes the outcomes there are: at least one.
    fn enter(&mut self) {
        let before = self.ended.len();
        let mut rounds = 0..ROUNDS_MAX;
        while rounds.next().is_some() {
            let Some(ring) = &mut self.ring else { return };
            let entered = ring.submit_and_wait(1);
            self.take_outcomes();
            if self.ended.len() > before {
                return;
            }
            match entered {
                // A signal has come: however many do, the device may be slow.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => rounds = 0..ROUNDS_MAX,
                // It may be short of memory.
                Err(error) if is_passing(&error) => std::thread::sleep(ROUND_PAUSE),
                Err(_) => break,
                Ok(_) => {}
            }
        }
        self.give_up();
    }

    fn take_outcomes(&mut self) {
        let Some(ring) = &mut self.ring else { return };
        for entry in ring.completion() {
            let read = usize::try_from(entry.result()).unwrap_or(0);
            self.ended.push((entry.user_data() as usize, read));
            self.under_way -= 1;
        }
    }

    /// Goes on without the ring, which is in order as far as its outcomes tell and does not do what it should.
    fn give_up(&mut self) {
        self.ring = None;
        // What has ended in memory that others may still be written to is read once more.
        self.ended.retain(|&(at, _)| self.slots[at].lent.is_none());
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let has_ended = self.ended.iter().any(|&(ended, _)| ended == at);
            let Some(file) = slot.file.as_ref().filter(|_| !has_ended) else { continue };
            // The kernel may still read that file, and write there.
            std::mem::forget((std::mem::take(&mut slot.memory), Arc::clone(file)));
            (slot.memory, slot.lent, slot.begins, slot.lead) = (vec![0; slot.len], None, 0, 0);
            self.ended.push((at, 0));
        }
        std::mem::forget(std::mem::replace(&mut self.large, Large::Gone));
        self.under_way = 0;
    }
}

/// Whether a call may succeed when it is made again.
fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::AGAIN, Errno::BUSY].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|errno| passing.contains(&errno))
}

impl ReadQueue for Ring {
    fn has_room(&self, len: usize) -> bool {
        !self.free.is_empty() && (len <= KEPT_BYTES_MAX || self.large.has_room(len))
    }

    fn is_empty(&self) -> bool {
        self.under_way == 0 && self.ended.is_empty()
    }

    fn begin(&mut self, ticket: usize, file: &Arc<dyn File>, offset: u64, len: usize) {
        let at = self.free.pop().expect("there is room for another read");
        let slot = &mut self.slots[at];
        let memory = std::mem::take(&mut slot.memory);
        let file = Some(Arc::clone(file));
        *slot = Slot { ticket, file, offset, len, memory, lent: None, begins: 0, lead: 0 };
        if self.push(at) {
            self.under_way += 1;
        } else {
            self.ended.push((at, 0));
        }
    }

    fn submit(&mut self) {
        if let Some(ring) = &mut self.ring
            && !ring.submission().is_empty()
        {
            // What it does not take now it is told of again when somebody waits.
            drop(ring.submit());
        }
    }

    fn finish_some(&mut self, done: &mut dyn FnMut(usize, io::Result<&[u8]>)) {
        if self.ended.is_empty() && self.under_way > 0 {
            self.enter();
        }
        while let Some((at, read)) = self.ended.pop() {
            let mut slot = std::mem::take(&mut self.slots[at]);
            self.free.push(at);
            let Slot { ticket, offset, len, begins, lead, .. } = slot;
            let file = slot.file.take().expect("a read is of a file");
            let memory = memory(&mut slot.memory, slot.lent.as_ref(), &mut self.large);
            let wanted = &mut memory[begins + lead..][..len];
            let read = read.saturating_sub(lead).min(len);
            let rest = &mut wanted[read..];
            let rest = if rest.is_empty() { Ok(0) } else { file.read_at(rest, offset + read as u64) };
            done(ticket, rest.map(|rest| &wanted[..read + rest]));
            if let Some(lent) = &slot.lent {
                self.large.memory().give_back(lent);
            }
            if slot.memory.len() <= KEPT_BYTES_MAX {
                self.slots[at].memory = slot.memory;
            }
        }
    }

    fn use_pages(&mut self, pages: Option<ReadPages>) {
        let pages = pages.and_then(|pages| pages.downcast().ok());
        self.large = pages.map_or(Large::Untaken, Large::Taken);
    }

    fn give_back_pages(&mut self) -> Option<ReadPages> {
        match std::mem::take(&mut self.large) {
            Large::Taken(memory) => Some(memory),
            Large::Unused | Large::Untaken | Large::Gone => None,
        }
    }

    fn rest(&mut self) -> bool {
        for slot in self.slots.iter_mut().filter(|slot| slot.memory.len() > RESTING_BYTES_MAX) {
            slot.memory = Vec::new();
        }
        self.large = Large::Unused;
        self.ring.is_some()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.under_way > 0 {
            self.enter();
        }
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("under_way", &self.under_way).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::env::posix::posix_env;
    use crate::env::posix::tests::drop_from_cache;

    const PART: usize = 3000;
    /// Too large for a slot to keep, and so that two fit into a large page.
    const LARGE_PART: usize = 900_001;

    /// A file of numbered parts of so many bytes.
    fn file_of(directory: &Path, parts: usize, part: usize) -> Arc<dyn File> {
        let file = posix_env().fs.create_new(&directory.join("file")).expect("created");
        let bytes: Vec<u8> = (0..parts * part).map(|at| (at / part) as u8).collect();
        file.write_at(&bytes, 0).expect("written");
        file
    }

    fn file(directory: &Path, parts: usize) -> Arc<dyn File> {
        file_of(directory, parts, PART)
    }

    /// Reads `parts` of `part` bytes of a file that has fewer, in a queue of 4. Returns how many bytes each had.
    fn read_all(ring: &mut Ring, file: &Arc<dyn File>, parts: usize, part: usize) -> Vec<usize> {
        let mut found = vec![usize::MAX; parts];
        let mut next = 0;
        while next < parts || !ring.is_empty() {
            while next < parts && ring.has_room(part) {
                ring.begin(next, file, (next * part) as u64, part);
                next += 1;
                if next % 3 == 0 {
                    ring.submit();
                }
            }
            ring.finish_some(&mut |number, read| {
                let read = read.expect("read");
                assert!(read.iter().all(|&byte| byte == number as u8), "part {number}");
                assert_eq!(
                    std::mem::replace(&mut found[number], read.len()),
                    usize::MAX,
                    "part {number}, once"
                );
            });
        }
        assert_eq!(ring.free.len(), 4);
        found
    }

    #[test]
    fn each_read_ends_once_and_has_what_the_file_has() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = file(directory.path(), 20);
        file.set_len((19 * PART + 7) as u64).expect("cut");
        each_read_ends_once(&file);
    }

    #[test]
    fn the_same_past_the_cache() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = file(directory.path(), 20);
        file.set_len((19 * PART + 7) as u64).expect("cut");
        drop_from_cache(&directory.path().join("file"));
        each_read_ends_once(&posix_env().fs.open_past_cache(&directory.path().join("file")).expect("opened"));
    }

    fn each_read_ends_once(file: &Arc<dyn File>) {
        let Some(mut ring) = Ring::new(4) else { return };
        let mut expected = vec![PART; 19];
        expected.extend([7, 0, 0]);
        assert_eq!(read_all(&mut ring, file, 22, PART), expected);
        assert_eq!(read_all(&mut ring, file, 22, PART), expected, "again");
        assert!(ring.rest());
        assert_eq!(read_all(&mut ring, file, 22, PART), expected, "after a rest");
        // Something refuses to go on.
        (0..4).for_each(|part| ring.begin(part, file, (part * PART) as u64, PART));
        ring.give_up();
        let mut left = vec![];
        ring.finish_some(&mut |part, read| {
            left.push((part, read.expect("read").iter().all(|&byte| byte == part as u8)));
        });
        left.sort_unstable();
        assert_eq!(left, [(0, true), (1, true), (2, true), (3, true)]);
        assert_eq!(read_all(&mut ring, file, 22, PART), expected, "without the ring");
        assert!(!ring.rest());
    }

    #[test]
    fn large_reads_go_into_large_pages_that_go_on_to_other_queues() {
        let directory = tempfile::tempdir().expect("a directory");
        file_of(directory.path(), 9, LARGE_PART).set_len((8 * LARGE_PART + 7) as u64).expect("cut");
        let mut expected = vec![LARGE_PART; 8];
        expected.extend([7, 0, 0]);
        for past_cache in [false, true] {
            let (fs, path) = (posix_env().fs, directory.path().join("file"));
            drop_from_cache(&path);
            let file =
                if past_cache { fs.open_past_cache(&path) } else { fs.open_read(&path) }.expect("opened");
            let (Some(mut ring), Some(mut other)) = (Ring::new(4), Ring::new(4)) else { return };
            assert!(ring.give_back_pages().is_none(), "nobody has asked for any");
            ring.use_pages(None);
            assert!(ring.give_back_pages().is_none(), "nothing was read");
            ring.use_pages(None);
            ring.begin(0, &file, 0, LARGE_PART);
            ring.begin(1, &file, LARGE_PART as u64, LARGE_PART);
            assert!(!ring.has_room(LARGE_PART) && ring.has_room(PART), "the large page is used up");
            while !ring.is_empty() {
                ring.finish_some(&mut |number, read| {
                    assert!(read.expect("read").iter().all(|&byte| byte == number as u8), "part {number}");
                });
            }
            assert_eq!(read_all(&mut ring, &file, 11, LARGE_PART), expected);
            other.use_pages(ring.give_back_pages());
            assert!(matches!(other.large, Large::Taken(_)), "there were some to give back");
            assert_eq!(read_all(&mut other, &file, 11, LARGE_PART), expected);
            // Something refuses to go on, when one has ended and another has not.
            let numbers = [0, 1];
            numbers
                .into_iter()
                .for_each(|number| other.begin(number, &file, (number * LARGE_PART) as u64, LARGE_PART));
            other.enter();
            other.give_up();
            let mut left = vec![];
            other.finish_some(&mut |number, read| {
                left.push((number, read.expect("read").iter().all(|&byte| byte == number as u8)));
            });
            left.sort_unstable();
            assert_eq!(left, [(0, true), (1, true)]);
            assert!(other.give_back_pages().is_none(), "the kernel may still write there");
            assert_eq!(read_all(&mut other, &file, 11, LARGE_PART), expected, "without the ring");
        }
    }

    #[test]
    fn a_read_that_is_larger_than_the_pages_needs_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let part = 2 * LARGE_PART + LARGE_PART / 2;
        let file = file_of(directory.path(), 3, part);
        let Some(mut ring) = Ring::new(4) else { return };
        ring.use_pages(None);
        assert_eq!(read_all(&mut ring, &file, 3, part), [part; 3]);
    }

    #[test]
    fn what_is_under_way_may_be_left() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = file(directory.path(), 4);
        let Some(mut ring) = Ring::new(4) else { return };
        (0..4).for_each(|part| ring.begin(part, &file, 0, PART));
        ring.submit();
        drop((ring, file));
    }

    #[test]
    fn errors_are_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let Some(mut ring) = Ring::new(4) else { return };
        // A directory cannot be read.
        let opened = std::fs::File::open(directory.path()).expect("opened");
        let file: Arc<dyn File> = Arc::new(PosixFile::new(opened));
        ring.begin(1, &file, 0, PART);
        let mut errors = 0;
        ring.finish_some(&mut |_, read| errors += usize::from(read.is_err()));
        assert_eq!((errors, ring.free.len()), (1, 4));
    }
}
