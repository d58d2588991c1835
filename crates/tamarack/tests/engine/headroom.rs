//! The head-room on a full disk: new data are refused before the last byte is taken, and whatever makes space goes on.

use crate::common::garbage::{Content, Gate};
use crate::common::place::Place;
use crate::common::{PATIENCE_SECONDS, Random, Watchdog, assert_clean, content, tiny};
use tamarack::testing::Call;
use tamarack::{Db, ErrorKind, GcGoal, GcPolicy, IterOptions, LogMode, Options, WriteBatch, WriteOptions};

/// What the disk holds beyond the empty database.
const DISK_BYTES: u64 = 6_000_000;

fn options(log_mode: LogMode, reserved_bytes: Option<u64>) -> Options {
    Options {
        segment_bytes_max: 64 << 10,
        memtable_bytes: 16 << 10,
        recovery_log_max: 1 << 20,
        log_mode,
        reserved_bytes,
        ..tiny()
    }
}

/// Puts new keys until one is refused; returns the refusal.
fn fill(db: &Db, random: &mut Random, kept: &mut Content) -> tamarack::Error {
    loop {
        let (key, len) =
            (format!("{:08x}", random.number() as u32).into_bytes(), random.pick(&[30, 400, 900]));
        let value = random.bytes(len);
        if let Err(error) = db.put(&key, &value) {
            return error;
        }
        kept.insert(key, value);
    }
}

/// A database on a disk that it has filled.
struct Full {
    place: Place,
    db: Db,
    kept: Content,
    refusal: tamarack::Error,
    disk_bytes: u64,
}

impl Full {
    fn new(place: Place) -> Self {
        let db = place.open();
        let disk_bytes = place.faults.space_used() + DISK_BYTES;
        place.faults.set_quota(Some(disk_bytes));
        let mut kept = Content::new();
        let refusal = fill(&db, &mut Random::new(7), &mut kept);
        assert_eq!(refusal.kind(), ErrorKind::NoSpace, "{refusal}");
        Self { place, db, kept, refusal, disk_bytes }
    }

    fn free(&self) -> u64 {
        self.disk_bytes - self.place.faults.space_used()
    }
}

/// A job that runs beside this one may have been promised the space that there was, or keep a file a little longer.
fn once_others_are_done(mut call: impl FnMut() -> tamarack::Result<()>) {
    while let Err(error) = call() {
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        std::thread::yield_now();
    }
}

#[test]
fn a_full_disk_takes_deletions_flushes_and_collections_and_then_data_again() {
    for log_mode in [LogMode::Mapped, LogMode::Plain] {
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a full disk");
        let Full { place, db, mut kept, refusal, .. } = Full::new(Place::new(options(log_mode, None)));
        assert!(refusal.message().contains("reserved_bytes"), "{refusal}");
        assert!(refusal.message().contains("db/"), "no file is named: {refusal}");
        db.flush().unwrap();
        let goes: Vec<_> = kept.keys().step_by(2).cloned().collect();
        for keys in goes.chunks(goes.len() / 6) {
            for (number, keys) in keys.chunks(3).enumerate() {
                let mut batch = WriteBatch::new();
                for key in keys {
                    batch.delete(key).unwrap();
                    kept.remove(key);
                }
                db.write(&batch, &WriteOptions { sync: number % 9 == 0 }).unwrap();
            }
            db.flush().unwrap();
            once_others_are_done(|| db.gc(GcGoal::Until(1.2)).map(drop));
        }
        once_others_are_done(|| db.wait_idle());
        let before = kept.len();
        fill(&db, &mut Random::new(8), &mut kept);
        assert!(
            kept.len() > before + goes.len() / 2,
            "{log_mode:?}: the space of what went is not used again"
        );
        assert!(content(&db) == kept);
        assert_clean(&db);
        db.close().unwrap();
        let db = place.open();
        assert!(content(&db) == kept, "{log_mode:?}: opened again on the full disk");
    }
}

#[test]
fn a_database_that_was_killed_on_a_full_disk_is_recovered_on_it() {
    for log_mode in [LogMode::Mapped, LogMode::Plain] {
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, "recovery on a full disk");
        let Full { place, mut db, mut kept, .. } = Full::new(Place::new(options(log_mode, None)));
        for round in 0..3 {
            // As a kill leaves it: files that were begun, log that no table holds, no table of the last memtables.
            db.delete(b"what was never there").unwrap();
            place.crash(db);
            let read_only = Options { read_only: true, ..place.options.clone() };
            assert!(content(&place.try_open(&read_only).unwrap()) == kept, "{log_mode:?} {round}: read-only");
            db = place.open();
            assert!(content(&db) == kept, "{log_mode:?} {round}: recovered");
            assert_eq!(fill(&db, &mut Random::new(10 + round), &mut kept).kind(), ErrorKind::NoSpace);
        }
        for key in kept.keys().step_by(2).cloned().collect::<Vec<_>>() {
            db.delete(&key).unwrap();
            kept.remove(&key);
        }
        db.flush().unwrap();
        once_others_are_done(|| db.gc(GcGoal::Until(1.2)).map(drop));
        once_others_are_done(|| db.wait_idle());
        let before = kept.len();
        fill(&db, &mut Random::new(20), &mut kept);
        assert!(kept.len() > before + before / 2, "{log_mode:?}: space is used again");
        assert!(content(&db) == kept);
        assert_clean(&db);
    }
}

