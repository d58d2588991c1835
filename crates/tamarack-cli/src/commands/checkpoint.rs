//! `checkpoint`: makes a copy of a database that shares its files as long as they do not change.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;

use crate::failure::{Outcome, Result};
use crate::open::Database;
use crate::output::{self, Output};
use crate::progress::{Progress, Unit};

/// Copy a database into a new directory, by hard links where the file system allows it
///
/// The copy is a database of its own: neither of the two ever changes the other. The database is flushed first.
#[derive(Debug, Args)]
pub struct Checkpoint {
    #[command(flatten)]
    database: Database,

    /// Directory of the copy, which must be empty or not there
    #[arg(value_name = "TARGET")]
    target: PathBuf,
}

impl Checkpoint {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let db = self.database.open_existing()?;
        let started = Instant::now();
        let progress = Progress::start("checkpoint", Unit::Items, None);
        let done = db.checkpoint(&self.target)?;
        drop(progress);
        let seconds = started.elapsed().as_secs_f64();
        Output::answer(|output| {
            if json {
                output.json(&json!({
                    "seconds": seconds, "linked_files": done.linked_files, "linked_bytes": done.linked_bytes,
                    "copied_files": done.copied_files, "copied_bytes": done.copied_bytes,
                }))
            } else {
                output.line(&format!(
                    "copied to {} in {}: {} shared ({}), {} copied ({})",
                    self.target.display(),
                    output::seconds(seconds),
                    output::plural(done.linked_files, "file"),
                    output::bytes(done.linked_bytes),
                    output::plural(done.copied_files, "file"),
                    output::bytes(done.copied_bytes)
                ))
            }
        })?;
        db.close()?;
        Ok(Outcome::Done)
    }
}
