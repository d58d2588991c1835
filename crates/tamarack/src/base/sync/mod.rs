//! The one door through which the engine takes its synchronisation primitives.
//!
//! Ordinary builds get `parking_lot` locks and `std` atomics. Built with `--cfg shuttle` the same names are shuttle's, so
//! that a test can explore the interleavings of code that is otherwise unchanged; built with `--cfg loom` they are
//! loom's, so that a test can explore what the memory model permits beyond that: each value that a load may find by its
//! ordering, not the newest one alone. Locks here do not poison: a panic inside the engine poisons the whole cube instead
//! (see `cube::state`).
//!
//! Shuttle's and loom's atomics are larger than the integers they hold. Memory that is laid out by hand takes
//! [`PlainAtomicU64`] instead and calls [`interleave`] before each access; the arena of a skiplist has a shadow for loom
//! (see `skiplist::shadow`). A simulated world is for shuttle like the processor that it runs on: its state lies under a
//! [`PlainMutex`], which is no place to wait.
//!
//! Under loom `Arc` is that of `std`: loom's knows no weak references and no trait objects, and what the engine counts
//! with it is not what its orderings are about. So the whole library is built, and models are of any part of it; but loom
//! does not learn that whoever drops a thing last knows what the other holders did. Models start their threads themselves.

#[cfg(any(shuttle, loom))]
mod locks;
#[cfg(loom)]
mod loom;
#[cfg(not(any(shuttle, loom)))]
mod ordinary;
#[cfg(shuttle)]
mod shuttle;

#[cfg(loom)]
pub use self::loom::*;
#[cfg(not(any(shuttle, loom)))]
pub use self::ordinary::*;
#[cfg(shuttle)]
pub use self::shuttle::*;

/// An atomic of exactly eight bytes in every build.
pub use std::sync::atomic::AtomicU64 as PlainAtomicU64;

/// An atomic of exactly one byte in every build.
pub use std::sync::atomic::AtomicU8 as PlainAtomicU8;

/// A lock that neither shuttle nor loom knows in any build. Whoever holds it does nothing at which another thread could
/// run, and calls [`interleave`] before.
pub use parking_lot::{Mutex as PlainMutex, MutexGuard as PlainMutexGuard};
