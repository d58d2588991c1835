//! What a program sees of the engine, subject by subject. Suites that take long, have an allocator of their own, or are their
//! own child processes are programs of their own.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests prepare and inspect their world"
)]
#![cfg(not(shuttle))]

#[path = "../common/mod.rs"]
mod common;

mod basics;
mod checkpoint;
mod crash;
mod damage;
mod events;
mod faults;
mod gc;
mod gc_damage;
mod gc_faults;
mod gc_punch;
mod gc_races;
mod gc_stuck;
mod headroom;
mod idle;
mod invariants;
mod large_pages;
mod leveldb_directory;
mod model;
mod open_files;
mod past_cache;
mod pinned;
mod promises;
mod readers;
mod recycle;
mod rows;
mod scans;
mod sort;
mod sort_times;
mod space;
mod synced;
mod threads;
mod truncation;
mod waits;
