//! `compare`: every store in a process of its own, in turn, round after round.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::{Args, Parser, ValueEnum};
use tamarack_bench::{Comparison, Machine, Outcome, Report, Row, page};

use crate::measure::Work;
use crate::process;
use crate::stores::Peer;
use crate::summary;

/// Runs workloads on several stores in turn
#[derive(Debug, Args)]
pub struct Compare {
    /// Stores [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STORE")]
    stores: Vec<Peer>,

    /// How often each store runs; the median is what counts
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// End a store's run after so many seconds, with a row that says so: for stores that stand still, or nearly
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seconds_max: Option<u64>,

    /// Where databases are made, one at a time, and removed again
    #[arg(long, default_value = ".", value_name = "DIR")]
    directory: PathBuf,

    /// Write a page with tables and plots to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write all that the page shows to FILE as JSON, which `tamarack bench-page` makes pages of
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Workloads, run in this order on the same database, and how much of what they do: `measure --help` tells
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORK")]
    work: Vec<String>,
}

/// What follows the command's own arguments; each store's process gets the same.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Given {
    #[command(flatten)]
    work: Work,
}

/// What a store came to in a round.
pub struct Run {
    pub store: Peer,
    /// The report of each workload, up to the one that failed.
    pub reports: Vec<Report>,
    /// Why there are not all of them.
    pub failure: Option<String>,
}

impl Compare {
    /// Runs the command.
    pub fn run(self) -> Result<(), String> {
        let Given { work } = Given::try_parse_from(&self.work).unwrap_or_else(|error| error.exit());
        work.plan.check(&work.workloads)?;
        let stores =
            if self.stores.is_empty() { Peer::value_variants().to_vec() } else { self.stores.clone() };
        let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
        let mut comparison =
            Comparison::new(Machine::of(&self.directory), format!("tamarack-bench-peers {command}"));
        let mut runs = Vec::new();
        for round in 0..self.rounds {
            // Who comes first changes: nobody has the quiet moments, or the warm device, to itself.
            let from = round as usize % stores.len();
            for &store in stores[from..].iter().chain(&stores[..from]) {
                let run = self.measure(store)?;
                eprintln!("round {} of {}: {}", round + 1, self.rounds, summary::brief(&run));
                comparison.rows.extend(rows(&run));
                runs.push(run);
                // What there is outlives an interruption.
                self.write(&comparison)?;
            }
        }
        summary::print(&stores, &work.workloads, &runs);
        Ok(())
    }

    fn write(&self, comparison: &Comparison) -> Result<(), String> {
        let write = |path: &Option<PathBuf>, text: &dyn Fn() -> String| match path {
            Some(path) => {
                std::fs::write(path, text()).map_err(|error| format!("{}: {error}", path.display()))
            }
            None => Ok(()),
        };
        write(&self.html, &|| page(comparison))?;
        write(&self.save, &|| serde_json::to_string(comparison).expect("reports are plain data"))
    }

    fn measure(&self, store: Peer) -> Result<Run, String> {
        let scratch = tempfile::Builder::new().prefix("bench-peers-").tempdir_in(&self.directory);
        let scratch = scratch.map_err(|error| format!("{}: {error}", self.directory.display()))?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.arg("measure").args(["--store", store.name()]).arg("--db").arg(scratch.path());
        command.args(&self.work);
        let time_max = self.seconds_max.map(Duration::from_secs);
        let ended = process::run(command, time_max).map_err(|error| error.to_string())?;
        let reports = ended.said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Run { store, reports, failure: ended.failure })
    }
}

fn rows(run: &Run) -> Vec<Row> {
    let row = |outcome| Row {
        store: run.store.name().to_owned(),
        version: run.store.version(),
        options: run.store.options().to_owned(),
        outcome,
    };
    let reports = run.reports.iter().map(|report| Outcome::Report(Box::new(report.clone())));
    let missing = run.failure.iter().map(|failure| Outcome::Missing(failure.clone()));
    reports.chain(missing).map(row).collect()
}
