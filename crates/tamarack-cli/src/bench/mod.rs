//! `bench`: measures the engine with the classic workloads of embedded stores, on synthetic keys and values.
//!
//! The command prepares a database, has `tamarack-bench` run the workloads in the order given, and prints one report
//! each.

pub mod page;
mod record;
pub mod recover;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum, value_parser};
use tamarack::{Db, GcPolicy, Options};
use tamarack_bench::{Bed, Limits, Memory, Plan, Tamarack, Workload};

use self::record::{Files, Record};
use self::table::{print_heading, print_row};
use crate::failure::{Failure, Outcome, Result};
use crate::open;
use crate::output::Output;
use crate::progress::{Progress, Unit};
use crate::scratch::Scratch;

/// Measure workloads
///
/// fillseq and fillrandom write each of the keys 0..NUM once, in order or in a random order; overwrite, deleterandom and
/// the random reads draw keys with repetitions, uniformly unless --distribution says otherwise (where it is `latest`, a fill
/// must come first); multireadrandom reads --keys-per-read of them at once; readmissing asks for keys that are not there but lie between those that are; seekrandom
/// goes to a key and reads --entries-per-seek entries from there on; readwhilewriting reads while one more thread overwrites
/// (`written_meanwhile`); readseq and readreverse walk in key order; fillsync writes NUM/1000 keys (at least 100) in random
/// order and syncs each; fill100k writes as many with values of 100,000 bytes. Keys are zero-padded decimal numbers, values
/// cannot be compressed. One object per workload and line with --json.
///
/// ycsbload writes NUM records, scattered over the keys, for the core workloads of YCSB, ycsba to ycsbf, which may insert as
/// many again; their operations are counted as one each, scans and read-modify-writes too.
///
/// deletehalf deletes each of a random half of the keys once, and then only watches the directory, without a call to the
/// database, until it is below the bound (--max-space-amplification times the live bytes, and the slack: `bound_bytes`,
/// `below_bound_seconds`), and has come to rest (`rest_seconds`, `rest_disk_bytes`, `rest_space_amplification`), for two
/// minutes at most.
///
/// fillbesidegarbage and fillwhilecollecting are Figure 13 of the WiscKey paper. Each must come first: it writes NUM keys, deletes
/// --dead-percent of them at random, compacts and settles; what is measured is writing NUM other keys in random order after that, with
/// fillwhilecollecting while a thread does nothing but collect garbage (`collected_files`, `copied_bytes`, `freed_bytes`). Nothing
/// else collects, unless --gc is given.
///
/// recover stands alone. Another process writes each key once, in a random order, with a memtable so large that
/// everything stays in the log alone; when all of them are acknowledged it is killed with SIGKILL. What is
/// measured is opening the database after that (`open_seconds`, with `recovered_bytes`, `recovered_operations`,
/// `rewritten_bytes`, and the `memory_bytes_peak` of the opening alone); then every value must be there. It is opened with --memtable-mib if that is given, else
/// with the memtable of the writer.
///
/// `seconds` and the latencies cover the workload itself. Bytes and processor time come from the operating
/// system and are taken after a final sync, when background work has settled (`settled_seconds`); `cpu_utilization` (cpu %) is
/// processor time by that time. `disk_bytes` and `disk_bytes_peak` count allocated blocks, the latter every 50 ms until then, when
/// also memory is looked at that belongs to no file (`memory_bytes_peak`, with some bytes per key that measuring takes);
/// `log_bytes_written` and its like are the engine's own figures: what sorting values has written, and what of the index
/// therefore, stands below a row. With --json, `latency_histogram` has all latencies, as pairs of nanoseconds and operations, and
/// `throughput` the operations of each `interval_seconds`.
///
/// --html writes all of that as a page with tables and plots, --save as JSON; bench-page makes one page of the JSON of several
/// runs.
#[derive(Debug, Args)]
pub struct Bench {
    /// Workloads, run in this order on the same database
    #[arg(required = true, value_enum, value_name = "WORKLOAD")]
    workloads: Vec<Workload>,

    #[command(flatten)]
    plan: Plan,

