//! The one door through which the engine takes its synchronisation primitives.
//!
//! Ordinary builds get `parking_lot` locks and `std` atomics. Built with `--cfg shuttle` the same names are
//! shuttle's, so that a test can explore the interleavings of code that is otherwise unchanged. Locks here do
//! not poison: a panic inside the engine poisons the whole cube instead (see `cube::state`).
//!
//! Shuttle's atomics are larger than the integers they hold. Memory that is laid out by hand takes
//! [`PlainAtomicU64`] instead and calls [`interleave`] before each access. A simulated world is for shuttle like the
//! processor that it runs on: its state lies under a [`PlainMutex`], which is no place to wait.

pub use imp::*;

/// An atomic of exactly eight bytes in every build.
pub use std::sync::atomic::AtomicU64 as PlainAtomicU64;

/// An atomic of exactly one byte in every build.
pub use std::sync::atomic::AtomicU8 as PlainAtomicU8;

/// A lock that shuttle does not know in any build. Whoever holds it does nothing at which another thread could run, and
/// calls [`interleave`] before.
pub use parking_lot::{Mutex as PlainMutex, MutexGuard as PlainMutexGuard};

#[cfg(not(shuttle))]
mod imp {
    pub use parking_lot::{Condvar, Mutex, MutexGuard};
    pub use std::sync::Arc;
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

    /// One turn of a short busy wait.
    pub fn spin_hint() {
        std::hint::spin_loop();
    }

    /// A point at which another thread may run first: before an access to a [`PlainAtomicU64`](super::PlainAtomicU64).
    #[inline(always)]
    pub fn interleave() {}

    /// How often a waiter may spin before it must park.
    pub const SPINS_MAX: u32 = 64;
}

#[cfg(shuttle)]
mod imp {
    pub use shuttle::sync::Arc;
    pub use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    use std::ops::{Deref, DerefMut};

    /// A shuttle mutex with the `parking_lot` interface.
    #[derive(Debug, Default)]
    pub struct Mutex<T: ?Sized>(shuttle::sync::Mutex<T>);

    /// The guard of [`Mutex`]; empty only while a [`Condvar`] holds the lock's place.
    #[derive(Debug)]
    pub struct MutexGuard<'a, T: ?Sized>(Option<shuttle::sync::MutexGuard<'a, T>>);

    impl<T> Mutex<T> {
        /// A new unlocked mutex.
        pub const fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }
    }

    impl<T: ?Sized> Mutex<T> {
        /// Waits for the lock.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().expect("shuttle stops at the first panic")))
        }
    }

    impl<T: ?Sized> Deref for MutexGuard<'_, T> {
        type Target = T;
        fn deref(&self) -> &T {
            self.0.as_ref().expect("only a waiting condvar empties the guard")
        }
    }

    impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("only a waiting condvar empties the guard")
        }
    }

    /// A shuttle condition variable with the `parking_lot` interface.
    #[derive(Debug, Default)]
    pub struct Condvar(shuttle::sync::Condvar);

    impl Condvar {
        /// A new condition variable.
        pub const fn new() -> Self {
            Self(shuttle::sync::Condvar::new())
        }
        /// Releases the lock, waits for a notification, takes the lock again.
        pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let inner = guard.0.take().expect("only a waiting condvar empties the guard");
            guard.0 = Some(self.0.wait(inner).expect("shuttle stops at the first panic"));
        }
        /// Wakes one waiter.
        pub fn notify_one(&self) {
            self.0.notify_one();
        }
        /// Wakes every waiter.
        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    /// Under shuttle a busy wait must let another thread run.
    pub fn spin_hint() {
        shuttle::thread::yield_now();
    }

    /// Lets shuttle choose who runs next, as each of its own atomics does. Not a yield: schedulers take a
    /// yield as a wish to run last.
    pub fn interleave() {
        AtomicBool::new(false).load(Ordering::SeqCst);
    }

    /// Under shuttle there is no point in spinning: park at once.
    pub const SPINS_MAX: u32 = 1;
}
