//! A process above the disk: it mounts the file system, lives in it with a database, and tells what it may rely on.
//!
//! It is a process of its own because it waits for the file system, and that for the disk: who serves the disk must never
//! wait so. What it finds wrong it says by a panic.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};
use tamarack::testing::Random;
use tamarack::{CheckLevel, Db, GcGoal, IterOptions, Options, WriteOptions};

use crate::batches::{Batches, LAST, State};
use crate::commands::run;
use crate::facts::{Bounds, Fact, Teller};

/// How a process ends whose file system cannot be mounted.
pub const NOT_MOUNTED: i32 = 3;
/// What it says before the number of batches that it has found.
pub const FOUND: &str = "found ";
/// What it says before a name and a number, of things that happened in the engine.
pub const COUNT: &str = "count ";

/// Batches of the life that is recorded.
const BATCHES: u64 = 120;
/// Batches of the life after a loss of power.
const LATER_BATCHES: u64 = 6;
const DATABASE: &str = "db";
/// Before the number of batches, in the names of checkpoints.
const COPY: &str = "copy-";

/// Where a process lives.
pub struct Place {
    /// The kind of the file system.
    pub kind: String,
    /// The image of the disk.
    pub image: PathBuf,
    /// The file that tells the position in the disk's log.
    pub position: PathBuf,
    /// Where to mount.
    pub mount: PathBuf,
    /// Which batches are written.
    pub seed: u64,
}

/// A database, and what is known of it.
struct Life {
    db: Db,
    root: PathBuf,
    batches: Batches,
    number: u64,
    random: Random,
    teller: Teller,
}

/// Lives on a new file system until its hundred batches or so are written.
pub fn first(place: &Place) {
    let teller = mount(place);
    let mut life = Life::open(place, teller, 0);
    life = (0..BATCHES).fold(life, |life, _| life.step());
    life.db.wait_idle().expect("background work goes well");
    life.end();
    unmount(place);
}

/// Lives after a loss of power: what is found must lie in `bounds`.
pub fn after(place: &Place, bounds: &Bounds) {
    let teller = mount(place);
    let mut life = Life::open(place, teller, bounds.most);
    println!("{FOUND}{}", life.number);
    let found = life.number;
    assert!(
        (bounds.least..=bounds.most).contains(&found),
        "{found} batches are there: {} were durable, {} were begun",
        bounds.least,
        bounds.most
    );
    life.assert_whole("after the loss of power");
    check_copies(&life.root, place.seed, bounds);
    life = (0..LATER_BATCHES).fold(life, |life, _| life.step());
    life.write(true);
    life.db.flush().expect("flush");
    life.db.gc(GcGoal::Once).expect("gc");
    life.assert_whole("after more batches");
    life = life.reopen();
    life.assert_whole("opened again");
    life.end();
    unmount(place);
}

fn mount(place: &Place) -> Teller {
    if place.kind == "btrfs" {
        // Btrfs refuses an older state of a disk that it remembers.
        run("btrfs", &["device", "scan", "--forget"]).expect("unused devices can be forgotten");
    }
    let options = format!("loop,{}", mount_options(&place.kind, place.seed));
    let words = ["-t", &place.kind, "-o", &options, text(&place.image), text(&place.mount)];
    if let Err(why) = run("mount", &words) {
        println!("{why}");
        std::process::exit(NOT_MOUNTED);
    }
    Teller::new(&place.position).expect("the disk tells its position")
}

/// Other ways to write data, for one seed in two: ext4 without an order of data and names, or with data in the journal;
/// Btrfs in place and without checksums, or compressed.
fn mount_options(kind: &str, seed: u64) -> &'static str {
    match (kind, seed % 4) {
        ("ext4", 1) => "data=writeback",
        ("ext4", 3) => "data=journal",
        ("btrfs", 1) => "nodatacow",
        ("btrfs", 3) => "compress=zstd",
        _ => "defaults",
    }
}

fn unmount(place: &Place) {
    run("umount", &[text(&place.mount)]).expect("nobody uses the file system any more");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("our paths are text")
}

fn last(db: &Db) -> u64 {
    let value = db.get(LAST).expect("get of the last number");
    value.map_or(0, |number| u64::from_le_bytes(number.try_into().expect("numbers have eight bytes")))
}

fn content(db: &Db) -> State {
    let iter = db.iter(&IterOptions::default()).expect("a walk begins");
    iter.entries().map(|entry| entry.expect("a walk goes on")).collect()
}

