//! The index: sorted user keys with pointers into the value log, in memtables and tables of seven levels.

pub mod cache;
pub mod compact;
pub mod cursor;
pub mod memtable;
pub mod merge;
pub mod table;
pub mod manifest;
pub mod version;

#[cfg(test)]
mod testing;
