//! `repair`: makes a damaged database one that can be opened, and says what could not be saved.

use std::io::IsTerminal;
use std::time::Instant;

use clap::Args;
use serde_json::{Map, Value, json};
use tamarack::{Db, Loss, LostRange, Options, RepairOptions, RepairReport, RepairedManifest};

use crate::failure::{Outcome, Result, tell};
use crate::format::Encodings;
use crate::open::Database;
use crate::output::{self, Output};

/// Save what is whole of a damaged database; exit status 1 if keys are lost, or may be older than they were
///
/// Afterwards the database can be opened, and keys that are not named have the values that were last written. A value
/// that is lost reads as absent, never as an older one; where older values or deleted keys may have come back, their range
/// is named. Nothing is removed: what is not used any more is in the directory `lost` of the database, with
/// the report. A repair that is interrupted can be done again; that of a whole database changes nothing.
#[derive(Debug, Args)]
pub struct Repair {
    #[command(flatten)]
    database: Database,

    /// Only say what would be done; takes as long, and the space of a new index meanwhile
    #[arg(long)]
    dry_run: bool,

    /// Values up to so many bytes may be in tables, beside their keys: as many as the options of any program had that has written here
    /// [default: 512, as in all programs that do not choose]
    #[arg(long, value_name = "BYTES")]
    inline_value_max: Option<usize>,

    #[command(flatten)]
    encodings: Encodings,
}

impl Repair {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        self.database.must_exist()?;
        let started = Instant::now();
        let progress: fn(&str) = |what| tell(&format!("repair: {what}"));
        let shown = !json && std::io::stderr().is_terminal();
        let how = RepairOptions { dry_run: self.dry_run, progress: shown.then_some(progress) };
        let mut options = Options::default();
        if let Some(bytes) = self.inline_value_max {
            options.inline_value_max = bytes;
        }
        let report = Db::repair_with(&self.database.path, &options, how)?;
        let seconds = started.elapsed().as_secs_f64();
        Output::answer(|output| {
            if json {
                return output.json(&to_json(&report, &self.encodings, seconds));
            }
            let would = if report.dry_run && report.changed { "; nothing was changed" } else { "" };
            output.line(&format!("{report}done in {}{would}", output::seconds(seconds)))
        })?;
        Ok(Outcome::positive_if(report.lost.is_empty()))
    }
}

fn to_json(report: &RepairReport, encodings: &Encodings, seconds: f64) -> Value {
    let damage: Vec<Value> = report
        .damage
        .iter()
        .map(|error| match error.as_corruption() {
            Some(place) => json!({
                "file": place.file.display().to_string(), "offset": place.offset,
                "expected": place.expected, "found": place.found,
            }),
            None => json!({ "message": error.message() }),
        })
        .collect();
    let lost: Vec<Value> = report.lost.iter().map(|range| lost_to_json(range, encodings)).collect();
    json!({
        "changed": report.changed, "dry_run": report.dry_run,
        "manifest": if report.manifest == RepairedManifest::Whole { "whole" } else { "lost" },
        "tables": report.tables, "damaged_tables": report.damaged_tables,
        "segments": report.segments, "damaged_segments": report.damaged_segments,
        "index_rebuilt": report.index_rebuilt, "keys": report.keys,
        "copied_records": report.copied_records, "copied_bytes": report.copied_bytes,
        "log_operations": report.log_operations,
        "damage": damage, "lost": lost, "moved": report.moved, "seconds": seconds,
    })
}

fn lost_to_json(range: &LostRange, encodings: &Encodings) -> Value {
    let mut object = Map::new();
    for (name, key) in [("first", &range.first), ("last", &range.last)] {
        match key {
            Some(key) => encodings.key.insert_json(&mut object, name, key),
            None => drop(object.insert(name.to_owned(), Value::Null)),
        }
    }
    let loss = if range.loss == Loss::Lost { "lost" } else { "may-be-older" };
    object.insert("loss".to_owned(), json!(loss));
    object.insert("operations".to_owned(), json!(range.operations));
    object.insert("reason".to_owned(), json!(range.reason));
    Value::Object(object)
}
