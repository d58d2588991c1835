//! A world in which nobody looks at a database while nothing is written: what happens in the background was caused by a
//! call. For tests and fuzzers, which count on it.

use std::fmt;
use std::io;

use super::{Env, Join, Spawn};
use crate::base::sync::Arc;

/// The name of the thread that looks at a database while nothing is written.
pub const WATCHER: &str = "tamarack-idle";

/// `env`, but that thread is never started.
pub fn unwatched(env: Env) -> Env {
    Env { spawn: Arc::new(Unwatched(env.spawn)), ..env }
}

struct Unwatched(Arc<dyn Spawn>);

impl fmt::Debug for Unwatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unwatched").finish_non_exhaustive()
    }
}

impl Spawn for Unwatched {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Join>> {
        if name == WATCHER { Ok(Box::new(Never)) } else { self.0.spawn(name, body) }
    }

    fn parallelism(&self) -> usize {
        self.0.parallelism()
    }

    fn yield_now(&self) {
        self.0.yield_now();
    }
}

/// A thread that was never started.
#[derive(Debug)]
struct Never;

impl Join for Never {
    fn join(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}
