//! Which of many records are hidden: one newer table after the other is asked for all keys, so that its filter stays in
//! the processor's cache; a table without a filter is walked through beside the sorted keys. Decides the same as
//! [`is_hidden`](super::hidden::is_hidden).

use std::collections::HashMap;

use super::cache::TableCache;
use super::collect::Reference;
use super::compact::stripe;
use super::cursor::Cursor;
use super::table::lookups::Lookups;
use super::table::reader::TableReader;
use super::version::{TableMeta, Version};
use crate::base::error::Result;
use crate::base::ids::{Sequence, TableId};
use crate::base::keys::{split_internal_key, trailer_sequence};
use crate::base::sync::Arc;

/// An entry of a table that points to a record.
#[derive(Debug, Clone, Copy)]
pub struct Pointing<'a> {
    /// Its key.
    pub user_key: &'a [u8],
    /// Its sequence number.
    pub sequence: Sequence,
    /// The table it is in.
    pub reference: Reference,
}

/// Walking over so many entries of a table costs about as much as looking one key up in it.
const ENTRIES_FOR_A_KEY: u64 = 8;

/// For each of `entries`, sorted by key and then from the newest version to the oldest, whether it is hidden from every
/// reader, now and later (I-11). `snapshots` are sorted, and were listed after `version` was loaded.
///
/// # Errors
/// `Io`, `Corruption`.
pub fn hidden_among(
    tables: &TableCache,
    version: &Version,
    entries: &[Pointing<'_>],
    snapshots: &[Sequence],
) -> Result<Vec<bool>> {
    let order = version.order();
    let ages = Ages::of(version);
    let age_of = |entry: &Pointing<'_>| ages.of_table(entry.reference.level, entry.reference.table);
    let entry_ages: Vec<u32> = entries.iter().map(age_of).collect();
    let mut hidden = vec![false; entries.len()];
    let mut hashes = Vec::new();
    for (level, table) in version.tables() {
        let age = ages.of_table(level, table.id);
        let (smallest, largest) = (table.smallest_user_key(), table.largest_user_key());
        let first = entries.partition_point(|entry| order.compare_user(entry.user_key, smallest).is_lt());
        let within = entries[first..].iter().zip(first..);
        let within = within.take_while(|(entry, _)| order.compare_user(entry.user_key, largest).is_le());
        let asked: Vec<usize> = within
            .filter(|(entry, place)| {
                !hidden[*place] && table.sequences.1 > entry.sequence && age < entry_ages[*place]
            })
            .map(|(_, place)| place)
            .collect();
        if !asked.is_empty() {
            let reader = tables.get(table.id)?;
            if hashes.is_empty() {
                hashes.extend(entries.iter().map(|entry| reader.hash(entry.user_key)));
            }
            let search = Search { version, entries, hashes: &hashes, snapshots, table };
            search.run(&reader, asked, &mut hidden)?;
        }
    }
    Ok(hidden)
}

/// Which table is newer than which: for a user key that both have, what is in the one of the smaller age is newer.
struct Ages {
    /// Tables of L0, each with how many of them are newer.
    level0: HashMap<TableId, u32>,
}

impl Ages {
    fn of(version: &Version) -> Self {
        Self { level0: version.level(0).iter().zip(0..).map(|(table, age)| (table.id, age)).collect() }
    }

    fn of_table(&self, level: u8, table: TableId) -> u32 {
        match level {
            0 => self.level0[&table],
            _ => self.level0.len() as u32 + u32::from(level),
        }
    }
}

/// The search of one table.
struct Search<'a> {
    version: &'a Version,
    entries: &'a [Pointing<'a>],
    /// The hash of each key.
    hashes: &'a [u64],
    snapshots: &'a [Sequence],
    table: &'a TableMeta,
}

impl Search<'_> {
    fn run(&self, reader: &Arc<TableReader>, mut asked: Vec<usize>, hidden: &mut [bool]) -> Result<()> {
        if !reader.has_filter() && self.table.entries <= asked.len() as u64 * ENTRIES_FOR_A_KEY {
            return self.walk(reader, &asked, hidden);
        }
        // Each of these waits for memory, and none for another.
        asked.retain(|&place| reader.may_contain(self.hashes[place]));
        let mut lookups = Lookups::new(reader, true);
        for place in asked {
            let entry = &self.entries[place];
            let seen = lookups.get(entry.user_key, self.hashes[place], self.last_reader(entry))?;
            hidden[place] = seen.is_some_and(|seen| seen.sequence > entry.sequence);
        }
        Ok(())
    }

    /// Whoever sees the entry and no newer one reads at most here.
    fn last_reader(&self, entry: &Pointing<'_>) -> Sequence {
        let stripe = stripe(self.snapshots, entry.sequence);
        self.snapshots.get(stripe).copied().unwrap_or(Sequence::MAX)
    }

    fn walk(&self, reader: &Arc<TableReader>, asked: &[usize], hidden: &mut [bool]) -> Result<()> {
        let order = self.version.order();
        let mut cursor = TableReader::cursor(reader, false);
        cursor.seek_to_first()?;
        for &place in asked {
            let entry = &self.entries[place];
            let last_reader = self.last_reader(entry);
            // Versions of a key stand from the newest to the oldest, here and there.
            while cursor.valid() {
                let (user_key, trailer) =
                    split_internal_key(cursor.key()).expect("cursors refuse keys without a trailer");
                let at = order.compare_user(user_key, entry.user_key);
                if at.is_gt() {
                    break;
                }
                let sequence = trailer_sequence(trailer);
                if at.is_eq() && sequence <= last_reader {
                    hidden[place] = sequence > entry.sequence;
                    break;
                }
                cursor.next()?;
            }
        }
        Ok(())
    }
}
