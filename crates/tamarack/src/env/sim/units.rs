//! What is in flight, in the units in which it arrives or not: pure functions of a moment.
//!
//! - **Names.** Each change of names is a unit. It arrives only with all earlier ones that concern the same name.
//! - **Shape.** Whatever changes a file's length, or gives a part of it back, is a unit; they arrive in their order, for
//!   file systems keep them in a journal. Lengths do not wait for data, nor data for lengths.
//! - **Sectors.** Each write to a sector is a unit. What arrives is the sector as it was at some moment, so that a later
//!   write brings the earlier ones with it; different sectors have nothing to do with each other, of one write or of
//!   many, of a mapping or not. A sector that is being written through a mapping may arrive with the first half of that.

use std::collections::{BTreeMap, BTreeSet};

use super::crash::SECTOR_BYTES;
use super::directory::{NameChange, Names};
use super::effect::{Change, Effect};
use super::moment::{DirectoryAt, FileAt};

/// Changes of names whose combinations are enumerated at most.
const NAME_CHANGES_MAX: usize = 12;

/// A write to a sector, as far as it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Which change of the file's journal.
    pub effect: usize,
    /// Only so many bytes of it have been copied.
    pub copied: Option<u64>,
}

/// The units of one file.
#[derive(Debug, Default)]
pub struct FileUnits {
    /// The changes of its journal that change its shape, in order.
    pub shape: Vec<usize>,
    /// What may have arrived last in each sector that is written to, in order.
    pub sectors: BTreeMap<u64, Vec<Arrival>>,
}

/// How much of a file has arrived.
#[derive(Debug, Clone, Default)]
pub struct FileChoice {
    /// So many changes of shape.
    pub shape: usize,
    /// The sectors of which anything has.
    pub sectors: BTreeMap<u64, Arrival>,
}

impl FileUnits {
    /// The units of `file` when change number `next` of the disk is about to be made.
    pub fn of(file: &FileAt, next: u64) -> Self {
        let mut units = Self::default();
        let mut len = file.durable.len() as u64;
        for (index, Effect { at, change }) in file.journal.iter().enumerate() {
            let longer = change.len_after(len);
            if longer != len || matches!(change, Change::Punch(_) | Change::Zero(_)) {
                units.shape.push(index);
            }
            len = longer;
            if let Change::Write { offset, bytes, mapped } = change {
                // Who copies into a mapping may be caught in the midst of it.
                let caught = (*mapped && at + 1 == next).then_some(bytes.len() as u64 / 2);
                units.add_write(index, *offset, bytes.len() as u64, caught);
            }
        }
        units
    }

    fn add_write(&mut self, effect: usize, offset: u64, len: u64, caught: Option<u64>) {
        for sector in offset / SECTOR_BYTES..(offset + len).div_ceil(SECTOR_BYTES) {
            let arrivals = self.sectors.entry(sector).or_default();
            if caught.is_some_and(|copied| copied > 0 && (offset + copied) / SECTOR_BYTES == sector) {
                arrivals.push(Arrival { effect, copied: caught });
            }
            arrivals.push(Arrival { effect, copied: None });
        }
    }

    /// In how many ways they can arrive.
    pub fn combinations(&self) -> u64 {
        let sectors = self.sectors.values().map(|arrivals| arrivals.len() as u64 + 1);
        sectors.fold(self.shape.len() as u64 + 1, u64::saturating_mul)
    }

    /// The combination of that number, which is below [`combinations`](Self::combinations).
    pub fn choice(&self, mut number: u64) -> FileChoice {
        let mut digit = |base: usize| {
            let digit = number % (base as u64 + 1);
            number /= base as u64 + 1;
            digit as usize
        };
        let shape = digit(self.shape.len());
        let arrived = |(&sector, arrivals): (&u64, &Vec<Arrival>)| match digit(arrivals.len()) {
            0 => None,
            count => Some((sector, arrivals[count - 1])),
        };
        FileChoice { shape, sectors: self.sectors.iter().filter_map(arrived).collect() }
    }

    /// The bytes of `file`, of whose units `choice` has arrived.
    pub fn bytes(&self, file: &FileAt, choice: &FileChoice) -> Vec<u8> {
        let shaped = choice.shape.checked_sub(1).map_or(0, |last| self.shape[last] + 1);
        let durable_len = file.durable.len() as u64;
        let len = file.journal[..shaped].iter().fold(durable_len, |len, effect| effect.change.len_after(len));
        let mut bytes = file.durable.to_vec();
        bytes.resize(len as usize, 0);
        for (index, Effect { change, .. }) in file.journal.iter().enumerate() {
            if !change.is_data() {
                if index < shaped {
                    change.apply(0, &mut bytes);
                }
                continue;
            }
            for (&sector, arrival) in &choice.sectors {
                let start = sector * SECTOR_BYTES;
                let end = (start + SECTOR_BYTES).min(len);
                if start >= end || index > arrival.effect {
                    continue;
                }
                let window = &mut bytes[start as usize..end as usize];
                match arrival.copied {
                    Some(copied) if index == arrival.effect => change.apply_first(copied, start, window),
                    _ => change.apply(start, window),
                }
            }
        }
        bytes
    }
}

/// The names of a directory after the changes for which `arrives` says so, and for which none is missing that they
/// build on.
pub fn names_with(directory: &DirectoryAt, arrives: impl Fn(usize) -> bool) -> Names {
    let mut names = directory.durable.clone();
    let mut lost: Vec<&NameChange> = Vec::new();
    for (index, change) in directory.journal.iter().enumerate() {
        let builds_on = |earlier: &&NameChange| {
            earlier.concerns().any(|name| change.concerns().any(|other| other == name))
        };
        if arrives(index) && !lost.iter().any(builds_on) {
            change.apply(&mut names);
        } else {
            lost.push(change);
        }
    }
    names
}

/// Every set of names that a crash may leave of a directory; `None` if too much is in flight.
pub fn all_names(directory: &DirectoryAt) -> Option<Vec<Names>> {
    let changes = directory.journal.len();
    if changes > NAME_CHANGES_MAX {
        return None;
    }
    let all = (0..1u32 << changes).map(|mask| names_with(directory, |index| mask & (1 << index) != 0));
    Some(all.collect::<BTreeSet<_>>().into_iter().collect())
}