    /// Directory of the database, which is kept; workloads that begin with a fill need it to be new
    /// [default: a temporary directory in the current one]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,

    /// Destroy a database that is already in --db and begin anew
    #[arg(long, requires = "db")]
    overwrite_db: bool,

    /// Keep the temporary directory
    #[arg(long, conflicts_with = "db")]
    keep: bool,

    /// Budget of the store for all the memory that it takes, in MiB
    #[arg(long, value_name = "MIB", value_parser = mib())]
    memory_budget_mib: Option<u64>,

    /// Memory for cached blocks, in MiB
    #[arg(long, value_name = "MIB", value_parser = mib())]
    block_cache_mib: Option<u64>,

    /// Memory for values that are read again and again, in MiB
    #[arg(long, value_name = "MIB", value_parser = mib())]
    row_cache_mib: Option<u64>,

    /// Read values past the kernel's cache of files
    #[arg(long)]
    direct: bool,

    /// Size of a memtable, in MiB
    #[arg(long, value_name = "MIB", value_parser = mib())]
    memtable_mib: Option<u64>,

    /// Values up to so many bytes are kept in the tables, beside their keys
    #[arg(long, value_name = "BYTES")]
    inline_value_max: Option<usize>,

    /// Bytes on disk for each live byte that garbage collection keeps to
    #[arg(long, value_name = "RATIO")]
    max_space_amplification: Option<f64>,

    /// Which segments garbage collection takes [default: cost-benefit; off beside garbage that a workload has made]
    #[arg(long, value_enum, value_name = "POLICY")]
    gc: Option<Collection>,

    /// Sorted runs of values over one key beyond which values are sorted while nothing is written, such as during
    /// --idle-seconds; 0 leaves them as they are
    #[arg(long, value_name = "RUNS")]
    value_runs_max: Option<u32>,

    #[command(flatten)]
    memory: Memory,

    #[command(flatten)]
    files: Files,
}

/// A policy of garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Collection {
    /// Those whose dead bytes are most worth the copying
    CostBenefit,
    /// The oldest
    Tail,
    /// None, unless they are wholly dead
    Off,
}

/// The slack that [`Options::max_space_amplification`] comes with, in full segments.
const SLACK_SEGMENTS: u64 = 16;

/// What is given in MiB: a size that a machine may have.
fn mib() -> RangedU64ValueParser {
    value_parser!(u64).range(0..1 << 30)
}

fn bytes(mib: u64) -> usize {
    (mib << 20) as usize
}

/// What a database with `options` keeps its space to.
fn limits(options: &Options) -> Limits {
    Limits { ratio: options.max_space_amplification, slack: SLACK_SEGMENTS * options.segment_bytes_max }
}

