//! The index: sorted user keys with pointers into the value log, in memtables and tables of seven levels.
//!
//! ```text
//! Index (open, install, read, maintain)
//!   ├─ flush, compact ─► output, level_cursor, merge ─► table, memtable
//!   ├─ manifest ─► version
//!   └─ version: which tables and segments there are
//! ```

pub mod cache;
mod checkpoint;
mod collect;
pub mod compact;
mod contradictions;
pub mod cursor;
mod flush;
pub mod fuzz;
mod hidden;
mod hidden_among;
mod install;
pub mod key_shape;
mod level_cursor;
pub mod lookup;
mod maintain;
pub mod manifest;
pub mod memtable;
pub mod merge;
mod open;
mod output;
mod read;
pub mod repair;
mod sample;
pub mod table;
pub mod version;

#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;

pub use collect::{Collection, Reference};
pub use compact::{Due, Signals};
pub use contradictions::contradictions;
pub use hidden::{Estimate, HiddenBytes};
pub use hidden_among::Pointing;
pub use maintain::{Compaction, ManualTurn};
pub use open::{Index, IndexOptions};
