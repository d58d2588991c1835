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

    /// Stands on the first entry of table `at` or of one behind it.
    fn enter_from_front(&mut self, at: usize) -> Result<()> {
        for at in at..self.tables.len() {
            let mut cursor = self.open(at)?;
            cursor.seek_to_first()?;
            if cursor.valid() {
                self.place = Some((at, cursor));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Stands on the last entry of a table before `end`.
    fn enter_from_back(&mut self, end: usize) -> Result<()> {
        for at in (0..end).rev() {
            let mut cursor = self.open(at)?;
            cursor.seek_to_last()?;
            if cursor.valid() {
                self.place = Some((at, cursor));
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Cursor for LevelCursor {
    fn valid(&self) -> bool {
        self.place.is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.place = None;
        self.enter_from_front(0)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.place = None;
        self.enter_from_back(self.tables.len())
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
            return self.enter_from_front(at + 1);
        }
        self.place = Some((at, cursor));
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        let (at, cursor) = self.place.as_mut().expect("next is called only on a valid cursor");
        let (at, moved) = (*at, cursor.next());
        if moved.is_ok() && cursor.valid() {
            return Ok(());
        }
        self.place = None;
        moved?;
        self.enter_from_front(at + 1)
    }

    fn prev(&mut self) -> Result<()> {
        let (at, cursor) = self.place.as_mut().expect("prev is called only on a valid cursor");
        let (at, moved) = (*at, cursor.prev());
        if moved.is_ok() && cursor.valid() {
            return Ok(());
        }
        self.place = None;
        moved?;
        self.enter_from_back(at)
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
