//! A cursor over tables that lie side by side.

use crate::base::error::Result;
use crate::base::keys::KeyOrder;
use crate::base::sync::Arc;

use super::cache::TableCache;
use super::cursor::Cursor;
use super::table::cursor::TableCursor;
use super::table::reader::TableReader;
use super::version::TableMeta;

/// Walks over sorted, disjoint tables one after the other, and opens a table only when it gets there. It keeps
/// the tables' files in place.
pub struct LevelCursor {
    tables: Arc<Vec<Arc<TableMeta>>>,
    order: KeyOrder,
    cache: Arc<TableCache>,
    fill_cache: bool,
    /// The table it stands in, and the place there. Whenever there is one, it is valid.
    place: Option<(usize, TableCursor)>,
}

impl LevelCursor {
    /// A cursor over `tables`.
    pub fn new(
        tables: Arc<Vec<Arc<TableMeta>>>,
        order: KeyOrder,
        cache: Arc<TableCache>,
        fill_cache: bool,
    ) -> Self {
        Self { tables, order, cache, fill_cache, place: None }
    }

    /// A closed cursor over table `at`.
    fn open(&self, at: usize) -> Result<TableCursor> {
        let table = self.cache.get(self.tables[at].id)?;
        Ok(TableReader::cursor(&table, self.fill_cache))
    }

    /// Stands on the first entry of table `at` or of one behind it; comes from a table if it has `left` one.
    fn enter_from_front(&mut self, at: usize, left: Option<TableCursor>) -> Result<()> {
        self.enter(at..self.tables.len(), left, true)
    }

    /// Stands on the last entry of a table before `end`; comes from a table if it has `left` one.
    fn enter_from_back(&mut self, end: usize, left: Option<TableCursor>) -> Result<()> {
        self.enter((0..end).rev(), left, false)
    }

    /// Stands on the entry of the first of `tables` that has one at the end that is come to.
    fn enter(
        &mut self,
        tables: impl Iterator<Item = usize>,
        mut left: Option<TableCursor>,
        forward: bool,
    ) -> Result<()> {
        for at in tables {
            let mut cursor = match left {
                Some(left) => left.go_on_in(self.cache.get(self.tables[at].id)?, forward),
                None => self.open(at)?,
            };
            if forward {
                cursor.seek_to_first()?
            } else {
                cursor.seek_to_last()?
            }
            if cursor.valid() {
                self.place = Some((at, cursor));
                return Ok(());
            }
            left = Some(cursor);
        }
        Ok(())
    }

    /// Has the device begin with what comes behind table `at`, the present one, or before it: a long scan is about to go on there. A table that
    /// is not open would have to be waited for.
    fn announce(&self, at: usize, forward: bool) {
        let next = if forward { Some(at + 1) } else { at.checked_sub(1) };
        let next = next.and_then(|next| self.tables.get(next)).and_then(|table| self.cache.peek(table.id));
        if let (Some((_, cursor)), Some(table)) = (&self.place, next) {
            cursor.have_next_table_read(&table, forward);
        }
    }
}

impl Cursor for LevelCursor {
    fn valid(&self) -> bool {
        self.place.is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.place = None;
        self.enter_from_front(0, None)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.place = None;
        self.enter_from_back(self.tables.len(), None)
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        let at = self.tables.partition_point(|table| self.order.compare(&table.largest, target).is_lt());
        let reused = self.place.take().filter(|&(current, _)| current == at).map(|(_, cursor)| cursor);
        if at == self.tables.len() {
            return Ok(());
        }
        let mut cursor = match reused {
            Some(cursor) => cursor,
            None => self.open(at)?,
        };
        cursor.seek(target)?;
        if !cursor.valid() {
            return self.enter_from_front(at + 1, None);
        }
        self.place = Some((at, cursor));
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        let (at, cursor) = self.place.as_mut().expect("next is called only on a valid cursor");
        let (at, moved) = (*at, cursor.next());
        if moved.is_ok() && cursor.valid() {
            if cursor.comes_near_end() {
                self.announce(at, true);
            }
            return Ok(());
        }
        let left = self.place.take().map(|(_, cursor)| cursor);
        moved?;
        self.enter_from_front(at + 1, left)
    }

