//! Which of many records are hidden: one newer table after the other is asked for all keys, so that its filter stays in
//! the processor's cache; a table without a filter is walked through beside the sorted keys. Decides the same as
//! [`is_hidden`](super::hidden::is_hidden).

use std::collections::HashMap;

use super::cache::TableCache;
use super::collect::Reference;
use super::compact::stripe;
use super::cursor::Cursor;
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
    let places: HashMap<TableId, usize> =
        version.level(0).iter().enumerate().map(|(place, table)| (table.id, place)).collect();
    let mut hidden = vec![false; entries.len()];
    let mut hashes = Vec::new();
    for (level, table) in version.tables() {
        let is_newer = |than: &Reference| match (level, than.level) {
            (0, 0) => places.get(&table.id) < places.get(&than.table),
            (newer, older) => newer < older,
        };
        let (smallest, largest) = (table.smallest_user_key(), table.largest_user_key());
        let first = entries.partition_point(|entry| order.compare_user(entry.user_key, smallest).is_lt());
        let within = entries[first..].iter().zip(first..);
        let within = within.take_while(|(entry, _)| order.compare_user(entry.user_key, largest).is_le());
        let asked: Vec<usize> = within
            .filter(|(entry, place)| {
                !hidden[*place] && table.sequences.1 > entry.sequence && is_newer(&entry.reference)
            })
            .map(|(_, place)| place)
            .collect();
        if !asked.is_empty() {
            let reader = tables.get(table.id)?;
            if hashes.is_empty() {
                hashes.extend(entries.iter().map(|entry| reader.hash(entry.user_key)));
            }
            let search = Search { version, entries, hashes: &hashes, snapshots, table };
            search.run(&reader, &asked, &mut hidden)?;
        }
    }
    Ok(hidden)
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
    fn run(&self, reader: &Arc<TableReader>, asked: &[usize], hidden: &mut [bool]) -> Result<()> {
        if !reader.has_filter() && self.table.entries <= asked.len() as u64 * ENTRIES_FOR_A_KEY {
            return self.walk(reader, asked, hidden);
        }
        for &place in asked {
            let entry = &self.entries[place];
            let seen =
                reader.get_hashed(entry.user_key, self.hashes[place], self.last_reader(entry), true)?;
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
