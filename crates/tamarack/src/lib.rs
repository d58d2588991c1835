//! Tamarack: a persistent embedded key-value store for SSDs. Keys live in a small LSM-tree, values in a log.
#![warn(missing_docs)]
#![allow(dead_code)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "tests prepare and inspect the real world"
    )
)]

mod base;
mod env;
mod index;
mod skiplist;
mod vlog;

pub use base::batch::{Operation, WriteBatch};
pub use base::comparator::{Bytewise, Comparator};
pub use base::error::{Corruption, Error, ErrorKind, Result};
