//! Every byte of every file of small databases has one bit flipped, each time another one. Whatever is read then is right,
//! or an error that names the file: never a missing key, a wrong value or a panic. And a byte of a sealed segment costs
//! no more than the record it is part of.
//!
//! The databases are on a simulated disk. They have tables of several levels, segments of the log, sealed and not, cold
//! segments with relocation tables, holes, and files that mean nothing; one is as a killed process leaves it, one closed.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests prepare and inspect their world")]
#![cfg(not(shuttle))]

mod common;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use common::garbage::{Content, compact, delete, fill, key, quiet};
use common::time::unwatched;
use common::{PATIENCE_SECONDS, Watchdog};
use tamarack::testing::{SimDisk, SimOptions};
use tamarack::{
    CheckLevel, Codec, Db, Error, ErrorKind, GcGoal, IterOptions, Options, ReadOptions, WriteOptions,
};

const DIRECTORY: &str = "/db";
const KEYS: usize = 96;
const WORKERS: usize = 2;
/// A table that nobody mentions.
const ORPHAN: &str = "000099.table";
/// Of the bytes of large values, and of holes, so many are one.
const LARGE_STEP: usize = 997;

/// A database at rest.
struct Golden {
    name: &'static str,
    disk: SimDisk,
    options: Options,
    model: Content,
    absent: Vec<Vec<u8>>,
}

fn open(disk: &SimDisk, options: &Options) -> tamarack::Result<Db> {
    Db::open_with_env(DIRECTORY, options.clone(), &unwatched(disk.env()))
}

fn options() -> Options {
    Options { block_codec: Codec::Lz4, block_cache_bytes: 64 << 10, ..quiet() }
}

fn world() -> SimDisk {
    SimDisk::new(&SimOptions { block_bytes: 512, ..SimOptions::default() })
}

/// Small values, which tables hold themselves.
fn put_inline(db: &Db, model: &mut Content, round: usize) {
    for number in (0..KEYS).step_by(6) {
        let (key, value) = (format!("in{number:03}").into_bytes(), format!("{round}@{number}").into_bytes());
        db.put(&key, &value).unwrap();
        model.insert(key, value);
    }
}

/// Tables of two levels, and cold segments that hold what was alive in the first ones.
fn grow(db: &Db) -> Content {
    let mut model = Content::new();
    fill(db, &mut model, 0..KEYS, 0);
    put_inline(db, &mut model, 0);
    db.flush().unwrap();
    fill(db, &mut model, (0..KEYS).step_by(2), 1);
    compact(db);
    assert!(db.gc(GcGoal::Until(1.0)).unwrap().segments > 1);
    fill(db, &mut model, (0..KEYS).step_by(7), 2);
    delete(db, &mut model, [1, 33, 70]);
    db.flush().unwrap();
    assert!(db.stats().levels.iter().filter(|level| level.tables > 0).count() > 1);
    model
}

impl Golden {
    /// As a kill leaves it: the log goes on behind what tables hold, one segment of it is sealed, and all was synced.
    fn killed() -> Self {
        let disk = world();
        let db = open(&disk, &options()).unwrap();
        let mut model = grow(&db);
        fill(&db, &mut model, (0..KEYS).step_by(2), 3);
        put_inline(&db, &mut model, 1);
        delete(&db, &mut model, [5, 34]);
        fill(&db, &mut model, [2, 9], 4);
        // What is damaged behind the last sync is a torn tail: it goes, and nobody can tell.
        db.sync().unwrap();
        // What means nothing: a table nobody mentions, a file that was being written, one of somebody else.
        let killed = disk.kill();
        for (name, bytes) in [(ORPHAN, &b"table"[..]), ("CURRENT.tmp", b"MANI"), ("NOTES", b"mine")] {
            write(&killed, name, bytes);
        }
        Self::new("killed", killed, options(), model)
    }

    fn closed() -> Self {
        let disk = world();
        let db = open(&disk, &options()).unwrap();
        let mut model = grow(&db);
        fill(&db, &mut model, [2, 9], 4);
        db.close().unwrap();
        Self::new("closed", disk.kill(), options(), model)
    }

    /// With segments in whose files there are holes.
    fn holed() -> Self {
        let disk = world();
        let options = Options { segment_bytes_max: 1 << 20, ..options() };
        let db = open(&disk, &options).unwrap();
        let mut model = Content::new();
        let mut put = |number: usize, len: usize| {
            let value: Vec<u8> =
                format!("{number}:{len};").into_bytes().into_iter().cycle().take(len).collect();
            db.put(&key(number), &value).unwrap();
            model.insert(key(number), value);
        };
        (0..8).for_each(|number| put(number, 150 << 10));
        db.flush().unwrap();
        (0..8).step_by(2).for_each(|number| put(number, 300));
        compact(&db);
        assert!(db.gc(GcGoal::Once).unwrap().punched > 0);
        db.flush().unwrap();
        Self::new("holed", disk.kill(), options, model)
    }

