//! Segments that nobody needs any more become new ones: what is in them is what was written, whatever was there before,
//! and nobody who may still want what was there loses it.

use std::io::ErrorKind;

use crate::common::garbage::{Content, KEYS, assert_holds, assert_holds_at, fill};
use crate::common::time::unwatched;
use crate::common::{PATIENCE_SECONDS, Watchdog, assert_clean, tiny};
use tamarack::testing::{Call, EIO, Env, Fault, FaultEnv, SimDisk, SimOptions};
use tamarack::{Db, GcPolicy, Options, ReadOptions};

fn disk() -> SimDisk {
    SimDisk::new(&SimOptions { seed: 3, block_bytes: 512, ..SimOptions::default() })
}

fn open(env: &Env, directory: &str) -> Db {
    let options = Options { max_space_amplification: 1.05, ..tiny() };
    Db::open_with_env(directory, options, &unwatched(env.clone())).unwrap()
}

/// Nothing is in the directory but what the database knows, and what it is writing to.
fn assert_no_segments_left(db: &Db, env: &Env) {
    db.wait_idle().unwrap();
    let stats = db.stats();
    assert_eq!(stats.leaving_bytes, 0, "none is kept when nothing is written");
    let names = env.fs.list(std::path::Path::new("/db")).unwrap();
    let segments = names.iter().filter(|name| name.ends_with(".vlog") || name.ends_with(".cold")).count();
    assert!(segments <= stats.segments.len() + 1, "{names:?}, {:?}", stats.segments);
}

/// Overwrites everything until `count` more segments were recycled, or so many rounds are over.
fn churn(db: &Db, model: &mut Content, count: u64) -> u64 {
    let before = db.stats().recycled_segments;
    for round in 0..2000 {
        fill(db, model, 0..KEYS, round);
        let recycled = db.stats().recycled_segments - before;
        if recycled >= count {
            return recycled;
        }
    }
    db.stats().recycled_segments - before
}

#[test]
fn segments_become_new_ones_and_hold_what_was_written() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "recycling");
    let disk = disk();
    let db = open(&disk.env(), "/db");
    let mut model = Content::new();
    for round in 0..5 {
        assert!(churn(&db, &mut model, 10) >= 10, "hardly a segment was recycled");
        assert_holds(&db, &model, &format!("round {round}"));
        // Who kills the process finds everything, too.
        assert_holds(&open(&disk.kill().env(), "/db"), &model, &format!("killed in round {round}"));
    }
    assert_no_segments_left(&db, &disk.env());
    assert_clean(&db);
    db.close().unwrap();
    assert_holds(&open(&disk.env(), "/db"), &model, "opened");
}

/// I-06, I-12.
#[test]
fn readers_and_checkpoints_keep_what_they_have() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "recycling beside readers");
    let disk = disk();
    let db = open(&disk.env(), "/db");
    let mut model = Content::new();
    churn(&db, &mut model, 3);
    let (then, snapshot) = (model.clone(), db.snapshot());
    db.checkpoint("/beside").unwrap();
    assert!(churn(&db, &mut model, 20) >= 20);
    let settings = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    assert_holds_at(&db, &then, &settings, "at the snapshot");
    assert_holds(&db, &model, "beside a snapshot");
    drop(settings);
    assert!(churn(&db, &mut model, 20) >= 20);
    let copy = open(&disk.env(), "/beside");
    assert_holds(&copy, &then, "the checkpoint");
    assert_clean(&copy);
}

/// Overwrites everything until files of `bytes` are kept to become new segments.
fn stock_up(db: &Db, model: &mut Content, bytes: u64) {
    for round in 0..2000 {
        fill(db, model, 0..KEYS, round);
        if db.stats().stock_bytes >= bytes {
            return;
        }
    }
    panic!("so much was never kept");
}

#[test]
fn a_full_disk_gets_what_is_kept() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a full disk with files that nobody needs");
    let (env, faults) = FaultEnv::new(disk().env());
    let options = Options { max_space_amplification: 1.05, reserved_bytes: Some(0), ..tiny() };
    let reopen = || Db::open_with_env("/db", options.clone(), &unwatched(env.clone())).unwrap();
    let (mut db, mut model, mut flushed) = (reopen(), Content::new(), 0);
    for round in 0..20 {
        // A table and an edit of the manifest fit into them, if nobody else takes their space.
        stock_up(&db, &mut model, 12 << 10);
        fill(&db, &mut model, 0..1, 7);
        // Nor comes any more of it.
        db.pause_gc();
        while db.stats().running_jobs > 0 {
            std::thread::yield_now();
        }
        faults.set_quota(Some(faults.space_used()));
        let done = db.flush();
        faults.set_quota(None);
        flushed += u32::from(done.is_ok());
        if let Err(error) = done {
            assert_eq!(db.stats().stock_bytes, 0, "round {round}: {error}");
            drop(db);
            db = reopen();
        } else {
            db.resume_gc().unwrap();
        }
    }
    assert!(flushed > 10, "{flushed}");
    assert_holds(&db, &model, "after full disks");
    assert_no_segments_left(&db, &env);
}

#[test]
fn none_is_kept_at_rest_without_collections_either() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "files that nobody needs, at rest");
    let options = Options { gc: GcPolicy::Off, max_space_amplification: 1000.0, ..tiny() };
    let db = Db::open_with_env("/db", options, &disk().env()).unwrap();
    let mut model = Content::new();
    stock_up(&db, &mut model, 1);
    // A minute, where a second is to do.
    for _ in 0..6000 {
        if db.stats().leaving_bytes > 0 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    assert_eq!(db.stats().leaving_bytes, 0);
    assert_holds(&db, &model, "at rest");
}

#[test]
fn where_none_can_be_recycled_new_ones_are_made() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a file system that cannot blank files");
    for fault in [Fault::on(Call::Zero).errno(EIO), Fault::on(Call::Zero).kind(ErrorKind::Unsupported)] {
        let (env, faults) = FaultEnv::new(disk().env());
        faults.inject(fault.for_ever());
        let db = open(&env, "/db");
        let mut model = Content::new();
        for round in 0..300 {
            fill(&db, &mut model, 0..KEYS, round);
        }
        assert!(faults.triggered() > 0, "nothing was tried");
        assert_eq!(db.stats().recycled_segments, 0);
        assert_no_segments_left(&db, &env);
        assert_holds(&db, &model, "nothing recycled");
    }
}
