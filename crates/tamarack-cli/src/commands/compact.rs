//! `compact`: rewrites a range of keys so that overwritten and deleted data gives its space back.

use std::time::Instant;

use clap::Args;
use serde_json::json;

use crate::failure::{Outcome, Result};
use crate::format::Encoding;
use crate::open::Database;
use crate::output::{self, Output};
use crate::progress::{Progress, Unit};
use crate::range::RangeArguments;

/// Compact a range of keys, or everything, and wait until the work is done
#[derive(Debug, Args)]
pub struct Compact {
    #[command(flatten)]
    database: Database,

    #[command(flatten)]
    range: RangeArguments,

    /// How --start, --end and --prefix are written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    key_format: Encoding,

    /// Sort values, too, everywhere: rewrite small ones in the order of their keys until few sorted runs of them lie over any
    #[arg(long)]
    sort_values: bool,
}

impl Compact {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let range = self.range.range(self.key_format)?;
        let db = self.database.open_existing()?;
        let before = db.stats().disk_bytes;
        let started = Instant::now();
        let progress = Progress::start("compact", Unit::Items, None);
        db.compact_range(range.start.as_deref(), range.end.as_deref())?;
        if self.sort_values {
            db.sort_values()?;
        }
        db.wait_idle()?;
        drop(progress);
        let seconds = started.elapsed().as_secs_f64();
        let after = db.stats().disk_bytes;
        Output::answer(|output| {
            if json {
                output.json(&json!({
                    "seconds": seconds, "disk_bytes_before": before, "disk_bytes_after": after,
                }))
            } else {
                output.line(&format!(
                    "compacted in {}: {} on disk before, {} after",
                    output::seconds(seconds),
                    output::bytes(before),
                    output::bytes(after)
                ))
            }
        })?;
        db.close()?;
        Ok(Outcome::Done)
    }
}
