//! Repair: whatever is damaged, the repaired database can be opened, checked and used, and every key is what it was or is
//! named in the report.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests prepare and inspect their world"
)]
#![cfg(not(shuttle))]

#[path = "../common/mod.rs"]
mod common;

mod damage;
mod golden;
mod interrupted;
