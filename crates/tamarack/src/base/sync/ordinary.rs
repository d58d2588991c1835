//! What ordinary builds get: the locks of `parking_lot`, the atomics of `std`.

pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
pub use std::sync::Arc;
pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// One turn of a short busy wait.
pub fn spin_hint() {
    std::hint::spin_loop();
}

/// A point at which another thread may run first: before an access to a [`PlainAtomicU64`](super::PlainAtomicU64).
#[inline(always)]
pub fn interleave() {}

pub use crate::base::zeros::Zeros;

/// So many zeros. Memory is taken from the system as it is first touched.
pub fn zeros<T: zerocopy::FromZeros>(len: usize) -> Zeros<T> {
    Zeros::new(len)
}

/// How often a leader may let others run before it goes on without them.
pub const YIELDS_MAX: u32 = 64;

/// How often a waiter may spin before it must park.
pub const SPINS_MAX: u32 = 64;
