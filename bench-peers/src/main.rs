//! The workloads of `tamarack bench` on several stores, side by side: one process for each store and round, in turn, so that
//! all of them see the same machine. From the project's directory:
//!
//! ```text
//! cd bench-peers; cargo run --release -- compare fillrandom readrandom --num 2000000
//! ```
//!
//! `suite DIR` makes all comparisons of `docs/PERFORMANCE.md`.

mod compare;
#[cfg(test)]
mod kept;
mod measure;
mod process;
mod stores;
mod suite;
mod summary;
mod trial;
mod work;

use std::process::ExitCode;

use clap::Parser;

/// Compare Tamarack with other stores
#[derive(Debug, Parser)]
enum Command {
    /// Run workloads on several stores in turn, and compare
    Compare(compare::Compare),
    Suite(suite::Suite),
    /// Run workloads on one store, in this process; prints a report a line
    Measure(measure::Measure),
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Compare(compare) => compare.run(),
        Command::Suite(suite) => suite.run(),
        Command::Measure(measure) => measure.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}
