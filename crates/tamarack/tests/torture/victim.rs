//! The process that is killed: it takes its steps, compares every answer, and writes on the [`Board`] what it is about to do and
//! what it has done.

use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Stdio};

use tamarack::testing::posix_env;

use super::board::{Board, Figure};
use super::{BOARD, Life, WEIGHTS};
use crate::common::Random;
use crate::common::process::this_program;
use crate::common::world::World;

const DIRECTORY: &str = "TAMARACK_TORTURE_DIRECTORY";
const SEED: &str = "TAMARACK_TORTURE_SEED";
const BEGIN: &str = "TAMARACK_TORTURE_BEGIN";
const END: &str = "TAMARACK_TORTURE_END";

/// So often it tells how much was collected.
const TALLY_STEPS: u64 = 200;

/// Starts the process on the steps `range` of the life in `directory`.
pub fn start(directory: &Path, seed: u64, range: &Range<u64>) -> Child {
    this_program("the_process_to_be_killed")
        .env(DIRECTORY, directory)
        .env(SEED, seed.to_string())
        .env(BEGIN, range.start.to_string())
        .env(END, range.end.to_string())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lives, if this process was started for that.
pub fn live() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let number = |name| crate::common::number_from_environment(name).expect("set by `start`");
    end_with_parent();
    let (seed, range) = (number(SEED), number(BEGIN)..number(END));
    let directory = Path::new(&directory);
    let board = Board::open(&directory.join(BOARD));
    let mut life = Life::new(seed);
    life.advance(range.start);
    let before = board.tallied();
    let random = Random::of_step(seed, u64::MAX - range.start);
    let root = directory.to_owned();
    let mut world = World::new(life.character, random, root, (posix_env(), None), life.model);
    board.set(Figure::Opened, board.get(Figure::Opened) + 1);
    for number in range {
        board.set(Figure::Issued, number + 1);
        world.random = Random::of_step(seed, number);
        let failing = Failing { seed, number };
        world.step(WEIGHTS);
        std::mem::forget(failing);
        board.set(Figure::Acknowledged, number + 1);
        if number % TALLY_STEPS == 0 {
            board.add(&before, &world.tally());
        }
    }
    board.add(&before, &world.end());
}

/// Ends this process when its parent has ended.
fn end_with_parent() {
    std::thread::spawn(|| {
        let nothing = std::io::stdin().read_to_end(&mut Vec::new());
        eprintln!("the parent has ended: {nothing:?}");
        std::process::abort();
    });
}

/// Tells which step it was.
struct Failing {
    seed: u64,
    number: u64,
}

impl Drop for Failing {
    fn drop(&mut self) {
        eprintln!("step {} of seed {} failed", self.number, self.seed);
    }
}
