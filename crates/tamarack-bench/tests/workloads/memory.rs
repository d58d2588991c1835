//! A store in memory: what a workload has written lies open, and nothing else takes time.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use tamarack_bench::{Change, Collected, Collector, Cursor, KeyRange, Store, Written};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// The store.
#[derive(Debug, Default)]
pub struct Memory {
    entries: RwLock<Entries>,
    puts: AtomicU64,
    /// How many writes were to be synced.
    synced: AtomicU64,
    /// How often each key was read by itself.
    gets: Mutex<BTreeMap<Vec<u8>, u64>>,
    walks: AtomicU64,
    /// At which put it takes so long.
    stall: Option<(u64, Duration)>,
    /// For how long it is watched until it is known to have settled.
    watched: Duration,
    /// Whether it collects when it is asked to.
    collects: bool,
    /// What it held when it was compacted, if it was.
    compacted: Mutex<Option<Entries>>,
    /// How often it was asked to collect.
    collections: AtomicU64,
    /// Keys by the order in which they came: each with its number.
    inserted: Mutex<BTreeMap<Vec<u8>, usize>>,
    /// How often a key was read by itself than which so many others had come later.
    ages: Mutex<BTreeMap<usize, u64>>,
}

impl Memory {
    /// One that collects garbage when it is asked to.
    pub fn that_collects() -> Self {
        Self { collects: true, ..Self::default() }
    }

    /// One of whose puts, the one with this number, takes so long.
    pub fn that_stalls(put: u64, time: Duration) -> Self {
        Self { stall: Some((put, time)), ..Self::default() }
    }

    /// One that is watched for so long until it is known to have settled.
    pub fn that_is_watched(watched: Duration) -> Self {
        Self { watched, ..Self::default() }
    }

    /// What it held when it was compacted, if it was.
    pub fn compacted(&self) -> Option<Entries> {
        self.compacted.lock().expect("nobody panics with the lock").clone()
    }

    /// How often it was asked to collect.
    pub fn collections(&self) -> u64 {
        self.collections.load(Ordering::Relaxed)
    }

    /// A copy of what is in it.
    pub fn entries(&self) -> Entries {
        self.entries.read().expect("nobody panics with the lock").clone()
    }

    /// How many puts there were.
    pub fn puts(&self) -> u64 {
        self.puts.load(Ordering::Relaxed)
    }

    /// How often each key was read by itself.
    pub fn gets(&self) -> BTreeMap<Vec<u8>, u64> {
        self.gets.lock().expect("nobody panics with the lock").clone()
    }

    /// How often a key was read by itself than which so many others had come later.
    pub fn ages(&self) -> BTreeMap<usize, u64> {
        self.ages.lock().expect("nobody panics with the lock").clone()
    }

    fn inserting(&self, key: &[u8]) {
        let mut inserted = self.inserted.lock().expect("nobody panics with the lock");
        let number = inserted.len();
        inserted.entry(key.to_vec()).or_insert(number);
    }

    fn note_age(&self, key: &[u8]) {
        let inserted = self.inserted.lock().expect("nobody panics with the lock");
        if let Some(number) = inserted.get(key) {
            let mut ages = self.ages.lock().expect("nobody panics with the lock");
            *ages.entry(inserted.len() - 1 - number).or_default() += 1;
        }
    }

    /// How many writes were to be synced.
    pub fn synced(&self) -> u64 {
        self.synced.load(Ordering::Relaxed)
    }

    fn note_sync(&self, sync: bool) {
        self.synced.fetch_add(sync.into(), Ordering::Relaxed);
    }

    /// How many walks there were.
    pub fn walks(&self) -> u64 {
        self.walks.load(Ordering::Relaxed)
    }

    fn change(&self, change: impl FnOnce(&mut Entries)) -> Result<(), Infallible> {
        change(&mut self.entries.write().expect("nobody panics with the lock"));
        Ok(())
    }
}

