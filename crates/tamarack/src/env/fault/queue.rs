//! A queue of reads that are done when they are begun, and whose outcomes come in the opposite order, one at a time.

use std::io;

use crate::base::sync::Arc;
use crate::env::{File, ReadQueue};

/// The queue.
#[derive(Debug)]
pub struct EagerQueue {
    depth: usize,
    ended: Vec<(usize, io::Result<Vec<u8>>)>,
}

impl EagerQueue {
    /// A queue of up to `depth` reads.
    pub fn new(depth: u32) -> Self {
        Self { depth: depth as usize, ended: Vec::new() }
    }
}

impl ReadQueue for EagerQueue {
    fn has_room(&self, _len: usize) -> bool {
        self.ended.len() < self.depth
    }

    fn is_empty(&self) -> bool {
        self.ended.is_empty()
    }

    fn begin(&mut self, ticket: usize, file: &Arc<dyn File>, offset: u64, len: usize) {
        assert!(self.has_room(len), "there is room for another read");
        let mut bytes = vec![0; len];
        let read = file.read_at(&mut bytes, offset).map(|read| {
            bytes.truncate(read);
            bytes
        });
        self.ended.push((ticket, read));
    }

    fn submit(&mut self) {}

    fn finish_some(&mut self, done: &mut dyn FnMut(usize, io::Result<&[u8]>)) {
        if let Some((ticket, outcome)) = self.ended.pop() {
            match outcome {
                Ok(bytes) => done(ticket, Ok(&bytes)),
                Err(error) => done(ticket, Err(error)),
            }
        }
    }

    fn rest(&mut self) -> bool {
        true
    }
}
