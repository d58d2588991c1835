//! The bound on space: overwrites settle below it, and deletions give their space back without any call.

use std::time::Instant;

use crate::common::time::unwatched_env;
use crate::common::{PATIENCE_SECONDS, Random, Watchdog, assert_clean, fast_directory};
use tamarack::{Db, GcPolicy, Options};

const KEYS: u32 = 4000;
/// What writers are slowed down to.
const SLOWEST_BYTES_PER_SECOND: f64 = 4e6;

/// Small segments, so that the slack of a few of them is small, too.
fn options() -> Options {
    Options {
        segment_bytes_max: 64 << 10,
        memtable_bytes: 256 << 10,
        recovery_log_max: 4 << 20,
        table_bytes_max: 64 << 10,
        level_bytes_base: 256 << 10,
        ..Options::default()
    }
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// A value that its key and its round determine.
fn value(number: u32, round: u32) -> Vec<u8> {
    Random::new(u64::from(number) << 32 | u64::from(round)).bytes(900)
}

fn load(db: &Db) {
    for number in 0..KEYS {
        db.put(&key(number), &value(number, 0)).unwrap();
    }
}

#[test]
fn overwrites_settle_below_the_bound() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "overwriting");
    let root = fast_directory();
    let db = Db::open(root.path().join("db"), options()).unwrap();
    load(&db);
    let mut random = Random::new(1);
    let mut rounds = vec![0; KEYS as usize];
    let live = u64::from(KEYS) * 904;
    let bound = live * 13 / 10 + 16 * (64 << 10);
    // What there was when `below` was set: more than the bound where nothing was known to be hidden yet.
    let mut begun_at = 0;
    let mut below = Instant::now();
    for round in 1..5 * KEYS {
        let number = random.below(KEYS as usize) as u32;
        rounds[number as usize] = round;
        db.put(&key(number), &value(number, round)).unwrap();
        if round % 100 != 0 {
            continue;
        }
        let stats = db.stats();
        let disk = stats.disk_bytes;
        // Nobody is slowed down for what is hidden before tables are merged for the first time and tell of it.
        let is_known = stats.hidden_records > 0;
        assert!(is_known || disk < 2 * bound, "{stats:?}");
        if !is_known || disk < bound {
            begun_at = disk;
            below = Instant::now();
        }
        // What comes between two looks weighs more, the smaller segments are beside a memtable.
        let allowed = bound.max(begun_at) + (256 << 10);
        // Where other processes keep collections from a processor, writers go on at their slowest pace, and copies are there before what they
        // are made from goes.
        let more = (2.0 * SLOWEST_BYTES_PER_SECOND * below.elapsed().as_secs_f64()) as u64;
        assert!(disk < allowed + more, "{disk} bytes on disk, where {allowed} and {more} are allowed");
    }
    assert!(db.stats().stalls > 0, "who writes faster than garbage is collected is slowed down");
    db.wait_idle().unwrap();
    let stats = db.stats();
    assert!(stats.collected_segments > 0 && stats.hidden_records > 0, "{stats:?}");
    // The watcher may be looking at files that are not needed any more.
    let stays = stats.disk_bytes - stats.leaving_bytes;
    assert!(stays < live * 13 / 10 + 8 * (64 << 10), "{stays} bytes on disk");
    for (number, round) in (0..).zip(rounds) {
        assert_eq!(db.get(&key(number)).unwrap(), Some(value(number, round)), "key {number}");
    }
    assert_clean(&db);
}

#[test]
fn deletions_give_their_space_back_while_nothing_happens() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "giving space back");
    let root = fast_directory();
    let db = Db::open(root.path().join("db"), options()).unwrap();
    load(&db);
    let mut random = Random::new(2);
    let deleted: Vec<u32> = (0..KEYS).filter(|_| random.one_in(2)).collect();
    for &number in &deleted {
        db.delete(&key(number)).unwrap();
    }
    let live = u64::from(KEYS - deleted.len() as u32) * 904;
    // The watchdog ends this if it never comes about.
    while db.stats().disk_bytes > live * 13 / 10 + 8 * (64 << 10) {
        std::thread::yield_now();
    }
    for number in 0..KEYS {
        let expected = deleted.binary_search(&number).is_err().then(|| value(number, 0));
        assert_eq!(db.get(&key(number)).unwrap(), expected, "key {number}");
    }
    assert_clean(&db);
}

