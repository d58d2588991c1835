//! What has come of a run, as a table.

use std::collections::BTreeMap;

use crate::crashes::{Image, epochs};
use crate::disk::Entry;
use crate::facts::{Bounds, Fact, Noted};

/// What has come of one file system.
#[derive(Default)]
pub struct Row {
    recordings: u64,
    batches: u64,
    synced: u64,
    writes: u64,
    flushes: u64,
    epochs: u64,
    in_flight_max: u64,
    counts: BTreeMap<String, u64>,
    /// Images that were thought of and chosen.
    pub images: u64,
    distinct: u64,
    torn: u64,
    /// Losses of power in a life after a loss of power.
    pub again: u64,
    refused: u64,
    refused_torn: u64,
    refusal: Option<String>,
    /// Images on which something was wrong.
    pub losses: u64,
    durable_alone: u64,
    part: u64,
    nothing: u64,
}

impl Row {
    /// A life was recorded.
    pub fn record(&mut self, log: &[Entry], facts: &[Noted], counts: &[(String, u64)]) {
        self.recordings += 1;
        self.batches += facts.iter().filter(|(_, fact)| matches!(fact, Fact::Issued(_))).count() as u64;
        self.synced += facts.iter().filter(|(_, fact)| matches!(fact, Fact::Durable(_))).count() as u64;
        self.flushes += log.iter().filter(|entry| matches!(entry, Entry::Flush)).count() as u64;
        self.writes += log.iter().filter(|entry| !matches!(entry, Entry::Flush)).count() as u64;
        let epochs = epochs(log);
        self.epochs += epochs.len() as u64;
        let longest = epochs.iter().map(|epoch| epoch.end - epoch.start).max().unwrap_or(0);
        self.in_flight_max = self.in_flight_max.max(longest as u64);
        for (name, number) in counts {
            *self.counts.entry(name.clone()).or_default() += number;
        }
    }

    /// An image that no other of the recording is like.
    pub fn tried(&mut self, image: &Image) {
        self.distinct += 1;
        self.torn += u64::from(image.is_torn());
    }

    /// The file system did not mount an image.
    pub fn not_mounted(&mut self, image: &Image, why: String) {
        self.refused += 1;
        self.refused_torn += u64::from(image.is_torn());
        self.refusal.get_or_insert(why);
    }

    /// So many batches were found where these bounds were.
    pub fn found(&mut self, bounds: &Bounds, found: u64) {
        match found {
            _ if found == bounds.most => self.nothing += 1,
            _ if found == bounds.least => self.durable_alone += 1,
            _ => self.part += 1,
        }
    }

    /// Images that were lived on.
    pub fn lived(&self) -> u64 {
        self.nothing + self.durable_alone + self.part
    }
}

/// Prints the rows of all file systems of which anything was recorded.
pub fn print(rows: &BTreeMap<String, Row>) {
    let recorded = || rows.iter().filter(|(_, row)| row.recordings > 0);
    println!(
        "\n| file system | recordings: batches, of them known durable | writes / flushes | crash points \
         | in flight at most | images: distinct, of them torn | crashed again | not mounted (torn) \
         | lost all in flight / a part / no batch | wrong |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (kind, row) in recorded() {
        println!(
            "| {kind} | {}: {}, {} | {} / {} | {} | {} | {}: {}, {} | {} | {} ({}) | {} / {} / {} | {} |",
            row.recordings,
            row.batches,
            row.synced,
            row.writes,
            row.flushes,
            row.epochs,
            row.in_flight_max,
            row.images,
            row.distinct,
            row.torn,
            row.again,
            row.refused,
            row.refused_torn,
            row.durable_alone,
            row.part,
            row.nothing,
            row.losses
        );
    }
    for (kind, row) in recorded() {
        let counts: Vec<String> =
            row.counts.iter().map(|(name, number)| format!("{number} {name}")).collect();
        println!("{kind}: {} while recording", counts.join(", "));
        if let Some(why) = &row.refusal {
            println!("{kind}: the first that was not mounted: {why}");
        }
    }
}
