//! Looking for one key in the tables of a version, step by step.
//!
//! A lookup waits for memory again and again: for a line of a filter, for a bucket of a block, for an entry. Each wait ends a step, which
//! has the processor fetch what the next one looks at. Whoever looks for one key takes its steps one after the other; whoever looks for
//! many takes one of each key in turn, so that they wait together. (Interleaving lookups by hand goes back to Chen, Ailamaki, Gibbons and Mowry,
//! "Improving hash join performance through prefetching", ICDE 2004.)

use super::cache::TableCache;
use super::table::lookups::{DataBlock, Lookups};
use super::table::reader::{TableEntry, TableReader};
use super::version::{TableMeta, Version};
use crate::base::error::Result;
use crate::base::ids::Sequence;
use crate::base::limits::LEVELS;
use crate::base::sync::Arc;

/// A lookup on its way. Touches at most one table a level and those of L0 that may hold a newer entry than one already found.
#[derive(Debug)]
pub struct Lookup<'a> {
    version: &'a Version,
    user_key: &'a [u8],
    sequence: Sequence,
    fill_cache: bool,
    /// Where the next table is chosen: the level, and in L0 the place in it.
    level: usize,
    at: usize,
    next: Step,
    newest: Option<TableEntry>,
}

/// What comes next.
#[derive(Debug)]
enum Step {
    /// Choosing a table.
    Table,
    /// Asking its filter for a key of this hash.
    Filter { table: Arc<TableReader>, hash: u64 },
    /// Seeing where in the block the entry would be.
    Bucket { table: Arc<TableReader>, hash: u64, block: DataBlock },
    /// Looking there.
    Entry { table: Arc<TableReader>, hash: u64, block: DataBlock },
}

impl<'a> Lookup<'a> {
    /// For the newest entry of `user_key` at or before `sequence` in the tables of `version`, which keeps blocks in the cache if `fill_cache`.
    pub fn new(version: &'a Version, user_key: &'a [u8], sequence: Sequence, fill_cache: bool) -> Self {
        let (level, at, next, newest) = (0, 0, Step::Table, None);
        Self { version, user_key, sequence, fill_cache, level, at, next, newest }
    }

    /// Takes all steps.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    #[inline]
    pub fn finish(mut self, tables: &TableCache) -> Result<Option<TableEntry>> {
        while !self.step(tables)? {}
        Ok(self.newest)
    }

    /// Takes the next step. Whether it was the last one: what was found is in [`found`](Self::found) then.
    ///
    /// # Errors
    /// `Io`, `Corruption`; there is no next step then.
    #[inline]
    pub fn step(&mut self, tables: &TableCache) -> Result<bool> {
        self.next = match std::mem::replace(&mut self.next, Step::Table) {
            Step::Table => {
                let Some(table) = self.next_table() else { return Ok(true) };
                let table = tables.get(table.id)?;
                let hash = table.hash(self.user_key);
                table.prefetch_filter(hash);
                Step::Filter { table, hash }
            }
            Step::Filter { table, hash } if table.may_contain(hash) => {
                let block = Lookups::new(&table, self.fill_cache).into_block(self.user_key, self.sequence)?;
                match block {
                    Some(block) => {
                        block.prefetch_bucket(hash);
                        Step::Bucket { table, hash, block }
                    }
                    None => Step::Table,
                }
            }
            Step::Filter { .. } => Step::Table,
            Step::Bucket { table, hash, block } => {
                block.prefetch_entry(hash);
                Step::Entry { table, hash, block }
            }
            Step::Entry { table, hash, block } => {
                if let Some(entry) = block.find(&table, self.user_key, hash, self.sequence)?
                    && self.newest.as_ref().is_none_or(|other| other.sequence < entry.sequence)
                {
                    self.newest = Some(entry);
                }
                // What is in a deeper level is older.
                if self.level > 0 && self.newest.is_some() {
                    return Ok(true);
                }
                Step::Table
            }
        };
        Ok(false)
    }

    /// What the last step has found.
    pub fn found(&mut self) -> Option<TableEntry> {
        self.newest.take()
    }

    /// The next table that may have what is looked for.
    fn next_table(&mut self) -> Option<&'a TableMeta> {
        let (version, order, user_key) = (self.version, self.version.order(), self.user_key);
        while self.level == 0 {
            let Some(table) = version.level(0).get(self.at) else {
                if self.newest.is_some() {
                    return None;
                }
                self.level = 1;
                break;
            };
            self.at += 1;
            let is_older = self.newest.as_ref().is_some_and(|entry| entry.sequence >= table.sequences.1);
            if !is_older && table.sequences.0 <= self.sequence && table.locate(order, user_key).is_eq() {
                return Some(table);
            }
        }
        while self.level < LEVELS {
            let tables = version.level(self.level);
            self.level += 1;
            let at = tables
                .partition_point(|table| order.compare_user(table.largest_user_key(), user_key).is_lt());
            if let Some(table) = tables.get(at).filter(|table| table.locate(order, user_key).is_eq()) {
                return Some(table);
            }
        }
        None
    }
}