    fn prev(&mut self) -> Result<()> {
        let (at, cursor) = self.place.as_mut().expect("prev is called only on a valid cursor");
        let (at, moved) = (*at, cursor.prev());
        if moved.is_ok() && cursor.valid() {
            if cursor.comes_near_end() {
                self.announce(at, false);
            }
            return Ok(());
        }
        let left = self.place.take().map(|(_, cursor)| cursor);
        moved?;
        self.enter_from_back(at, left)
    }

    fn key(&self) -> &[u8] {
        self.place.as_ref().expect("key is called only on a valid cursor").1.key()
    }

    fn payload(&self) -> &[u8] {
        self.place.as_ref().expect("payload is called only on a valid cursor").1.payload()
    }

    fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.place.as_ref().and_then(|(_, cursor)| cursor.entry())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::base::ids::TableId;
    use crate::base::keys::EntryKind;
    use crate::base::memory::Allotment;
    use crate::index::cache::BlockCache;
    use crate::index::table::TableOptions;
    use crate::index::table::builder::TableBuilder;
    use crate::index::table::memory_file::{MemoryFile, MemoryFs};
    use crate::index::table::tests::{key, options, pointer};
    use crate::index::version::script;

    /// What is read at a time, at most.
    const STRETCH_BYTES: u64 = 64 << 10;
    const TABLES: u64 = 3;
    const ENTRIES: u32 = 60_000;

    fn path_of(id: TableId) -> PathBuf {
        PathBuf::from(format!("{}.table", id.0))
    }

    /// Tables, one behind the other, in files of which nothing is in memory, and the blocks of which are not kept.
    fn level() -> Result<(LevelCursor, Vec<Arc<MemoryFile>>)> {
        let (fs, mut files) = (Arc::new(MemoryFs::default()), Vec::new());
        let options = TableOptions { read_ahead_max: STRETCH_BYTES, ..options() };
        for id in (1..=TABLES).map(TableId) {
            let file = MemoryFile::with(Vec::new());
            let mut builder =
                TableBuilder::new(file.clone(), path_of(id), PathBuf::from("input"), id, &options);
            for number in 0..ENTRIES {
                let name = format!("{}{number:06}", (b'a' + id.0 as u8) as char);
                let value = pointer(1, number * 2000, 1000);
                builder.add(&key(name.as_bytes(), 1, EntryKind::Pointer), &value)?;
            }
            builder.finish()?;
            fs.files.lock().insert(path_of(id), file.clone());
            files.push(file);
        }
        let (blocks, filters) = (Arc::new(BlockCache::new(0)), Allotment::unlimited());
        let cache = Arc::new(TableCache::new(fs, path_of, options.clone(), blocks, filters, 10));
        let version = script::version("L1: 1[b-bz] 2[c-cz] 3[d-dz]");
        let tables = version.level(1).clone();
        for (table, file) in tables.iter().zip(&files) {
            assert!(
                cache.get(table.id)?.file_bytes() > 8 * STRETCH_BYTES,
                "several of the largest stretches"
            );
            file.evict();
        }
        Ok((LevelCursor::new(tables, options.order, cache, true), files))
    }

    fn waited(files: &[Arc<MemoryFile>]) -> Vec<u64> {
        files.iter().map(|file| file.waited()).collect()
    }

    #[test]
    fn a_long_scan_waits_for_no_table_but_the_first() -> Result<()> {
        let (mut forward, files) = level()?;
        let mut entries = 0;
        forward.seek_to_first()?;
        while forward.valid() {
            entries += 1;
            forward.next()?;
        }
        assert_eq!(entries, TABLES * u64::from(ENTRIES));
        // For the first block and what leads to it, and what lies around them comes along.
        assert_eq!(waited(&files), [2, 0, 0]);
        let (mut backward, files) = level()?;
        backward.seek_to_last()?;
        while backward.valid() {
            entries -= 1;
            backward.prev()?;
        }
        assert_eq!(entries, 0);
        assert_eq!(waited(&files), [0, 0, 2]);
        Ok(())
    }

    #[test]
    fn a_short_scan_asks_for_nothing_of_the_next_table() -> Result<()> {
        let (mut cursor, files) = level()?;
        cursor.seek(&key(b"b059900", u64::MAX >> 8, EntryKind::Pointer))?;
        for _ in 0..99 {
            cursor.next()?;
        }
        assert!(cursor.valid() && files[0].waited() > 0);
        assert_eq!(files[1].missed().1, []);
        Ok(())
    }
}
