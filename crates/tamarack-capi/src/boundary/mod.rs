//! What C passes and takes, as types: all unsafe code of the crate, and nothing that knows what a function means.
//!
//! The types of [`arguments`] and [`handle`] can only come from a C caller, who promises with each call what LevelDB's
//! header asks: pointers come from this library or point to as many bytes as their length says, and stay valid for the
//! call. Each is a pointer to the C side and takes no step but under that promise, so that everything above is safe
//! Rust.
//!
//! Invariants: what the client frees comes from `malloc`, whatever allocator Rust uses. A misuse that can be seen ends
//! the process with a message ([`guard`]); it is never answered with an error that a client may overlook.
#![expect(unsafe_code, reason = "the boundary to C: raw pointers, memory and callbacks")]

pub mod arguments;
pub mod callbacks;
pub mod guard;
pub mod handle;
pub mod memory;
