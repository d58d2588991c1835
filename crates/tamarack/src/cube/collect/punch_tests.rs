//! What reads and checks make of dead ranges that should not be: a manifest that says that a live record is dead.
#![allow(clippy::single_range_in_vec_init, reason = "a list of one range is what is meant")]

use std::ops::Range;
use std::path::Path;

use super::super::Cube;
use super::super::check::CheckLevel;
use super::super::open::Shared;
use super::super::read::ReadSettings;
use crate::base::batch::Operation;
use crate::base::dead_ranges::DeadRanges;
use crate::base::error::Error;
use crate::base::ids::SegmentId;
use crate::base::options::{GcPolicy, Options, WriteOptions};
use crate::base::sync::Arc;
use crate::env::pool::WorkerPool;
use crate::env::posix::posix_env;
use crate::index::version::VersionEdit;

static VALUE: [u8; 40_000] = [7; 40_000];

/// A cube of four values, all in tables, each in a segment of its own, the first of them in segment 1.
fn cube(directory: &Path) -> Arc<Cube> {
    let env = posix_env();
    let mut options = Options { segment_bytes_max: 64 << 10, gc: GcPolicy::Off, ..Options::default() };
    let workers = WorkerPool::new(&env, "test", 3).expect("threads can be started");
    let shared = Shared::new(workers, &mut options);
    let (cube, _lock) = Cube::open(env, directory, options, shared).expect("an empty directory");
    for key in [b"a", b"b", b"c", b"d"] {
        let put = Operation::Put { key, value: &VALUE };
        cube.write_one(put, &WriteOptions::default()).expect("there is room");
    }
    cube.flush().expect("there is room");
    cube.wait_idle().expect("nothing fails");
    cube
}

/// Says that `range` of segment 1 is dead, and gives it back.
fn give_back(cube: &Cube, range: Range<u64>) {
    let dead = DeadRanges::new(vec![range]).expect("one range");
    let edit = VersionEdit { dead_ranges: vec![(SegmentId(1), dead)], ..VersionEdit::default() };
    cube.index.install(edit).expect("nothing fails");
    cube.current.install(|| cube.index.version());
    cube.punch_holes(true);
}

fn assert_damage(error: &Error, expected: &str) {
    let place = error.as_corruption().unwrap_or_else(|| panic!("{error}"));
    assert!(place.file.ends_with("000001.vlog") && place.offset == 80, "{error}");
    assert!(error.message().contains(expected), "{error}");
}

/// I-13: not even where the checksum of the value is not looked at.
#[test]
fn a_record_in_a_dead_range_is_damage_and_never_zeros() {
    // All of the record, the whole of its value, and blocks in the middle of it.
    for range in [80..40_105, 4096..40_105, 8192..20_000] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let cube = cube(directory.path());
        give_back(&cube, range.clone());
        for verify in [true, false] {
            let settings = ReadSettings { sequence: None, verify, fill_cache: true };
            let mut value = Vec::new();
            let error = cube.get(b"a", settings, &mut value).expect_err("a hole");
            assert_damage(&error, "was given back");
            let keys: [&[u8]; 2] = [b"a", b"b"];
            let values = cube.multi_get(&keys, settings);
            assert_damage(values[0].as_ref().expect_err("a hole"), "was given back");
            assert_eq!(values[1].as_ref().expect("is whole").as_deref(), Some(&VALUE[..]));
            let mut iter = cube.iter(None, None, None, settings).expect("nothing is read yet");
            iter.seek_to_first().expect("keys are whole");
            assert_damage(&iter.value().expect_err("a hole"), "was given back");
        }
        let report = cube.check(CheckLevel::Liveness);
        assert!(!report.is_clean(), "{range:?}");
        let starts_there = range.start == 80;
        if starts_there {
            assert_damage(&report.problems[0], "given back");
        }
        drop(cube.close());
    }
}
