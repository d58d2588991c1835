//! Every state in which a loss of power may leave a disk, one after the other: scenarios run on a simulated disk, and at
//! every change that they make of it, all combinations of what is in flight then are tried, down to single sectors,
//! lengths and names.
//!
//! A state counts if no other of the run had the same names, lengths and bytes with the same number of batches that must
//! be there, if everything that must hold of it did, and if the database then took writes. What was enumerated
//! exhaustively and what was sampled, because too much was in flight, is counted apart. The table that
//! `--nocapture` shows, and that `TAMARACK_TABLE=<file>` writes, has both.
//!
//! ```text
//! TAMARACK_SEEDS=2000 TAMARACK_SAMPLES=500 cargo test --release -p tamarack --test crash_states -- --nocapture
//! ```
//!
//! runs so many random scenarios beside the others, from `TAMARACK_SEED` on, and takes so many samples wherever too much
//! is in flight. A failure prints the command that tries the same state again, and nothing else.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests prepare and inspect their world"
)]
#![cfg(not(shuttle))]

mod common;
#[path = "crash_states/driver.rs"]
mod driver;
#[path = "crash_states/explore.rs"]
mod explore;
#[path = "crash_states/gate.rs"]
mod gate;
#[path = "crash_states/oracle.rs"]
mod oracle;
#[path = "crash_states/report.rs"]
mod report;
#[path = "crash_states/scenarios.rs"]
mod scenarios;

use common::{PATIENCE_SECONDS, Watchdog, number_from_environment};
use explore::{Explorer, StateName};
use report::Report;
use scenarios::{Scenario, fixed, random};

/// Random scenarios of an ordinary run.
const SEEDS: u64 = 44;
/// Distinct states, enumerated exhaustively, that an ordinary run must come to.
const STATES_MIN: u64 = 300_000;

#[test]
fn every_state_that_a_crash_may_leave_holds_a_prefix() {
    let _watchdog = Watchdog::new(100 * PATIENCE_SECONDS, "crash states");
    let base = number_from_environment("TAMARACK_SEED").unwrap_or(0);
    let seeds = number_from_environment("TAMARACK_SEEDS");
    let scenarios: Vec<Scenario> =
        fixed().into_iter().chain((base..base + seeds.unwrap_or(SEEDS)).map(random)).collect();
    if let Some(name) = StateName::from_environment() {
        name.replay(&scenarios);
        return;
    }
    let explorer = Explorer::new(number_from_environment("TAMARACK_SAMPLES"));
    let mut report = Report::default();
    for scenario in &scenarios {
        report.add(explorer.explore(scenario));
    }
    report.publish();
    let found = report.total().exhaustive.distinct;
    assert!(
        seeds.is_some() || found >= STATES_MIN,
        "{found} distinct states, and {STATES_MIN} are to be tried"
    );
}
