//! No store: what the kernel and the device give to a program that only appends values to one file, by a call each, and reads
//! them at random, by a call each. Stores that keep values in a log are held against it, in the same run: how near one comes says
//! what all the rest of it costs. It can do better only where it spares what is done here: calls, where it writes to a mapping,
//! and reads, where it has single values in memory, as the kernel has pages.
//!
//! In the file are values and nothing else, one behind the other, all as long as the plan has them. Where the latest value of a
//! key lies is known by an array in memory, four bytes for each key, and only because the keys of a benchmark are numbers. So
//! each read finds what was written last, and can be verified; but there is **no index**: nobody who opens the file later knows
//! which value belongs to which key, and what survives the process is its bytes. There is **no order** of keys, there are **no
//! checksums**, and there is **no collection**: what was overwritten stays. A delete forgets the place, and writes nothing. A
//! batch is one call, of which a loss of power may leave a part.
//!
//! Each write that is to be synced is synced by a call of its own; the kernel does together what several threads ask for. The file
//! grows by its writes, and nothing is reserved or filled ahead of them: a sync has the file system note its length.
//!
//! Gets are through the kernel's cache, which has what of the data fits, as that of a store does. The same past the cache is called
//! `device`: each value is read from the device, by a read of the sectors in which it lies, as many at a time as threads ask for or
//! `multireadrandom` asks for at once. Reads of values at random are all that it is for.
//!
//! The same with a head before each value, of a key and as many bytes as Tamarack's log has for a record, is called `records`: what
//! a log is bounded by from which values can be collected, for one has to know whose they are. It reads each record whole, and
//! looks at the key. Where values are as long as a part of a page, `bare` has each on one page; of records some lie on two, each of which may be
//! missing in memory. What an index takes of memory it has for pages, too, unless it is given so much less.
//!
//! A walk reads the file from end to end, whatever was overwritten since, in the order in which values were written and under
//! a key that says nothing; where the keys are those of a part of the plan, it reads as large a part of the file. It is read
//! through the kernel's cache also where gets are read past it.
//!
//! What that means for workloads:
//!
//! - Fills, `readrandom`, `multireadrandom`, YCSB A to D and F, and `readseq` after `fillseq`: what stores are held against.
//! - `fillsync`: the same for stores that do not fill space ahead of their writes. Those that do sync more often.
//! - `overwrite`: the same for stores that never collect.
//! - `readseq` after other fills: the same for stores to which keys come sorted, which they do not.
//! - `readreverse`: only a way to do it, for the kernel reads ahead by itself where a file is read forward.
//! - `seekrandom` and YCSB E: what a store is held against whose values lie where they were written. The array has the places of a
//!   scan's values in the order of their keys, and they are read together, those that lie side by side, too.
//! - `readmissing` and deletes: nothing, for they neither read nor write; nor does space say anything, which is never given back.
//! - Values of several sizes, and `readseq` and `readreverse` with `--verify`: refused.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tamarack_bench::{Change, Cursor, KeyRange, Plan, Store, Workload, Written};

use super::Setting;

mod places;
mod queue;
mod reader;
mod scan;
mod walk;

use places::Places;
use queue::Queue;
use reader::Reader;
use scan::Scan;
use walk::Walk;

/// What the file is called in its directory.
const FILE: &str = "values";

/// The file, and where in it the values are. Several threads may use it at once.
pub struct Bare {
    path: PathBuf,
    /// By which values are appended.
    file: File,
    reader: Reader,
    value_bytes: usize,
    key_bytes: usize,
    /// Bytes before each value, the last of which are its key: none, if there are only values.
    head_bytes: usize,
    /// How many values have got a place in the file.
    values: AtomicU64,
    places: Places,
    /// Those that no thread uses now.
    queues: Mutex<Vec<Queue>>,
}

/// What is before each value in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// Nothing.
    None,
    /// What a log of records has to have: the key, and [`HEADER_BYTES`].
    Record,
}

/// Bytes of a record of Tamarack's log before the key (`docs/formats/segment.md`).
const HEADER_BYTES: usize = 24;

impl Head {
    /// How many bytes that is, with keys of so many.
    pub fn bytes(self, key_bytes: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Record => HEADER_BYTES + key_bytes,
        }
    }
}

