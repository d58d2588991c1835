//! The steps of the demonstration that work on the first database. Each verifies what it claims.

use std::path::Path;
use std::time::Instant;

use serde_json::json;
use tamarack::{CheckLevel, Db, Iter, IterOptions, ReadOptions, Snapshot, WriteBatch, WriteOptions};

use super::Shown;
use crate::failure::{Failure, Result};
use crate::format::Encoding;
use crate::output;
use crate::progress::{Progress, Unit};
use crate::tree::collect::{Entry, Tree};
use crate::tree::layout::Layout;
use crate::tree::store::Store;
use tamarack_bench::{Resources, Spent, disk_bytes};

/// The database and the tree it holds.
pub struct Stage<'a> {
    pub db: &'a Db,
    pub path: &'a Path,
    pub tree: &'a Tree,
}

/// What a walk over the database met.
#[derive(Debug, Default, PartialEq, Eq)]
struct Walked {
    entries: u64,
    bytes: u64,
}

impl Stage<'_> {
    /// Stores the tree; measures until everything is on the device and background work has ended.
    pub fn import(&self) -> Result<Shown> {
        let progress = Progress::start("import", Unit::Bytes, Some(self.tree.bytes));
        let before = Resources::now();
        let started = Instant::now();
        let store = Store { db: self.db, layout: &Layout::default(), resume: false, progress: &progress };
        let stored = store.run(self.tree)?;
        let seconds = started.elapsed().as_secs_f64();
        self.db.sync()?;
        self.db.wait_idle()?;
        let spent = before.spent();
        let disk = disk_bytes(self.path);
        let mut text = format!(
            "{} in {}: {} files/s, {}/s\n{}, {} on disk",
            output::plural(stored.files, "file"),
            output::seconds(seconds),
            rate(stored.files, seconds),
            output::bytes(per_second(stored.bytes, seconds)),
            written(&spent, stored.bytes),
            output::bytes(disk)
        );
        if !stored.skipped.is_empty() {
            text += &format!("\n{} left out", output::plural(stored.skipped.len() as u64, "file"));
        }
        let figures = json!({
            "files": stored.files, "bytes": stored.bytes, "seconds": seconds,
            "settled_seconds": spent.seconds, "device_write_bytes": spent.device_write_bytes,
            "cpu_seconds": spent.cpu_seconds, "disk_bytes": disk, "skipped": stored.skipped.len(),
        });
        Ok(Shown { name: "import", field: "import", text, figures })
    }

    /// Reads every value and compares it with its file.
    pub fn read_back(&self) -> Result<Shown> {
        let progress = Progress::start("read back", Unit::Bytes, Some(self.tree.bytes));
        let mut value = Vec::new();
        let (mut values, mut bytes, mut seconds) = (0u64, 0u64, 0.0);
        for file in self.files() {
            let started = Instant::now();
            let found = self.db.get_into(&file.path, &mut value, &ReadOptions::default())?;
            seconds += started.elapsed().as_secs_f64();
            must_equal_file(file, found.then_some(&value), "after the import")?;
            values += 1;
            bytes += value.len() as u64;
            progress.advance(value.len() as u64);
        }
        let text = format!(
            "{} read and equal to their files: {} gets/s, {}/s",
            output::plural(values, "value"),
            rate(values, seconds),
            output::bytes(per_second(bytes, seconds))
        );
        let figures = json!({ "values": values, "bytes": bytes, "seconds": seconds });
        Ok(Shown { name: "read back", field: "read_back", text, figures })
    }

    /// Walks over everything in both directions.
    pub fn scan(&self) -> Result<Shown> {
        let started = Instant::now();
        let forwards = self.walk(false)?;
        let forwards_seconds = started.elapsed().as_secs_f64();
        let started = Instant::now();
        let backwards = self.walk(true)?;
        let backwards_seconds = started.elapsed().as_secs_f64();
        if forwards != backwards {
            return Err(Failure::Mismatch(format!("forwards {forwards:?}, but backwards {backwards:?}")));
        }
        let text = format!(
            "{} in strict order: forwards {}/s, backwards {}/s",
            output::plural(forwards.entries, "entry"),
            output::bytes(per_second(forwards.bytes, forwards_seconds)),
            output::bytes(per_second(backwards.bytes, backwards_seconds))
        );
        let figures = json!({
            "entries": forwards.entries, "bytes": forwards.bytes, "forwards_seconds": forwards_seconds,
            "backwards_seconds": backwards_seconds,
        });
        Ok(Shown { name: "scan", field: "scan", text, figures })
    }

    /// Deletes a third of the keys while a snapshot is held.
    pub fn snapshot(&self) -> Result<Shown> {
        let snapshot = self.db.snapshot();
        let started = Instant::now();
        let deleted = self.delete_every_third()?;
        let seconds = started.elapsed().as_secs_f64();
        for (index, file) in self.files().enumerate() {
            let seen = self.get_at(&snapshot, file)?;
            must_equal_file(file, seen.as_ref(), "under the snapshot")?;
            if self.db.contains(&file.path)? == is_deleted(index) {
                let state = if is_deleted(index) { "was deleted and is there" } else { "is gone" };
                return Err(Failure::Mismatch(format!("{} {state}", Encoding::Utf8.line(&file.path))));
            }
        }
        let text = format!(
            "{} deleted in {}; the snapshot still sees them all, the present none",
            output::plural(deleted, "key"),
            output::seconds(seconds)
        );
        Ok(Shown {
            name: "snapshot",
            field: "snapshot",
            text,
            figures: json!({ "deleted": deleted, "seconds": seconds }),
        })
    }

    /// Compacts everything, so that what was deleted gives its space back.
    pub fn compact(&self) -> Result<Shown> {
        let disk_before = disk_bytes(self.path);
        let before = Resources::now();
        self.db.compact_range(None, None)?;
        self.db.wait_idle()?;
        let spent = before.spent();
        let disk_after = disk_bytes(self.path);
        let text = format!(
            "{} on disk before, {} after, in {}",
            output::bytes(disk_before),
            output::bytes(disk_after),
            output::seconds(spent.seconds)
        );
        let figures = json!({
            "disk_bytes_before": disk_before, "disk_bytes_after": disk_after, "seconds": spent.seconds,
            "device_write_bytes": spent.device_write_bytes,
        });
        Ok(Shown { name: "compact", field: "compact", text, figures })
    }

    /// Lets the engine check every byte it has.
    pub fn check(&self) -> Result<Shown> {
        let started = Instant::now();
        let report = self.db.check(CheckLevel::Values);
        let seconds = started.elapsed().as_secs_f64();
        if let Some(problem) = report.problems.first() {
            return Err(Failure::Engine(problem.clone()));
        }
        let text = format!(
            "{}, {} checked down to every value, in {}: no problems",
            output::plural(report.tables, "table"),
            output::plural(report.segments, "segment"),
            output::seconds(seconds)
        );
        let figures = json!({
            "tables": report.tables, "segments": report.segments, "entries": report.entries,
            "records": report.records, "seconds": seconds,
        });
        Ok(Shown { name: "check", field: "check", text, figures })
    }

    fn files(&self) -> impl Iterator<Item = &Entry> {
        self.tree.entries.iter().filter(|entry| entry.file_bytes.is_some())
    }

    fn walk(&self, backwards: bool) -> Result<Walked> {
        let mut iter = self.db.iter(&IterOptions::default())?;
        let step = if backwards { Iter::prev } else { Iter::next };
        if backwards {
            iter.seek_to_last()?;
        } else {
            iter.seek_to_first()?;
        }
        let mut walked = Walked::default();
        let mut last: Option<Vec<u8>> = None;
        while iter.valid() {
            let key = iter.key().to_vec();
            let in_order = last.is_none_or(|last| if backwards { key < last } else { key > last });
            if !in_order {
                return Err(Failure::Mismatch(format!("{} is out of order", Encoding::Utf8.line(&key))));
            }
            walked.entries += 1;
            walked.bytes += (key.len() + iter.value()?.len()) as u64;
            last = Some(key);
            step(&mut iter)?;
        }
        Ok(walked)
    }

    fn delete_every_third(&self) -> Result<u64> {
        let mut batch = WriteBatch::new();
        let mut deleted = 0;
        for (_, file) in self.files().enumerate().filter(|(index, _)| is_deleted(*index)) {
            batch.delete(&file.path)?;
            deleted += 1;
            if batch.len() == 1000 {
                self.db.write(&batch, &WriteOptions::default())?;
                batch.clear();
            }
        }
        self.db.write(&batch, &WriteOptions::default())?;
        Ok(deleted)
    }

    fn get_at(&self, snapshot: &Snapshot, file: &Entry) -> Result<Option<Vec<u8>>> {
        let options = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
        Ok(self.db.get_with(&file.path, &options)?)
    }
}

fn is_deleted(index: usize) -> bool {
    index.is_multiple_of(3)
}

/// Fails unless `value` is what is in the file.
pub fn must_equal_file(file: &Entry, value: Option<&Vec<u8>>, when: &str) -> Result<()> {
    let name = || Encoding::Utf8.line(&file.path);
    let Some(value) = value else {
        return Err(Failure::Mismatch(format!("{} is missing {when}", name())));
    };
    let bytes = std::fs::read(&file.source).map_err(|error| Failure::io("read", &file.source, error))?;
    if *value != bytes {
        return Err(Failure::Mismatch(format!("{} has other bytes than its file {when}", name())));
    }
    Ok(())
}

fn per_second(amount: u64, seconds: f64) -> u64 {
    (amount as f64 / seconds.max(1e-9)) as u64
}

fn rate(number: u64, seconds: f64) -> String {
    output::count(per_second(number, seconds))
}

/// Bytes on their way to the device, beside those the user gave.
fn written(spent: &Spent, user_bytes: u64) -> String {
    match spent.device_write_bytes {
        Some(bytes) => format!(
            "{} to the device, write amplification {}",
            output::bytes(bytes),
            output::ratio(bytes, user_bytes)
        ),
        None => "device bytes unknown here".into(),
    }
}
