//! Millions of random steps on databases with tiny segments, whose process is killed at random moments and started again.
//!
//! A *life* is one database and one seed. The test starts itself as the process that lives it: reads, writes, scans, snapshots
//! and iterators, garbage collection, checkpoints, new openings with other options; every answer is compared with a model.
//! Each step follows from the seed and its number alone, so this process, which kills the other one, knows without
//! asking it what must be there: the effects of all steps that were acknowledged, and of the one that was begun after
//! them wholly or not at all.
//!
//! `TAMARACK_STEPS` says how many steps there are in all. `TAMARACK_SEED` lives one life alone, and a failure prints it: the
//! steps are the same then, the moments of kills and of what runs in the background are others.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests prepare and inspect the real world"
)]

#[path = "torture/board.rs"]
mod board;
mod common;
#[path = "torture/victim.rs"]
mod victim;

use std::ops::Range;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use board::{Board, Figure, TALLIED};
use common::process::{Evidence, Replay};
use common::world::{Character, Kind, Model, Weights};
use common::{PATIENCE_SECONDS, Random, Watchdog, assert_clean, number_from_environment};
use tamarack::{Db, Options};

const STEPS: u64 = 50_000;

/// Steps of a life. Whoever goes on with one goes through its steps in mind first.
const LIFE_STEPS: Range<u64> = 2_000..50_000;

/// A life is killed about so often at its steps, and beside that while it is opened.
const KILLS: u64 = 12;

/// The name of the file with the figures.
const BOARD: &str = "board";

/// A step is cheap on average: what takes long is rare.
const WEIGHTS: &Weights = &[
    (Kind::WriteOne, 4000),
    (Kind::WriteBatch, 150),
    (Kind::Read, 4400),
    (Kind::MultiGet, 80),
    (Kind::Snapshot, 200),
    (Kind::NewWalker, 100),
    (Kind::Walk, 800),
    (Kind::Compare, 5),
    (Kind::Gc, 20),
    (Kind::SortValues, 6),
    (Kind::Flush, 15),
    (Kind::Compact, 4),
    (Kind::Sync, 25),
    (Kind::Rest, 4),
    (Kind::Checkpoint, 3),
    (Kind::Reopen, 4),
];

/// What the first steps of a seed make of an empty database.
struct Life {
    seed: u64,
    character: Character,
    steps: u64,
    model: Model,
}

impl Life {
    fn new(seed: u64) -> Self {
        let character = Character::new(&mut Random::new(seed));
        Self { seed, character, steps: 0, model: Model::new(character.order) }
    }

    /// Goes on until `steps` are done.
    fn advance(&mut self, steps: u64) {
        assert!(steps >= self.steps, "{} steps were there, now {steps}", self.steps);
        for number in self.steps..steps {
            let step = self.character.step(&mut Random::of_step(self.seed, number), WEIGHTS);
            self.model.write(&step.operations);
        }
        self.steps = steps;
    }
}

/// The process to be killed. Does nothing when it is run as an ordinary test.
#[test]
fn the_process_to_be_killed() {
    victim::live();
}

/// What was done so far, and since when.
struct Totals {
    begin: Instant,
    told: Instant,
    steps: u64,
    lives: u64,
    kills: u64,
    /// Kills before the database was open again.
    early_kills: u64,
    figures: [u64; TALLIED.len()],
}

impl Totals {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            begin: now,
            told: now,
            steps: 0,
            lives: 0,
            kills: 0,
            early_kills: 0,
            figures: [0; TALLIED.len()],
        }
    }

    /// Tells of them, and of what `board` has of the life that goes on.
    fn tell(&mut self, board: Option<&Board>) {
        self.told = Instant::now();
        let (steps, figures) =
            board.map_or((0, [0; TALLIED.len()]), |board| (board.get(Figure::Acknowledged), board.tallied()));
        let mut text = format!(
            "{:.0} s: {} steps, {} lives, {} kills ({} while opening)",
            self.begin.elapsed().as_secs_f64(),
            self.steps + steps,
            self.lives,
            self.kills,
            self.early_kills
        );
        for (((_, name, _), sum), more) in TALLIED.iter().zip(self.figures).zip(figures) {
            text += &format!(", {} {name}", sum + more);
        }
        println!("{text}");
    }

    fn end_life(&mut self, board: &Board) {
        self.lives += 1;
        self.steps += board.get(Figure::Acknowledged);
        self.figures.iter_mut().zip(board.tallied()).for_each(|(sum, figure)| *sum += figure);
    }

    fn assert_tried(&self) {
        assert!(self.kills > 0 && self.early_kills > 0, "{} kills, {} early", self.kills, self.early_kills);
        for ((figure, name, _), sum) in TALLIED.iter().zip(self.figures) {
            // That is for a machine that is too slow.
            let needed = !matches!(figure, Figure::WritesRefused);
            assert!(!needed || sum > 0, "nothing was tried: {name}");
        }
    }
}

