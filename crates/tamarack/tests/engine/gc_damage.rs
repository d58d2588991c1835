//! Damage and garbage collection: a victim that is damaged where something is alive is kept and left alone, damage to
//! what is dead does not matter, and damage to a cold segment gives errors that name it, never a wrong value or a
//! missing key.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::garbage::{
    Content, KEYS, assert_holds, assert_holds_at, assert_no_orphans, cold_files, compact, fill, half_dead,
    key, quiet, segment_name, value, walk,
};
use crate::common::place::Place;
use crate::common::{PATIENCE_SECONDS, Watchdog, copy_directory, file_names, open};
use tamarack::testing::EIO;
use tamarack::testing::{Call, Fault};
use tamarack::{CheckLevel, Db, Error, ErrorKind, GcGoal, GcPolicy, IterOptions, Options, ReadOptions};

/// Bytes of a record before its key.
const RECORD_HEADER_BYTES: usize = 24;
const SEGMENT_HEADER_BYTES: usize = 80;
const FOOTER_TRAILER_BYTES: usize = 32;

/// Flips a bit of byte `at` of `file`.
fn flip(file: &Path, at: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(file, bytes).unwrap();
}

/// The name of the file that holds the value of `number` of `round`, and where its record begins in it.
fn find_record(place: &Place, number: usize, round: usize) -> (String, usize) {
    let record = [key(number), value(number, round)].concat();
    let found = file_names(&place.path()).into_iter().find_map(|name| {
        let bytes = std::fs::read(place.path().join(&name)).unwrap();
        let at = bytes.windows(record.len()).position(|window| window == record)?;
        Some((name, at - RECORD_HEADER_BYTES))
    });
    found.unwrap_or_else(|| panic!("no file has the value of {number} of round {round}"))
}

fn named(error: &Error) -> (String, u64) {
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let place = error.as_corruption().expect("a corruption has a place");
    (place.file.file_name().unwrap().to_str().unwrap().to_owned(), place.offset)
}

/// Collects all that can be, beside the segments that are found damaged; returns why they are.
fn gc_around(db: &Db) -> Vec<Error> {
    let mut errors = Vec::new();
    for _ in 0..10 {
        match db.gc(GcGoal::Until(1.0)) {
            Ok(_) => return errors,
            Err(error) => errors.push(error),
        }
    }
    panic!("the same segment is tried over and over: {errors:?}");
}

#[test]
fn collections_in_the_background_go_on_around_a_damaged_victim() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "collecting around damage");
    let place = Place::new(Options { gc: GcPolicy::CostBenefit, max_space_amplification: 1.1, ..quiet() });
    let db = place.open();
    db.pause_gc();
    let mut model = half_dead(&db);
    db.close().unwrap();
    let (file, record) = find_record(&place, 71, 0);
    flip(&place.path().join(&file), record + RECORD_HEADER_BYTES);
    let db = place.open();
    for round in 1..4 {
        // Nothing but the one victim is held up, and nobody who writes.
        fill(&db, &mut model, (0..KEYS).step_by(2), round);
        db.wait_idle().unwrap();
        let stats = db.stats();
        let quarantined: Vec<_> = stats.quarantined_segments.iter().map(|&id| segment_name(id)).collect();
        assert_eq!(quarantined, std::slice::from_ref(&file), "round {round}");
        assert!(stats.collected_segments > 0, "round {round}: {stats:?}");
        assert!(stats.disk_bytes < 2 * stats.live_bytes, "round {round}: {stats:?}");
    }
    assert!(place.path().join(&file).exists());
    assert_eq!(named(&db.get(&key(71)).unwrap_err()), (file, record as u64));
    for (key, value) in model.iter().filter(|(found, _)| **found != key(71)) {
        assert_eq!(db.get(key).unwrap().as_ref(), Some(value));
    }
}