/// Panics unless `db` holds what the first `number` batches come to, by each way of reading, and is whole.
fn assert_state(db: &Db, batches: Batches, number: u64, what: &str) {
    let state = batches.state(number);
    assert!(content(db) == state, "{what}: this is not what the first {number} batches come to");
    for (key, value) in &state {
        assert!(db.get(key).expect("get").as_ref() == Some(value), "{what}: get of {}", key.escape_ascii());
    }
    let report = db.check(CheckLevel::Values);
    assert!(report.is_clean(), "{what}: {:#?}", report.problems);
}

/// Checkpoints that are there are whole, and those that must be there are.
fn check_copies(root: &Path, seed: u64, bounds: &Bounds) {
    let batches = Batches::new(seed);
    let mut there = Vec::new();
    for entry in std::fs::read_dir(root).expect("the root of the file system is readable") {
        let path = entry.expect("the root of the file system is readable").path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_prefix(COPY)?.parse::<u64>().ok());
        let Some(number) = number else { continue };
        if path.join("CURRENT").exists() {
            let db =
                Db::open(&path, batches.options()).unwrap_or_else(|error| panic!("{COPY}{number}: {error}"));
            assert_state(&db, batches, number, "a checkpoint");
            there.push(number);
        }
    }
    for number in &bounds.copies {
        assert!(there.contains(number), "the checkpoint of {number} batches is gone; there are {there:?}");
    }
}

impl Life {
    fn open(place: &Place, teller: Teller, moment: u64) -> Self {
        let batches = Batches::new(place.seed);
        let db = open(&place.mount.join(DATABASE), batches.options());
        let number = last(&db);
        // When open returns, what it has found is durable.
        teller.tell(Fact::Durable(number));
        let random = batches.random(u64::MAX / 2 + moment);
        Self { db, root: place.mount.clone(), batches, number, random, teller }
    }

    /// Ends, and begins again.
    fn reopen(self) -> Self {
        tell_counts(&self.db);
        self.db.close().expect("close");
        let db = open(&self.root.join(DATABASE), self.batches.options());
        assert_eq!(last(&db), self.number, "batches were lost without a loss of power");
        self.teller.tell(Fact::Durable(self.number));
        Self { db, ..self }
    }

    /// The next batch, and now and then something else.
    fn step(mut self) -> Self {
        if self.random.one_in(3) {
            self.write_back();
        }
        let sync = self.random.one_in(4);
        self.write(sync);
        match self.random.below(60) {
            0..=1 => drop(self.db.gc(GcGoal::Once).expect("gc")),
            2..=3 => self.db.flush().expect("flush"),
            4..=6 => {
                self.db.sync().expect("sync");
                self.teller.tell(Fact::Durable(self.number));
            }
            7 => self.db.compact_range(None, None).expect("compaction"),
            8 => self.copy(),
            9..=10 => return self.reopen(),
            // What has died of large values must be in tables before holes are punched where it lay.
            11..=16 if self.batches.are_large() => {
                self.db.flush().expect("flush");
                self.db.gc(GcGoal::Until(1.0)).expect("gc");
            }
            _ => {}
        }
        self
    }

    fn write(&mut self, sync: bool) {
        self.number += 1;
        let batch = self.batches.batch(self.number).expect("batches keep to the limits");
        self.teller.tell(Fact::Issued(self.number));
        self.db.write(&batch, &WriteOptions { sync }).expect("write");
        if sync {
            self.teller.tell(Fact::Durable(self.number));
        }
    }

    /// Lets the kernel write what is dirty of one file, in its own time and without a flush, as it does by itself after some
    /// seconds: so writes are in flight that nobody has asked for.
    fn write_back(&mut self) {
        let entries =
            std::fs::read_dir(self.root.join(DATABASE)).expect("the database's directory is readable");
        let paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        let path = &paths[self.random.below(paths.len() as u64) as usize];
        // Gone, if it was just removed.
        if let Ok(file) = File::open(path) {
            fadvise(file, 0, None, Advice::DontNeed).expect("advice is taken");
        }
    }

    fn copy(&self) {
        let path = self.root.join(format!("{COPY}{}", self.number));
        // One that a loss of power has left before this batch was written once more.
        if path.exists() {
            return;
        }
        self.db.checkpoint(&path).expect("checkpoint");
        self.teller.tell(Fact::Copied(self.number));
    }

    fn assert_whole(&self, what: &str) {
        assert_state(&self.db, self.batches, self.number, what);
    }

    fn end(self) {
        tell_counts(&self.db);
        self.db.close().expect("close");
    }
}

/// What has happened in the engine since it was opened.
fn tell_counts(db: &Db) {
    let stats = db.stats();
    println!("{COUNT}collections {}", stats.collections);
    println!("{COUNT}punched {}", stats.punched_segments);
    println!("{COUNT}compactions {}", stats.compactions);
}

fn open(path: &Path, options: Options) -> Db {
    Db::open(path, options).unwrap_or_else(|error| panic!("open: {error}"))
}
