//! What the tests of garbage collection share: databases in which nothing happens unless it is asked for, and what
//! must hold of one whatever was collected.

#![allow(clippy::disallowed_types, reason = "watchers are called from the engine's own threads")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};

use tamarack::testing::{Call, Faults};
use tamarack::{Db, GcPolicy, IterOptions, Options, ReadOptions};

use super::{assert_clean, file_names, open, tiny};

/// Keys and values.
pub type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// Tiny segments, and memtables and levels so large that nothing is flushed, compacted or collected by itself.
pub fn quiet() -> Options {
    Options {
        memtable_bytes: 4 << 20,
        recovery_log_max: 64 << 20,
        level_bytes_base: 4 << 20,
        table_bytes_max: 64 << 10,
        max_space_amplification: 1000.0,
        gc: GcPolicy::Off,
        background_threads: 1,
        ..tiny()
    }
}

/// The key of that number.
pub fn key(number: usize) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// A value that no other key and round has.
pub fn value(number: usize, round: usize) -> Vec<u8> {
    format!("<{number:05}@{round:04}>").repeat(8).into_bytes()
}

/// Writes the value of `round` to each of `numbers`.
pub fn fill(db: &Db, model: &mut Content, numbers: impl IntoIterator<Item = usize>, round: usize) {
    for number in numbers {
        db.put(&key(number), &value(number, round)).unwrap();
        model.insert(key(number), value(number, round));
    }
}

/// Deletes each of `numbers`.
pub fn delete(db: &Db, model: &mut Content, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        db.delete(&key(number)).unwrap();
        model.remove(&key(number));
    }
}

/// Compacts everything and waits until nothing runs: a compaction that ends later keeps what it may come to.
pub fn compact(db: &Db) {
    db.compact_range(None, None).unwrap();
    db.wait_idle().unwrap();
}

/// How many keys [`half_dead`] writes.
pub const KEYS: usize = 200;

/// Writes segments of which half is dead, and knows it, because tables were compacted.
pub fn half_dead(db: &Db) -> Content {
    let mut model = Content::new();
    fill(db, &mut model, 0..KEYS, 0);
    db.flush().unwrap();
    fill(db, &mut model, (0..KEYS).step_by(2), 1);
    compact(db);
    model
}

/// Panics unless `db` holds exactly `model`, however it is read, now or at the moment of `settings`.
pub fn assert_holds_at(db: &Db, model: &Content, settings: &ReadOptions, what: &str) {
    for (key, value) in model {
        let found = db.get_with(key, settings).unwrap_or_else(|error| panic!("{what}: get: {error}"));
        assert!(found.as_ref() == Some(value), "{what}: {} is {found:?}", key.escape_ascii());
    }
    let keys: Vec<_> = model.keys().collect();
    for (key, found) in keys.iter().zip(db.multi_get(&keys, settings)) {
        let found = found.unwrap_or_else(|error| panic!("{what}: multi_get: {error}"));
        assert!(found.as_ref() == Some(&model[*key]), "{what}: {} is {found:?}", key.escape_ascii());
    }
    let options = IterOptions { snapshot: settings.snapshot.clone(), ..IterOptions::default() };
    let forward = walk(db, &options, false).unwrap_or_else(|error| panic!("{what}: forward: {error}"));
    let backward = walk(db, &options, true).unwrap_or_else(|error| panic!("{what}: backward: {error}"));
    assert!(forward.iter().map(|(key, value)| (key, value)).eq(model), "{what}: forward");
    assert!(backward.iter().map(|(key, value)| (key, value)).eq(model.iter().rev()), "{what}: backward");
}

/// The same for the present, and every byte on disk is right.
pub fn assert_holds(db: &Db, model: &Content, what: &str) {
    assert_holds_at(db, model, &ReadOptions::default(), what);
    let report = db.check(tamarack::CheckLevel::Values);
    assert!(report.is_clean(), "{what}: {:#?}", report.problems);
}

/// Waits until a close of `db` has begun, as far as writers can tell.
pub fn wait_for_close(db: &Db) {
    while db.delete(b"nothing").is_ok() {
        std::thread::yield_now();
    }
}

/// Everything from one end to the other.
pub fn walk(db: &Db, options: &IterOptions, backward: bool) -> tamarack::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut iter = db.iter(options)?;
    if backward {
        iter.seek_to_last()?
    } else {
        iter.seek_to_first()?
    }
    let mut found = Vec::new();
    while iter.valid() {
        found.push((iter.key().to_vec(), iter.value()?.to_vec()));
        if backward { iter.prev()? } else { iter.next()? }
    }
    Ok(found)
}