#[test]
fn a_victim_that_is_damaged_where_it_is_alive_is_kept_and_the_others_are_collected() {
    // Odd keys are alive in the segments that half_dead() leaves; each byte of a record is guarded.
    let record_len = RECORD_HEADER_BYTES + key(0).len() + value(0, 0).len();
    for at in (0..record_len).step_by(5) {
        let what = format!("byte {at}");
        let place = Place::new(quiet());
        let db = place.open();
        let mut model = half_dead(&db);
        db.close().unwrap();
        let (file, record) = find_record(&place, 71, 0);
        flip(&place.path().join(&file), record + at);
        let db = place.open();
        let errors = gc_around(&db);
        assert_eq!(errors.len(), 1, "{what}: {errors:?}");
        assert_eq!(named(&errors[0]), (file.clone(), record as u64), "{what}: {}", errors[0]);
        let quarantined = db.stats().quarantined_segments;
        assert_eq!(
            quarantined.iter().map(|&id| segment_name(id)).collect::<Vec<_>>(),
            std::slice::from_ref(&file),
            "{what}"
        );
        assert!(db.stats().warnings.iter().any(|warning| warning.contains(&file)), "{what}");
        assert!(place.path().join(&file).exists() && !cold_files(&place.path()).is_empty(), "{what}");
        assert_no_orphans(&db, &place.path(), &what);

        assert_eq!(named(&db.get(&key(71)).unwrap_err()), (file.clone(), record as u64), "{what}");
        fill(&db, &mut model, (0..KEYS).step_by(3), 7);
        db.flush().unwrap();
        assert!(db.gc(GcGoal::Until(1.0)).unwrap().segments > 0, "{what}: others are collected");
        for (key, value) in model.iter().filter(|(found, _)| **found != key(71)) {
            assert_eq!(db.get(key).unwrap().as_ref(), Some(value), "{what}");
        }
        let problems = db.check(CheckLevel::Values).problems;
        assert!(
            !problems.is_empty() && problems.iter().all(|error| named(error).0 == file),
            "{what}: {problems:?}"
        );

        // Once nobody wants the record any more, the segment goes as any other.
        fill(&db, &mut model, [71], 8);
        compact(&db);
        db.close().unwrap();
        let db = place.open();
        assert_eq!(db.stats().quarantined_segments, [0; 0], "{what}: it may be tried again");
        assert_eq!(gc_around(&db).len(), 0, "{what}");
        assert_holds(&db, &model, &what);
        assert!(!place.path().join(&file).exists(), "{what}");
    }
}

#[test]
fn damage_to_what_is_dead_goes_with_it() {
    let place = Place::new(quiet());
    let db = place.open();
    let mut model = half_dead(&db);
    fill(&db, &mut model, [73], 2);
    db.flush().unwrap();
    db.close().unwrap();
    // Dead by a compaction, and hidden by level 0.
    let mut damaged = BTreeSet::new();
    for number in [70, 73] {
        let (file, record) = find_record(&place, number, 0);
        let value_at = record + RECORD_HEADER_BYTES + key(number).len();
        flip(&place.path().join(&file), value_at + 9);
        damaged.insert(file);
    }
    let db = place.open();
    let problems = db.check(CheckLevel::Values).problems;
    assert_eq!(problems.iter().map(|error| named(error).0).collect::<BTreeSet<_>>(), damaged);
    let done = db.gc(GcGoal::Until(1.0)).unwrap();
    assert!(done.hidden == 1 && done.records > 0, "{done:?}");
    assert_holds(&db, &model, "collected");
    assert_eq!(db.stats().quarantined_segments, [0; 0]);
}

/// A database one of whose cold segments nearly all reads of some odd keys need, which were written once; the name of its file.
fn collected() -> (Place, Content, String) {
    let place = Place::new(quiet());
    let db = place.open();
    let model = half_dead(&db);
    db.gc(GcGoal::Until(1.0)).unwrap();
    assert!(db.stats().moved_segments > 0);
    db.close().unwrap();
    // There may be copies of even keys as well, of which tests write newer versions.
    let (file, _) = find_record(&place, KEYS / 2 + 1, 0);
    assert!(file.ends_with(".cold"), "{file}");
    (place, model, file)
}

/// Reads everything in every way: it is right, or an error that names `file`. How many keys gave an error.
fn assert_right_or_named(db: &Db, model: &Content, file: &str, what: &str) -> usize {
    let mut errors = 0;
    let keys: Vec<_> = model.keys().collect();
    for (key, together) in keys.iter().zip(db.multi_get(&keys, &ReadOptions::default())) {
        let alone = db.get(key);
        assert_eq!(alone.is_err(), together.is_err(), "{what}");
        for outcome in [alone, together] {
            match outcome {
                Ok(found) => assert_eq!(found.as_ref(), Some(&model[*key]), "{what}"),
                Err(error) => {
                    assert_eq!(named(&error).0, file, "{what}: {error}");
                    errors += 1;
                }
            }
        }
    }
    for backward in [false, true] {
        match walk(db, &IterOptions::default(), backward) {
            Ok(found) => assert!(errors == 0 && found.len() == model.len(), "{what}"),
            Err(error) => assert!(errors > 0 && named(&error).0 == file, "{what}: {error}"),
        }
    }
    errors / 2
}

