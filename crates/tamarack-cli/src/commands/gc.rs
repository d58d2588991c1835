//! `gc`: collects the garbage of a database's value log.

use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};
use tamarack::{Db, GcGoal, GcReport, Stats};

use crate::failure::{Failure, Outcome, Result};
use crate::gc_watch::Watch;
use crate::open::Database;
use crate::output::{self, Align, Output, Table, bytes, count};

/// Free the space of dead values
///
/// Memtables are flushed first, so that what they have overwritten or deleted counts as dead. What the tables do not
/// show to be dead yet stays: `compact` before `gc` frees all there is. A segment that turns out to be damaged is kept and
/// left alone; what is wrong with it is printed, and the exit status is 1.
#[derive(Debug, Args)]
pub struct Gc {
    #[command(flatten)]
    database: Database,

    /// Collect until the database takes at most so many bytes on disk for each live byte [default: the limit that
    /// an open database keeps to]
    #[arg(long, value_name = "RATIO", conflicts_with = "once")]
    until: Option<f64>,

    /// Do one collection, of what is most worth it
    #[arg(long)]
    once: bool,

    /// Copy at most so many bytes a second, so that whoever else uses the device is disturbed less [default: no limit]
    #[arg(long, value_name = "BYTES")]
    bytes_per_second: Option<u64>,
}

/// What is compared.
struct Work {
    before: Stats,
    after: Stats,
    done: GcReport,
    /// What was found in segments that are left alone because they are damaged.
    damage: Vec<tamarack::Error>,
    seconds: f64,
}

impl Gc {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let limit = tamarack::Options::default().max_space_amplification;
        let goal = if self.once { GcGoal::Once } else { GcGoal::Until(self.until.unwrap_or(limit)) };
        if let GcGoal::Until(ratio) = goal
            && (ratio.is_nan() || ratio < 1.0)
        {
            return Err(Failure::Usage(format!("--until {ratio}: it is at least 1")));
        }
        let watch = Watch::new();
        // Who asks for JSON wants nothing else.
        let db = self.database.open_heard((!json).then(|| watch.listener()))?;
        // Otherwise the background would have its share, and that would be missing in what is reported.
        db.pause_gc();
        db.set_gc_bytes_per_second(self.bytes_per_second.unwrap_or(0));
        let started = Instant::now();
        db.flush()?;
        db.wait_idle()?;
        let before = db.stats();
        let garbage = (before.log_bytes + before.table_bytes).saturating_sub(before.live_bytes);
        let mut damage = Vec::new();
        let mut collect = || collect(&db, goal, &mut damage);
        let done = if json { collect() } else { watch.show(&db, garbage, collect) }?;
        let seconds = started.elapsed().as_secs_f64();
        let work = Work { before, after: db.stats(), done, damage, seconds };
        Output::answer(|output| {
            if json {
                return output.json(&work.to_json());
            }
            output.bytes(work.table().as_bytes())?;
            output.line(&work.summary())?;
            work.damage.iter().try_for_each(|damage| output.line(&format!("  left alone: {damage}")))
        })?;
        db.close()?;
        Ok(Outcome::positive_if(work.damage.is_empty()))
    }
}

/// Collects until `goal` is reached or nothing helps any more, around segments that turn out to be damaged; what is wrong with
/// them is added to `damage`.
fn collect(db: &Db, goal: GcGoal, damage: &mut Vec<tamarack::Error>) -> tamarack::Result<GcReport> {
    let mut total = GcReport::default();
    loop {
        let reached = matches!(goal, GcGoal::Until(ratio) if db.stats().space_amplification <= ratio);
        if reached {
            return Ok(total);
        }
        let left_alone = db.stats().quarantined_segments.len();
        match db.gc(GcGoal::Once) {
            Ok(done) => {
                total.add(&done);
                if goal == GcGoal::Once || done == GcReport::default() {
                    return Ok(total);
                }
            }
            Err(error) if db.stats().quarantined_segments.len() > left_alone => damage.push(error),
            Err(error) => return Err(error),
        }
    }
}

impl Work {
    fn to_json(&self) -> Value {
        let Self { before, after, done, damage, seconds } = self;
        let left_alone: Vec<_> = damage.iter().map(tamarack::Error::message).collect();
        json!({
            "seconds": seconds,
            "disk_bytes_before": before.disk_bytes, "disk_bytes_after": after.disk_bytes,
            "log_bytes_before": before.log_bytes, "log_bytes_after": after.log_bytes,
            "live_bytes_before": before.live_bytes, "live_bytes_after": after.live_bytes,
            "space_amplification_before": before.space_amplification,
            "space_amplification_after": after.space_amplification,
            "collected_segments": done.segments, "collected_bytes": done.bytes_before,
            "punched_segments": done.punched, "hole_bytes": done.hole_bytes,
            "copied_bytes": done.bytes_after, "copied_records": done.records, "hidden_records": done.hidden,
            "left_alone": left_alone,
        })
    }

    fn table(&self) -> String {
        let Self { before, after, .. } = self;
        let mut table = Table::new(&[("", Align::Left), ("before", Align::Right), ("after", Align::Right)]);
        let mut row = |name: &str, of: &dyn Fn(&Stats) -> String| {
            table.row(vec![name.to_owned(), of(before), of(after)]);
        };
        row("on disk", &|stats| bytes(stats.disk_bytes));
        row("segments", &|stats| bytes(stats.log_bytes));
        row("tables", &|stats| bytes(stats.table_bytes));
        row("live", &|stats| bytes(stats.live_bytes));
        row("space amplification", &|stats| format!("{:.2}", stats.space_amplification));
        table.render()
    }

    fn summary(&self) -> String {
        let done = &self.done;
        let holes = if done.punched == 0 {
            String::new()
        } else {
            let segments = output::plural(done.punched, "other");
            format!("; holes of {} in {segments}", bytes(done.hole_bytes))
        };
        format!(
            "  collected {} in {}: {} copied ({}), {} left behind{holes}",
            output::plural(done.segments, "segment"),
            output::seconds(self.seconds),
            bytes(done.bytes_after),
            output::plural(done.records, "record"),
            count(done.hidden)
        )
    }
}