impl Bench {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        self.plan.check(&self.workloads).map_err(Failure::Usage)?;
        let options = self.options();
        options.check()?;
        let scratch = match &self.db {
            Some(_) => None,
            None => Some(Scratch::new(Path::new("."), "tamarack-bench", self.keep)?),
        };
        let path = match (&self.db, &scratch) {
            (Some(path), _) => path.as_path(),
            (None, scratch) => scratch.as_ref().expect("without --db there is a scratch directory").path(),
        };
        let reused = self.is_reused(path)?;
        // The limit holds until the run is over.
        let _limit = self.memory.limit(path).map_err(Failure::Other)?;
        let mut record = Record::new(&self.files, path, &options)?;
        // Nothing is destroyed before all that was asked for can be done.
        if self.overwrite_db {
            Db::destroy(path)?;
        }
        let result = if self.workloads.contains(&Workload::Recover) {
            self.recover(path, options, json, &mut record)
        } else {
            self.run_workloads(path, options, reused, json, &mut record)
        };
        let written = record.finish(&result);
        // If both have failed, the run is what was asked for.
        result.and_then(|outcome| written.map(|()| outcome))
    }

    fn run_workloads(
        &self,
        path: &Path,
        options: Options,
        reused: bool,
        json: bool,
        record: &mut Record<'_>,
    ) -> Result<Outcome> {
        let limits = limits(&options);
        // What is reused is a database, and not some directory.
        let db = Db::open(path, Options { create_if_missing: !reused, ..options.clone() })?;
        let mut bed = Bed::new(Tamarack(db), path, &self.plan, &self.workloads, limits);
        if reused {
            bed.find_existing()?;
        }
        let mut output = Output::new();
        if !json {
            print_heading(&mut output)?;
        }
        for workload in &self.workloads {
            bed = bed.cooled(|Tamarack(db)| {
                db.close()?;
                Db::open(path, options.clone()).map(Tamarack)
            })?;
            let progress = self.progress(*workload);
            let report = bed.run(*workload, &|operations| progress.advance(operations))?;
            drop(progress);
            if json {
                output.json(&report)?;
            } else {
                print_row(&report, &mut output)?;
            }
            output.flush()?;
            record.add(report);
        }
        output.finish()?;
        bed.into_store().0.close()?;
        Ok(Outcome::Done)
    }

    fn progress(&self, workload: Workload) -> Progress {
        match workload.seconds(&self.plan) {
            Some(seconds) => Progress::start_for(workload.name(), Duration::from_secs(seconds)),
            None => Progress::start(workload.name(), Unit::Items, Some(workload.operations(&self.plan))),
        }
    }

    fn recover(&self, path: &Path, options: Options, json: bool, record: &mut Record<'_>) -> Result<Outcome> {
        let report = recover::run(path, &self.plan, options)?;
        let mut output = Output::new();
        if json {
            output.json(&report)?;
        } else {
            print_heading(&mut output)?;
            print_row(&report, &mut output)?;
        }
        output.finish()?;
        record.add(report);
        Ok(Outcome::Done)
    }

    fn options(&self) -> Options {
        let memory_max = self.memory_budget_mib.map(|mib| mib << 20);
        let mut options = Options { memory_max, direct_reads: self.direct, ..Options::default() };
        if self.workloads.contains(&Workload::Recover) {
            // As the writer has them, which flushes nothing.
            let Options { memtable_bytes, recovery_log_max, .. } = recover::options(&self.plan);
            options = Options { memtable_bytes, recovery_log_max, ..options };
        }
        if let Some(mib) = self.block_cache_mib {
            options.block_cache_bytes = bytes(mib);
        }
        if let Some(mib) = self.row_cache_mib {
            options.row_cache_bytes = bytes(mib);
        }
        if let Some(mib) = self.memtable_mib {
            options.memtable_bytes = bytes(mib);
        }
        if let Some(bytes) = self.inline_value_max {
            options.inline_value_max = bytes;
        }
        if let Some(ratio) = self.max_space_amplification {
            options.max_space_amplification = ratio;
        }
        if let Some(runs) = self.value_runs_max {
            options.value_runs_max = runs;
        }
        let beside_garbage = self.workloads.iter().any(|workload| workload.is_beside_garbage());
        if let Some(collection) = self.gc.or(beside_garbage.then_some(Collection::Off)) {
            options.gc = match collection {
                Collection::CostBenefit => GcPolicy::CostBenefit,
                Collection::Tail => GcPolicy::Tail,
                Collection::Off => GcPolicy::Off,
            };
        }
        options
    }

    /// Whether a database is used that is already there; refuses workloads that want another.
    fn is_reused(&self, path: &Path) -> Result<bool> {
        let fills = self.workloads.iter().any(|workload| workload.is_fill());
        let exists = !self.overwrite_db && open::exists(path)?;
        if exists && fills {
            return Err(Failure::Usage(format!(
                "{} exists: fills need a new database (--overwrite-db destroys the old one)",
                path.display()
            )));
        }
        if !exists && !self.workloads[0].is_fill() {
            let first = self.workloads[0];
            let fill = if first.works_on_records() { "ycsbload" } else { "fillseq or fillrandom" };
            let existing =
                if self.overwrite_db { "leave --overwrite-db out" } else { "give an existing --db" };
            return Err(Failure::Usage(format!(
                "{} has nothing to work on: begin with {fill}, or {existing}",
                first.name()
            )));
        }
        Ok(exists)
    }
}
