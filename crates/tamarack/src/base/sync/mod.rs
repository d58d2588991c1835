//! The one door through which the engine takes its synchronisation primitives.
//!
//! Ordinary builds get `parking_lot` locks and `std` atomics. Built with `--cfg shuttle` the same names are
//! shuttle's, so that a test can explore the interleavings of code that is otherwise unchanged. Locks here do
//! not poison: a panic inside the engine poisons the whole cube instead (see `cube::state`).
//!
//! Shuttle's atomics are larger than the integers they hold. Memory that is laid out by hand takes
//! [`PlainAtomicU64`] instead and calls [`interleave`] before each access. A simulated world is for shuttle like the
//! processor that it runs on: its state lies under a [`PlainMutex`], which is no place to wait.

#[cfg(shuttle)]
mod locks;
#[cfg(not(shuttle))]
mod ordinary;
#[cfg(shuttle)]
mod shuttle;

#[cfg(not(shuttle))]
pub use self::ordinary::*;
#[cfg(shuttle)]
pub use self::shuttle::*;

/// An atomic of exactly eight bytes in every build.
pub use std::sync::atomic::AtomicU64 as PlainAtomicU64;

/// An atomic of exactly one byte in every build.
pub use std::sync::atomic::AtomicU8 as PlainAtomicU8;

/// A lock that shuttle does not know in any build. Whoever holds it does nothing at which another thread could run, and
/// calls [`interleave`] before.
pub use parking_lot::{Mutex as PlainMutex, MutexGuard as PlainMutexGuard};
