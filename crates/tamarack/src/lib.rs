//! Tamarack: a persistent embedded key-value store for SSDs. Keys live in a small LSM-tree, values in a log.
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
mod index;
mod skiplist;
mod vlog;

pub use base::batch::{Operation, WriteBatch};
pub use base::codec::Codec;
pub use base::comparator::{Bytewise, Comparator};
pub use base::error::{Corruption, Error, ErrorKind, Result};
pub use base::limits::{INLINE_VALUE_BYTES_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use base::options::{LogMode, Options, WriteOptions};
pub use base::recovery::{RecoveryReport, TornTail};
pub use cube::check::{CheckLevel, CheckReport};
pub use cube::stats::{CacheStats, LevelStats, SegmentStats, Stats};
pub use db::{Db, Entries, Iter, IterOptions, ReadOptions, Snapshot};

/// Worlds other than the operating system's, for tests of the engine and of programs that embed it.
#[doc(hidden)]
pub mod testing {
    pub use crate::env::Env;
    pub use crate::env::fault::*;
    pub use crate::env::posix::posix_env;
}
