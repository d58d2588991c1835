//! `load`: stores the records of a text file.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use tamarack::{Db, WriteBatch, WriteOptions};

use crate::failure::{Failure, Outcome, Result};
use crate::open::Database;
use crate::output::{self, Output};
use crate::progress::{Notices, Progress, Unit};
use crate::records::{Item, Record, TextArguments};

/// Store the records of a text file; makes the database if there is none
#[derive(Debug, Args)]
pub struct Load {
    #[command(flatten)]
    database: Database,

    /// File of records; `-` is standard input
    file: PathBuf,

    #[command(flatten)]
    text: TextArguments,

    /// Go on with an interrupted load: skip records at the beginning that are already stored
    #[arg(long)]
    resume: bool,

    /// Report lines that are not records and go on; exit status 1 if there were any
    #[arg(long)]
    skip_bad: bool,
}

/// What was done so far.
#[derive(Debug, Default)]
struct Counts {
    loaded: u64,
    loaded_bytes: u64,
    already_there: u64,
}

impl Load {
    /// A batch is written when it has this many bytes or operations: large enough that the cost of a write is
    /// spread, small enough that an interrupted load loses little.
    const BATCH_BYTES: usize = 1 << 20;
    const BATCH_OPERATIONS: usize = 4096;

    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let (source, length) = self.source()?;
        let db = self.database.open_or_create()?;
        let started = Instant::now();
        let progress = Progress::start("load", Unit::Bytes, length);
        let mut notices = Notices::new(json);
        let counts = self.load(&db, source, &progress, &mut notices)?;
        db.sync()?;
        drop(progress);
        let seconds = started.elapsed().as_secs_f64();
        let bad = notices.total();
        let bad_lines = notices.finish();
        Output::answer(|output| {
            if json {
                output.json(&json!({
                    "loaded": counts.loaded, "loaded_bytes": counts.loaded_bytes,
                    "already_there": counts.already_there, "bad": bad, "bad_lines": bad_lines, "seconds": seconds,
                }))
            } else {
                output.line(&counts.summary(bad, seconds))
            }
        })?;
        db.close()?;
        Ok(Outcome::positive_if(bad == 0))
    }

    /// The input and its length, if it has one.
    fn source(&self) -> Result<(Box<dyn Read>, Option<u64>)> {
        if self.file.as_os_str() == "-" {
            return Ok((Box::new(std::io::stdin()), None));
        }
        let file = File::open(&self.file).map_err(|error| Failure::io("open", &self.file, error))?;
        let metadata = file.metadata().map_err(|error| Failure::io("read", &self.file, error))?;
        let length = metadata.is_file().then_some(metadata.len());
        Ok((Box::new(file), length))
    }

    fn load(
        &self,
        db: &Db,
        source: Box<dyn Read>,
        progress: &Progress,
        notices: &mut Notices,
    ) -> Result<Counts> {
        let name = self.file.display().to_string();
        let mut reader = self.text.form(Some(&self.file)).reader(source, &name)?;
        let mut counts = Counts::default();
        let mut batch = WriteBatch::new();
        let mut skipping = self.resume;
        let mut offset = 0;
        while let Some(Item { offset: at, line, record }) = reader.read()? {
            progress.advance(at - offset);
            offset = at;
            let record = match record {
                Ok(record) => record,
                Err(reason) if self.skip_bad => {
                    notices.add(progress, format!("{name}:{line}: {reason}"));
                    continue;
                }
                Err(reason) => {
                    write(db, &mut batch)?;
                    return Err(Failure::Other(format!("{name}:{line}: {reason}")));
                }
            };
            skipping = skipping && is_stored(db, &record)?;
            if skipping {
                counts.already_there += 1;
                continue;
            }
            batch
                .put(&record.key, &record.value)
                .map_err(|error| error.context(&format!("{name}:{line}")))?;
            counts.loaded += 1;
            counts.loaded_bytes += (record.key.len() + record.value.len()) as u64;
            if batch.user_bytes() >= Self::BATCH_BYTES || batch.len() >= Self::BATCH_OPERATIONS {
                write(db, &mut batch)?;
                progress.note(|| output::plural(counts.loaded, "record"));
            }
        }
        write(db, &mut batch)?;
        Ok(counts)
    }
}

/// Whether loading `record` again would change nothing. Records that are stored with the value they have in
/// the file need not be loaded, as long as everything behind the first one that differs is: whatever an
/// interrupted load had done, the end is the same as that of an uninterrupted one.
fn is_stored(db: &Db, record: &Record) -> Result<bool> {
    Ok(db.get(&record.key)?.is_some_and(|value| value == record.value))
}

fn write(db: &Db, batch: &mut WriteBatch) -> Result<()> {
    if !batch.is_empty() {
        db.write(batch, &WriteOptions::default())?;
        batch.clear();
    }
    Ok(())
}

impl Counts {
    fn summary(&self, bad: u64, seconds: f64) -> String {
        let rate = self.loaded as f64 / seconds.max(f64::MIN_POSITIVE);
        let mut text = format!(
            "loaded {} ({}) in {}, {} per second",
            output::plural(self.loaded, "record"),
            output::bytes(self.loaded_bytes),
            output::seconds(seconds),
            output::count(rate as u64)
        );
        if self.already_there > 0 {
            text += &format!("; {} already there", output::count(self.already_there));
        }
        if bad > 0 {
            text += &format!("; {} skipped", output::plural(bad, "bad line"));
        }
        text
    }
}
