//! `check`: reads a database and reports everything that is not as it should be.

use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tamarack::{CheckLevel, CheckReport};

use crate::failure::{Outcome, Result};
use crate::open::Database;
use crate::output::{self, Output};
use crate::progress::{Progress, Unit};

/// How much to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Level {
    /// Files, sizes and the relations between them
    Structure,
    /// Also every block of every table, and the footer of every segment
    Checksums,
    /// Also what is alive: each pointer leads to a record, each record's header and key are right
    #[default]
    Liveness,
    /// Also every value in the log
    Values,
}

/// Check a database; exit status 1 if there are problems
#[derive(Debug, Args)]
pub struct Check {
    #[command(flatten)]
    database: Database,

    /// How much to read
    #[arg(long, value_enum, default_value_t)]
    level: Level,
}

impl Check {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let db = self.database.open_for_reading()?;
        let started = Instant::now();
        let progress = Progress::start("check", Unit::Items, None);
        let report = db.check(match self.level {
            Level::Structure => CheckLevel::Structure,
            Level::Checksums => CheckLevel::Checksums,
            Level::Liveness => CheckLevel::Liveness,
            Level::Values => CheckLevel::Values,
        });
        drop(progress);
        let seconds = started.elapsed().as_secs_f64();
        db.close()?;
        Output::answer(|output| {
            if json { output.json(&to_json(&report, seconds)) } else { print(output, &report, seconds) }
        })?;
        Ok(Outcome::positive_if(report.problems.is_empty()))
    }
}

fn to_json(report: &CheckReport, seconds: f64) -> Value {
    let problems: Vec<Value> = report
        .problems
        .iter()
        .map(|problem| match problem.as_corruption() {
            Some(corruption) => json!({
                "kind": problem.kind().to_string(), "message": problem.message(),
                "file": corruption.file.display().to_string(), "offset": corruption.offset,
                "expected": corruption.expected, "found": corruption.found,
            }),
            None => json!({ "kind": problem.kind().to_string(), "message": problem.message() }),
        })
        .collect();
    json!({
        "clean": report.problems.is_empty(), "tables": report.tables, "segments": report.segments,
        "entries": report.entries, "records": report.records, "bytes_read": report.bytes_read,
        "seconds": seconds, "problems": problems,
    })
}

fn print(output: &mut Output, report: &CheckReport, seconds: f64) -> Result<()> {
    output.line(&format!(
        "{}, {}, {}, {}; {} read in {}",
        output::plural(report.tables, "table"),
        output::plural(report.segments, "segment"),
        output::plural(report.entries, "index record"),
        output::plural(report.records, "log record"),
        output::bytes(report.bytes_read),
        output::seconds(seconds)
    ))?;
    for problem in &report.problems {
        output.line(&format!("problem: {problem}"))?;
    }
    match report.problems.len() as u64 {
        0 => output.line("no problems"),
        number => output.line(&output::plural(number, "problem")),
    }
}
