//! Random lives of databases in a deterministic world, one for each seed: another subset of what the interface offers, other
//! options, another schedule of all threads, and other things that go wrong: losses of power and kills at any moment, also
//! while the database is being opened after another one; calls that fail; syncs that fail and leave pages that look clean;
//! writes that are done by half; and devices that lie, whose writes are lost or land elsewhere, or whose bits flip.
//!
//! Every state that there ever was is kept. What is there must be one of them, in whole, and not too old; errors come only
//! when something has failed, and say so cleanly. A device that lies may take back what it has confirmed, and then the
//! engine says so or shows an older state; it never shows anything that was not.

mod character;
mod life;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::schedule::explore;
use life::{Life, Tally};

/// Lives, unless the environment says otherwise.
const LIVES: u64 = 2000;

/// The same seed gives the same life, call by call and byte by byte.
#[test]
fn shuttle_lives_can_be_replayed() {
    let traces: Arc<Mutex<[BTreeMap<u64, u64>; 2]>> = Arc::default();
    for round in 0..2 {
        let traces = Arc::clone(&traces);
        explore("shuttle_lives_can_be_replayed", 30, move |seed| {
            let trace = Life::new(seed).lead().trace;
            traces.lock().unwrap()[round].insert(seed, trace);
        });
    }
    let [first, second] = &*traces.lock().unwrap();
    assert_eq!(first, second);
}

#[test]
fn shuttle_simulation() {
    let total = Arc::new(Mutex::new(Tally::default()));
    let sum = Arc::clone(&total);
    let lives = explore("shuttle_simulation", LIVES, move |seed| {
        let tally = Life::new(seed).lead();
        sum.lock().unwrap().add(&tally);
    });
    let total = total.lock().unwrap();
    println!("{lives} lives: {total:#?}");
    assert!(lives < LIVES || total.is_complete(), "something never happens: {total:#?}");
}