    fn new(name: &'static str, disk: SimDisk, options: Options, model: Content) -> Self {
        let absent = [key(KEYS + 3), b"".to_vec(), b"zzz".to_vec()];
        let deleted = (0..KEYS).map(key).filter(|key| !model.contains_key(key));
        let absent = absent.into_iter().chain(deleted.take(8)).collect();
        Self { name, disk, options, model, absent }
    }

    fn files(&self) -> Vec<String> {
        let mut names = self.disk.env().fs.list(Path::new(DIRECTORY)).unwrap();
        names.sort();
        names
    }
}

fn write(disk: &SimDisk, name: &str, bytes: &[u8]) {
    let path = Path::new(DIRECTORY).join(name);
    disk.env().fs.create_new(&path).unwrap().write_at(bytes, 0).unwrap();
}

fn read(disk: &SimDisk, name: &str) -> Vec<u8> {
    let file = disk.env().fs.open_read(&Path::new(DIRECTORY).join(name)).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

/// Sets byte `at` of a file.
fn set(disk: &SimDisk, name: &str, at: usize, byte: u8) {
    let file = disk.env().fs.open_write(&Path::new(DIRECTORY).join(name)).unwrap();
    file.write_at(&[byte], at as u64).unwrap();
}

/// What a flipped bit has led to.
struct Outcome<'a> {
    file: &'a str,
    what: String,
    refused: bool,
    errors: usize,
    problems: usize,
}

impl Outcome<'_> {
    fn unless_error<T>(&mut self, outcome: tamarack::Result<T>) -> Option<T> {
        outcome.map_err(|error| (self.errors += 1, self.accept(&error))).ok()
    }

    /// An error is acceptable if it says what is wrong and where.
    fn accept(&self, error: &Error) {
        let what = &self.what;
        match error.kind() {
            ErrorKind::Corruption => assert_eq!(named(error).0, self.file, "{what}: {error}"),
            ErrorKind::Unsupported => assert!(error.message().contains(self.file), "{what}: {error}"),
            kind => panic!("{what}: {kind}: {error}"),
        }
    }

    /// Reads everything in every way.
    fn read(&mut self, db: &Db, golden: &Golden) {
        let what = self.what.clone();
        let keys: Vec<_> = golden.model.keys().collect();
        for (key, together) in keys.iter().zip(db.multi_get(&keys, &ReadOptions::default())) {
            for found in [db.get(key), together] {
                if let Some(found) = self.unless_error(found) {
                    assert!(found.as_ref() == Some(&golden.model[*key]), "{what}: {}", key.escape_ascii());
                }
            }
        }
        for key in &golden.absent {
            if let Some(found) = self.unless_error(db.get(key)) {
                assert!(found.is_none(), "{what}: {} is there", key.escape_ascii());
            }
        }
        for backward in [false, true] {
            self.walk(db, golden, backward);
        }
        let problems = db.check(CheckLevel::Values).problems;
        self.problems += problems.len();
        problems.iter().for_each(|problem| self.accept(problem));
    }

    /// Walks until the end or an error of the walk: what comes before it is right.
    fn walk(&mut self, db: &Db, golden: &Golden, backward: bool) {
        let what = format!("{}, backward: {backward}", self.what);
        let Some(mut iter) = self.unless_error(db.iter(&IterOptions::default())) else { return };
        let mut moved = self.unless_error(if backward { iter.seek_to_last() } else { iter.seek_to_first() });
        let mut expected: Vec<_> = golden.model.iter().collect();
        if backward {
            expected.reverse();
        }
        for (key, value) in expected {
            if moved.is_none() {
                return;
            }
            assert!(iter.valid(), "{what}: a walk ends before {}", key.escape_ascii());
            assert_eq!(iter.key(), key, "{what}");
            if let Some(found) = self.unless_error(iter.value().map(<[u8]>::to_vec)) {
                assert!(&found == value, "{what}: another value of {}", key.escape_ascii());
            }
            moved = self.unless_error(if backward { iter.prev() } else { iter.next() });
        }
        assert!(moved.is_none() || !iter.valid(), "{what}: a walk goes on behind the end");
    }
}

fn named(error: &Error) -> (String, u64) {
    let place = error.as_corruption().unwrap_or_else(|| panic!("no place in {error}"));
    (place.file.file_name().unwrap().to_str().unwrap().to_owned(), place.offset)
}

