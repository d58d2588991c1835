//! The value log: both the write-ahead log and the home of values (WiscKey, section 3.4.2).
//!
//! A log is a chain of segment files whose bytes [`format`] defines. [`segment`] writes the newest one and seals
//! it with a [`summary`] of its records, [`scan`] walks over records without reading values, [`recover`] finds where a log ends after a crash and
//! whether what is missing may be missing, [`reader`] gives a value for a pointer, out of [`open_segments`], and [`fetch`] many
//! values at once, by the reads of a [`plan`]. For garbage collection [`heads`] reads chosen records, [`cold`] writes the segment that keeps them,
//! and [`relocation`] tells where they have gone; [`salvage`] reads what is whole of damaged segments; [`lease`] keeps that for jobs that outlast a segment; [`shape`]
//! tells in which order the keys of a segment lie. Who may write where and when
//! is decided by the layer above (`cube::commit`, `cube::collect`); nothing here knows the index.

pub mod cold;
pub mod fetch;
pub mod format;
pub mod fuzz;
pub mod heads;
pub mod lease;
pub mod loads;
pub mod open_segments;
pub mod piece;
pub mod plan;
mod queues;
pub mod reader;
pub mod recover;
pub mod relocation;
pub mod salvage;
pub mod scan;
pub mod segment;
pub mod shape;
mod summary;
pub mod walk_pages;
