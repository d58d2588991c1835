//! The entries of a LevelDB directory in a database of ours: the copying, the place where it is made, and what is told of it.

pub mod copy;
pub mod destination;
pub mod digest;
pub mod report;
