//! What builds with `--cfg shuttle` get: shuttle chooses at each access which thread goes on.

pub use shuttle::sync::Arc;
pub use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

pub use super::locks::{Condvar, Mutex, MutexGuard, RwLock};

/// Under shuttle a busy wait must let another thread run.
pub fn spin_hint() {
    shuttle::thread::yield_now();
}

/// Lets shuttle choose who runs next, as each of its own atomics does. Not a yield: schedulers take a
/// yield as a wish to run last.
pub fn interleave() {
    AtomicBool::new(false).load(Ordering::SeqCst);
}

/// What [`zeros`] returns.
pub type Zeros<T> = Box<[T]>;

/// So many zeros.
pub fn zeros<T: Default>(len: usize) -> Zeros<T> {
    std::iter::repeat_with(T::default).take(len).collect()
}

/// Enough for others to come, or not.
pub const YIELDS_MAX: u32 = 2;

/// Under shuttle there is no point in spinning: park at once.
pub const SPINS_MAX: u32 = 1;