/// How many flips of a file led to what.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    flips: usize,
    refused: usize,
    errors: usize,
    checked: usize,
    irrelevant: usize,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.flips += other.flips;
        self.refused += other.refused;
        self.errors += other.errors;
        self.checked += other.checked;
        self.irrelevant += other.irrelevant;
    }

    fn note(&mut self, outcome: &Outcome<'_>) {
        self.flips += 1;
        match outcome {
            Outcome { refused: true, .. } => self.refused += 1,
            Outcome { errors: 1.., .. } => self.errors += 1,
            Outcome { problems: 1.., .. } => self.checked += 1,
            _ => self.irrelevant += 1,
        }
    }
}

/// The kind of a file: its name without digits.
fn kind(name: &str) -> String {
    if name == ORPHAN {
        return format!("{name}, an orphan");
    }
    name.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// The bytes of a file that are flipped: all; of long stretches that do not begin or end anything, some.
fn places(bytes: &[u8]) -> Vec<usize> {
    let edge = 4096;
    let far = |at: &usize| bytes.len() > 64 << 10 && *at > edge && *at + edge < bytes.len();
    (0..bytes.len()).filter(|at| !far(at) || at % LARGE_STEP == 0).collect()
}

/// Flips a bit of every `step`th byte of each file, of those that are this worker's.
fn flip_files(golden: &Golden, step: usize, worker: usize) -> BTreeMap<String, Counts> {
    let disk = golden.disk.kill();
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    for name in golden.files() {
        let bytes = read(&disk, &name);
        let count = counts.entry(kind(&name)).or_default();
        for at in places(&bytes).into_iter().filter(|at| at % step == 0 && at / step % WORKERS == worker) {
            let what = format!("{}: {name}, bit {} of byte {at} of {}", golden.name, at % 8, bytes.len());
            set(&disk, &name, at, bytes[at] ^ 1 << (at % 8));
            let mut outcome = Outcome { file: &name, what, refused: false, errors: 0, problems: 0 };
            let read_only = Options { read_only: true, ..golden.options.clone() };
            match open(&disk, &read_only) {
                Ok(db) => outcome.read(&db, golden),
                Err(error) => {
                    outcome.accept(&error);
                    outcome.refused = true;
                }
            }
            count.note(&outcome);
            if at % 49 == 0 {
                use_and_open_again(&disk.kill(), golden, &mut outcome);
            }
            set(&disk, &name, at, bytes[at]);
        }
    }
    counts
}

/// Whatever the engine does with what it finds, it drops nothing.
fn use_and_open_again(disk: &SimDisk, golden: &Golden, outcome: &mut Outcome<'_>) {
    outcome.what += ", for writing";
    for _ in 0..2 {
        let Some(db) = outcome.unless_error(open(disk, &golden.options)) else { return };
        outcome.read(&db, golden);
        outcome.unless_error(db.gc(GcGoal::Until(1.0)));
        outcome.unless_error(db.flush());
        outcome.unless_error(db.compact_range(None, None));
        outcome.read(&db, golden);
        drop(db);
    }
}

#[test]
fn a_flipped_bit_anywhere_gives_an_error_or_the_right_answer() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "flipping a bit of every byte");
    for (golden, step) in [(Golden::killed(), 1), (Golden::closed(), 3), (Golden::holed(), 3)] {
        let mut total: BTreeMap<String, Counts> = BTreeMap::new();
        std::thread::scope(|scope| {
            let golden = &golden;
            let workers: Vec<_> =
                (0..WORKERS).map(|worker| scope.spawn(move || flip_files(golden, step, worker))).collect();
            for worker in workers {
                for (kind, counts) in worker.join().unwrap() {
                    total.entry(kind).or_default().add(&counts);
                }
            }
        });
        for (kind, Counts { flips, refused, errors, checked, irrelevant }) in &total {
            tell(&format!(
                "rot, {} {kind}: {flips} bytes: {refused} refused, {errors} errors, {checked} found by check alone, \
                 {irrelevant} irrelevant",
                golden.name
            ));
            let allowed = match &kind[..] {
                "CURRENT" | ".table" | ".cold" => 0,
                // The mark behind the last edit, without which that counts as well.
                "MANIFEST-" => 12,
                // Zeros behind the end of the log, holes, and what does not belong here.
                _ => usize::MAX,
            };
            assert!(*irrelevant <= allowed, "{}, {kind}: {irrelevant} bytes do not matter", golden.name);
        }
    }
}

fn tell(words: &str) {
    std::io::stderr().write_all(format!("{words}\n").as_bytes()).unwrap();
}

