//! Reads that are under way at once, by io_uring.

use std::io::{self, ErrorKind};

use io_uring::{IoUring, opcode, types};

use super::reader::{Read, Reader};

/// The device begins as soon as it has been given so many.
const TOGETHER: usize = 8;

/// A queue of reads, for one thread at a time.
pub struct Queue(IoUring);

impl Queue {
    /// How many reads it takes: as many as `multireadrandom` asks for by itself.
    pub const DEPTH: usize = 64;

    /// An empty one.
    pub fn new() -> Result<Self, String> {
        IoUring::new(Self::DEPTH as u32).map(Self).map_err(|error| format!("no io_uring: {error}"))
    }

    /// Reads values of `value_bytes` each, at most as many as the queue takes, all at once. After an error the queue must not
    /// be used any more.
    pub fn read(&mut self, reader: &Reader, offsets: &[u64], value_bytes: usize) -> io::Result<Vec<Vec<u8>>> {
        let prepare = |&offset| reader.prepare(offset, value_bytes, Vec::new());
        let mut reads: Vec<Read> = offsets.iter().map(prepare).collect();
        for (number, read) in reads.iter_mut().enumerate() {
            self.push(reader, number, read);
            if (number + 1).is_multiple_of(TOGETHER) {
                // What it does not take now it is told of again below.
                drop(self.0.submit());
            }
        }
        let outcomes = match self.wait(reads.len()) {
            Ok(outcomes) => outcomes,
            Err(error) => {
                // The kernel may still write into that memory.
                std::mem::forget(reads);
                return Err(error);
            }
        };
        let finish = |(read, outcome): (Read, i32)| match usize::try_from(outcome) {
            Ok(come) => reader.finish(read, come),
            Err(_) => Err(io::Error::from_raw_os_error(-outcome)),
        };
        reads.into_iter().zip(outcomes).map(finish).collect()
    }

    fn push(&mut self, reader: &Reader, number: usize, read: &mut Read) {
        let (file, offset, target) = (types::Fd(reader.descriptor()), read.offset, read.target());
        let entry = opcode::Read::new(file, target.as_mut_ptr(), target.len() as u32);
        let entry = entry.offset(offset).build().user_data(number as u64);
        // SAFETY: nobody touches the memory, nor closes the file, before the outcome has come; if it does not come, the memory
        // is given up for ever, and the file stays open until the kernel is done with it.
        let pushed = unsafe { self.0.submission().push(&entry) };
        pushed.expect("there are no more reads than the queue takes");
    }

    /// Has the kernel make so many reads, and waits for what came of each: bytes, or the negative number of an error.
    fn wait(&mut self, reads: usize) -> io::Result<Vec<i32>> {
        let mut outcomes = vec![0; reads];
        let mut missing = reads;
        while missing > 0 {
            match self.0.submit_and_wait(missing) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for entry in self.0.completion() {
                outcomes[entry.user_data() as usize] = entry.result();
                missing -= 1;
            }
        }
        Ok(outcomes)
    }
}