/// Kills the process while it opens the database or at some step of `targets`, unless it ends before; `false` if
/// it has.
fn kill(
    mut child: Child,
    board: &Board,
    targets: &Range<u64>,
    random: &mut Random,
    totals: &mut Totals,
) -> bool {
    let opened = board.get(Figure::Opened);
    let (target, pause_us) = match random.below(8) {
        0 => (0, random.number() % 500),
        1 => (0, random.number() % 15_000),
        _ => (targets.start + random.number() % (targets.end - targets.start), random.number() % 300),
    };
    let ended = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if board.get(Figure::Issued) >= target {
            std::thread::sleep(Duration::from_micros(pause_us));
            break child.try_wait().unwrap();
        }
        if totals.told.elapsed() > Duration::from_secs(10) {
            totals.tell(Some(board));
        }
        std::thread::sleep(Duration::from_micros(200));
    };
    if let Some(status) = ended {
        assert!(status.success(), "the process ended by itself with {status}");
        return false;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    totals.kills += 1;
    totals.early_kills += u64::from(board.get(Figure::Opened) == opened);
    true
}

/// Panics unless the database in `path` holds what `life` does, or that and the step after it, if that was begun. Advances
/// `life` then.
fn verify(path: &Path, life: &mut Life, issued: u64, random: &mut Random) {
    // The next process is to find the files as the kill has left them, or closed.
    let read_only = random.one_in(2) && path.join("CURRENT").exists();
    let options = Options { read_only, ..life.character.options(random) };
    let db = Db::open(path, options).unwrap();
    if let Some(difference) = life.model.difference(&db) {
        let steps = life.steps;
        assert!(issued > steps, "after {steps} steps, of which all were acknowledged, it {difference}");
        life.advance(issued);
        if let Some(second) = life.model.difference(&db) {
            panic!("after {steps} steps that were acknowledged it {difference}; after one more it {second}");
        }
    }
    assert_clean(&db);
    db.close().unwrap();
}

fn live(seed: u64, steps: u64, totals: &mut Totals) {
    let _replay = Replay(format!(
        "TAMARACK_SEED={seed} TAMARACK_STEPS={steps} cargo test --release -p tamarack --test torture -- --nocapture"
    ));
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, format!("seed {seed} of the torture test"));
    let directory = Evidence::new();
    let board = Board::open(&directory.path(BOARD));
    // The world's first generation.
    let path = directory.path("0");
    let mut random = Random::of_step(seed, u64::MAX);
    let mut life = Life::new(seed);
    loop {
        let child = victim::start(path.parent().expect("in a directory"), seed, &(life.steps..steps));
        let targets = life.steps + 1..life.steps + 2 + 2 * steps / KILLS;
        let killed = kill(child, &board, &targets, &mut random, totals);
        let (issued, acknowledged) = (board.get(Figure::Issued), board.get(Figure::Acknowledged));
        life.advance(acknowledged);
        assert!(issued <= acknowledged + 1 && acknowledged <= steps, "{issued} {acknowledged}");
        verify(&path, &mut life, issued, &mut random);
        // What was not found now must not be there later.
        board.set(Figure::Issued, life.steps);
        board.set(Figure::Acknowledged, life.steps);
        if !killed {
            break;
        }
    }
    assert_eq!(life.steps, steps, "all steps of seed {seed}");
    totals.end_life(&board);
}

#[test]
fn nothing_is_wrong_after_any_step_or_kill() {
    let steps = number_from_environment("TAMARACK_STEPS").unwrap_or(STEPS);
    let mut totals = Totals::new();
    if let Some(begin) = number_from_environment("TAMARACK_SEED") {
        let seeds = number_from_environment("TAMARACK_SEEDS").unwrap_or(1);
        (begin..begin + seeds).for_each(|seed| live(seed, steps, &mut totals));
        return totals.tell(None);
    }
    let life_steps = (steps / 10).clamp(LIFE_STEPS.start, LIFE_STEPS.end);
    let mut seed = 0;
    while totals.steps < steps {
        live(seed, life_steps.min(steps - totals.steps), &mut totals);
        seed += 1;
    }
    totals.tell(None);
    totals.assert_tried();
}
