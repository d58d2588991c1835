//! Some entries of a table that stand for all of them. Of a large table most data blocks are not read: one in so many is, evenly over
//! the table, and one entry of it is taken, at another place from block to block, which weighs as much as the block has entries.
//!
//! Who samples a table again takes other entries. Segments are collected because of what the first ones hide in them, so after that the same ones would
//! find much less than all others.

use super::cursor::Cursor;
use super::table::cursor::TableCursor;
use super::table::reader::TableReader;
use crate::base::error::Result;
use crate::base::keys::user_key;
use crate::base::sync::Arc;

/// Entries that are sampled of a table, at least, if it has so many.
const SAMPLES: u64 = 512;

/// Multiples of it, modulo 2^32, are spread evenly over the numbers below that, however many there are: it is the golden section of it.
const GOLDEN_SECTION: u32 = 0x9E37_79B9;

/// Which data blocks are looked into, and which of their entries are taken. Pure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sampling {
    /// Every so many blocks.
    distance: usize,
    /// Entries of each, if it has so many.
    of_block: u64,
}

impl Sampling {
    /// For a table of so many data blocks.
    fn of(blocks: u64) -> Self {
        let distance = (blocks / SAMPLES).max(1);
        Self { distance: distance as usize, of_block: SAMPLES.div_ceil((blocks / distance).max(1)) }
    }

    /// The number of the first block that is looked into.
    fn first(self, turn: u64) -> usize {
        (turn % self.distance as u64) as usize
    }

    /// The places among the `entries` of the block that is looked into after so many others, ascending.
    fn places(self, before: u64, entries: u64) -> impl Iterator<Item = u64> {
        let taken = self.of_block.min(entries);
        let beyond = u64::from((before as u32).wrapping_mul(GOLDEN_SECTION));
        // The part of the block in 2^32nds, of which each place has a `taken`-th.
        (0..taken).map(move |place| {
            let whole = u128::from(place << 32 | beyond) * u128::from(entries) / u128::from(taken);
            (whole >> 32) as u64
        })
    }
}

/// An entry, and how many it stands for.
#[derive(Debug)]
pub struct Sample {
    /// Its key.
    pub internal_key: Vec<u8>,
    /// How many it stands for.
    pub weight: f64,
    /// Whether the table has no older version of its user key.
    pub is_oldest: bool,
}

/// The samples of one table, in order.
#[derive(Debug)]
pub struct Sampler {
    table: Arc<TableReader>,
    cursor: TableCursor,
    sampling: Sampling,
    /// Which of the many samples that could be taken of it.
    turn: u64,
    /// Blocks that were looked into, the present one among them.
    blocks: u64,
    /// Entries of the present one, and how many of them the cursor has passed: all of them where it is at the first of the next.
    entries: u64,
    passed: u64,
    /// Those that are to be taken yet, by the number of those before each, the first one last.
    places: Vec<u64>,
    weight: f64,
}

impl Sampler {
    /// Samples of `table`, which are read as they are asked for: others in each `turn`.
    pub fn new(table: Arc<TableReader>, turn: u64) -> Self {
        Self {
            turn,
            cursor: TableReader::cursor(&table, false),
            sampling: Sampling::of(table.properties().data_blocks),
            table,
            blocks: 0,
            entries: 0,
            passed: 0,
            places: Vec::new(),
            weight: 0.0,
        }
    }

