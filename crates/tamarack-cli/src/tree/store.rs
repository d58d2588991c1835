//! Stores a tree in a database: several threads read files and write batches, each file whole in one batch
//! together with its companion.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tamarack::{Db, IterOptions, WriteBatch, WriteOptions};

use super::collect::{Entry, Tree};
use super::layout::Layout;
use crate::failure::Result;
use crate::output;
use crate::progress::Progress;

/// Stores trees.
pub struct Store<'a> {
    /// The database.
    pub db: &'a Db,
    /// Where the tree goes.
    pub layout: &'a Layout,
    /// Leave alone what is already stored with equal bytes.
    pub resume: bool,
    /// Shown while it runs; counts bytes.
    pub progress: &'a Progress,
}

/// What was done.
#[derive(Debug, Default, Clone)]
pub struct Stored {
    /// Regular files stored.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Symbolic links stored.
    pub symlinks: u64,
    /// Directories stored: those that nothing in them implies.
    pub directories: u64,
    /// Entries that were already there.
    pub unchanged: u64,
    /// Left out, and why.
    pub skipped: Vec<String>,
}

/// Work of one thread that is not written yet.
#[derive(Default)]
struct Pending {
    batch: WriteBatch,
    done: Stored,
}

impl Store<'_> {
    const BATCH_BYTES: usize = 1 << 20;
    const BATCH_OPERATIONS: usize = 256;

    /// More threads than this only wait for each other: the files of a tree come from one device.
    const THREADS_MAX: usize = 8;

    /// Stores everything in `tree`.
    pub fn run(&self, tree: &Tree) -> Result<Stored> {
        let companions = self.existing_companions()?;
        self.forget(&tree.implied, &companions)?;
        let threads = std::thread::available_parallelism().map_or(1, |number| number.get());
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let total = Mutex::new(Stored { skipped: tree.skipped.clone(), ..Stored::default() });
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.min(Self::THREADS_MAX))
                .map(|_| {
                    scope.spawn(|| {
                        let result = self.work(&tree.entries, &next, &failed, &companions, &total);
                        failed.fetch_or(result.is_err(), Ordering::Relaxed);
                        result
                    })
                })
                .collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
        })?;
        Ok(total.into_inner().expect("no worker panicked"))
    }

    /// Companions from an earlier import: stale ones have to go.
    fn existing_companions(&self) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        let range = self.layout.companion_keys();
        let options = IterOptions { start: range.start, end: range.end, ..IterOptions::default() };
        let entries: tamarack::Result<_> = self.db.iter(&options)?.entries().collect();
        Ok(entries?)
    }

    /// Deletes what an earlier import has stored under `paths`, which need no mention any more.
    fn forget(&self, paths: &[Vec<u8>], companions: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<()> {
        let mut batch = WriteBatch::new();
        for path in paths {
            let (key, companion_key) = (self.layout.key(path), self.layout.companion_key(path));
            if self.db.get(&key)?.is_some() {
                batch.delete(&key)?;
            }
            if companions.contains_key(&companion_key) {
                batch.delete(&companion_key)?;
            }
        }
        Ok(self.db.write(&batch, &WriteOptions::default())?)
    }

    fn work(
        &self,
        entries: &[Entry],
        next: &AtomicUsize,
        failed: &AtomicBool,
        companions: &BTreeMap<Vec<u8>, Vec<u8>>,
        total: &Mutex<Stored>,
    ) -> Result<()> {
        let mut pending = Pending::default();
        while !failed.load(Ordering::Relaxed) {
            let Some(entry) = entries.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            self.add(entry, companions, &mut pending)?;
            let full = pending.batch.user_bytes() >= Self::BATCH_BYTES
                || pending.batch.len() >= Self::BATCH_OPERATIONS;
            if full {
                self.write(&mut pending, total)?;
            }
        }
        self.write(&mut pending, total)
    }

    /// Reads one entry and adds it to the batch, or to what is left out.
    fn add(
        &self,
        entry: &Entry,
        companions: &BTreeMap<Vec<u8>, Vec<u8>>,
        pending: &mut Pending,
    ) -> Result<()> {
        let mut skip = |reason: String| {
            pending.done.skipped.push(format!("{}: {reason}", entry.source.display()));
            Ok(())
        };
        if let Some(reason) = entry.too_long() {
            return skip(reason.into());
        }
        let value = match entry.file_bytes {
            Some(_) => match std::fs::read(&entry.source) {
                Ok(bytes) => Some(bytes),
                Err(error) => return skip(format!("cannot be read: {error}")),
            },
            None => None,
        };
        let key = self.layout.key(&entry.path);
        let companion_key = self.layout.companion_key(&entry.path);
        if companion_key.len() > usize::from(u16::MAX) {
            return skip("the path is longer than the longest key".into());
        }
        self.progress.advance(value.as_ref().map_or(0, |bytes| bytes.len() as u64));
        let companion = entry.companion.as_ref().map(|companion| companion.to_bytes());
        let companion_before = companions.get(&companion_key);
        if self.resume && companion.as_ref() == companion_before && self.db.get(&key)? == value {
            pending.done.unchanged += 1;
            return Ok(());
        }
        pending.count(value.as_deref(), companion.as_deref());
        match value {
            Some(bytes) => pending.batch.put(&key, &bytes)?,
            None => pending.batch.delete(&key)?,
        }
        match (companion, companion_before) {
            (Some(bytes), _) => pending.batch.put(&companion_key, &bytes)?,
            (None, Some(_)) => pending.batch.delete(&companion_key)?,
            (None, None) => {}
        }
        Ok(())
    }

    fn write(&self, pending: &mut Pending, total: &Mutex<Stored>) -> Result<()> {
        if !pending.batch.is_empty() {
            self.db.write(&pending.batch, &WriteOptions::default())?;
            pending.batch.clear();
        }
        let done = std::mem::take(&mut pending.done);
        let mut total = total.lock().expect("no worker panicked");
        total.add(done);
        self.progress.note(|| output::plural(total.files + total.unchanged, "file"));
        Ok(())
    }
}

impl Pending {
    fn count(&mut self, value: Option<&[u8]>, companion: Option<&[u8]>) {
        match (value, companion) {
            (Some(bytes), _) => {
                self.done.files += 1;
                self.done.bytes += bytes.len() as u64;
            }
            (None, Some(companion)) if companion.starts_with(b"symlink") => self.done.symlinks += 1,
            (None, _) => self.done.directories += 1,
        }
    }
}

impl Stored {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.symlinks += other.symlinks;
        self.directories += other.directories;
        self.unchanged += other.unchanged;
        self.skipped.extend(other.skipped);
    }
}
