//! The whole engine under shuttle: every schedule of a seed runs the scenarios of garbage collection against whatever
//! else may happen at the same time, on a simulated disk, compares all answers with a model, and then opens the database
//! again as a crash in the midst would have left it.
//!
//! Compiled under `--cfg shuttle` alone; `cargo xtask test` runs it with few schedules. For more, or to replay one:
//!
//! ```text
//! RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle TAMARACK_SEED=0 TAMARACK_SEEDS=10000 \
//!     cargo test -p tamarack --test shuttle -- --nocapture shuttle_collect_and_delete
//! ```
#![cfg(shuttle)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests prepare and inspect their world"
)]

#[path = "../common/mod.rs"]
mod common;

mod coverage;
mod roles;
mod scenarios;
mod schedule;
mod simulation;
mod world;