    /// The next sample, if there is one.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn next(&mut self) -> Result<Option<Sample>> {
        if self.places.is_empty() && !self.go_to_next_block()? {
            return Ok(None);
        }
        let place = self.places.pop().expect("no block is without entries");
        while self.passed < place {
            self.pass()?;
        }
        let internal_key = self.cursor.key().to_vec();
        self.pass()?;
        let order = self.table.order();
        let is_another = |next: &[u8]| order.compare_user(user_key(next), user_key(&internal_key)).is_ne();
        let is_oldest = !self.cursor.valid() || is_another(self.cursor.key());
        Ok(Some(Sample { internal_key, weight: self.weight, is_oldest }))
    }

    fn pass(&mut self) -> Result<()> {
        self.passed += 1;
        self.cursor.next()
    }

    /// Goes to the next block that is to be looked into; `false` if there is none.
    fn go_to_next_block(&mut self) -> Result<bool> {
        if self.blocks == 0 {
            self.cursor.seek_to_first()?;
            let first = self.sampling.first(self.turn);
            if first > 0 && self.cursor.valid() {
                self.cursor.skip_blocks(first)?;
            }
        } else if self.cursor.valid() {
            let at_next = self.passed == self.entries;
            self.cursor.skip_blocks(self.sampling.distance - usize::from(at_next))?;
        }
        if !self.cursor.valid() {
            return Ok(false);
        }
        (self.entries, self.passed) = (self.cursor.entries_of_block()?, 0);
        self.places.extend(self.sampling.places(self.blocks.wrapping_add(self.turn), self.entries));
        self.places.reverse();
        self.weight = self.entries as f64 / self.places.len() as f64;
        self.blocks += 1;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::table::tests::{Entry, build, key, open, options};
    use super::*;
    use crate::base::keys::EntryKind;

    /// The samples of a table of `entries`, and how many data blocks it has, and were read.
    fn samples(entries: &[Entry], turn: u64) -> Result<(Vec<Sample>, u64, u64)> {
        let (_, file) = build(entries, &options())?;
        let table = open(file, &options(), 1 << 20)?;
        let (mut sampler, mut samples) = (Sampler::new(Arc::clone(&table), turn), Vec::new());
        while let Some(sample) = sampler.next()? {
            samples.push(sample);
        }
        assert!(sampler.next()?.is_none(), "there is nothing behind the end");
        Ok((samples, table.properties().data_blocks, table.cache().stats().data_block_reads))
    }

    fn inline(user_key: &str, sequence: u64, bytes: usize) -> Entry {
        (key(user_key.as_bytes(), sequence, EntryKind::Inline), vec![7; bytes])
    }

    #[test]
    fn of_a_small_table_every_entry_is_one() -> Result<()> {
        let entries: Vec<Entry> = (0..150)
            .flat_map(|number| {
                let user_key = format!("{number:06}");
                (0..=number % 3).rev().map(move |version| inline(&user_key, version, 20))
            })
            .collect();
        let (samples, ..) = samples(&entries, 8)?;
        let keys: Vec<_> = samples.iter().map(|sample| &sample.internal_key).collect();
        assert_eq!(keys, entries.iter().map(|(key, _)| key).collect::<Vec<_>>());
        assert!(samples.iter().all(|sample| (sample.weight - 1.0).abs() < 1e-9));
        assert_eq!(samples.iter().filter(|sample| sample.is_oldest).count(), 150);
        Ok(())
    }

    /// Entries that are large fill blocks, and so do many that are small; each kind is to be sampled as often as it is there.
    #[test]
    fn of_a_large_table_few_blocks_are_read_and_no_kind_of_entry_is_favoured() -> Result<()> {
        let is_large = |number: u64| number > 40_000 && number.is_multiple_of(5);
        let entries: Vec<Entry> = (0..60_000)
            .map(|number| inline(&format!("{number:06}"), 1, if is_large(number) { 1500 } else { 30 }))
            .collect();
        let number =
            |sample: &Sample| std::str::from_utf8(user_key(&sample.internal_key)).ok()?.parse::<u64>().ok();
        let kinds: [(&dyn Fn(u64) -> bool, f64); 3] = [
            (&|number| number <= 40_000, 40_001.0),
            (&|number| number > 40_000 && !is_large(number), 16_000.0),
            (&is_large, 3_999.0),
        ];
        let mut taken = HashSet::new();
        for turn in [0, 1, 2, 3, 77] {
            let (samples, blocks, read) = samples(&entries, turn)?;
            let weight = |wanted: &dyn Fn(u64) -> bool| -> f64 {
                let of_kind = samples.iter().filter(|sample| number(sample).is_some_and(wanted));
                of_kind.map(|sample| sample.weight).sum()
            };
            let all = weight(&|_| true);
            for (kind, count) in kinds {
                let share = weight(kind) / all;
                let wanted = count / 60_000.0;
                assert!((share / wanted - 1.0).abs() < 0.15, "{share} instead of {wanted} in turn {turn}");
            }
            assert!(blocks > 3 * SAMPLES && read < blocks * 2 / 5, "{read} of {blocks} blocks");
            let others = samples.iter().filter(|sample| taken.insert(number(sample))).count();
            assert!(others * 10 > samples.len() * 8, "{others} of {} in turn {turn}", samples.len());
        }
        Ok(())
    }

    fn places(blocks: u64, entries: u64) -> Vec<Vec<u64>> {
        let sampling = Sampling::of(blocks);
        let looked_into = (0..blocks).step_by(sampling.distance);
        looked_into.zip(0..).map(|(_, before)| sampling.places(before, entries).collect()).collect()
    }

    #[test]
    fn small_tables_are_sampled_in_full() {
        let all: Vec<u64> = (0..100).collect();
        assert_eq!(places(1, 100), [&all[..]]);
        assert_eq!(places(5, 100), [(); 5].map(|()| all.clone()));
        assert_eq!(Sampling::of(0), Sampling::of(1), "no table is without a block, whatever it says");
    }

    #[test]
    fn large_ones_by_about_as_many_entries_as_there_are_to_be_evenly_spread() {
        for (blocks, entries) in [(6, 1000), (511, 1), (511, 100), (512, 100), (1023, 7), (1 << 20, 33)] {
            let places = places(blocks, entries);
            let all: Vec<u64> = places.iter().flatten().copied().collect();
            let wanted = SAMPLES.min(blocks * entries);
            assert!(
                (wanted..=2 * wanted).contains(&(all.len() as u64)),
                "{blocks}, {entries}: {}",
                all.len()
            );
            assert!(places.iter().all(|places| places.is_sorted_by(|left, right| left < right)));
            assert!(all.iter().all(|&place| place < entries));
            // Of blocks that are alike, the parts of them that entries are taken from are alike, too.
            for part in 0..7 {
                let within = |place: &&u64| (part * entries..(part + 1) * entries).contains(&(**place * 7));
                let share = all.iter().filter(within).count() as f64 / all.len() as f64;
                let of_part = (0..entries).filter(|place| within(&place)).count() as f64 / entries as f64;
                assert!((share - of_part).abs() < 0.01, "{blocks}, {entries}, {part}: {share}, {of_part}");
            }
        }
    }
}