#[test]
fn nothing_is_collected_where_that_is_wished() {
    let root = fast_directory();
    for (options, paused) in [(Options { gc: GcPolicy::Off, ..options() }, false), (options(), true)] {
        let db = Db::open(root.path().join(paused.to_string()), options).unwrap();
        if paused {
            db.pause_gc();
        }
        load(&db);
        let mut random = Random::new(2);
        for round in 1..=3 * KEYS {
            let number = random.below(KEYS as usize) as u32;
            db.put(&key(number), &value(number, round)).unwrap();
        }
        db.wait_idle().unwrap();
        let stats = db.stats();
        assert_eq!(stats.collections, 0);
        // There is far more garbage than the slack, and nobody is slowed down for it.
        assert!(stats.disk_bytes > stats.live_bytes * 13 / 10 + 16 * (64 << 10), "{stats:?}");
        for number in 0..50 {
            db.put(&key(number), &value(number, 1)).unwrap();
        }
        assert_eq!(db.stats().stalls, stats.stalls, "paused: {paused}");
        if paused {
            db.resume_gc().unwrap();
            db.resume_gc().expect_err("it is not paused any more");
            db.wait_idle().unwrap();
            let stats = db.stats();
            // Whoever happens to look at the database may be the last to hold a file, which goes a little later.
            let taken = stats.disk_bytes - stats.leaving_bytes;
            assert!(stats.collections > 0 && taken < stats.live_bytes * 3 / 2, "{stats:?}");
        }
        assert_clean(&db);
    }
}

#[test]
fn small_entries_are_not_held_to_what_no_collection_can_reach() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "small entries");
    const ENTRIES: u64 = 60_000;
    for inline_value_max in [Options::default().inline_value_max, 0] {
        let root = fast_directory();
        let options = Options {
            max_space_amplification: 1.05,
            inline_value_max,
            segment_bytes_max: 16 << 10,
            ..options()
        };
        let db = Db::open(root.path().join("db"), options).unwrap();
        // Keys that have nothing in common with their neighbours.
        let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let put = |number: u64| db.put(&key(number), &number.to_le_bytes()).unwrap();
        (0..ENTRIES).for_each(put);
        db.wait_idle().unwrap();
        let stats = db.stats();
        // What leads to so small values takes more than they do.
        assert!(stats.disk_bytes > ENTRIES * 16 * 21 / 20 + 16 * (16 << 10), "{stats:?}");
        assert!(stats.disk_bytes_max > stats.disk_bytes, "{stats:?}");
        (ENTRIES..ENTRIES + 1000).for_each(put);
        assert_eq!(db.stats().stalls, stats.stalls, "values inline up to {inline_value_max}");
    }
}

#[test]
fn inline_values_that_were_overwritten_are_not_alive() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "overwriting inline values");
    let root = fast_directory();
    // A table for each round; they are too few, and take too little, to be compacted.
    let options = Options { memtable_bytes: 4 << 20, segment_bytes_max: 1 << 20, ..options() };
    let options = Options { table_bytes_max: 4 << 20, recovery_log_max: 64 << 20, ..options };
    let db = Db::open_with_env(root.path().join("db"), options, &unwatched_env()).unwrap();
    for round in 0..2 {
        for number in 0..KEYS {
            db.put(&key(number), &value(number, round)[..200]).unwrap();
        }
        db.flush().unwrap();
    }
    let (live, stats) = (u64::from(KEYS) * 204, db.stats());
    let table_bytes: u64 = stats.levels.iter().map(|level| level.bytes).sum();
    assert!(table_bytes > live * 3 / 2, "much is hidden: {stats:?}");
    assert!(stats.live_bytes.abs_diff(live) < live / 10, "{} live bytes, not {live}", stats.live_bytes);
}

/// Tables of three levels hide records in each other, collections leave these behind, and compactions that replace pointers drop the entries for them
/// in the lower levels alone.
#[test]
fn what_was_left_behind_is_not_taken_for_hidden_any_more() {
    const ENTRIES: u32 = 30_000;
    const VALUE_BYTES: u32 = 200;
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "overwriting what three levels lead to");
    let root = fast_directory();
    let options = Options {
        inline_value_max: 0,
        memtable_bytes: 64 << 10,
        table_bytes_max: 16 << 10,
        level_bytes_base: 64 << 10,
        relocation_cache_bytes: 4 << 10,
        ..options()
    };
    let db = Db::open(root.path().join("db"), options).unwrap();
    let put = |number: u32, round: u32| {
        db.put(&key(number), &value(number, round)[..VALUE_BYTES as usize]).unwrap();
    };
    (0..ENTRIES).for_each(|number| put(number.wrapping_mul(7919) % ENTRIES, 0));
    let (mut random, live) = (Random::new(3), u64::from(ENTRIES * (4 + VALUE_BYTES)));
    let (mut deepest, mut least, mut most) = (0, live, live);
    for round in 1..=5 * ENTRIES {
        put(random.below(ENTRIES as usize) as u32, round);
        if round % 1000 == 0 {
            db.flush().unwrap();
            let stats = db.stats();
            let levels = stats.levels.iter().filter(|level| level.bytes > 0).count();
            deepest = deepest.max(levels);
            least = least.min(stats.live_bytes);
            most = most.max(stats.live_bytes);
        }
    }
    let stats = db.stats();
    assert!(deepest >= 3 && stats.collected_segments > 10, "{deepest} levels: {stats:?}");
    assert!(least > live - live / 30, "{least} of {live} live bytes at least");
    // While compactions end, what they have dropped counts as alive.
    assert!(most < live + live / 4, "{most} of {live} live bytes at most");
}
