//! A long run of everything that is driven by seeds: round after round with seeds that were not used before, until the
//! time is up or something fails.
//!
//! Programs are built with optimisation. The first seed is drawn from the clock and printed, so that a whole run can be
//! repeated; a failure shows what the program has said, which includes the command that replays it, and ends the run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Output};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::programs::{self, Programs};
use crate::steps::cargo;
use crate::with_rustflags;

/// A program that runs seeds.
struct Suite {
    /// Its name.
    program: &'static str,
    /// Which of its tests: those whose names contain one of these.
    tests: &'static [&'static str],
    /// Whether it runs under shuttle.
    shuttle: bool,
    /// Seeds for a round.
    seeds: u64,
    /// What one seed is, for the table.
    unit: &'static str,
}

const SUITES: &[Suite] = &[
    Suite {
        program: "torture",
        tests: &["nothing"],
        shuttle: false,
        seeds: 4,
        unit: "databases, 50,000 steps with kills each",
    },
    Suite { program: "kill", tests: &["every"], shuttle: false, seeds: 500, unit: "killed processes" },
    Suite {
        program: "engine",
        tests: &["crash::crashes"],
        shuttle: false,
        seeds: 500,
        unit: "databases, 8 losses of power each",
    },
    Suite {
        program: "crash_states",
        tests: &["every"],
        shuttle: false,
        seeds: 60,
        unit: "scenarios, every state after a loss of power each",
    },
    Suite {
        program: "engine",
        tests: &["gc_races::everything"],
        shuttle: false,
        seeds: 8,
        unit: "databases with many threads",
    },
    Suite {
        program: "shuttle",
        tests: &["shuttle_simulation"],
        shuttle: true,
        seeds: 5000,
        unit: "lives in which anything goes wrong",
    },
    Suite {
        program: "shuttle",
        tests: &["shuttle_collect", "shuttle_punch"],
        shuttle: true,
        seeds: 200,
        unit: "schedules of each scenario",
    },
];

/// What has been run of one suite.
#[derive(Default)]
struct Done {
    seeds: u64,
    seconds: f64,
}

/// Runs for so many hours, with seeds from `first` on.
///
/// # Errors
/// Those of files and processes.
pub fn run(root: &Path, hours: f64, first: Option<u64>) -> io::Result<ExitCode> {
    let programs = build(root)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let first = first.unwrap_or(now << 20);
    println!("seeds from {first} on");
    let started = Instant::now();
    let mut done: BTreeMap<&str, Done> = BTreeMap::new();
    for round in 0.. {
        for suite in SUITES {
            if started.elapsed().as_secs_f64() >= hours * 3600.0 {
                report(&done, started.elapsed());
                return Ok(ExitCode::SUCCESS);
            }
            let seed = first + round * suite.seeds;
            let begun = Instant::now();
            let output = look(&programs, suite, seed)?;
            if !output.status.success() {
                io::stdout().write_all(&output.stdout)?;
                io::stdout().write_all(&output.stderr)?;
                println!("{} has failed, with seeds from {seed} on", suite.program);
                report(&done, started.elapsed());
                return Ok(ExitCode::FAILURE);
            }
            let sum = done.entry(suite.unit).or_default();
            sum.seeds += suite.seeds;
            sum.seconds += begun.elapsed().as_secs_f64();
            let minutes = started.elapsed().as_secs() / 60;
            println!("{minutes:>4} min  {}: {} {}, from {seed} on", suite.program, suite.seeds, suite.unit);
        }
    }
    unreachable!("rounds do not end by themselves")
}

fn build(root: &Path) -> io::Result<Programs> {
    let names = |shuttle| -> Vec<&str> {
        let names: BTreeSet<_> =
            SUITES.iter().filter(|suite| suite.shuttle == shuttle).map(|suite| suite.program).collect();
        names.into_iter().collect()
    };
    let arguments = ["test", "--release", "-p", "tamarack", "--locked"];
    let mut programs = programs::build(&mut cargo(root, &arguments), root, &names(false))?;
    let mut shuttle = cargo(root, &arguments);
    shuttle.env("CARGO_TARGET_DIR", root.join("target/shuttle"));
    let shuttle = with_rustflags(&mut shuttle, "RUSTFLAGS", "--cfg shuttle");
    programs.append(&mut programs::build(shuttle, root, &names(true))?);
    Ok(programs)
}

/// Runs the seeds of a round. Programs end themselves when they hang.
fn look(programs: &Programs, suite: &Suite, seed: u64) -> io::Result<Output> {
    let mut command = Command::new(&programs[suite.program]);
    command.args(suite.tests).arg("--nocapture");
    command.envs([("TAMARACK_SEED", seed.to_string()), ("TAMARACK_SEEDS", suite.seeds.to_string())]);
    command.output()
}

fn report(done: &BTreeMap<&str, Done>, elapsed: Duration) {
    println!("\n{:.2} hours", elapsed.as_secs_f64() / 3600.0);
    for suite in SUITES {
        if let Some(Done { seeds, seconds }) = done.get(suite.unit) {
            println!("{:>10}  {seeds} {} ({seconds:.0} s)", suite.program, suite.unit);
        }
    }
}
