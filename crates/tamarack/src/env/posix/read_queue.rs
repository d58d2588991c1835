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

use io_uring::{IoUring, opcode, types};
use rustix::io::Errno;

use super::file::PosixFile;
use crate::base::sync::Arc;
use crate::env::{File, ReadQueue};

/// Memory of at most so many bytes stays with its slot from one read to the next ...
const KEPT_BYTES_MAX: usize = 32 * 1024;
/// ... and so many while the queue rests.
const RESTING_BYTES_MAX: usize = 8 * 1024;
/// A call that may succeed when it is made again is made so often without any progress.
const ROUNDS_MAX: u32 = 1000;

/// A queue of reads.
pub struct Ring {
    /// `None` once it was given up.
    ring: Option<IoUring>,
    slots: Vec<Slot>,
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
    /// Where in the memory the kernel's bytes begin ...
    begins: usize,
    /// ... and how many of them come before those that are wanted.
    lead: usize,
}

impl Slot {
    /// Readies the memory for a read by the kernel: of which file, and which of its bytes. `None` if it cannot be asked.
    fn prepare(&mut self) -> Option<(types::Fd, Range<u64>)> {
        let file = self.file.as_deref().expect("a read is of a file");
        let file = (file as &dyn Any).downcast_ref::<PosixFile>();
        let direct = file.and_then(|file| file.direct(self.offset, self.len));
        let wanted = self.offset..self.offset + self.len as u64;
        let (bytes, slack) = match direct {
            Some(direct) => (direct.sectors(self.offset, self.len), direct.slack()),
            None => (wanted, 0),
        };
        let needed = (bytes.end - bytes.start) as usize + slack;
        if self.memory.len() < needed {
            self.memory.resize(needed, 0);
        }
        self.begins = direct.map_or(0, |direct| direct.begins(&self.memory));
        self.lead = (self.offset - bytes.start) as usize;
        let descriptor = direct.map_or_else(|| file.map(PosixFile::descriptor), |it| Some(it.descriptor()));
        Some((types::Fd(descriptor?), bytes))
    }
}

impl Ring {
    /// A queue of up to `depth` reads; `None` where the system has none, or does not let this process have one.
    pub fn new(depth: u32) -> Option<Self> {
        // Kernels before that feature cannot read like this.
        let ring = IoUring::new(depth).ok().filter(|ring| ring.params().is_feature_rw_cur_pos())?;
        let slots = std::iter::repeat_with(Slot::default).take(depth as usize).collect();
        let free = (0..depth as usize).rev().collect();
        Some(Self { ring: Some(ring), slots, free, ended: Vec::new(), under_way: 0 })
    }

    /// Has the ring begin to read into slot `at`. Returns whether it will.
    fn push(&mut self, at: usize) -> bool {
        let slot = &mut self.slots[at];
        let (Some((file, bytes)), Some(ring)) = (slot.prepare(), &mut self.ring) else { return false };
        let Ok(len) = u32::try_from(bytes.end - bytes.start) else { return false };
        let memory = &mut slot.memory[slot.begins..][..len as usize];
        let read = opcode::Read::new(file, memory.as_mut_ptr(), len);
        let entry = read.offset(bytes.start).build().user_data(at as u64);
        // SAFETY: the memory is the slot's and has `len` bytes, and the slot keeps the file open; nobody touches either before the
        // outcome has come, or else both are given up for ever.
        let pushed = unsafe { ring.submission().push(&entry) };
        pushed.is_ok()
    }

    /// Tells the kernel of what was begun, and takes the outcomes there are: at least one.
    fn enter(&mut self) {
        let before = self.ended.len();
        for _ in 0..ROUNDS_MAX {
            let Some(ring) = &mut self.ring else { return };
            let entered = ring.submit_and_wait(1);
            self.take_outcomes();
            if self.ended.len() > before {
                return;
            }
            match entered {
                // It may be short of memory.
                Err(error) if is_passing(&error) => std::thread::yield_now(),
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
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let has_ended = self.ended.iter().any(|&(ended, _)| ended == at);
            let Some(file) = slot.file.as_ref().filter(|_| !has_ended) else { continue };
            // The kernel may still read that file, and write there.
            std::mem::forget((std::mem::take(&mut slot.memory), Arc::clone(file)));
            (slot.memory, slot.begins, slot.lead) = (vec![0; slot.len], 0, 0);
            self.ended.push((at, 0));
        }
        self.under_way = 0;
    }
}

/// Whether a call may succeed when it is made again.
fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::INTR, Errno::AGAIN, Errno::BUSY].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|errno| passing.contains(&errno))
}

