//! The manifest: the durable log of version edits.
//!
//! Owns: the files `MANIFEST-<number>` and `CURRENT`. An edit is appended and synced before it takes effect. A
//! manifest begins with an edit that makes the whole version of its time, so a new one can replace an old one
//! whenever it has grown long; `CURRENT` names the one in force and is replaced atomically.
//!
//! Never: retries a failed write or sync (the writer refuses everything from then on), drops an edit that is
//! known to be durable, or writes anything when a cube is opened read-only.
//!
//! The bytes are described in `docs/formats/manifest.md`. Called by the index alone.

/// The number of a new cube's manifest.
pub const FIRST_MANIFEST: u64 = 1;

pub(super) mod format;
pub mod leveldb;
mod reader;
mod salvage;
mod writer;

#[cfg(test)]
mod tests;

pub use reader::{Recovered, TornTail, read};
pub use salvage::{Survey, survey};
pub use writer::ManifestWriter;
