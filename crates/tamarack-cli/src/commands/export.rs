//! `export-dir`: gives a stored directory tree back.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;

use crate::failure::{Outcome, Result};
use crate::open::Database;
use crate::output::{self, Output};
use crate::progress::{Notices, Progress, Unit};
use crate::tree::layout::Layout;
use crate::tree::restore::{Restore, Restored};

/// Write a stored directory tree to disk, bit for bit
///
/// Keys that would leave the directory (absolute paths, `..` components, NUL bytes) are refused, symbolic
/// links are never followed, and files that are already there are kept unless they are equal or --overwrite
/// is given. What is left out is reported, with exit status 1.
#[derive(Debug, Args)]
pub struct ExportDir {
    #[command(flatten)]
    database: Database,

    /// Directory to write to; made if there is none
    directory: PathBuf,

    /// Take only keys that begin with this, and leave it out of the paths
    #[arg(long, default_value = "", value_name = "TEXT")]
    prefix: String,

    /// Replace files that are there with other content
    #[arg(long)]
    overwrite: bool,
}

impl ExportDir {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let layout = Layout::new(&self.prefix)?;
        let db = self.database.open_for_reading()?;
        let started = Instant::now();
        let progress = Progress::start("export", Unit::Bytes, None);
        let mut notices = Notices::new(json);
        let restored = Restore::run(&db, &layout, &self.directory, self.overwrite, &progress, &mut notices)?;
        drop(progress);
        let skipped = notices.total();
        let reasons = notices.finish();
        let seconds = started.elapsed().as_secs_f64();
        Output::answer(|output| {
            if json {
                output.json(&json!({
                    "files": restored.files, "bytes": restored.bytes, "symlinks": restored.symlinks,
                    "directories": restored.directories, "unchanged": restored.unchanged,
                    "skipped": skipped, "reasons": reasons, "seconds": seconds,
                }))
            } else {
                output.line(&summary(&restored, skipped, seconds))
            }
        })?;
        db.close()?;
        Ok(Outcome::positive_if(skipped == 0))
    }
}

fn summary(restored: &Restored, skipped: u64, seconds: f64) -> String {
    let mut text = format!(
        "wrote {} ({}) in {}",
        output::plural(restored.files, "file"),
        output::bytes(restored.bytes),
        output::seconds(seconds)
    );
    let others = [
        (restored.symlinks, "symbolic link", "made"),
        (restored.directories, "directory entry", "restored"),
        (restored.unchanged, "entry", "already there"),
        (skipped, "thing", "left out"),
    ];
    for (number, noun, what) in others {
        if number > 0 {
            text += &format!("; {} {what}", output::plural(number, noun));
        }
    }
    text
}
