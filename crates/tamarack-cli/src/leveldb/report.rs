//! What an import says at its end, as text and as JSON.

use serde_json::{Map, Value, json};
use tamarack_leveldb::{Covers, Entries, Loss};

use super::digest::Content;
use crate::failure::Result;
use crate::format::Encoding;
use crate::output::{self, Output};

/// More losses than this on a terminal help nobody.
const PRINTED_MAX: usize = 20;

/// More than this in one JSON object help nobody either.
const KEPT_MAX: usize = 1000;

/// What losses mean for the entries that are there.
const HAZARD: &str = "what was lost may have been newer values, or deletions: where keys are concerned, an entry may be missing, \
                      older than it was, or back although it was deleted";

/// An import that has ended.
pub struct Report<'a> {
    /// What was read.
    pub entries: &'a Entries,
    /// What was written.
    pub content: Content,
    /// Whether it was read back and is equal.
    pub is_verified: bool,
    /// Entries that were too long.
    pub too_long: u64,
    /// What was said of them, for JSON.
    pub reasons: Vec<String>,
    /// How long it took.
    pub seconds: f64,
}

impl Report<'_> {
    /// Prints the report.
    pub fn print(&self, output: &mut Output, json: bool) -> Result<()> {
        if json {
            return output.json(&self.to_json());
        }
        for line in self.lines() {
            output.line(&line)?;
        }
        Ok(())
    }

    fn lines(&self) -> Vec<String> {
        let (counts, content) = (self.entries.counts(), self.content);
        let rate = content.entries as f64 / self.seconds.max(f64::MIN_POSITIVE);
        let mut lines = vec![format!(
            "imported {} ({}) from {} and {} in {}, {} per second",
            output::plural(content.entries, "entry"),
            output::bytes(content.key_bytes + content.value_bytes),
            output::plural(counts.tables, "table"),
            output::plural(counts.logs, "log"),
            output::seconds(self.seconds),
            output::count(rate as u64)
        )];
        lines.push(format!(
            "not imported, as they are not visible: {}, {}",
            output::plural(counts.older_versions, "older version"),
            output::plural(counts.deletions, "deleted key")
        ));
        let read_back = if self.is_verified { "read back and equal" } else { "not read back" };
        lines.push(format!("checksum {:016x} over all keys and values, {read_back}", content.checksum));
        if self.too_long > 0 {
            lines.push(format!("left out: {} that are too long", output::plural(self.too_long, "entry")));
        }
        lines.extend(self.entries.remarks().iter().map(|remark| format!("note: {remark}")));
        let losses = self.entries.losses();
        lines.extend(losses.iter().take(PRINTED_MAX).map(|loss| format!("lost: {}", describe(loss))));
        if losses.len() > PRINTED_MAX {
            let more = output::count((losses.len() - PRINTED_MAX) as u64);
            lines.push(format!("and {more} losses more, which --json lists"));
        }
        if !losses.is_empty() {
            let bytes = self.lost_bytes();
            let places = output::plural(losses.len() as u64, "place");
            lines.push(format!("lost in all: {} at {places}; {HAZARD}", output::bytes(bytes)));
        }
        lines
    }

    /// As many as files say that they have had.
    fn lost_bytes(&self) -> u64 {
        self.entries.losses().iter().fold(0, |sum, loss| sum.saturating_add(loss.bytes))
    }

    fn to_json(&self) -> Value {
        let (counts, content) = (self.entries.counts(), self.content);
        let losses = self.entries.losses();
        let remarks: Vec<String> = self.entries.remarks().iter().map(ToString::to_string).collect();
        json!({
            "entries": content.entries, "key_bytes": content.key_bytes, "value_bytes": content.value_bytes,
            "checksum": format!("{:016x}", content.checksum), "verified": self.is_verified,
            "tables": counts.tables, "logs": counts.logs, "log_operations": counts.log_operations,
            "older_versions": counts.older_versions, "deleted_keys": counts.deletions,
            "too_long": self.too_long, "reasons": self.reasons, "remarks": remarks,
            "losses": losses.iter().take(KEPT_MAX).map(to_json).collect::<Vec<_>>(),
            "losses_total": losses.len(), "lost_bytes": self.lost_bytes(),
            "seconds": self.seconds,
        })
    }
}

fn describe(loss: &Loss) -> String {
    let key = |key: &Option<Vec<u8>>, unknown: &str| match key {
        Some(key) => Encoding::Utf8.line(key),
        None => unknown.to_owned(),
    };
    let covers = match &loss.covers {
        Covers::Nothing => "what it led to was found without it".to_owned(),
        Covers::Keys { from: None, up_to: None } => "keys that nobody knows are concerned".to_owned(),
        Covers::Keys { from, up_to } => {
            format!("keys from {} to {} are concerned", key(from, "the first"), key(up_to, "the last"))
        }
        Covers::Operations => "operations on keys that nobody knows".to_owned(),
        Covers::Files => {
            "it says which files count: all were taken, also those that were out of use, so entries may be back that had been \
             deleted"
                .to_owned()
        }
        _ => "nobody knows what".to_owned(),
    };
    format!("{}; {} left out: {covers}", loss.damage, output::bytes(loss.bytes))
}

fn to_json(loss: &Loss) -> Value {
    let mut object = Map::new();
    object.insert("file".to_owned(), json!(loss.damage.file.display().to_string()));
    object.insert("offset".to_owned(), json!(loss.damage.offset));
    object.insert("expected".to_owned(), json!(loss.damage.expected));
    object.insert("found".to_owned(), json!(loss.damage.found));
    object.insert("bytes".to_owned(), json!(loss.bytes));
    let covers = match &loss.covers {
        Covers::Nothing => "nothing",
        Covers::Keys { from, up_to } => {
            for (name, key) in [("from", from), ("up_to", up_to)] {
                match key {
                    Some(key) => Encoding::Utf8.insert_json(&mut object, name, key),
                    None => drop(object.insert(name.to_owned(), Value::Null)),
                }
            }
            "keys"
        }
        Covers::Operations => "operations",
        Covers::Files => "files",
        _ => "unknown",
    };
    object.insert("covers".to_owned(), json!(covers));
    Value::Object(object)
}
