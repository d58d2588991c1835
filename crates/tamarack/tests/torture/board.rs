//! Figures in a small file that a process writes and another one reads, while it runs and after it was killed: what a call
//! has written is there, whatever happens to the process.
#![allow(clippy::disallowed_types, reason = "the file is beside the database")]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::common::world::Tally;

/// One figure, by its place in the file.
#[derive(Debug, Clone, Copy)]
pub enum Figure {
    /// Steps begun since the beginning of this life.
    Issued,
    /// Steps that were done.
    Acknowledged,
    /// Processes that have opened the database, and found in it what must be there.
    Opened,
    Reopens,
    Checkpoints,
    SnapshotsCompared,
    Collections,
    CollectedBytes,
    HiddenRecords,
    Punched,
    Compactions,
    WritesRefused,
}

/// A figure that a [`Tally`] has: its name, and where it is there.
pub type Tallied = (Figure, &'static str, fn(&Tally) -> u64);

/// All of them.
pub const TALLIED: [Tallied; 9] = [
    (Figure::Reopens, "reopens", |tally| tally.reopens),
    (Figure::Checkpoints, "checkpoints", |tally| tally.checkpoints),
    (Figure::SnapshotsCompared, "snapshot reads", |tally| tally.snapshots_compared),
    (Figure::Collections, "collections", |tally| tally.collections),
    (Figure::CollectedBytes, "bytes collected", |tally| tally.collected_bytes),
    (Figure::HiddenRecords, "hidden records left behind", |tally| tally.hidden_records),
    (Figure::Punched, "segments punched", |tally| tally.punched_segments),
    (Figure::Compactions, "compactions", |tally| tally.compactions),
    (Figure::WritesRefused, "writes refused at first", |tally| tally.writes_refused),
];

/// The file.
#[derive(Debug)]
pub struct Board(File);

impl Board {
    /// Opens the file, or makes it with all figures zero.
    pub fn open(path: &Path) -> Self {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap();
        file.set_len(8 * (Figure::WritesRefused as u64 + 1)).unwrap();
        Self(file)
    }

    /// Writes a figure.
    pub fn set(&self, figure: Figure, value: u64) {
        self.0.write_all_at(&value.to_le_bytes(), 8 * figure as u64).unwrap();
    }

    /// Reads a figure.
    pub fn get(&self, figure: Figure) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, 8 * figure as u64).unwrap();
        u64::from_le_bytes(bytes)
    }

    /// The tallied figures.
    pub fn tallied(&self) -> [u64; TALLIED.len()] {
        TALLIED.map(|(figure, ..)| self.get(figure))
    }

    /// Writes the tallied figures: what was there before, and `tally`.
    pub fn add(&self, before: &[u64; TALLIED.len()], tally: &Tally) {
        for ((figure, _, of), before) in TALLIED.iter().zip(before) {
            self.set(*figure, before + of(tally));
        }
    }
}
