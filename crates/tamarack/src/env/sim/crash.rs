//! What a crash leaves behind: a pure choice among what is in flight.
//!
//! The crash of a seed is of one of four kinds. Three are simple, and found most often to matter; the fourth takes each
//! page, each length and each name by itself, and contains the others.

use super::directory::{NameChange, Names};
use super::effect::{Effect, apply_all};
use super::random::Random;

/// What a device writes as a whole.
pub const SECTOR_BYTES: u64 = 512;
/// What the kernel writes back as a whole, unless the device tears it.
pub const PAGE_BYTES: u64 = 4096;

/// The fate of a whole disk.
#[derive(Debug)]
pub struct Fate {
    random: Random,
    kind: Kind,
}

/// A kind of crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing that was in flight has arrived.
    Nothing,
    /// Everything has.
    Everything,
    /// What was changed before this moment has, and nothing else.
    UpTo(u64),
    /// Anything may have.
    Any,
}

impl Fate {
    /// The fate that belongs to `seed`, where the next change would have the number `next`.
    pub fn from_seed(seed: u64, next: u64) -> Self {
        let mut random = Random::new(seed);
        let kind = match random.below(8) {
            0 => Kind::Nothing,
            1 => Kind::Everything,
            2 => Kind::UpTo(random.below(next + 1)),
            _ => Kind::Any,
        };
        Self { random, kind }
    }

    /// A fate of a certain kind.
    pub fn of(kind: Kind, seed: u64) -> Self {
        Self { random: Random::new(seed), kind }
    }

    /// The names of a directory with the `durable` ones, of whose `journal` something may have arrived.
    pub fn names(&mut self, durable: &Names, journal: &[NameChange]) -> Names {
        let mut names = durable.clone();
        let mut lost: Vec<&NameChange> = Vec::new();
        // How much survives differs from directory to directory.
        let odds = 1 + self.random.below(4);
        for change in journal {
            let depends_on = |earlier: &&NameChange| {
                earlier.concerns().any(|name| change.concerns().any(|other| other == name))
            };
            let arrives = match self.kind {
                Kind::Nothing => false,
                Kind::Everything => true,
                Kind::UpTo(moment) => change.at < moment,
                Kind::Any => !lost.iter().any(depends_on) && !self.random.one_in(1 + odds),
            };
            if arrives {
                change.apply(&mut names);
            } else {
                lost.push(change);
            }
        }
        names
    }

    /// The bytes of a file of which `durable` is on the disk, and of whose `journal` something may have arrived.
    pub fn bytes(&mut self, durable: &[u8], journal: &[Effect]) -> Vec<u8> {
        let mut bytes = durable.to_vec();
        match self.kind {
            Kind::Nothing => {}
            Kind::Everything => apply_all(&mut bytes, journal),
            Kind::UpTo(moment) => apply_all(&mut bytes, journal.iter().filter(|effect| effect.at < moment)),
            Kind::Any if journal.is_empty() => {}
            Kind::Any => bytes = self.any_bytes(durable, journal),
        }
        bytes
    }

    /// Every unit of the file as it was at a moment of its own, and the length and the holes at another.
    fn any_bytes(&mut self, durable: &[u8], journal: &[Effect]) -> Vec<u8> {
        let shape = self.moment(journal.len());
        let durable_len = durable.len() as u64;
        let len = journal[..shape].iter().fold(durable_len, |len, effect| effect.change.len_after(len));
        let reserved = journal.iter().any(|effect| !effect.change.is_data());
        let unit_bytes = if self.random.one_in(2) { PAGE_BYTES } else { SECTOR_BYTES };
        let garbage = !reserved && self.random.one_in(4);
        let mut bytes = durable.to_vec();
        bytes.resize(len as usize, 0);
        let mut start = 0;
        while start < len {
            let end = (start + unit_bytes).min(len);
            let window = &mut bytes[start as usize..end as usize];
            let arrived = self.moment(journal.len());
            self.unit(journal, arrived, shape, start, window);
            if garbage && arrived == 0 && start >= durable_len {
                window.iter_mut().for_each(|byte| *byte = self.random.number() as u8);
            }
            start = end;
        }
        bytes
    }

    /// Does to one unit what the first `arrived` writes do, and the changes among the first `shape` that write nothing.
    fn unit(&mut self, journal: &[Effect], arrived: usize, shape: usize, start: u64, window: &mut [u8]) {
        for (index, Effect { change, .. }) in journal.iter().enumerate() {
            let applies = index < if change.is_data() { arrived } else { shape };
            if applies {
                change.apply(start, window);
            } else if index == arrived
                && let super::effect::Change::Write { bytes, mapped: true, .. } = change
            {
                let copied = self.random.below(bytes.len() as u64 + 1);
                change.apply_first(copied, start, window);
            }
        }
    }

    /// A moment of a journal of `len` changes: its beginning, its end, or any in between.
    fn moment(&mut self, len: usize) -> usize {
        match self.random.below(3) {
            0 => 0,
            1 => len,
            _ => self.random.below(len as u64 + 1) as usize,
        }
    }
}
