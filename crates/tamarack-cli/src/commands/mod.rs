//! The commands that work on one database, a file each: its arguments, and `run`.

pub mod check;
pub mod checkpoint;
pub mod compact;
pub mod delete;
pub mod dump;
pub mod export;
pub mod gc;
pub mod get;
pub mod import;
pub mod import_leveldb;
pub mod load;
pub mod multi_get;
pub mod put;
pub mod repair;
pub mod scan;
pub mod stats;
