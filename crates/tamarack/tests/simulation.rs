//! Random lives of databases on simulated disks, one for each seed: another subset of what the interface offers, other
//! options, and other things that go wrong: losses of power and kills at any moment, also while the database is being
//! opened after another one; calls that fail; syncs that fail and leave pages that look clean; writes that are done by
//! half; and devices that lie, whose writes are lost or land elsewhere, or whose bits flip.
//!
//! Every state that there ever was is kept. What is there must be one of them, in whole, and not too old; errors come only
//! when something has failed, and say so cleanly. A device that lies may take back what it has confirmed, and then the
//! engine says so or shows an older state; it never shows anything that was not.
//!
//! A failure names its seed. `TAMARACK_SEED=<seed> TAMARACK_SEEDS=1 cargo test -p tamarack --test simulation` tries it
//! again; threads of the process are not scheduled by the seed, so that it may take several times.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests prepare and inspect their world"
)]
#![cfg(not(shuttle))]

#[path = "simulation/character.rs"]
mod character;
mod common;
#[path = "simulation/simulation.rs"]
mod simulation;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{PATIENCE_SECONDS, Watchdog, number_from_environment};
use simulation::{Simulation, Tally};

const SEEDS: u64 = 2000;
const THREADS: usize = 2;

#[test]
fn whatever_goes_wrong_a_database_shows_what_was_or_says_so() {
    let base = number_from_environment("TAMARACK_SEED").unwrap_or(0);
    let seeds = number_from_environment("TAMARACK_SEEDS").unwrap_or(SEEDS);
    let (next, total) = (AtomicU64::new(base), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= base + seeds {
                        return;
                    }
                    let _watchdog = Watchdog::new(PATIENCE_SECONDS, format!("simulation of seed {seed}"));
                    let tally = Simulation::new(seed).run();
                    total.lock().unwrap().add(&tally);
                }
            });
        }
    });
    let total = total.into_inner().unwrap();
    println!("{seeds} seeds: {total:#?}");
    assert!(seeds < SEEDS || total.is_complete(), "something never happens: {total:#?}");
}