/// Where the present value of each key is: file, and range of bytes.
fn records(golden: &Golden) -> BTreeMap<(String, usize), (usize, Vec<u8>)> {
    const RECORD_HEADER_BYTES: usize = 24;
    let segments = golden.files().into_iter().filter(|name| is_segment(name));
    let segments: Vec<_> = segments.map(|name| (read(&golden.disk, &name), name)).collect();
    let place = |(key, value): (&Vec<u8>, &Vec<u8>)| {
        let record = [&key[..], value].concat();
        let place = segments
            .iter()
            .rev()
            .find_map(|(bytes, name)| {
                let at = bytes.windows(record.len()).position(|window| window == record)?;
                Some((name.clone(), at - RECORD_HEADER_BYTES))
            })
            .map(|(name, at)| ((name, at), (at + RECORD_HEADER_BYTES + record.len(), key.clone())));
        // Segments whose every value is inline, or dead, are gone.
        assert!(place.is_some() || value.len() <= golden.options.inline_value_max, "{}", key.escape_ascii());
        place
    };
    golden.model.iter().filter_map(place).collect()
}

fn is_segment(name: &str) -> bool {
    name.ends_with(".vlog") || name.ends_with(".cold")
}

/// Panics unless every key but `touched` can be read; whether that one can not.
fn assert_others(db: &Db, golden: &Golden, touched: Option<&(Vec<u8>, String, u64)>, what: &str) -> bool {
    let mut lost = false;
    for (key, value) in &golden.model {
        match (db.get(key), touched.filter(|(damaged, _, _)| damaged == key)) {
            (Ok(found), _) => assert!(found.as_ref() == Some(value), "{what}: {}", key.escape_ascii()),
            (Err(error), Some((_, file, offset))) => {
                assert_eq!(named(&error), (file.clone(), *offset), "{what}: {error}");
                lost = true;
            }
            (Err(error), None) => panic!("{what}: costs {}: {error}", key.escape_ascii()),
        }
    }
    lost
}

/// Flips bits of one sealed segment, and reads everything else, also after collections and opened again; how many bytes
/// cost a record.
fn flip_segment(golden: &Golden, name: &str) -> (usize, usize) {
    let records = records(golden);
    let bytes = read(&golden.disk, name);
    let (mut costs, shared) = (0, golden.disk.kill());
    for at in 0..bytes.len() {
        // Most are read alone; every seventh database is used, and opened again.
        let used = at % 7 == 0;
        let disk = if used { golden.disk.kill() } else { shared.clone() };
        let options = Options { read_only: !used, ..golden.options.clone() };
        set(&disk, name, at, bytes[at] ^ 1 << (at % 8));
        let touched = records.range(..=(name.to_owned(), at)).next_back();
        let touched = touched.filter(|((file, _), (end, _))| file == name && at < *end);
        let touched = touched.map(|((file, start), (_, key))| (key.clone(), file.clone(), *start as u64));
        let what = format!("bit {} of byte {at} of {} of {name}", at % 8, bytes.len());
        for round in 0..1 + usize::from(used) {
            let what = format!("{what}, opened {round} times before");
            let db = open(&disk, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
            costs += usize::from(assert_others(&db, golden, touched.as_ref(), &what) && round == 0);
            // Collections leave alone what is damaged where it is alive, and go on with the others.
            if used {
                while let Err(error) = db.gc(GcGoal::Until(1.0)) {
                    assert_eq!(named(&error).0, name, "{what}: {error}");
                }
                if let Err(error) = db.compact_range(None, None) {
                    assert_eq!(named(&error).0, name, "{what}: {error}");
                }
                assert_others(&db, golden, touched.as_ref(), &format!("{what}, collected"));
            }
            if used {
                db.put_with(b"another", b"1", &WriteOptions { sync: true }).unwrap();
            }
            db.close().unwrap();
        }
        if !used {
            set(&disk, name, at, bytes[at]);
        }
    }
    (bytes.len(), costs)
}

#[test]
fn a_flipped_byte_of_a_sealed_segment_costs_at_most_its_record() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "flipping a bit of every byte of sealed segments");
    let disk = world();
    let db = open(&disk, &options()).unwrap();
    let mut model = grow(&db);
    // Segments that no table leads to yet, the last of which a close seals.
    fill(&db, &mut model, (0..KEYS).step_by(2), 3);
    put_inline(&db, &mut model, 1);
    delete(&db, &mut model, [5, 34]);
    db.close().unwrap();
    let golden = Golden::new("sealed", disk.kill(), options(), model);
    let sealed: Vec<_> = golden.files().into_iter().filter(|name| is_segment(name)).collect();
    assert!(
        sealed.iter().any(|name| name.ends_with(".cold"))
            && sealed.iter().any(|name| name.ends_with(".vlog"))
    );
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(name) = sealed.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let (bytes, costs) = flip_segment(&golden, name);
                    tell(&format!("rot, {name}: {costs} of {bytes} bytes cost their record, none another"));
                }
            });
        }
    });
}
