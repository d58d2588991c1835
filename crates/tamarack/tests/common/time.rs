//! Worlds in which time does not disturb: one whose clock a test moves by hand, so that what happens while nothing is
//! written happens when the test says so; and one in which nobody looks at a database while nothing is written.
//!
//! Both know the thread that looks by its name. Whoever else sleeps (writers that are slowed down, copies that keep a
//! pace) goes on at once: a clock that stands still would let them wait for ever.

#![allow(clippy::disallowed_types, reason = "the engine's own threads sleep here")]

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::ThreadId;
use std::time::Duration;

pub use tamarack::testing::unwatched;
use tamarack::testing::{Clock, Env, Join, Spawn, WATCHER, posix_env};

/// The real world, but nothing happens in the background unless a call has caused it.
pub fn unwatched_env() -> Env {
    unwatched(posix_env())
}

/// `env`, in which nothing happens in the background unless a call has caused it, and its threads.
pub fn counted(env: Env) -> (Env, Threads) {
    let running = Arc::new(AtomicUsize::new(0));
    let spawn = Arc::new(Running(unwatched(env.clone()).spawn, Arc::clone(&running)));
    (Env { spawn, ..env }, Threads(running))
}

/// The threads of a world.
pub struct Threads(Arc<AtomicUsize>);

impl Threads {
    /// How many have not ended.
    pub fn running(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

struct Running(Arc<dyn Spawn>, Arc<AtomicUsize>);

impl Spawn for Running {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Join>> {
        if name == WATCHER {
            return self.0.spawn(name, body);
        }
        let running = Arc::clone(&self.1);
        running.fetch_add(1, Ordering::SeqCst);
        let counted = move || {
            body();
            running.fetch_sub(1, Ordering::SeqCst);
        };
        self.0.spawn(name, Box::new(counted))
    }

    fn parallelism(&self) -> usize {
        self.0.parallelism()
    }

    fn yield_now(&self) {
        self.0.yield_now();
    }
}

/// Moves the clock of a world. Dropped, it lets everybody who sleeps by that clock go.
pub struct Time(Arc<World>);

struct World {
    state: Mutex<State>,
    changed: Condvar,
    spawn: Arc<dyn Spawn>,
}

#[derive(Default)]
struct State {
    now: Duration,
    /// Threads that look at databases.
    watchers: usize,
    /// Those of them that sleep, and until when.
    asleep: HashMap<ThreadId, Duration>,
    /// How long others would have slept, all together.
    slept: Duration,
    ended: bool,
}

impl Time {
    /// The real world with a clock that stands still, and what moves it.
    pub fn new() -> (Env, Self) {
        let env = posix_env();
        // Not zero, which an engine might take for "never".
        let state = State { now: Duration::from_secs(1000), ..State::default() };
        let spawn = Arc::clone(&env.spawn);
        let world = Arc::new(World { state: Mutex::new(state), changed: Condvar::new(), spawn });
        let env = Env {
            clock: Arc::new(HandMoved(Arc::clone(&world), env.clock)),
            spawn: Arc::new(Counted(Arc::clone(&world))),
            ..env
        };
        (env, Self(world))
    }

    /// Moves the clock on by `duration`, and waits until everybody whose sleep ends by that has looked once and sleeps
    /// again. What they have started goes on.
    pub fn pass(&self, duration: Duration) {
        // One who has just been started sleeps first.
        let mut state = self.all_asleep(self.0.state.lock().unwrap());
        state.now += duration;
        self.0.changed.notify_all();
        drop(self.all_asleep(state));
    }

    fn all_asleep<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        while state.asleep.len() < state.watchers || state.asleep.values().any(|&until| until <= state.now) {
            state = self.0.changed.wait(state).unwrap();
        }
        state
    }

    /// What the clock says.
    pub fn now(&self) -> Duration {
        self.0.state.lock().unwrap().now
    }

    /// How long writers and copies would have slept so far, all together.
    pub fn slept(&self) -> Duration {
        self.0.state.lock().unwrap().slept
    }

    /// How many threads look at databases of this world.
    pub fn watchers(&self) -> usize {
        self.0.state.lock().unwrap().watchers
    }
}

impl Drop for Time {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().ended = true;
        self.0.changed.notify_all();
    }
}

/// A clock that a [`Time`] moves; the other is for those who sleep on when that is gone.
struct HandMoved(Arc<World>, Arc<dyn Clock>);

impl Clock for HandMoved {
    fn monotonic(&self) -> Duration {
        self.0.state.lock().unwrap().now
    }

    fn wall(&self) -> Duration {
        self.1.wall()
    }

    fn sleep(&self, duration: Duration) {
        let thread = std::thread::current();
        if thread.name() != Some(WATCHER) {
            self.0.state.lock().unwrap().slept += duration;
            std::thread::yield_now();
            return;
        }
        let World { state, changed, .. } = &*self.0;
        let mut state = state.lock().unwrap();
        let until = state.now + duration;
        state.asleep.insert(thread.id(), until);
        changed.notify_all();
        while state.now < until && !state.ended {
            state = changed.wait(state).unwrap();
        }
        state.asleep.remove(&thread.id());
        let ended = state.ended;
        drop(state);
        if ended {
            self.1.sleep(duration);
        }
    }
}

/// Threads, of which those that look are counted.
struct Counted(Arc<World>);

impl Spawn for Counted {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Join>> {
        if name != WATCHER {
            return self.0.spawn.spawn(name, body);
        }
        self.0.state.lock().unwrap().watchers += 1;
        let world = Arc::clone(&self.0);
        let counted = move || {
            body();
            world.state.lock().unwrap().watchers -= 1;
            world.changed.notify_all();
        };
        self.0.spawn.spawn(name, Box::new(counted))
    }

    fn parallelism(&self) -> usize {
        self.0.spawn.parallelism()
    }

    fn yield_now(&self) {
        self.0.spawn.yield_now();
    }
}
