//! Which images a loss of power may leave of a recorded disk. Pure.
//!
//! Between two flushes, or behind the last, a device has taken writes that it has not promised to keep. It may lose
//! all that came since the last flush that it confirmed, keep any of them in any order, or a part of the sectors of one: an
//! [`Image`] says which. A prefix of the writes is what is there when power goes in their midst and nothing is cached.

use std::collections::BTreeMap;

use tamarack::testing::Random;

use crate::content::Content;
use crate::disk::{Entry, SECTOR};

/// As many writes between two flushes are tried in all combinations.
const ENUMERATED_MAX: usize = 3;

/// The writes between two flushes, behind the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch {
    /// The first entry that may be lost.
    pub start: usize,
    /// Behind the last: where the next flush stands, or the end of the log. Power goes here.
    pub end: usize,
}

/// What is kept of the writes of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The epoch in which power goes.
    pub epoch: Epoch,
    /// Entries that are kept, with the sectors that are; all of them if there is no list.
    pub kept: BTreeMap<usize, Option<Vec<u64>>>,
}

/// The epochs of `log` with something in them.
pub fn epochs(log: &[Entry]) -> Vec<Epoch> {
    let mut epochs = Vec::new();
    let mut start = 0;
    for (at, entry) in log.iter().enumerate() {
        if matches!(entry, Entry::Flush) {
            epochs.push(Epoch { start, end: at });
            start = at + 1;
        }
    }
    epochs.push(Epoch { start, end: log.len() });
    epochs.retain(|epoch| epoch.end > epoch.start);
    epochs
}

/// At most about `most` images of an epoch: nothing kept and everything always, then by chance.
pub fn images(log: &[Entry], epoch: Epoch, most: usize, random: &mut Random) -> Vec<Image> {
    let all: Vec<usize> = (epoch.start..epoch.end).collect();
    let image = |kept: &[usize]| Image { epoch, kept: kept.iter().map(|at| (*at, None)).collect() };
    let mut images = vec![image(&[]), image(&all)];
    if all.len() <= ENUMERATED_MAX {
        for choice in 1..(1_usize << all.len()) - 1 {
            let chosen: Vec<usize> =
                all.iter().enumerate().filter(|(bit, _)| choice >> bit & 1 == 1).map(|(_, at)| *at).collect();
            images.push(image(&chosen));
        }
    }
    // Some come twice where there is little to choose from.
    for _ in images.len()..most {
        let mut chosen = image(&choose(&all, random));
        if random.one_in(2) {
            tear(log, &mut chosen, random);
        }
        if !images.contains(&chosen) {
            images.push(chosen);
        }
    }
    images
}

/// A prefix, all but one, one alone, about a half, or most.
fn choose(all: &[usize], random: &mut Random) -> Vec<usize> {
    let at = random.below(all.len() as u64) as usize;
    match random.below(5) {
        0 => all[..at].to_vec(),
        1 => [&all[..at], &all[at + 1..]].concat(),
        2 => vec![all[at]],
        3 => all.iter().copied().filter(|_| random.one_in(2)).collect(),
        _ => all.iter().copied().filter(|_| !random.one_in(5)).collect(),
    }
}

/// Leaves a part of one or two writes away, in sectors: a beginning, an end, or any.
fn tear(log: &[Entry], image: &mut Image, random: &mut Random) {
    for _ in 0..1 + random.below(2) {
        let writes: Vec<usize> = image.kept.keys().copied().collect();
        let Some(at) = writes.get(random.below(writes.len().max(1) as u64) as usize) else { return };
        let Entry::Write(_, bytes) = &log[*at] else { continue };
        let sectors = (bytes.len() as u64).div_ceil(SECTOR);
        let cut = random.below(sectors);
        let kind = random.below(3);
        let kept = (0..sectors).filter(|sector| match kind {
            0 => *sector < cut,
            1 => *sector >= cut,
            _ => random.one_in(2),
        });
        let kept = kept.collect();
        image.kept.insert(*at, Some(kept));
    }
}

impl Image {
    /// What the disk holds: `base` is what it held at the epoch's first flush.
    pub fn build(&self, log: &[Entry], base: &Content) -> Content {
        let mut content = base.clone();
        for (at, sectors) in &self.kept {
            match (&log[*at], sectors) {
                (Entry::Write(offset, bytes), Some(sectors)) => {
                    for sector in sectors {
                        let from = (sector * SECTOR) as usize;
                        let to = bytes.len().min(from + SECTOR as usize);
                        content.write(offset + sector * SECTOR, &bytes[from..to]);
                    }
                }
                (entry, _) => entry.apply(&mut content),
            }
        }
        content
    }

    /// Whether a write was kept in part.
    pub fn is_torn(&self) -> bool {
        self.kept.values().any(Option::is_some)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn write(offset: u64, byte: u8, sectors: usize) -> Entry {
        Entry::Write(offset, vec![byte; sectors * SECTOR as usize].into())
    }

    #[test]
    fn epochs_lie_between_flushes_and_empty_ones_do_not_count() {
        let log = [write(0, 1, 1), Entry::Flush, Entry::Flush, write(0, 2, 1), write(0, 3, 1)];
        assert_eq!(epochs(&log), [Epoch { start: 0, end: 1 }, Epoch { start: 3, end: 5 }]);
    }

    #[test]
    fn all_combinations_of_a_few_writes_are_tried() {
        let log = [write(0, 1, 1), write(512, 2, 1), write(0, 3, 1)];
        let images = images(&log, Epoch { start: 0, end: 3 }, 0, &mut Random::new(1));
        let digests: BTreeSet<u64> =
            images.iter().map(|image| image.build(&log, &Content::default()).digest()).collect();
        // The third hides the first.
        assert_eq!((images.len(), digests.len()), (8, 6));
    }

    #[test]
    fn a_torn_write_keeps_some_of_its_sectors_over_what_was_there() {
        let log = [write(0, 7, 8)];
        let image = Image { epoch: Epoch { start: 0, end: 1 }, kept: [(0, Some(vec![1, 3]))].into() };
        let mut base = Content::default();
        base.write(0, &[1; 4096]);
        let mut bytes = [0; 4096];
        image.build(&log, &base).read(0, &mut bytes);
        let firsts: Vec<u8> = bytes.chunks(SECTOR as usize).map(|sector| sector[0]).collect();
        assert!(image.is_torn());
        assert_eq!(firsts, [1, 7, 1, 7, 1, 1, 1, 1]);
    }

    #[test]
    fn every_form_of_loss_is_among_many_images() {
        let log: Vec<Entry> = (0..6).map(|at| write(at * 4096, 1, 8)).collect();
        let images = images(&log, Epoch { start: 0, end: 6 }, 400, &mut Random::new(2));
        let kept = |image: &Image| image.kept.keys().copied().collect::<Vec<_>>();
        for wanted in [&[][..], &[0, 1, 2, 3, 4, 5], &[0, 1], &[4], &[0, 1, 2, 4, 5]] {
            assert!(images.iter().any(|image| kept(image) == wanted), "{wanted:?}");
        }
        assert!(images.iter().any(Image::is_torn));
    }
}
