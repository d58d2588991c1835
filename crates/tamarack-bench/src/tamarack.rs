//! Tamarack as a store that is measured.

use std::ops::Bound;
use std::time::Duration;

use crate::{Change, Collected, Collector, Cursor, KeyRange, Store, Written};
use ::tamarack::{Db, Error, GcGoal, Iter, IterOptions, ReadOptions, WriteBatch, WriteOptions};

/// An open database.
pub struct Tamarack(pub Db);

impl Tamarack {
    /// Its version, with the commit it is built of if it is built in its repository: `0.1.0 (0123456789ab)`.
    pub fn version() -> String {
        describe(env!("CARGO_PKG_VERSION"), option_env!("TAMARACK_COMMIT"))
    }
}

fn describe(version: &str, commit: Option<&str>) -> String {
    commit.map_or_else(|| version.to_owned(), |commit| format!("{version} ({commit})"))
}

impl Store for Tamarack {
    type Error = Error;
    type Cursor<'a> = Walk;

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), Error> {
        self.0.put_with(key, value, &WriteOptions { sync })
    }

    fn delete(&self, key: &[u8], sync: bool) -> Result<(), Error> {
        self.0.delete_with(key, &WriteOptions { sync })
    }

    fn write(&self, changes: &[Change<'_>], sync: bool) -> Result<(), Error> {
        let mut batch = WriteBatch::new();
        for change in changes {
            match change {
                Change::Put(key, value) => batch.put(key, value)?,
                Change::Delete(key) => batch.delete(key)?,
            }
        }
        self.0.write(&batch, &WriteOptions { sync })
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        self.0.get_into(key, value, &ReadOptions::default())
    }

    fn multi_get(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.0.multi_get(keys, &ReadOptions::default()).into_iter().collect()
    }

    fn walk(&self, range: KeyRange<'_>, backward: bool) -> Result<Walk, Error> {
        let start = match range.0 {
            Bound::Included(key) => Some(key.to_vec()),
            // The key that follows.
            Bound::Excluded(key) => Some([key, &[0]].concat()),
            Bound::Unbounded => None,
        };
        let end = match range.1 {
            Bound::Excluded(key) => Some(key.to_vec()),
            Bound::Included(key) => Some([key, &[0]].concat()),
            Bound::Unbounded => None,
        };
        let iter = self.0.iter(&IterOptions { start, end, ..IterOptions::default() })?;
        Ok(Walk { iter, backward, begun: false })
    }

    fn scan(&self, start: &[u8], entries: u64) -> Result<Walk, Error> {
        let (start, expected_entries) = (Some(start.to_vec()), usize::try_from(entries).ok());
        let iter = self.0.iter(&IterOptions { start, expected_entries, ..IterOptions::default() })?;
        Ok(Walk { iter, backward: false, begun: false })
    }

    fn settle(&self) -> Result<Duration, Error> {
        self.0.sync()?;
        self.0.wait_idle().map(|()| Duration::ZERO)
    }

    fn written(&self) -> Option<Written> {
        let stats = self.0.stats();
        Some(Written {
            log_bytes_written: stats.log_bytes_written,
            flush_bytes_written: stats.flush_bytes_written,
            compaction_bytes_written: stats.compaction_bytes_written,
            collection_bytes_written: stats.collection_bytes_written,
            sorting_bytes_written: stats.sorting_bytes_written,
            sorting_index_bytes_written: stats.sorting_index_bytes_written,
        })
    }

    fn collector(&self) -> Option<&dyn Collector<Error = Error>> {
        Some(self)
    }
}

impl Collector for Tamarack {
    type Error = Error;

    fn compact(&self) -> Result<(), Error> {
        self.0.compact_range(None, None)
    }

    fn collect_once(&self) -> Result<Collected, Error> {
        let report = self.0.gc(GcGoal::Once)?;
        Ok(Collected {
            collected_files: report.segments + report.punched,
            copied_bytes: report.bytes_after,
            freed_bytes: report.bytes_before.saturating_sub(report.bytes_after) + report.hole_bytes,
        })
    }
}

/// A walk through the database.
pub struct Walk {
    iter: Iter,
    backward: bool,
    begun: bool,
}

impl Cursor for Walk {
    type Error = Error;

    fn advance(&mut self) -> Result<bool, Error> {
        match (std::mem::replace(&mut self.begun, true), self.backward) {
            (false, false) => self.iter.seek_to_first()?,
            (false, true) => self.iter.seek_to_last()?,
            (true, false) => self.iter.next()?,
            (true, true) => self.iter.prev()?,
        }
        Ok(self.iter.valid())
    }

    fn key(&self) -> &[u8] {
        self.iter.key()
    }

    fn value(&mut self) -> Result<&[u8], Error> {
        self.iter.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_has_the_commit_if_there_is_one() {
        assert_eq!(describe("1.2.3", None), "1.2.3");
        assert_eq!(describe("1.2.3", Some("abc, changed")), "1.2.3 (abc, changed)");
        assert!(Tamarack::version().starts_with(env!("CARGO_PKG_VERSION")));
    }
}