/// Damages the last relocation table of cold segment `file`; returns what was in the file.
fn damage_relocations(place: &Place, file: &str) -> Vec<u8> {
    let whole = std::fs::read(place.path().join(file)).unwrap();
    let trailer = whole.len() - FOOTER_TRAILER_BYTES;
    let records_end = u64::from_le_bytes(whole[trailer..trailer + 8].try_into().unwrap()) as usize;
    // One byte would be mended.
    flip(&place.path().join(file), records_end - 1);
    flip(&place.path().join(file), records_end - 9);
    whole
}

#[test]
fn a_damaged_relocation_table_is_an_error_and_never_a_missing_key() {
    let (place, mut model, file) = collected();
    let whole = damage_relocations(&place, &file);
    let db = place.open();
    let errors = assert_right_or_named(&db, &model, &file, "a relocation table");
    assert!(errors > 0, "some keys are read by the table");
    // The segment is left alone when it is its turn; a compaction leaves what leads through the table as it is.
    fill(&db, &mut model, (0..KEYS).step_by(3), 5);
    db.flush().unwrap();
    let found = gc_around(&db);
    assert!(found.len() == 1 && named(&found[0]).0 == file, "{found:?}");
    let quarantined: Vec<_> = db.stats().quarantined_segments.into_iter().map(segment_name).collect();
    assert_eq!(quarantined, std::slice::from_ref(&file));
    db.compact_range(None, None).unwrap();
    let left = assert_right_or_named(&db, &model, &file, "a relocation table, later");
    assert!(left > 0 && left < errors, "{left} of {errors}: some have newer versions elsewhere");
    fill(&db, &mut model, (0..KEYS).step_by(2), 6);
    drop(db);
    std::fs::write(place.path().join(&file), &whole).unwrap();
    assert_holds(&place.open(), &model, "repaired");
}

#[test]
fn compactions_in_the_background_go_on_around_a_damaged_relocation_table() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "compacting around damage");
    let (place, mut model, file) = collected();
    let whole = damage_relocations(&place, &file);
    let busy = Options { memtable_bytes: 16 << 10, level_bytes_base: 8 << 10, ..quiet() };
    let db = open(&place.path(), &busy).unwrap();
    let errors = assert_right_or_named(&db, &model, &file, "before");
    for round in 2..60 {
        fill(&db, &mut model, (0..KEYS).step_by(2), round);
        db.flush().unwrap();
        db.wait_idle().unwrap();
    }
    let stats = db.stats();
    assert!(stats.compactions > 1 && stats.levels[0].tables < 30, "{stats:?}");
    assert!(stats.warnings.len() == 1 && stats.warnings[0].contains(&file), "once: {:?}", stats.warnings);
    assert_eq!(assert_right_or_named(&db, &model, &file, "after"), errors);
    db.close().unwrap();
    std::fs::write(place.path().join(&file), &whole).unwrap();
    assert_holds(&place.open(), &model, "repaired");
}

/// Where tables are rewritten for the sake of pointers alone, those that lead through damage stay as they are, and hold nothing else up.
#[test]
fn pointers_are_replaced_around_a_damaged_relocation_table() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "sorting around damage");
    let (place, mut model, file) = collected();
    let whole = damage_relocations(&place, &file);
    let busy = Options { memtable_bytes: 16 << 10, level_bytes_base: 8 << 10, value_runs_max: 1, ..quiet() };
    let db = open(&place.path(), &busy).unwrap();
    for round in 2..12 {
        fill(&db, &mut model, (0..KEYS).rev().filter(|number| !number.is_multiple_of(3)), round);
        db.compact_range(None, None).unwrap();
        // The damaged segment is left alone once it was met.
        if let Err(error) = db.sort_values() {
            assert_eq!(named(&error).0, file, "{error}");
            assert_eq!(db.stats().quarantined_segments.len(), 1, "{error}");
        }
        db.wait_idle().unwrap();
    }
    let stats = db.stats();
    assert!(stats.levels[0].tables < 10 && stats.sortings > 1, "{stats:?}");
    assert_right_or_named(&db, &model, &file, "after");
    db.close().unwrap();
    std::fs::write(place.path().join(&file), &whole).unwrap();
    assert_holds(&place.open(), &model, "repaired");
}

