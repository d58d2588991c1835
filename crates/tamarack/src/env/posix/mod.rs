//! The real world, on top of the operating system.
//!
//! The one place of the engine that calls `std::fs`, the clocks, the random source and the thread functions, and
//! the one that maps memory. It keeps no state between calls besides open descriptors, decides nothing, and
//! reports every error as the system gave it, with one exception: the several ways in which a file system says
//! "not here" all become [`io::ErrorKind::Unsupported`], because callers answer them with a fallback.
#![expect(clippy::disallowed_methods, reason = "this module is what those methods are kept for")]
#![expect(clippy::disallowed_types, reason = "this module is what those types are kept for")]

use std::io;

use rustix::io::Errno;

use self::clock::PosixClock;
use self::fs::PosixFs;
use self::random::PosixRng;
pub(in crate::env) use self::threads::PosixThreads;
use crate::base::sync::Arc;
use crate::env::Env;

mod clock;
mod dir;
mod direct;
mod file;
mod fs;
#[cfg(target_os = "linux")]
mod large_memory;
mod large_pages;
mod mapping;
mod page_cache;
mod random;
#[cfg(target_os = "linux")]
mod read_queue;
mod sync_file_range;
mod threads;

#[cfg(test)]
mod tests;

/// The operating system's files, clocks, random numbers and threads.
pub fn posix_env() -> Env {
    Env {
        fs: Arc::new(PosixFs),
        clock: Arc::new(PosixClock::starting_now()),
        rng: Arc::new(PosixRng),
        spawn: Arc::new(PosixThreads),
    }
}

/// Turns "this file system cannot do that", and any of `also`, into [`io::ErrorKind::Unsupported`].
fn or_unsupported(errno: Errno, also: &[Errno]) -> io::Error {
    let error = io::Error::from(errno);
    if [Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOSYS].contains(&errno) || also.contains(&errno) {
        io::Error::new(io::ErrorKind::Unsupported, error)
    } else {
        error
    }
}
