//! `measure`: one store in this process.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Args;
use tamarack_bench::{Bed, Failure, Limits, Report, Store, Workload};

use crate::stores::{Peer, Setting, Task};
use crate::work::Work;

/// What a store may take on disk while half of its keys are deleted: `deletehalf` says when it is below that.
pub const LIMITS: Limits = Limits { ratio: 1.3, slack: 512 << 20 };

/// Runs workloads on one store
#[derive(Debug, Args)]
pub struct Measure {
    /// The store
    #[arg(long, value_enum)]
    store: Peer,

    /// An empty directory for it
    #[arg(long, value_name = "DIR")]
    db: PathBuf,

    #[command(flatten)]
    work: Work,
}

impl Measure {
    /// Runs the command.
    pub fn run(self) -> Result<(), String> {
        self.work.plan.check(&self.work.workloads)?;
        let _limit = self.work.memory.limit(&self.db)?;
        measure(self.store, &self.db, &self.work, &mut |report| {
            println!("{}", serde_json::to_string(report).expect("reports are plain data"));
        })
    }
}

/// Does `work` on a new store in `path`, and gives each report to `tell`.
pub fn measure(store: Peer, path: &Path, work: &Work, tell: &mut dyn FnMut(&Report)) -> Result<(), String> {
    let Work { workloads, plan, cache_mib, direct, .. } = work;
    let setting = Setting { cache_bytes: cache_mib.map(|mib| mib << 20), direct: *direct };
    store.with(path, plan, workloads, setting, Measurement { store, path, work, tell })
}

/// All workloads, one after the other.
struct Measurement<'a> {
    store: Peer,
    path: &'a Path,
    work: &'a Work,
    tell: &'a mut dyn FnMut(&Report),
}

impl Task for Measurement<'_> {
    type Outcome = ();

    fn run<S: Store>(self, open: impl Fn() -> Result<S, String>) -> Result<(), String>
    where
        S::Error: Display,
    {
        let Work { workloads, plan, .. } = self.work;
        let mut bed = Bed::new(open()?, self.path, plan, workloads, LIMITS);
        for workload in workloads {
            bed = bed.cooled(|store| {
                // What is no store has nowhere but in memory where values are.
                if !self.store.is_store() {
                    return Ok(store);
                }
                drop(store);
                open()
            })?;
            let report = bed.run(*workload, &|_| ()).map_err(|failure| describe(*workload, failure))?;
            (self.tell)(&report);
        }
        Ok(())
    }
}

/// Why a workload could not be run, as a text.
pub fn describe<E: Display>(workload: Workload, failure: Failure<E>) -> String {
    let name = workload.name();
    match failure {
        Failure::Usage(text) => format!("{name}: {text}"),
        Failure::Mismatch(text) => format!("{name}: wrong data: {text}"),
        Failure::Store(error) => format!("{name}: {error}"),
        Failure::Io(error) => format!("{name}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::stores::NOT_BUILT;

    /// What `arguments` come to on a store; `None` if it was not built in.
    fn reports(store: Peer, arguments: &str) -> Option<Result<Vec<Report>, String>> {
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let work = Work::parse(&arguments).expect("it can be understood");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut reports = Vec::new();
        let measured = measure(store, directory.path(), &work, &mut |report| reports.push(report.clone()));
        if let Err(reason) = &measured
            && reason.starts_with(NOT_BUILT)
        {
            println!("{}: skipped: {reason}", store.name());
            return None;
        }
        Some(measured.map(|()| reports))
    }

    const READS: &str = "fillrandom overwrite readrandom multireadrandom --verify --num 3000 --threads 2";

    #[test]
    fn every_store_gives_back_what_was_written() {
        for &store in Peer::value_variants() {
            let walks = if store.is_store() { " readseq readreverse" } else { "" };
            let Some(reports) = reports(store, &format!("{READS}{walks}")) else { continue };
            for report in &reports.unwrap_or_else(|error| panic!("{}: {error}", store.name()))[2..] {
                let (name, workload) = (store.name(), &report.workload);
                assert_eq!((report.found, report.verified), (3000, 3000), "{name}: {workload}");
            }
        }
    }

    #[test]
    fn who_can_reads_past_the_cache_and_the_others_refuse() {
        let direct = [Peer::Tamarack, Peer::Rocksdb, Peer::Blobdb, Peer::Bare, Peer::Records, Peer::Device];
        for &store in Peer::value_variants() {
            let Some(reports) = reports(store, &format!("{READS} --direct")) else { continue };
            assert_eq!(reports.is_ok(), direct.contains(&store), "{}: {:?}", store.name(), reports.err());
        }
    }
}
