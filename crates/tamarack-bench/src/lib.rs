//! Workloads of embedded key-value stores, on synthetic keys and values, and what they cost: time and latencies, processor
//! time, bytes to and from the device, space on disk.
//!
//! Whatever implements [`Store`] can be measured, by the same code and with the same data. A [`Plan`] says how much of
//! what is done; a [`Bed`] runs a [`Workload`] after the other on one store, and makes a [`Report`] of each. The crate
//! prints nothing.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "measuring is done with the real clock"
)]

mod cache;
mod disk;
mod failure;
mod keys;
mod plan;
mod reclaim;
mod report;
mod resources;
mod run;
mod store;
mod tamarack;
mod values;
mod worker;
mod workload;
mod ycsb;
mod zipf;

pub use failure::{Failure, Result};
pub use plan::{Distribution, Plan};
pub use reclaim::{Limits, Reclaim};
pub use report::{Latency, Recovery, Report, Written};
pub use resources::{Resources, Spent, disk_bytes};
pub use run::{Advance, Bed};
pub use store::{Change, Cursor, KeyRange, Store};
pub use tamarack::Tamarack;
pub use workload::Workload;