#[test]
fn a_missing_cold_segment_is_named() {
    let (place, model, file) = collected();
    let whole = std::fs::read(place.path().join(&file)).unwrap();
    std::fs::remove_file(place.path().join(&file)).unwrap();
    match place.try_open(&quiet()) {
        Err(error) => assert_eq!(named(&error).0, file),
        Ok(db) => {
            assert!(assert_right_or_named(&db, &model, &file, "missing") > 0);
            assert_eq!(named(&db.check(CheckLevel::Structure).problems[0]).0, file);
        }
    }
    for len in [0, 40, SEGMENT_HEADER_BYTES, whole.len() / 2, whole.len() - 1] {
        std::fs::write(place.path().join(&file), &whole[..len]).unwrap();
        match place.try_open(&quiet()) {
            Err(error) => assert_eq!(named(&error).0, file, "{len}"),
            Ok(db) => {
                assert_right_or_named(&db, &model, &file, "cut");
                let problems = db.check(CheckLevel::Structure).problems;
                assert!(problems.iter().any(|error| named(error).0 == file), "{len}: {problems:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_read_for_a_moment_is_not_in_quarantine() {
    let place = Place::new(quiet());
    let db = place.open();
    let model = half_dead(&db);
    place.faults.inject(Fault::on(Call::Read).path_ending(".vlog").errno(EIO));
    assert_eq!(db.gc(GcGoal::Once).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(db.stats().quarantined_segments, [0; 0]);
    assert!(db.gc(GcGoal::Once).unwrap().segments > 0);
    assert_holds_at(&db, &model, &ReadOptions::default(), "read again");
}

#[test]
fn a_damaged_table_puts_no_segment_into_quarantine() {
    let place = Place::new(quiet());
    let db = place.open();
    half_dead(&db);
    db.close().unwrap();
    let table = file_names(&place.path()).into_iter().find(|name| name.ends_with(".table")).unwrap();
    let len = std::fs::read(place.path().join(&table)).unwrap().len();
    let mut met = 0;
    for at in (0..len).step_by(len / 40) {
        let copy = place.path().with_extension(at.to_string());
        copy_directory(&place.path(), &copy);
        flip(&copy.join(&table), at);
        let Ok(db) = open(&copy, &quiet()) else { continue };
        if let Err(error) = db.gc(GcGoal::Once) {
            assert_eq!(named(&error).0, table, "byte {at}");
            met += 1;
        }
        assert_eq!(db.stats().quarantined_segments, [0; 0], "byte {at}");
    }
    assert!(met > 0, "some bytes are needed to collect");
}

#[test]
fn a_victim_whose_file_is_gone_is_named_and_the_others_are_collected() {
    for open in [true, false] {
        let place = Place::new(quiet());
        let mut db = place.open();
        let model = half_dead(&db);
        let (file, _) = find_record(&place, 71, 0);
        db.close().unwrap();
        db = place.open();
        if open {
            // Somebody who reads has its file open.
            assert_eq!(db.get(&key(71)).unwrap(), Some(value(71, 0)));
        }
        std::fs::remove_file(place.path().join(&file)).unwrap();
        let errors = gc_around(&db);
        for error in &errors {
            assert_eq!(named(error).0, file, "open: {open}");
        }
        assert_eq!(errors.is_empty(), open, "{errors:?}");
        assert!(db.stats().collected_segments > 2, "{:?}", db.stats());
        let told = errors.len();
        for (key, value) in &model {
            match db.get(key) {
                Ok(found) => assert_eq!(found.as_ref(), Some(value)),
                Err(error) => assert_eq!((named(&error).0, told), (file.clone(), 1)),
            }
        }
        if !open {
            assert_eq!(db.stats().quarantined_segments.len(), 1);
            assert!(db.get(&key(71)).is_err(), "it is not dropped");
        }
    }
}
