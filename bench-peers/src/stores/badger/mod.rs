//! Badger, by the library of `bench-peers/badger`.
//!
//! A write is in the kernel's hands when it returns: the memtable's log and the value log are mapped files.
//!
//! What Go costs here and not in a program in Go: the way into it and back takes 0.07 µs (`tests.rs` measures it); so batches
//! and reads of several keys take it once, and walks once for many entries. A single write costs more, for Badger hands it to
//! goroutines of its own: while one that came from C waits, its thread sleeps and another is woken, where a program in Go
//! would stay on one. On a machine with two processors, writes of 1 KiB took 17 µs of processor time each, and 8 µs in a
//! loop in Go; in batches of a hundred they took 3 µs, and no more than there.

use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tamarack_bench::{Change, Cursor, KeyRange, Store, Written};

use super::{Setting, rest};

mod library;

use library::{Database, Settings};

/// An open database.
pub struct Badger {
    database: Database,
    /// Bytes of the longest value that was read among several: how much room there is for each of the next ones.
    longest: AtomicUsize,
}

/// Opens one, which need not be there. Values of `separated_min` bytes and more are in the value log. With `sync`, Badger syncs every write;
/// without, those that are to be synced are followed by a sync of all, which a program that syncs some of its writes would
/// call.
pub fn open(path: &Path, setting: Setting, sync: bool, separated_min: Option<u32>) -> Result<Badger, String> {
    let settings = Settings { cache_bytes: setting.cache_bytes, separated_min, sync };
    Ok(Badger { database: Database::open(path, &settings)?, longest: AtomicUsize::new(0) })
}

impl Store for Badger {
    type Error = String;
    type Cursor<'a> = Walk<'a>;

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), String> {
        self.database.write(&[Change::Put(key, value)], sync)
    }

    fn delete(&self, key: &[u8], sync: bool) -> Result<(), String> {
        self.database.write(&[Change::Delete(key)], sync)
    }

    fn write(&self, changes: &[Change<'_>], sync: bool) -> Result<(), String> {
        self.database.write(changes, sync)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, String> {
        value.clear();
        let mut len = [0];
        // Somebody may write a longer value each time.
        while self.database.read(&[key], value, &mut len)? == 0 {
            value.reserve(usize::try_from(len[0]).expect("what does not fit has a length"));
        }
        Ok(len[0] >= 0)
    }

    fn multi_get(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, String> {
        let names: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let mut values = Vec::with_capacity(keys.len() * self.longest.load(Ordering::Relaxed));
        let mut lens = vec![0; keys.len()];
        let mut answered = 0;
        while answered < keys.len() {
            answered += self.database.read(&names[answered..], &mut values, &mut lens[answered..])?;
            if let Some(len) = lens.get(answered) {
                let len = usize::try_from(*len).expect("what does not fit has a length");
                self.longest.fetch_max(len, Ordering::Relaxed);
                values.reserve(len * (keys.len() - answered));
            }
        }
        let mut rest = &values[..];
        let mut next = |len: i64| {
            let (value, behind) = rest.split_at(usize::try_from(len).ok()?);
            rest = behind;
            Some(value.to_vec())
        };
        Ok(lens.into_iter().map(&mut next).collect())
    }

    fn walk(&self, range: KeyRange<'_>, backward: bool) -> Result<Walk<'_>, String> {
        let from = match if backward { range.1 } else { range.0 } {
            Bound::Unbounded => None,
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
        };
        let own = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        Ok(Walk {
            walk: self.database.walk(from, backward),
            start: own(range.0),
            end: own(range.1),
            backward,
            entries: Vec::with_capacity(CROSSING_BYTES),
            entries_max: 1,
            entry: Entry::default(),
        })
    }

    fn settle(&self) -> Result<Duration, String> {
        self.database.sync()?;
        // Compactions tell what of the value log is dead.
        let compacted = rest::wait(|| false);
        self.database.collect()?;
        Ok(compacted + rest::wait(|| false))
    }

    fn written(&self) -> Option<Written> {
        None
    }
}

/// Bytes of entries that come out of Go at once, unless one is longer: enough for the way to be short against reading them.
const CROSSING_BYTES: usize = 64 << 10;

/// A walk through the database.
pub struct Walk<'a> {
    walk: library::Walk<'a>,
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    backward: bool,
    /// What came out of Go last.
    entries: Vec<u8>,
    /// How many of them come next: twice as many each time, for who has gone far goes on.
    entries_max: usize,
    entry: Entry,
}

/// Where among the entries the one is that a walk is at.
#[derive(Default)]
struct Entry {
    key: Range<usize>,
    value: Range<usize>,
}

impl Walk<'_> {
    /// Goes on to the next entry, whether it is in the range or not; returns whether there is one.
    fn go(&mut self) -> Result<bool, String> {
        if self.entry.value.end == self.entries.len() {
            while let Some(bytes) = self.walk.next(self.entries_max, &mut self.entries)? {
                self.entries.reserve(bytes);
            }
            self.entries_max = self.entries_max.saturating_mul(2);
            self.entry = Entry::default();
        }
        let Some((key_len, rest)) = self.entries[self.entry.value.end..].split_first_chunk() else {
            return Ok(false);
        };
        let (value_len, _) = rest.split_first_chunk().expect("two lengths are before each entry");
        let [key_len, value_len] = [key_len, value_len].map(|len| u32::from_ne_bytes(*len) as usize);
        let key_start = self.entry.value.end + 2 * size_of::<u32>();
        let value_start = key_start + key_len;
        self.entry = Entry { key: key_start..value_start, value: value_start..value_start + value_len };
        Ok(true)
    }

    fn is_before(&self) -> bool {
        match &self.start {
            Bound::Unbounded => false,
            Bound::Included(start) => self.key() < &start[..],
            Bound::Excluded(start) => self.key() <= &start[..],
        }
    }

    fn is_behind(&self) -> bool {
        match &self.end {
            Bound::Unbounded => false,
            Bound::Included(end) => self.key() > &end[..],
            Bound::Excluded(end) => self.key() >= &end[..],
        }
    }
}

impl Cursor for Walk<'_> {
    type Error = String;

    fn advance(&mut self) -> Result<bool, String> {
        while self.go()? {
            let (skipped, ended) = (self.is_before(), self.is_behind());
            let (skipped, ended) = if self.backward { (ended, skipped) } else { (skipped, ended) };
            if ended {
                return Ok(false);
            }
            if !skipped {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn key(&self) -> &[u8] {
        &self.entries[self.entry.key.clone()]
    }

    fn value(&mut self) -> Result<&[u8], String> {
        Ok(&self.entries[self.entry.value.clone()])
    }
}

#[cfg(test)]
mod tests;