#[test]
fn what_deletions_take_of_the_headroom_is_not_open_to_data() {
    for log_mode in [LogMode::Mapped, LogMode::Plain] {
        let reserved = 400_000;
        let mut full = Full::new(Place::new(options(log_mode, Some(reserved))));
        let mut random = Random::new(9);
        for key in full.kept.keys().take(200).cloned().collect::<Vec<_>>() {
            full.db.delete(&key).unwrap();
            full.kept.remove(&key);
            fill(&full.db, &mut random, &mut full.kept);
        }
        full.db.flush().unwrap();
        assert!(full.free() > reserved / 8, "{log_mode:?}: {} bytes are left", full.free());
        assert!(content(&full.db) == full.kept);
    }
}

#[test]
fn the_log_takes_the_last_byte_only_if_it_may() {
    for log_mode in [LogMode::Mapped, LogMode::Plain] {
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, "the last byte");
        let full = |reserved| Full::new(Place::new(options(log_mode, reserved)));
        // Tables may have taken half, and the manifest's records of them a little. While a job merges some, its inputs are there, too.
        let Full { place, db, disk_bytes, .. } = full(Some(200_000));
        db.close().unwrap();
        let kept = disk_bytes - place.faults.space_used();
        assert!(kept >= 95_000, "{log_mode:?}: {kept} bytes are left of 200,000");
        // A job that finds no room gives back what it has written.
        let mut taken = full(Some(0));
        while taken.free() >= 70_000 {
            let refusal = fill(&taken.db, &mut Random::new(8), &mut taken.kept);
            assert_eq!(refusal.kind(), ErrorKind::NoSpace, "{refusal}");
        }
    }
}

#[test]
fn a_file_system_that_does_not_tell_what_is_free_is_filled_to_the_end() {
    let place = Place::new(options(LogMode::Mapped, None));
    place.faults.set_unsupported(Call::FreeBytes, true);
    let full = Full::new(place);
    assert!(!full.refusal.message().contains("reserved_bytes"), "{}", full.refusal);
    assert!(content(&full.db) == full.kept);
}

/// Who finds no room for data waits for a job that may make some: deletions go on meanwhile, and a close does not wait for the job first.
#[test]
fn who_waits_for_room_holds_nobody_up() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a writer waits for room");
    let quiet =
        Options { gc: GcPolicy::Off, background_threads: 1, ..options(LogMode::Auto, Some(256 << 10)) };
    let Full { place, db, kept, .. } = Full::new(Place::new(quiet));
    // A compaction may have found no room.
    drop(db.wait_idle());
    // Deletions may have a quarter of what is kept free, and data nothing.
    place.faults.set_quota(Some(place.faults.space_used() + (100 << 10)));
    db.delete(b"something to flush").unwrap();
    let looks = || place.faults.count_of(Call::FreeBytes, "");
    let (key, value) = (b"no room", vec![7; 150_000]);
    let gate = Gate::at(&place.faults, Call::Create, ".table");
    std::thread::scope(|scope| {
        let flushing = scope.spawn(|| db.flush());
        gate.wait();
        let before = looks();
        let waiting = scope.spawn(|| db.put(key, &value));
        while looks() == before {
            std::thread::yield_now();
        }
        for deleted in kept.keys().take(20) {
            db.delete(deleted).unwrap();
        }
        let closing = scope.spawn(|| db.clone().close());
        let refused = waiting.join().unwrap().unwrap_err().kind();
        assert!([ErrorKind::Closed, ErrorKind::NoSpace].contains(&refused), "{refused:?}");
        drop(gate);
        drop(flushing.join().unwrap());
        closing.join().unwrap().unwrap();
    });
}

/// A caller who collects removes what others have let go of, once it is done; who needs the room earlier removes it.
#[test]
fn who_collects_for_long_keeps_no_room_from_others() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a writer beside a collection that stands still");
    let quiet = Options { gc: GcPolicy::Off, ..options(LogMode::Mapped, Some(64 << 10)) };
    let place = Place::new(quiet);
    let (db, mut random) = (place.open(), Random::new(3));
    let mut overwrite = || {
        (0..1000).for_each(|number| db.put(format!("{number:04}").as_bytes(), &random.bytes(900)).unwrap());
        db.compact_range(None, None).unwrap();
    };
    overwrite();
    let mut iter = db.iter(&IterOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    overwrite();
    // It holds what nobody else needs any more.
    db.gc(GcGoal::Until(1.2)).unwrap();
    overwrite();
    db.wait_idle().unwrap();
    let gate = Gate::at(&place.faults, Call::Create, ".cold");
    std::thread::scope(|scope| {
        let collecting = scope.spawn(|| db.gc(GcGoal::Once));
        gate.wait();
        drop(iter);
        place.faults.set_quota(Some(place.faults.space_used()));
        (0..200).for_each(|number| db.put(format!("new {number}").as_bytes(), &[1; 900]).unwrap());
        place.faults.set_quota(None);
        drop(gate);
        collecting.join().unwrap().unwrap();
    });
    assert_clean(&db);
}