/// Makes a new file in the directory `path`, for `workloads`.
pub fn open(
    path: &Path,
    plan: &Plan,
    workloads: &[Workload],
    setting: Setting,
    head: Head,
) -> Result<Bare, String> {
    let value_bytes = fixed_size(plan, workloads)?;
    let key_bytes = usize::from(plan.key_size);
    let path = path.join(FILE);
    let file = File::options().write(true).create_new(true).open(&path);
    let file = file.map_err(|error| format!("make {}: {error}", path.display()))?;
    Ok(Bare {
        reader: Reader::open(&path, setting.direct)?,
        path,
        file,
        value_bytes,
        key_bytes,
        head_bytes: head.bytes(key_bytes),
        values: AtomicU64::new(0),
        places: Places::new(plan, workloads),
        queues: Mutex::default(),
    })
}

/// Bytes of each value; or why `workloads` cannot be run.
fn fixed_size(plan: &Plan, workloads: &[Workload]) -> Result<usize, String> {
    for workload in workloads {
        match workload {
            Workload::Readseq | Workload::Readreverse if plan.verify => {
                return Err(format!(
                    "{}: a walk does not know its keys, so nothing can be verified",
                    workload.name()
                ));
            }
            _ => {}
        }
    }
    let fixed = plan.value_size.fixed();
    fixed.ok_or_else(|| format!("values must all have one size, and not {}", plan.value_size))
}

impl Bare {
    /// Writes records, one behind the other; returns the place of the first one.
    fn append(&self, records: &[u8], count: u64) -> Result<u64, String> {
        let place = self.values.fetch_add(count, Ordering::Relaxed);
        let written = self.file.write_all_at(records, self.offset(place));
        written.map(|()| place).map_err(|error| format!("write {}: {error}", self.path.display()))
    }

    fn record_bytes(&self) -> usize {
        self.head_bytes + self.value_bytes
    }

    fn offset(&self, place: u64) -> u64 {
        place * self.record_bytes() as u64
    }

    fn push_record(&self, key: &[u8], value: &[u8], records: &mut Vec<u8>) -> Result<(), String> {
        self.demand_size(value)?;
        if self.head_bytes > 0 {
            let header = self.head_bytes.checked_sub(key.len());
            let header = header.ok_or_else(|| format!("a key of {} bytes has no room", key.len()))?;
            records.resize(records.len() + header, 0);
            records.extend_from_slice(key);
        }
        records.extend_from_slice(value);
        Ok(())
    }

    /// Makes what was read at the place of `key` its value.
    fn take_head(&self, key: &[u8], record: &mut Vec<u8>) -> Result<(), String> {
        if self.head_bytes == 0 {
            return Ok(());
        }
        if !record[..self.head_bytes].ends_with(key) {
            return Err(format!("{}: here is no record of key {}", self.path.display(), key.escape_ascii()));
        }
        record.drain(..self.head_bytes);
        Ok(())
    }

    fn demand_size(&self, value: &[u8]) -> Result<(), String> {
        let (bytes, fixed) = (value.len(), self.value_bytes);
        if bytes == fixed {
            return Ok(());
        }
        Err(format!("values must all have one size: here is one of {bytes} bytes beside those of {fixed}"))
    }

    fn sync_if(&self, sync: bool) -> Result<(), String> {
        if !sync {
            return Ok(());
        }
        self.file.sync_data().map_err(|error| format!("sync {}: {error}", self.path.display()))
    }

    fn read_error(&self, error: &std::io::Error) -> String {
        format!("read {}: {error}", self.path.display())
    }

    /// Reads so many bytes from each of the places, as many at once as a queue takes.
    fn read_at_once(&self, offsets: &[u64]) -> Result<Vec<Vec<u8>>, String> {
        let spare = self.queues.lock().expect("nobody panics with the lock").pop();
        let mut queue = spare.map_or_else(Queue::new, Ok)?;
        let mut values = Vec::with_capacity(offsets.len());
        for some in offsets.chunks(Queue::DEPTH) {
            let read = queue.read(&self.reader, some, self.record_bytes());
            values.extend(read.map_err(|error| self.read_error(&error))?);
        }
        self.queues.lock().expect("nobody panics with the lock").push(queue);
        Ok(values)
    }
}

/// A walk through the file, or through the keys from one on.
pub enum Steps {
    /// Through the file.
    Walk(Walk),
    /// Through keys.
    Scan(Scan),
}

