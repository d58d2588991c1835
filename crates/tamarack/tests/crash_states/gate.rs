//! A world in which a scenario makes the same calls in nearly the same order every time: one thread acts, one works in the
//! background, and that one may call the file system only while the first waits for it, or may have to.

use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;

use tamarack::testing::{Env, FaultEnv, Join, Spawn};

/// The first thread of the workers; the only one that is started.
const WORKER: &str = "tamarack-0";

/// `env` with one thread in the background, and none that looks at the database while nothing is written.
pub fn with_one_worker(env: Env) -> Env {
    Env { spawn: Arc::new(OneWorker(env.spawn)), ..env }
}

struct OneWorker(Arc<dyn Spawn>);

impl Spawn for OneWorker {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Join>> {
        if name == WORKER { self.0.spawn(name, body) } else { Ok(Box::new(Never)) }
    }

    fn parallelism(&self) -> usize {
        1
    }

    fn yield_now(&self) {
        std::thread::yield_now();
    }
}

/// A thread that was never started.
struct Never;

impl Join for Never {
    fn join(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}

/// Keeps the background waiting.
pub struct Gate {
    owner: ThreadId,
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    /// `env` with a closed gate, which the present thread passes nevertheless.
    pub fn new(env: Env) -> (Env, Arc<Self>) {
        let gate = Arc::new(Self {
            owner: std::thread::current().id(),
            open: Mutex::new(false),
            changed: Condvar::new(),
        });
        let (env, faults) = FaultEnv::new(with_one_worker(env));
        let watched = Arc::clone(&gate);
        faults.watch(move |_, _| watched.pass());
        (env, gate)
    }

    fn pass(&self) {
        if std::thread::current().id() != self.owner {
            let mut open = self.open.lock().unwrap();
            while !*open {
                open = self.changed.wait(open).unwrap();
            }
        }
    }

    /// Opens it while `wait` waits for the background.
    pub fn open_while<T>(&self, wait: impl FnOnce() -> T) -> T {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
        let outcome = wait();
        *self.open.lock().unwrap() = false;
        outcome
    }
}
