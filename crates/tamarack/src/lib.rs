//! Tamarack: a persistent embedded key-value store for SSDs. Keys live in a small LSM-tree, values in a log.
//!
//! A database is a directory. [`Db::open`] opens or creates it and holds a lock on it; the handle is cheap to clone
//! and may be used from many threads. Keys and values are bytes: keys up to [`KEY_BYTES_MAX`], values up to
//! [`VALUE_BYTES_MAX`]. Keys are ordered by a [`Comparator`], by their bytes unless [`Options`] name another.
//!
//! A write copies its records to the end of the log, which is both the write-ahead log and the home of the values,
//! and then enters its keys into a table in memory. Tables in memory become sorted files in the background,
//! and compactions merge these; both carry pointers in place of all but small values, so a value is written once.
//! Readers take no lock that a writer holds: a [`Snapshot`] or an [`Iter`] sees one moment, whatever comes after.
//!
//! What a write promises when it returns:
//!
//! - It is visible to every reader, and so is everything that was written before it.
//! - It survives the death of the process. With [`WriteOptions::sync`], or after [`Db::sync`], it survives that of
//!   the machine. Whatever happens, what survives is a prefix of all batches in the order of their commits.
//! - A [`WriteBatch`] is there as a whole or not at all, for readers and after a crash.
//!
//! Bytes that are not what was written give an [`Error`] that names file and offset, never a wrong value or an
//! absent key; [`Error::kind`] tells what can be done. What a crash left unfinished at the end of the log is cut
//! off when the database is next opened, and [`Db::recovery`] says so. What is whole of a damaged database,
//! [`Db::repair`] saves.
//!
//! ```
//! use tamarack::{CheckLevel, Db, IterOptions, Options, ReadOptions, WriteBatch, WriteOptions};
//!
//! # let temporary = tempfile::tempdir()?;
//! # let directory = temporary.path().join("accounts");
//! let db = Db::open(&directory, Options::default())?;
//! db.put(b"account/ann", b"100")?;
//! db.put(b"account/ben", b"20")?;
//!
//! // Both accounts change, or none; durable when the call returns.
//! let before = db.snapshot();
//! let mut transfer = WriteBatch::new();
//! transfer.put(b"account/ann", b"70")?;
//! transfer.put(b"account/ben", b"50")?;
//! db.write(&transfer, &WriteOptions::synced())?;
//! assert_eq!(db.get(b"account/ann")?.as_deref(), Some(&b"70"[..]));
//!
//! // The snapshot still sees the moment before.
//! let then = ReadOptions { snapshot: Some(before), ..ReadOptions::default() };
//! assert_eq!(db.get_with(b"account/ann", &then)?.as_deref(), Some(&b"100"[..]));
//!
//! // A range from its last key to its first.
//! let accounts = IterOptions { start: Some(b"account/".to_vec()), ..IterOptions::default() };
//! let mut iter = db.iter(&accounts)?;
//! iter.seek_to_last()?;
//! assert_eq!(iter.key(), b"account/ben");
//! iter.prev()?;
//! assert_eq!(iter.value()?, b"70");
//! drop((iter, then));
//!
//! // Everything on disk is what was written, and opening the database again finds it.
//! assert!(db.check(CheckLevel::Values).is_clean());
//! db.close()?;
//! let db = Db::open(&directory, Options { create_if_missing: false, ..Options::default() })?;
//! assert_eq!(db.recovery().torn_tail, None);
//! assert_eq!(db.get(b"account/ben")?.as_deref(), Some(&b"50"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To read on: [`Db`] for the operations, [`Options`] for what can be chosen, [`ErrorKind`] for what can go wrong,
//! the programs in the crate's `examples` directory, and in the repository `ARCHITECTURE.md`, `docs/RELIABILITY.md`
//! and the pages of `docs/formats`.
#![deny(missing_docs)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "tests prepare and inspect the real world"
    )
)]

mod base;
mod cube;
mod db;
mod env;
mod fuzz;
mod index;
mod skiplist;
mod vlog;

pub use base::batch::{Operation, WriteBatch};
pub use base::codec::Codec;
pub use base::comparator::{Bytewise, Comparator};
pub use base::error::{Corruption, Error, ErrorKind, Result};
pub use base::limits::{INLINE_VALUE_BYTES_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use base::listener::{EventListener, GcEvent};
pub use base::options::{GcPolicy, LogMode, Options, WriteOptions};
pub use base::recovery::{RecoveryReport, TornTail};
pub use cube::check::{CheckLevel, CheckReport};
pub use cube::checkpoint::CheckpointReport;
pub use cube::collect::{CollectionStats, GcGoal, GcReport};
pub use cube::pinned::PinnedValue;
pub use cube::readers::{ReaderKind, ReaderStats};
pub use cube::repair::RepairOptions;
pub use cube::repair::report::{Loss, LostRange, RepairReport, RepairedManifest};
pub use cube::stats::{CacheStats, LevelStats, SegmentStats, Stats};
pub use db::{Db, Entries, Iter, IterOptions, ReadOptions, Snapshot};

/// The example of the project's front page is compiled with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;

/// Worlds other than the operating system's, for tests of the engine and of programs that embed it.
#[doc(hidden)]
pub mod testing {
    pub use crate::base::zeros::watch_mapped;
    pub use crate::env::fault::*;
    pub use crate::env::posix::posix_env;
    pub use crate::env::sim::{CrashState, CrashStates, DiskFault, Moment, Random, SimDisk, SimOptions};
    pub use crate::env::unwatched::{WATCHER, unwatched};
    pub use crate::env::{Clock, Env, Join, Spawn};

    /// What fuzzers run.
    pub mod fuzz {
        pub use crate::fuzz::{MEMORY_BYTES, TARGETS, Target, run};
    }
}