impl Cursor for Steps {
    type Error = String;

    fn advance(&mut self) -> Result<bool, String> {
        match self {
            Self::Walk(walk) => walk.advance(),
            Self::Scan(scan) => scan.advance(),
        }
    }

    fn key(&self) -> &[u8] {
        match self {
            Self::Walk(walk) => walk.key(),
            Self::Scan(scan) => scan.key(),
        }
    }

    fn value(&mut self) -> Result<&[u8], String> {
        match self {
            Self::Walk(walk) => walk.value(),
            Self::Scan(scan) => scan.value(),
        }
    }
}

impl Store for Bare {
    type Error = String;
    type Cursor<'a> = Steps;

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), String> {
        let place = if self.head_bytes == 0 {
            self.demand_size(value)?;
            self.append(value, 1)?
        } else {
            let mut record = Vec::with_capacity(self.record_bytes());
            self.push_record(key, value, &mut record)?;
            self.append(&record, 1)?
        };
        self.places.set(key, place)?;
        self.sync_if(sync)
    }

    fn delete(&self, key: &[u8], sync: bool) -> Result<(), String> {
        self.places.forget(key);
        self.sync_if(sync)
    }

    fn write(&self, changes: &[Change<'_>], sync: bool) -> Result<(), String> {
        let mut records = Vec::with_capacity(changes.len() * self.record_bytes());
        let mut count = 0;
        for change in changes {
            if let Change::Put(key, value) = change {
                self.push_record(key, value, &mut records)?;
                count += 1;
            }
        }
        let mut place = self.append(&records, count)?;
        for change in changes {
            match change {
                Change::Put(key, _) => {
                    self.places.set(key, place)?;
                    place += 1;
                }
                Change::Delete(key) => self.places.forget(key),
            }
        }
        self.sync_if(sync)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, String> {
        let Some(place) = self.places.get(key) else {
            value.clear();
            return Ok(false);
        };
        let read = self.reader.read(self.offset(place), self.record_bytes(), value);
        read.map_err(|error| self.read_error(&error))?;
        self.take_head(key, value).map(|()| true)
    }

    fn multi_get(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, String> {
        let places: Vec<Option<u64>> = keys.iter().map(|key| self.places.get(key)).collect();
        let offsets: Vec<u64> = places.iter().flatten().map(|&place| self.offset(place)).collect();
        let mut records = self.read_at_once(&offsets)?.into_iter();
        let value = |(key, place): (&Vec<u8>, Option<u64>)| {
            let Some(mut record) = place.and_then(|_| records.next()) else { return Ok(None) };
            self.take_head(key, &mut record).map(|()| Some(record))
        };
        keys.iter().zip(places).map(value).collect()
    }

    fn walk(&self, range: KeyRange<'_>, backward: bool) -> Result<Steps, String> {
        let part = self.places.part(range, self.values.load(Ordering::Relaxed));
        let walk = Walk::begin(&self.path, part, self.head_bytes, self.value_bytes, self.key_bytes, backward);
        walk.map(Steps::Walk).map_err(|error| self.read_error(&error))
    }

    fn scan(&self, start: &[u8], entries: u64) -> Result<Steps, String> {
        let entries = usize::try_from(entries).unwrap_or(usize::MAX);
        let (keys, offsets): (Vec<Vec<u8>>, Vec<u64>) = self
            .places
            .from(start)
            .take(entries)
            .map(|(number, place)| (format!("{number:0width$}", width = self.key_bytes), self.offset(place)))
            .map(|(key, offset)| (key.into_bytes(), offset))
            .unzip();
        let records = self.read_at_once(&offsets)?;
        let entry = |(key, mut record): (Vec<u8>, Vec<u8>)| {
            self.take_head(&key, &mut record)?;
            Ok((key, record))
        };
        keys.into_iter()
            .zip(records)
            .map(entry)
            .collect::<Result<_, _>>()
            .map(|all| Steps::Scan(Scan::new(all)))
    }

    fn settle(&self) -> Result<Duration, String> {
        self.file
            .sync_all()
            .map(|()| Duration::ZERO)
            .map_err(|error| format!("sync {}: {error}", self.path.display()))
    }

    fn written(&self) -> Option<Written> {
        None
    }
}

#[cfg(test)]
mod tests;
