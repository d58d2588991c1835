//! A log in large pages, of which a sync writes all if one byte has changed: it is left while little is written between syncs, if there is room
//! elsewhere. And of which the system gives up all or nothing: they are parted where memory is scarce.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tamarack::testing::{Call, Env, FaultEnv, Faults, SimDisk, SimOptions};
use tamarack::{Db, ErrorKind, GcPolicy, Options, WriteBatch, WriteOptions};

use crate::common::assert_clean;
use crate::common::time::unwatched;

const LARGE_VALUE: usize = 1 << 20;
const SMALL_VALUE: usize = 1000;

/// A database, and what is to be found in it.
struct World {
    env: Env,
    faults: Arc<Faults>,
    options: Options,
    db: Option<Db>,
    written: Vec<Option<Vec<u8>>>,
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

impl World {
    /// On a disk whose files have large pages, of which much is to stay free.
    fn new(segment_bytes_max: u64) -> Self {
        Self::keeping(64 << 20, segment_bytes_max)
    }

    /// The same with another head-room.
    fn keeping(reserved_bytes: u64, segment_bytes_max: u64) -> Self {
        let (env, faults) = FaultEnv::new(unwatched(SimDisk::new(&SimOptions::default()).env()));
        let options =
            Options { segment_bytes_max, reserved_bytes: Some(reserved_bytes), ..Options::default() };
        let mut world = Self { env, faults, options, db: None, written: Vec::new() };
        world.open();
        world
    }

    /// One whose last segment has large pages, on a disk that is full by then.
    fn with_large_pages_on_a_full_disk(reserved_bytes: u64) -> Self {
        let mut world = Self::keeping(reserved_bytes, 64 << 20);
        for _ in 0..5 {
            world.put(LARGE_VALUE, false).unwrap();
        }
        world.fill_disk();
        world
    }

