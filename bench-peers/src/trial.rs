//! A trial: every store in a process of its own, in turn, round after round.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use tamarack_bench::{Comparison, Machine, Outcome, Report, Row};
use tempfile::TempDir;

use crate::process;
use crate::stores::Peer;
use crate::summary;
use crate::work::Work;

/// Under which conditions stores are tried.
#[derive(Debug, Clone, Args)]
pub struct Conditions {
    /// End a store's run after so many seconds, with a row that says so: for stores that stand still, or nearly
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seconds_max: Option<u64>,

    /// Where databases are made, one at a time, and removed again
    #[arg(long, default_value = ".", value_name = "DIR")]
    directory: PathBuf,
}

/// Which stores do what, how often, and under which conditions.
pub struct Trial {
    pub stores: Vec<Peer>,
    /// Which of them comes first in the first round.
    pub first: usize,
    pub rounds: u32,
    pub conditions: Conditions,
    /// The arguments that say what is done; each store's process gets the same.
    pub arguments: Vec<String>,
    /// The same, understood.
    pub work: Work,
}

/// What a store came to in a round.
pub struct Run {
    pub store: Peer,
    /// The report of each workload, up to the one that failed.
    pub reports: Vec<Report>,
    /// Why there are not all of them.
    pub failure: Option<String>,
}

impl Trial {
    /// One that does what `arguments` say.
    ///
    /// # Errors
    /// If they cannot be understood, or do not fit together.
    pub fn new(
        stores: Vec<Peer>,
        rounds: u32,
        conditions: Conditions,
        arguments: Vec<String>,
    ) -> Result<Self, clap::Error> {
        let work = Work::parse(&arguments)?;
        Ok(Self { stores, first: 0, rounds, conditions, arguments, work })
    }

    /// The command that makes this trial.
    pub fn command(&self) -> String {
        let stores: Vec<&str> = self.stores.iter().map(|store| store.name()).collect();
        let seconds = self.conditions.seconds_max.map(|seconds| format!(" --seconds-max {seconds}"));
        format!(
            "tamarack-bench-peers compare --stores {} --rounds {}{} -- {}",
            stores.join(","),
            self.rounds,
            seconds.unwrap_or_default(),
            self.arguments.join(" ")
        )
    }

    /// A comparison without rows that begins now.
    pub fn comparison(&self) -> Comparison {
        Comparison::new(Machine::of(&self.conditions.directory), self.command())
    }

    /// Makes it: adds the rows of each run to `comparison`, which is then given to `keep`, so that what there is outlives an
    /// interruption.
    ///
    /// # Errors
    /// If runs cannot be made at all, and those of `keep`. A store that fails is a run that says so.
    pub fn make(
        &self,
        comparison: &mut Comparison,
        keep: &mut dyn FnMut(&Comparison) -> Result<(), String>,
    ) -> Result<Vec<Run>, String> {
        let mut runs = Vec::new();
        for round in 0..self.rounds {
            for store in self.order(round) {
                let run = self.measure(store)?;
                eprintln!("round {} of {}: {}", round + 1, self.rounds, summary::brief(&run));
                comparison.rows.extend(self.rows(&run));
                runs.push(run);
                keep(comparison)?;
            }
        }
        Ok(runs)
    }

    /// The stores as they come in `round`. Who comes first changes, also from trial to trial: nobody has the quiet moments, or the warm device, to itself.
    fn order(&self, round: u32) -> Vec<Peer> {
        let mut stores = self.stores.clone();
        stores.rotate_left((self.first + round as usize) % self.stores.len());
        stores
    }

    fn measure(&self, store: Peer) -> Result<Run, String> {
        let Conditions { directory, seconds_max } = &self.conditions;
        let scratch = tempfile::Builder::new().prefix("bench-peers-").tempdir_in(directory);
        let scratch = scratch.map_err(|error| format!("{}: {error}", directory.display()))?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.arg("measure").args(["--store", store.name()]).arg("--db").arg(scratch.path());
        command.args(&self.arguments);
        let time_max = seconds_max.map(Duration::from_secs);
        let ended = process::run(command, time_max).map_err(|error| error.to_string())?;
        remove(scratch, directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let reports = ended.said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Run { store, reports, failure: ended.failure })
    }

    /// A row about a store.
    pub fn row(&self, store: Peer, outcome: Outcome) -> Row {
        let direct = if self.work.direct { ", direct reads" } else { "" };
        Row {
            store: store.name().to_owned(),
            version: store.version(),
            options: store.options().to_owned() + direct,
            outcome,
        }
    }

    fn rows(&self, run: &Run) -> impl Iterator<Item = Row> {
        let reports = run.reports.iter().map(|report| Outcome::Report(Box::new(report.clone())));
        let missing = run.failure.iter().map(|failure| Outcome::Missing(failure.clone()));
        reports.chain(missing).map(|outcome| self.row(run.store, outcome))
    }
}

/// Removes `scratch`, a directory in `directory`, and has the device told of it, so that the next run does not wait for that.
fn remove(scratch: TempDir, directory: &Path) -> io::Result<()> {
    scratch.close()?;
    Ok(rustix::fs::syncfs(File::open(directory)?)?)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// One round in which `stores` do what `arguments` say.
    pub fn trial(stores: Vec<Peer>, arguments: &str) -> Trial {
        let conditions = Conditions { seconds_max: None, directory: PathBuf::from(".") };
        let arguments = arguments.split_whitespace().map(str::to_owned).collect();
        Trial::new(stores, 1, conditions, arguments).expect("it can be understood")
    }

    #[test]
    fn everybody_comes_first_in_turn() {
        let stores = vec![Peer::Tamarack, Peer::Rocksdb, Peer::Fjall];
        let trial = Trial { first: 2, ..trial(stores, "fillseq") };
        assert_eq!(trial.order(0), [Peer::Fjall, Peer::Tamarack, Peer::Rocksdb]);
        assert_eq!(
            [1, 2, 3].map(|round| trial.order(round)[0]),
            [Peer::Tamarack, Peer::Rocksdb, Peer::Fjall]
        );
    }

    #[test]
    fn rows_tell_of_direct_reads() {
        let options = |arguments| {
            let trial = trial(vec![Peer::Tamarack], arguments);
            trial.row(Peer::Tamarack, Outcome::Missing(String::new())).options
        };
        assert_eq!(options("fillseq"), "as it comes");
        assert_eq!(options("fillseq --direct"), "as it comes, direct reads");
    }
}
