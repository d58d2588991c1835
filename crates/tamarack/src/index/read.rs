//! Looking into a version.

use crate::base::error::Result;
use crate::base::ids::Sequence;
use crate::base::keys::seek_key;
use crate::base::limits::LEVELS;
use crate::base::sync::Arc;

use super::cursor::Cursor;
use super::level_cursor::LevelCursor;
use super::lookup::Lookup;
use super::open::Index;
use super::table::reader::TableEntry;
use super::version::{TableMeta, Version, overlapping};

/// How much a range of keys takes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RangeSize {
    /// Bytes in tables.
    pub table_bytes: u64,
    /// Bytes of log records that the tables point to.
    pub value_bytes: u64,
}

impl Index {
    /// The newest entry of `user_key` at or before `sequence` in the tables of `version`.
    ///
    /// Take the version first and the sequence number, unless it is a registered snapshot's, after it: compactions
    /// drop what only older readers could see.
    pub fn lookup(
        &self,
        version: &Version,
        user_key: &[u8],
        sequence: Sequence,
        fill_cache: bool,
    ) -> Result<Option<TableEntry>> {
        Lookup::new(version, user_key, sequence, fill_cache).finish(&self.tables)
    }

    /// Takes all `lookups`, each known by what stands beside it, to their ends at the same time, and tells what each has found.
    pub fn look_up_all<T: Copy>(
        &self,
        lookups: &mut Vec<(T, Lookup<'_>)>,
        mut found: impl FnMut(T, Result<Option<TableEntry>>),
    ) {
        while !lookups.is_empty() {
            lookups.retain_mut(|(name, lookup)| {
                let outcome = match lookup.step(&self.tables) {
                    Ok(false) => return true,
                    Ok(true) => Ok(lookup.found()),
                    Err(error) => Err(error),
                };
                found(*name, outcome);
                false
            });
        }
    }

    /// Cursors over all entries of `version`: one for each table of L0 and one for each deeper level that has
    /// tables. Tables are opened when a cursor gets there.
    pub fn cursors(&self, version: &Version, fill_cache: bool) -> Vec<Box<dyn Cursor>> {
        let alone = version.level(0).iter().map(|table| Arc::new(vec![table.clone()]));
        let deeper = (1..LEVELS).map(|level| version.level(level)).filter(|tables| !tables.is_empty());
        let cursor = |tables| {
            let (order, cache) = (version.order().clone(), self.tables.clone());
            Box::new(LevelCursor::new(tables, order, cache, fill_cache)) as Box<dyn Cursor>
        };
        alone.chain(deeper.cloned()).map(cursor).collect()
    }

    /// About how much the user keys from `start` up to but not including `end` take up; `None` is open.
    /// Overwritten and deleted entries that are still there count.
    pub fn approximate_size(
        &self,
        version: &Version,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<RangeSize> {
        let order = version.order();
        let mut size = RangeSize::default();
        if let (Some(start), Some(end)) = (start, end)
            && order.compare_user(start, end).is_ge()
        {
            return Ok(size);
        }
        let mut add = |table: &TableMeta| -> Result<()> {
            let (low, high) = self.span(version, table, start, end)?;
            size.table_bytes += high.0.saturating_sub(low.0);
            size.value_bytes += high.1.saturating_sub(low.1);
            Ok(())
        };
        version.level(0).iter().filter(|table| table.overlaps(order, start, end)).try_for_each(|t| add(t))?;
        for level in 1..LEVELS {
            overlapping(version.level(level), order, start, end).iter().try_for_each(|table| add(table))?;
        }
        Ok(size)
    }

    /// The offsets, in the file and in referenced values, at which the range begins and ends in `table`.
    fn span(
        &self,
        version: &Version,
        table: &TableMeta,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<((u64, u64), (u64, u64))> {
        let order = version.order();
        let offset =
            |key: &[u8]| self.tables.get(table.id)?.approximate_offset(&seek_key(key, Sequence::MAX));
        let low = match start {
            Some(start) if order.compare_user(start, table.smallest_user_key()).is_gt() => offset(start)?,
            _ => (0, 0),
        };
        let high = match end {
            Some(end) if order.compare_user(end, table.largest_user_key()).is_le() => offset(end)?,
            _ => (table.file_bytes, table.referenced_value_bytes),
        };
        Ok((low, high))
    }
}
