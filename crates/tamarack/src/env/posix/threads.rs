//! The system's threads; under `--cfg shuttle` shuttle's, so that it schedules whatever the engine starts.

use std::io;

#[cfg(shuttle)]
use shuttle::thread;
#[cfg(not(shuttle))]
use std::thread;

use crate::env::{Join, Spawn, panic_message};

/// Starts threads of the process.
#[derive(Debug)]
pub struct PosixThreads;

impl Spawn for PosixThreads {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Join>> {
        let handle = thread::Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Box::new(PosixJoin { handle }))
    }

    fn parallelism(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    fn yield_now(&self) {
        thread::yield_now();
    }
}

/// A started thread. Dropped without [`Join::join`] the thread goes on by itself.
struct PosixJoin {
    handle: thread::JoinHandle<()>,
}

impl Join for PosixJoin {
    fn join(self: Box<Self>) -> Result<(), String> {
        self.handle.join().map_err(|payload| panic_message(&*payload))
    }
}
