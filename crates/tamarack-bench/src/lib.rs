//! Workloads of embedded key-value stores, on synthetic keys and values, and what they cost: time and latencies, processor
//! time, bytes to and from the device, space on disk.
//!
//! Whatever implements [`Store`] can be measured, by the same code and with the same data. A [`Plan`] says how much of
//! what is done; a [`Bed`] runs a [`Workload`] after the other on one store, and makes a [`Report`] of each. The crate
//! prints nothing.
//!
//! Reports of one or several stores become the [`Row`]s of a [`Comparison`], which also says on what machine and by which
//! command they came about. It is kept as JSON, and shown as an HTML [`page`] with tables and plots. A store that could not be
//! measured has a row that says why.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "measuring is done with the real clock"
)]

mod cache;
mod comparison;
mod failure;
mod garbage;
mod keys;
mod latency;
mod load;
mod machine;
mod mappings;
mod memory;
mod pace;
mod page;
mod peak;
mod plan;
mod reclaim;
mod report;
mod resources;
mod run;
mod store;
mod tamarack;
mod timeline;
mod value_size;
mod values;
mod worker;
mod workload;
mod ycsb;
mod zipf;

pub use comparison::{Comparison, Outcome, Row};
pub use failure::{Failure, Result};
pub use keys::Random;
pub use latency::{Buckets, Latency};
pub use machine::Machine;
pub use memory::{Memory, MemoryLimit};
pub use page::page;
pub use peak::Peak;
pub use plan::{Distribution, Plan};
pub use reclaim::{Limits, Reclaim};
pub use report::{Collected, Recovery, Report, Written};
pub use resources::{Resources, Spent, disk_bytes};
pub use run::{Advance, Bed};
pub use store::{Change, Collector, Cursor, KeyRange, Store};
pub use tamarack::Tamarack;
pub use timeline::Timeline;
pub use value_size::ValueSize;
pub use workload::Workload;