    fn open(&mut self) {
        self.db = Some(Db::open_with_env("/db", self.options.clone(), &self.env).unwrap());
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    /// Puts the next key; returns how many segments have been begun.
    fn put(&mut self, len: usize, sync: bool) -> tamarack::Result<usize> {
        let value = vec![self.written.len() as u8 | 1; len];
        self.db().put_with(&key(self.written.len()), &value, &WriteOptions { sync })?;
        self.written.push(Some(value));
        Ok(self.segments())
    }

    fn written_bytes(&self) -> u64 {
        self.db().stats().log_bytes_written
    }

    /// The files of the log. The next segment is one, too, which is made ready in the background.
    fn files(&self) -> Vec<String> {
        let mut names = self.env.fs.list(Path::new("/db")).unwrap();
        names.retain(|name| name.ends_with(".vlog"));
        names
    }

    /// How many segments have been begun: the next one has no header.
    fn segments(&self) -> usize {
        let has_header = |name: &String| {
            // What is being removed has none any more.
            let Ok(file) = self.env.fs.open_read(&Path::new("/db").join(name)) else { return false };
            let mut first = [0];
            file.read_at(&mut first, 0).unwrap() == 1 && first != [0]
        };
        self.files().into_iter().filter(has_header).count()
    }

    /// From here on nothing more fits on the disk.
    fn fill_disk(&self) {
        self.faults.set_quota(Some(self.faults.space_used()));
    }

    fn check(mut self) {
        for reopened in [false, true] {
            for (number, value) in self.written.iter().enumerate() {
                assert!(self.db().get(&key(number)).unwrap() == *value, "{number}, {reopened}");
            }
            assert_clean(self.db());
            self.faults.set_quota(None);
            self.db.take().unwrap().close().unwrap();
            self.open();
        }
    }
}

#[test]
fn the_log_goes_on_behind_large_pages_once_little_is_written_between_syncs() {
    let mut world = World::new(64 << 20);
    // The first 4 MiB are reserved in steps that are smaller than such a page.
    for _ in 0..5 {
        assert_eq!(world.put(LARGE_VALUE, false).unwrap(), 1);
    }
    assert_eq!(world.put(SMALL_VALUE, true).unwrap(), 1, "nobody knew of a sync when this was written");
    for _ in 0..100 {
        assert_eq!(world.put(SMALL_VALUE, true).unwrap(), 2);
    }
    // As much as allows large pages again.
    for _ in 0..50 {
        world.put(LARGE_VALUE, false).unwrap();
    }
    let all = world.put(SMALL_VALUE, true).unwrap();
    assert_eq!(world.put(SMALL_VALUE, true).unwrap(), all, "the last two syncs were far apart");
    assert_eq!(world.put(SMALL_VALUE, true).unwrap(), all + 1);
    world.check();
}

#[test]
fn a_segment_without_large_pages_is_not_left() {
    let mut world = World::new(64 << 20);
    for _ in 0..3 {
        assert_eq!(world.put(LARGE_VALUE, false).unwrap(), 1);
    }
    for _ in 0..100 {
        assert_eq!(world.put(SMALL_VALUE, true).unwrap(), 1, "its large pages begin behind 4 MiB");
    }
    world.check();
}

#[test]
fn large_pages_are_not_left_where_there_is_no_room_for_others() {
    // Without head-room it is creating a file that tells.
    for reserved_bytes in [64 << 20, 0] {
        let mut world = World::with_large_pages_on_a_full_disk(reserved_bytes);
        for _ in 0..1500 {
            assert_eq!(world.put(SMALL_VALUE, true).unwrap(), 1, "there is room in the segment");
        }
        world.faults.set_quota(None);
        assert!(
            (0..1500).any(|_| world.put(SMALL_VALUE, true).unwrap() == 2),
            "there is room elsewhere again"
        );
        world.check();
    }
}

#[test]
fn space_that_is_not_there_before_it_is_needed_is_no_error() {
    for reserved_bytes in [64 << 20, 0] {
        let mut world = World::with_large_pages_on_a_full_disk(reserved_bytes);
        let refused = loop {
            if let Err(error) = world.put(SMALL_VALUE, false) {
                break error;
            }
        };
        assert_eq!(refused.kind(), ErrorKind::NoSpace);
        let (written, reserved) = (world.written_bytes(), 8 << 20);
        assert!(written > reserved - 2 * SMALL_VALUE as u64, "{written} of {reserved} that were there");
        world.faults.set_quota(None);
        world.put(SMALL_VALUE, false).unwrap();
        world.check();
    }
}

#[test]
fn a_next_segment_with_large_pages_is_used_where_there_is_no_room_for_another() {
    for deletions in [false, true] {
        // Large enough that the sync which seals the first does not speak against large pages.
        let mut world = World::new(40 << 20);
        while world.put(LARGE_VALUE, false).unwrap() == 1 {}
        for _ in 0..38 {
            world.put(LARGE_VALUE, false).unwrap();
        }
        world.db().wait_idle().unwrap();
        assert_eq!((world.segments(), world.files().len()), (2, 3), "the last one was made ready ahead");
        world.fill_disk();
        // One that was removed would make no room.
        let enough = world.written_bytes() + 2 * LARGE_VALUE as u64;
        while world.written_bytes() < enough {
            if deletions {
                let mut batch = WriteBatch::new();
                (0..30).try_for_each(|_| batch.delete(&[b'x'; SMALL_VALUE])).unwrap();
                world.db().write(&batch, &WriteOptions::synced()).unwrap();
            } else {
                world.put(30 * SMALL_VALUE, true).unwrap();
            }
        }
        assert_eq!((world.segments(), world.files().len()), (3, 3), "it was taken");
        world.check();
    }
}

#[test]
fn where_memory_is_scarce_sealed_segments_are_parted_once() {
    // Of this disk every other page is in memory.
    let (env, faults) = FaultEnv::new(SimDisk::new(&SimOptions::default()).env());
    let options = Options {
        segment_bytes_max: 1 << 20,
        row_cache_bytes: 0,
        inline_value_max: 0,
        gc: GcPolicy::Off,
        ..Options::default()
    };
    let db = Db::open_with_env("/db", options, &env).unwrap();
    let keys = 4000;
    for number in 0..keys {
        db.put(&key(number), &vec![1; SMALL_VALUE]).unwrap();
    }
    db.flush().unwrap();
    let sealed = db.stats().segments.len() as u64 - 1;
    assert!(sealed >= 3, "{sealed}");
    let parted = || faults.count(Call::PartPages);
    assert_eq!(parted(), 0, "nothing was read");
    let begin = Instant::now();
    while parted() < sealed {
        assert!(begin.elapsed() < Duration::from_secs(200), "{} of {sealed}", parted());
        (0..keys).for_each(|number| assert!(db.get(&key(number)).unwrap().is_some()));
    }
    let looks = Instant::now();
    while looks.elapsed() < Duration::from_millis(500) {
        (0..keys).for_each(|number| assert!(db.get(&key(number)).unwrap().is_some()));
    }
    assert_eq!(parted(), sealed, "each once, and not the one that is written to");
    db.close().unwrap();
}
