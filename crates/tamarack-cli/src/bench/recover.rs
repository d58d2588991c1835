//! `recover`: how long it takes to open a database whose writer was killed before it flushed anything.
//!
//! The writer is a process of its own, started from this program: it writes every key once, says so on standard
//! output when all are acknowledged, and then waits to be killed with SIGKILL. Its memtable and its log limit are
//! so large that the log alone holds the data; the report is refused if that was not so.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use clap::Args;
use tamarack::{Db, Options};

use tamarack_bench::{Bed, Peak, Plan, Recovery, Report, Resources, Tamarack, Workload};

use super::limits;

use crate::failure::{Failure, Outcome, Result};

/// SIGKILL's number, the same on every Unix.
const SIGKILL: i32 = 9;

/// What the writer says when everything is acknowledged.
const ALL_WRITTEN: &str = "written\n";

/// More than the memtable and the log need for an entry beside its key and value.
const ENTRY_OVERHEAD_BYTES: u64 = 512;

/// The range of `memtable_bytes` that is used.
const MEMTABLE_BYTES: (u64, u64) = (32 << 20, 8 << 30);

/// Write every key once and wait (used by `bench recover`)
#[derive(Debug, Args)]
pub struct BenchChild {
    #[command(flatten)]
    plan: Plan,

    path: PathBuf,
}

impl BenchChild {
    /// Runs the command.
    pub fn run(self) -> Result<Outcome> {
        let options = options(&self.plan);
        let limits = limits(&options);
        let db = Db::open(&self.path, options)?;
        let mut bed = Bed::new(Tamarack(db), &self.path, &self.plan, &[Workload::Recover], limits);
        bed.operate(Workload::Recover, &|_| ())?;
        let mut output = std::io::stdout().lock();
        output.write_all(ALL_WRITTEN.as_bytes()).and_then(|()| output.flush()).map_err(Failure::output)?;
        // The parent keeps our standard input open: this waits for the kill, with the database still open.
        let mut end = Vec::new();
        std::io::stdin()
            .read_to_end(&mut end)
            .map_err(|source| Failure::Io { action: "wait on standard input".into(), source })?;
        Ok(Outcome::Done)
    }
}

/// The options under which nothing is flushed.
pub(super) fn options(plan: &Plan) -> Options {
    let entry = |value_bytes: u64| u64::from(plan.key_size) + value_bytes + ENTRY_OVERHEAD_BYTES;
    let defaults = Options::default();
    let largest = plan.value_size.largest();
    let inline = largest.min(defaults.inline_value_max) as u64;
    let memtable_bytes = plan.num.saturating_mul(entry(inline)).clamp(MEMTABLE_BYTES.0, MEMTABLE_BYTES.1);
    // A memtable may stand for a quarter of the log.
    let log_bytes = plan.num.saturating_mul(entry(largest as u64)).saturating_mul(4);
    Options {
        memtable_bytes: memtable_bytes as usize,
        recovery_log_max: log_bytes.max(defaults.recovery_log_max),
        ..defaults
    }
}

/// Has a database written at `path` by a process that is killed, and opens it with `options`.
pub(super) fn run(path: &Path, plan: &Plan, options: Options) -> Result<Report> {
    write_and_kill(path, plan)?;
    let limits = limits(&options);
    let before = Resources::now();
    let ((db, open), peak) = Peak::during(path, || {
        let started = Instant::now();
        let db = Db::open(path, Options { create_if_missing: false, ..options });
        (db, started.elapsed())
    });
    let db = db?;
    let found = db.recovery();
    let recovery = Recovery {
        recovered_bytes: found.log_bytes,
        recovered_operations: found.operations,
        open_seconds: open.as_secs_f64(),
        rewritten_bytes: found.rewritten_bytes,
    };
    let plan = Plan { verify: true, ..plan.clone() };
    let mut bed = Bed::new(Tamarack(db), path, &plan, &[Workload::Recover], limits);
    bed.assume_filled();
    let report = bed.report_recovery(&before, open, peak, recovery)?;
    bed.into_store().0.close()?;
    Ok(report)
}

fn write_and_kill(path: &Path, plan: &Plan) -> Result<()> {
    let program = std::env::current_exe().map_err(failed("find this program"))?;
    let mut child = Command::new(program)
        .arg("bench-child")
        .args(arguments(plan))
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed("start a child process"))?;
    let heard = wait_until_written(&mut child);
    // It may be gone already; the status below tells.
    child.kill().ok();
    let status = child.wait().map_err(failed("wait for the child process"))?;
    if heard? && status.signal() == Some(SIGKILL) {
        return Ok(());
    }
    Err(Failure::Other(format!("the writer ended by itself: {status}")))
}

fn wait_until_written(child: &mut Child) -> Result<bool> {
    let mut output = BufReader::new(child.stdout.take().expect("the child's output is piped"));
    let mut line = String::new();
    output.read_line(&mut line).map_err(failed("talk to the child process"))?;
    Ok(line == ALL_WRITTEN)
}

fn failed(action: &str) -> impl FnOnce(std::io::Error) -> Failure {
    let action = action.to_owned();
    move |source| Failure::Io { action, source }
}

/// The arguments that give the writer the same plan.
fn arguments(plan: &Plan) -> Vec<String> {
    let mut arguments = vec![
        format!("--num={}", plan.num),
        format!("--value-size={}", plan.value_size),
        format!("--key-size={}", plan.key_size),
        format!("--threads={}", plan.threads),
        format!("--batch-size={}", plan.batch_size),
        format!("--seed={}", plan.seed),
    ];
    if let Some(writes) = plan.writes_per_sync() {
        arguments.push(format!("--sync-every={writes}"));
    }
    arguments
}
