//! `scan`: prints entries in key order, forwards or backwards.

use clap::Args;
use serde_json::Map;
use tamarack::{Iter, IterOptions};

use crate::failure::{Outcome, Result};
use crate::format::Encodings;
use crate::open::Database;
use crate::output::Output;
use crate::range::RangeArguments;

/// Print `KEY<tab>VALUE` in key order
#[derive(Debug, Args)]
pub struct Scan {
    #[command(flatten)]
    database: Database,

    #[command(flatten)]
    range: RangeArguments,

    /// Stop after this many entries
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// From the last key to the first
    #[arg(long)]
    reverse: bool,

    /// Print keys only; no value is read
    #[arg(long)]
    keys_only: bool,

    #[command(flatten)]
    encodings: Encodings,
}

impl Scan {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let range = self.range.range(self.encodings.key)?;
        let db = self.database.open_for_reading()?;
        let mut iter = db.iter(&IterOptions {
            start: range.start,
            end: range.end,
            keys_only: self.keys_only,
            expected_entries: self.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            ..IterOptions::default()
        })?;
        let mut output = Output::new();
        if self.reverse {
            iter.seek_to_last()?;
        } else {
            iter.seek_to_first()?;
        }
        let mut left = self.limit.unwrap_or(u64::MAX);
        while left > 0 && iter.valid() {
            self.print(&mut output, json, &mut iter)?;
            if self.reverse {
                iter.prev()?;
            } else {
                iter.next()?;
            }
            left -= 1;
        }
        output.finish()?;
        drop(iter);
        db.close()?;
        Ok(Outcome::Done)
    }

    fn print(&self, output: &mut Output, json: bool, iter: &mut Iter) -> Result<()> {
        let Encodings { key, value } = self.encodings;
        if json {
            let mut object = Map::new();
            key.insert_json(&mut object, "key", iter.key());
            if !self.keys_only {
                value.insert_json(&mut object, "value", iter.value()?);
            }
            return output.json(&object);
        }
        let mut line = key.line(iter.key());
        if !self.keys_only {
            line.push('\t');
            line.push_str(&value.line(iter.value()?));
        }
        output.line(&line)
    }
}