impl ReadQueue for Ring {
    fn room(&self) -> usize {
        self.free.len()
    }

    fn is_empty(&self) -> bool {
        self.under_way == 0 && self.ended.is_empty()
    }

    fn begin(&mut self, ticket: usize, file: &Arc<dyn File>, offset: u64, len: usize) {
        let at = self.free.pop().expect("there is room for another read");
        let slot = &mut self.slots[at];
        let memory = std::mem::take(&mut slot.memory);
        *slot = Slot { ticket, file: Some(Arc::clone(file)), offset, len, memory, begins: 0, lead: 0 };
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
            let Slot { ticket, file, offset, len, mut memory, begins, lead } =
                std::mem::take(&mut self.slots[at]);
            self.free.push(at);
            let file = file.expect("a read is of a file");
            let wanted = &mut memory[begins + lead..][..len];
            let read = read.saturating_sub(lead).min(len);
            let rest = &mut wanted[read..];
            let rest = if rest.is_empty() { Ok(0) } else { file.read_at(rest, offset + read as u64) };
            done(ticket, rest.map(|rest| &wanted[..read + rest]));
            if memory.len() <= KEPT_BYTES_MAX {
                self.slots[at].memory = memory;
            }
        }
    }

    fn rest(&mut self) -> bool {
        for slot in self.slots.iter_mut().filter(|slot| slot.memory.len() > RESTING_BYTES_MAX) {
            slot.memory = Vec::new();
        }
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

    /// A file of numbered parts.
    fn file(directory: &Path, parts: usize) -> Arc<dyn File> {
        let file = posix_env().fs.create_new(&directory.join("file")).expect("created");
        let bytes: Vec<u8> = (0..parts * PART).map(|at| (at / PART) as u8).collect();
        file.write_at(&bytes, 0).expect("written");
        file
    }

    /// Reads `parts` of a file that has fewer, in a queue of 4. Returns how many bytes each had.
    fn read_all(ring: &mut Ring, file: &Arc<dyn File>, parts: usize) -> Vec<usize> {
        let mut found = vec![usize::MAX; parts];
        let mut next = 0;
        while next < parts || !ring.is_empty() {
            while next < parts && ring.room() > 0 {
                ring.begin(next, file, (next * PART) as u64, PART);
                next += 1;
                if next % 3 == 0 {
                    ring.submit();
                }
            }
            ring.finish_some(&mut |part, read| {
                let read = read.expect("read");
                assert!(read.iter().all(|&byte| byte == part as u8), "part {part}");
                assert_eq!(std::mem::replace(&mut found[part], read.len()), usize::MAX, "part {part}, once");
            });
        }
        assert_eq!(ring.room(), 4);
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
        assert_eq!(read_all(&mut ring, file, 22), expected);
        assert_eq!(read_all(&mut ring, file, 22), expected, "again");
        assert!(ring.rest());
        assert_eq!(read_all(&mut ring, file, 22), expected, "after a rest");
        // Something refuses to go on.
        (0..4).for_each(|part| ring.begin(part, file, (part * PART) as u64, PART));
        ring.give_up();
        let mut left = vec![];
        ring.finish_some(&mut |part, read| {
            left.push((part, read.expect("read").iter().all(|&byte| byte == part as u8)));
        });
        left.sort_unstable();
        assert_eq!(left, [(0, true), (1, true), (2, true), (3, true)]);
        assert_eq!(read_all(&mut ring, file, 22), expected, "without the ring");
        assert!(!ring.rest());
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
        assert_eq!((errors, ring.room()), (1, 4));
    }
}
