//! Random operations on a database, each compared with a model that keeps every version of every key.
//!
//! As many seeds as fit into some seconds are tried. `TAMARACK_SEED` runs one seed alone, `TAMARACK_SEEDS` says how
//! many there are however long that takes, `TAMARACK_STEPS` how many steps each takes. A failure prints the command
//! that repeats it.

use std::time::{Duration, Instant};

use crate::common::process::Replay;
use crate::common::time::Time;
use crate::common::world::{Character, Kind, Model, Weights, World};
use crate::common::{PATIENCE_SECONDS, Random, Watchdog, fast_directory, number_from_environment};

const SECONDS: u64 = 20;
const STEPS: u64 = 700;

const WEIGHTS: &Weights = &[
    (Kind::WriteOne, 35),
    (Kind::WriteBatch, 10),
    (Kind::Read, 10),
    (Kind::MultiGet, 3),
    (Kind::Snapshot, 3),
    (Kind::NewWalker, 3),
    (Kind::Walk, 23),
    (Kind::Gc, 4),
    (Kind::SortValues, 2),
    (Kind::Flush, 3),
    (Kind::Compact, 2),
    (Kind::Sync, 1),
    (Kind::Rest, 1),
    (Kind::Reopen, 1),
    (Kind::Crash, 1),
];

/// I-11, too: what is collected is what nobody can read.
#[test]
fn random_operations_agree_with_the_model() {
    let steps = number_from_environment("TAMARACK_STEPS").unwrap_or(STEPS);
    let count = number_from_environment("TAMARACK_SEEDS");
    let seeds = match number_from_environment("TAMARACK_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..count.unwrap_or(u64::MAX),
    };
    let begin = Instant::now();
    for seed in seeds {
        if count.is_none() && begin.elapsed() > Duration::from_secs(SECONDS) {
            break;
        }
        let _replay = Replay(format!(
            "TAMARACK_SEED={seed} TAMARACK_STEPS={steps} cargo test -p tamarack --test engine model"
        ));
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, format!("seed {seed} of the model test"));
        let mut random = Random::new(seed);
        let character = Character::new(&mut random);
        let directory = fast_directory();
        let (env, time) = Time::new();
        let model = Model::new(character.order);
        let root = directory.path().to_owned();
        let mut world = World::new(character, random, root, (env, Some(time)), model);
        for _ in 0..steps {
            world.step(WEIGHTS);
        }
        world.end();
    }
}
