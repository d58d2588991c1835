//! The index: sorted user keys with pointers into the value log, in memtables and tables of seven levels.

pub mod cursor;
pub mod memtable;
pub mod merge;