impl Store for Memory {
    type Error = Infallible;
    type Cursor<'a> = Walk<'a>;

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), Infallible> {
        self.note_sync(sync);
        let put = self.puts.fetch_add(1, Ordering::Relaxed);
        if let Some((_, time)) = self.stall.filter(|(stalled, _)| *stalled == put) {
            std::thread::sleep(time);
        }
        self.inserting(key);
        self.change(|entries| drop(entries.insert(key.to_vec(), value.to_vec())))
    }

    fn delete(&self, key: &[u8], sync: bool) -> Result<(), Infallible> {
        self.note_sync(sync);
        self.change(|entries| drop(entries.remove(key)))
    }

    fn write(&self, changes: &[Change<'_>], sync: bool) -> Result<(), Infallible> {
        self.note_sync(sync);
        let puts = changes
            .iter()
            .filter_map(|change| if let Change::Put(key, _) = change { Some(key) } else { None });
        puts.for_each(|key| self.inserting(key));
        self.change(|entries| {
            for change in changes {
                match change {
                    Change::Put(key, value) => drop(entries.insert(key.to_vec(), value.to_vec())),
                    Change::Delete(key) => drop(entries.remove(*key)),
                }
            }
        })
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Infallible> {
        value.clear();
        self.note_age(key);
        *self.gets.lock().expect("nobody panics with the lock").entry(key.to_vec()).or_default() += 1;
        let entries = self.entries.read().expect("nobody panics with the lock");
        let found = entries.get(key);
        value.extend_from_slice(found.map_or(&[][..], Vec::as_slice));
        Ok(found.is_some())
    }

    fn multi_get(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Infallible> {
        let entries = self.entries.read().expect("nobody panics with the lock");
        Ok(keys.iter().map(|key| entries.get(key).cloned()).collect())
    }

    fn walk(&self, range: KeyRange<'_>, backward: bool) -> Result<Walk<'_>, Infallible> {
        self.walks.fetch_add(1, Ordering::Relaxed);
        let rest = (range.0.map(<[u8]>::to_vec), range.1.map(<[u8]>::to_vec));
        Ok(Walk { entries: &self.entries, rest, backward, entry: (Vec::new(), Vec::new()) })
    }

    fn settle(&self) -> Result<Duration, Infallible> {
        std::thread::sleep(self.watched);
        Ok(self.watched)
    }

    fn written(&self) -> Option<Written> {
        None
    }

    fn collector(&self) -> Option<&dyn Collector<Error = Infallible>> {
        self.collects.then_some(self)
    }
}

impl Collector for Memory {
    type Error = Infallible;

    fn compact(&self) -> Result<(), Infallible> {
        *self.compacted.lock().expect("nobody panics with the lock") = Some(self.entries());
        Ok(())
    }

    /// Each second time there is nothing to do.
    fn collect_once(&self) -> Result<Collected, Infallible> {
        let before = self.collections.fetch_add(1, Ordering::Relaxed);
        let collected = Collected { collected_files: 1, copied_bytes: 20, freed_bytes: 300 };
        Ok(if before.is_multiple_of(2) { collected } else { Collected::default() })
    }
}

/// A walk, which looks anew for each entry.
pub struct Walk<'a> {
    entries: &'a RwLock<Entries>,
    rest: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    backward: bool,
    entry: (Vec<u8>, Vec<u8>),
}

impl Cursor for Walk<'_> {
    type Error = Infallible;

    fn advance(&mut self) -> Result<bool, Infallible> {
        let entries = self.entries.read().expect("nobody panics with the lock");
        let mut range = entries.range(self.rest.clone());
        let Some((key, value)) = (if self.backward { range.next_back() } else { range.next() }) else {
            return Ok(false);
        };
        self.entry = (key.clone(), value.clone());
        *(if self.backward { &mut self.rest.1 } else { &mut self.rest.0 }) = Bound::Excluded(key.clone());
        Ok(true)
    }

    fn key(&self) -> &[u8] {
        &self.entry.0
    }

    fn value(&mut self) -> Result<&[u8], Infallible> {
        Ok(&self.entry.1)
    }
}