/// The first id of a cold segment.
pub const COLD_FIRST: u32 = 1 << 31;

/// The names of the cold segments in `directory`.
pub fn cold_files(directory: &Path) -> BTreeSet<String> {
    file_names(directory).into_iter().filter(|name| name.ends_with(".cold")).collect()
}

/// The name of the file of segment `id`.
pub fn segment_name(id: u32) -> String {
    match id.checked_sub(COLD_FIRST) {
        Some(number) => format!("{number:06}.cold"),
        None => format!("{id:06}.vlog"),
    }
}

/// Panics unless the cold segments in the directory of `db`, once it has come to rest, are those it knows. No reader
/// may hold others.
pub fn assert_no_orphans(db: &Db, directory: &Path, what: &str) {
    db.wait_idle().unwrap_or_else(|error| panic!("{what}: {error}"));
    let segments = db.stats().segments;
    let known = segments.iter().map(|segment| segment.id).filter(|&id| id >= COLD_FIRST);
    let known: BTreeSet<_> = known.map(segment_name).collect();
    // Whoever happens to look at the database may be the last to hold a file, and it is removed a little later.
    for _ in 0..6000 {
        if cold_files(directory) == known {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(cold_files(directory), known, "{what}: cold segments");
}

/// Opens the database in `path` in a world without faults: everything is there, nothing is left over, it can be
/// written and collected, and the same holds after another open.
pub fn assert_recovers(path: &Path, options: &Options, model: &Content, what: &str) {
    let open = || open(path, options).unwrap_or_else(|error| panic!("{what}: open: {error}"));
    let mut model = model.clone();
    let db = open();
    assert_no_orphans(&db, path, what);
    assert_holds(&db, &model, what);
    fill(&db, &mut model, (0..KEYS).step_by(7), 1000);
    db.flush().unwrap();
    db.gc(tamarack::GcGoal::Until(1.0)).unwrap_or_else(|error| panic!("{what}: gc: {error}"));
    assert_holds(&db, &model, what);
    db.close().unwrap();
    let db = open();
    assert_no_orphans(&db, path, what);
    assert_holds_at(&db, &model, &ReadOptions::default(), what);
    assert_clean(&db);
    db.close().unwrap();
}

/// Holds every call of a kind until it is dropped.
pub struct Hold(Arc<(Mutex<Held>, Condvar)>);

#[derive(Default)]
struct Held {
    calls: usize,
    open: bool,
}

impl Hold {
    /// Holds each `call` whose path ends with `suffix` from now on.
    pub fn at(faults: &Faults, call: Call, suffix: &'static str) -> Self {
        let shared = Arc::new((Mutex::new(Held::default()), Condvar::new()));
        let watched = Arc::clone(&shared);
        faults.watch(move |made, path| {
            if made == call && path.as_os_str().as_encoded_bytes().ends_with(suffix.as_bytes()) {
                let (held, changed) = &*watched;
                let mut held = held.lock().unwrap();
                held.calls += 1;
                changed.notify_all();
                drop(changed.wait_while(held, |held| !held.open).unwrap());
            }
        });
        Self(shared)
    }

    /// Waits until so many calls are held.
    pub fn wait_for(&self, calls: usize) {
        let (held, changed) = &*self.0;
        drop(changed.wait_while(held.lock().unwrap(), |held| held.calls < calls).unwrap());
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let (held, changed) = &*self.0;
        held.lock().unwrap().open = true;
        changed.notify_all();
    }
}

/// Holds the first call of a kind until it is opened, or dropped.
pub struct Gate {
    reached: Receiver<()>,
    _open: Sender<()>,
}

impl Gate {
    /// Holds the next `call` whose path ends with `suffix`.
    pub fn at(faults: &Faults, call: Call, suffix: &'static str) -> Self {
        Self::when(faults, move |made, path| {
            made == call && path.as_os_str().as_encoded_bytes().ends_with(suffix.as_bytes())
        })
    }

    /// Holds the first call that `is_it`.
    pub fn when(faults: &Faults, is_it: impl Fn(Call, &Path) -> bool + Send + Sync + 'static) -> Self {
        let (reach, reached) = channel();
        let (open, opened) = channel::<()>();
        let closed = Mutex::new(Some(opened));
        faults.watch(move |made, path| {
            if is_it(made, path) {
                let Some(opened) = closed.lock().unwrap().take() else { return };
                // Nobody waits for the call any more if the test has failed.
                reach.send(()).ok();
                assert!(opened.recv().is_err(), "the gate opens when it is dropped");
            }
        });
        Self { reached, _open: open }
    }

    /// Waits until the call is held.
    pub fn wait(&self) {
        self.reached.recv().expect("the call is made");
    }
}
