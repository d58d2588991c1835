//! Reads LevelDB databases, whole or damaged, without LevelDB.
//!
//! A LevelDB directory holds sorted *tables*, *logs* of what has not become tables yet, and a *manifest* that says which of
//! them count. [`Database::open`] locks the directory and reads the manifest; [`Database::entries`] replays the logs and
//! merges them with the tables into what LevelDB itself would give: of every key that is not deleted the newest
//! value, in the order of the keys' bytes. Nothing in the directory is changed.
//!
//! ```no_run
//! use std::path::Path;
//!
//! let database = tamarack_leveldb::Database::open(Path::new("fruit"), Default::default())?;
//! let mut entries = database.entries(|_| {})?;
//! while entries.advance()? {
//!     println!("{:?} = {:?}", entries.key(), entries.value());
//! }
//! # Ok::<(), tamarack_leveldb::Error>(())
//! ```
//!
//! **Formats.** What LevelDB 1.23 and its successors write, and older versions back to 1.0: tables called `.ldb` or `.sst`, their
//! blocks plain or compressed by Snappy or Zstandard. RocksDB's directories are refused.
//!
//! **Damage.** Every byte that matters is covered by a checksum, and every checksum is checked. Damage is an [`Error::Damage`] with
//! file and offset; with [`Options::salvage`] it is a [`Loss`], and reading goes on behind it. Two things are no damage: a last
//! log that ends in the middle of a record, which is how a crash looks and which LevelDB drops as well; and files that the
//! manifest does not name. They are [`Remark`]s.
//!
//! **Memory.** One block of each of a few tables, as many as overlap at one key, with their indexes; and
//! [`Options::memory_bytes`] of operations from the logs, beyond which they go to a temporary file.
//!
//! Inside, downward: `entries`; `plan`; `survey` and `merge`; `table_run`; `walk`; `table`; `manifest` and `replay`; `log`; the
//! decoders `edit`, `block`, `batch`, `compression`, `coding`, which take any bytes and panic at none; `error`.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the engine does its I/O through its environment; this crate reads files of another store, in no simulated world"
)]

mod batch;
mod block;
mod checksum;
mod coding;
mod compression;
mod context;
mod edit;
mod entries;
mod error;
mod file;
mod keys;
mod lock;
mod log;
mod loss;
mod manifest;
mod merge;
mod names;
mod options;
mod plan;
mod remark;
mod replay;
mod sorter;
mod survey;
mod table;
mod table_run;
mod walk;

pub use context::Counts;
pub use entries::{Database, Entries};
pub use error::{Damage, Error, Result};
pub use loss::{Covers, Loss};
pub use options::Options;
pub use remark::Remark;
