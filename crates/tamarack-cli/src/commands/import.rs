//! `import-dir`: stores a directory tree.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;

use crate::failure::{Outcome, Result};
use crate::open::Database;
use crate::output::{self, Output};
use crate::progress::{Notices, Progress, Unit};
use crate::tree::collect::{Limit, collect};
use crate::tree::layout::Layout;
use crate::tree::store::{Store, Stored};

/// Store a directory tree: each file's path is a key, its bytes the value
///
/// Symbolic links, directories with nothing in them and permissions other than 0644 (files) and 0755
/// (directories) are kept under keys that begin with a NUL byte and `meta/`. Owners, times and extended
/// attributes are not kept. Files that have gone since an earlier import stay in the database.
#[derive(Debug, Args)]
pub struct ImportDir {
    #[command(flatten)]
    database: Database,

    /// Directory to store
    directory: PathBuf,

    /// Put this in front of every path, as it is (end it with `/` to make it a directory)
    #[arg(long, default_value = "", value_name = "TEXT")]
    prefix: String,

    /// Go on with an interrupted import: do not store again what is stored with equal bytes
    #[arg(long)]
    resume: bool,
}

impl ImportDir {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let layout = Layout::new(&self.prefix)?;
        let db = self.database.open_or_create()?;
        let started = Instant::now();
        let tree = collect(&self.directory, &self.database.path, Limit::NONE)?;
        let progress = Progress::start("import", Unit::Bytes, Some(tree.bytes));
        let stored =
            Store { db: &db, layout: &layout, resume: self.resume, progress: &progress }.run(&tree)?;
        db.sync()?;
        let mut notices = Notices::new(json);
        for text in &stored.skipped {
            notices.add(&progress, text.clone());
        }
        drop(progress);
        let skipped = notices.total();
        let reasons = notices.finish();
        let seconds = started.elapsed().as_secs_f64();
        Output::answer(|output| {
            if json {
                output.json(&json!({
                    "files": stored.files, "bytes": stored.bytes, "symlinks": stored.symlinks,
                    "directories": stored.directories, "unchanged": stored.unchanged,
                    "skipped": skipped, "reasons": reasons, "seconds": seconds,
                }))
            } else {
                output.line(&summary(&stored, skipped, seconds))
            }
        })?;
        db.close()?;
        Ok(Outcome::positive_if(skipped == 0))
    }
}

fn summary(stored: &Stored, skipped: u64, seconds: f64) -> String {
    let rate = stored.bytes as f64 / seconds.max(f64::MIN_POSITIVE);
    let mut text = format!(
        "stored {} ({}) in {}, {} per second",
        output::plural(stored.files, "file"),
        output::bytes(stored.bytes),
        output::seconds(seconds),
        output::bytes(rate as u64)
    );
    let others = [
        (stored.symlinks, "symbolic link", "stored"),
        (stored.directories, "directory entry", "stored"),
        (stored.unchanged, "entry", "already there"),
        (skipped, "thing", "left out"),
    ];
    for (number, noun, what) in others {
        if number > 0 {
            text += &format!("; {} {what}", output::plural(number, noun));
        }
    }
    text
}
