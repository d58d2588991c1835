//! Every kind of file damaged in every way.

use tamarack::testing::{SimDisk, SimOptions};
use tamarack::{
    Db, ErrorKind, Options, RepairOptions, RepairReport, RepairedManifest, WriteBatch, WriteOptions,
};

use crate::common::{PATIENCE_SECONDS, Random, Watchdog, number_from_environment};
use crate::golden::{Golden, assert_lives, damaged, names, open, options, path, read, repair};

/// What a repair came to: its report, how many keys that names, and those that are not what they were.
struct Repaired {
    report: RepairReport,
    named: usize,
    differing: Vec<usize>,
}

/// Repairs, and looks at everything.
fn repair_and_look(golden: &Golden, disk: &SimDisk, what: &str) -> Repaired {
    let env = disk.env();
    let report = repair(&env).unwrap_or_else(|error| panic!("{what}: {error}"));
    let (named, differing) = golden.assert_told(&env, &report, what);
    let again = repair(&env).unwrap_or_else(|error| panic!("{what}, again: {error}"));
    assert!(again.is_clean(), "{what}: a second repair finds something: {again}");
    Repaired { report, named, differing }
}

fn is_file(name: &str) -> bool {
    name.contains('.') || name.starts_with("MANIFEST") || name == "CURRENT"
}

#[test]
fn a_whole_database_is_left_alone() {
    for golden in [Golden::new(true), Golden::new(false), Golden::with_holes()] {
        let env = golden.disk.env();
        let before = golden.names();
        let report = repair(&env).unwrap();
        assert!(report.is_clean() && report.lost.is_empty() && report.moved.is_empty(), "{report}");
        assert_eq!(golden.names(), before);
        golden.assert_exact(&env, "whole");
    }
}

#[test]
fn files_that_are_gone_cut_zeroed_or_another_are_told() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "files that are gone or cut");
    let golden =
        [("closed", Golden::new(true)), ("killed", Golden::new(false)), ("holes", Golden::with_holes())];
    for (kind, golden) in golden {
        for name in golden.names().iter().filter(|name| is_file(name)) {
            let extension = name.rsplit('.').next().unwrap();
            let like = golden.names().into_iter().find(|other| other != name && other.ends_with(extension));
            let other = like.map(|other| read(&golden.disk.env(), &path(&other)));
            for way in ["gone", "empty", "half", "zeros", "another", "a block of zeros"] {
                let what = format!("{kind}: {name}: {way}");
                let disk = golden.damaged(name, |mut bytes| match way {
                    "gone" => None,
                    "empty" => Some(Vec::new()),
                    "half" => Some(bytes[..bytes.len() / 2].to_vec()),
                    "zeros" => Some(vec![0; bytes.len()]),
                    "another" => Some(other.clone().unwrap_or_default()),
                    _ => {
                        let end = bytes.len().min(512);
                        bytes[..end].fill(0);
                        Some(bytes)
                    }
                });
                if kind == "killed" && *name == golden.last_of_log() && !way.starts_with('a') {
                    // Nothing but the file itself tells that it was there, or how long: it is a torn tail to everybody.
                    repair(&disk.env()).unwrap();
                    assert_lives(&disk.env(), &what);
                    continue;
                }
                let Repaired { report, .. } = repair_and_look(&golden, &disk, &what);
                if name.starts_with("MANIFEST") || name == "CURRENT" {
                    let cut = name.starts_with("MANIFEST") && way == "half";
                    if !cut {
                        golden.assert_exact(&disk.env(), &what);
                    }
                    assert!(report.changed, "{what}: {report}");
                }
                assert_lives(&disk.env(), &what);
            }
        }
    }
}

/// A crash during a flush leaves a table, or a part of one, that the manifest does not know. Damage to the log beside it is no
/// sign that the manifest is old.
#[test]
fn a_table_that_was_begun_does_not_discredit_the_manifest() {
    let golden = Golden::new(false);
    let flushed = golden.damaged(&golden.last_of_log(), Some);
    let db = open(&flushed.env(), options()).unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    // One that was being written when the database was killed gives its name to the next.
    let was_there = |name: &String| {
        golden.names().contains(name)
            && read(&golden.disk.env(), &path(name)) == read(&flushed.env(), &path(name))
    };
    let is_new = |name: &String| name.ends_with(".table") && !was_there(name);
    let name = names(&flushed.env(), "/db").into_iter().find(is_new).expect("a table of what was in the log");
    let table = read(&flushed.env(), &path(&name));
    // In the header, and in the first record.
    for at in [11, 90] {
        let log = golden.damaged(&golden.last_of_log(), |mut bytes| {
            bytes[at] ^= 4;
            Some(bytes)
        });
        for len in [table.len() / 2, table.len()] {
            let disk = damaged(&log, &name, |_| Some(table[..len].to_vec()));
            let what = format!("byte {at}, beside {len} bytes of a table");
            let Repaired { report, .. } = repair_and_look(&golden, &disk, &what);
            assert_eq!(report.manifest, RepairedManifest::Whole, "{what}: {report}");
            assert!(!report.damage.is_empty(), "{what}: {report}");
        }
    }
}

/// Flips a bit in every `step`th byte, or in as many as the environment says, of the files whose names begin or end with
/// `part`, and gives what each repair came to to `look`. Returns how many keys were named in all.
fn flip(golden: &Golden, part: &str, step: usize, look: &dyn Fn(&Repaired, &SimDisk, &str)) -> usize {
    let mut all = 0;
    let step = number_from_environment("TAMARACK_STEP").map_or(step, |step| step as usize);
    for name in golden.names().iter().filter(|name| name.ends_with(part) || name.starts_with(part)) {
        let len = read(&golden.disk.env(), &path(name)).iter().rposition(|&byte| byte != 0).unwrap_or(0) + 1;
        let mut watchdog = None;
        for (number, at) in (name.len() % step..len).step_by(step).enumerate() {
            let what = format!("bit {} of byte {at} of {len} of {name}", at % 8);
            if number % 100 == 0 {
                watchdog = Some(Watchdog::new(PATIENCE_SECONDS, format!("a hundred flips from {what} on")));
            }
            let disk = golden.damaged(name, |mut bytes| {
                bytes[at] ^= 1 << (at % 8);
                Some(bytes)
            });
            let repaired = repair_and_look(golden, &disk, &what);
            look(&repaired, &disk, &what);
            all += repaired.named;
            if at % 5 == 0 {
                assert_lives(&disk.env(), &what);
            }
        }
        drop(watchdog);
    }
    all
}

#[test]
fn a_flipped_bit_of_a_sealed_segment_costs_the_record_it_hit() {
    let golden = Golden::new(true);
    for part in [".vlog", ".cold"] {
        let all = flip(&golden, part, 97, &|repaired, _, what| {
            let Repaired { report, named, differing } = repaired;
            assert_eq!(report.manifest, RepairedManifest::Whole, "{what}");
            assert!(differing.len() <= 1, "{what}: {differing:?} differ\n{report}");
            // Of a record of the log, before it is in a table, nobody else knows the key.
            let in_log = report.log_operations > 0;
            assert!(*named <= 1 || in_log, "{what}: {named} keys are named\n{report}");
        });
        assert!(all > 0, "{part}: no flip has hit anything");
    }
}

#[test]
fn a_flipped_bit_of_a_log_is_told() {
    let golden = Golden::new(false);
    let all = flip(&golden, ".vlog", 199, &|repaired, _, what| {
        let Repaired { report, differing, .. } = repaired;
        assert!(differing.len() <= 1 || report.log_operations > 0, "{what}: {differing:?} differ\n{report}");
    });
    assert!(all > 0, "no flip has hit anything");
}

#[test]
fn a_flipped_bit_of_a_table_costs_no_value_of_the_log() {
    // In one that was killed the last tables point to a segment that no manifest knows.
    for close in [true, false] {
        let golden = Golden::new(close);
        let all = flip(&golden, ".table", 23, &|repaired, _, what| {
            let Repaired { report, differing, .. } = repaired;
            assert_eq!(report.manifest, RepairedManifest::Whole, "{what}");
            let alone = differing.iter().all(|&number| golden.is_in_index_alone(number));
            assert!(alone, "{what}: {differing:?} differ\n{report}");
        });
        assert!(all > 0, "no flip has hit anything");
    }
}

/// What stands before the head of the log, in a segment that no manifest knows, is found by a table that is damaged, and by no other.
#[test]
fn a_flipped_bit_of_the_only_table_costs_no_value_of_the_segment_that_is_written_to() {
    let disk = SimDisk::new(&SimOptions { seed: 8, ..SimOptions::default() });
    let db = open(&disk.env(), options()).unwrap();
    let keys: Vec<_> = (0..40_u8).map(|number| [b'k', number]).collect();
    keys.iter().for_each(|key| db.put(key, &[key[1]; 200]).unwrap());
    db.flush().unwrap();
    let killed = disk.kill();
    drop(db);
    let all = names(&killed.env(), "/db");
    let table = all.iter().find(|name| name.ends_with(".table")).unwrap();
    let len = read(&killed.env(), &path(table)).len();
    for at in (0..len).step_by(11) {
        let disk = damaged(&killed, table, |mut bytes| {
            bytes[at] ^= 16;
            Some(bytes)
        });
        let report = repair(&disk.env()).unwrap();
        let db = open(&disk.env(), options()).unwrap();
        for key in &keys {
            let value = db.get(key).unwrap();
            assert_eq!(value, Some(vec![key[1]; 200]), "byte {at} of {len}, {key:?}: {report}");
        }
    }
}

#[test]
fn a_batch_whose_head_is_damaged_is_told_without_a_manifest() {
    let disk = SimDisk::new(&SimOptions { seed: 9, ..SimOptions::default() });
    let db = open(&disk.env(), options()).unwrap();
    db.put(b"before", b"in a table").unwrap();
    db.flush().unwrap();
    let mut batch = WriteBatch::new();
    (0..5).try_for_each(|number| batch.put(format!("batch{number}").as_bytes(), &[7; 100])).unwrap();
    db.write(&batch, &WriteOptions::synced()).unwrap();
    db.close().unwrap();
    let all = names(&disk.env(), "/db");
    let log = all.iter().rfind(|name| name.ends_with(".vlog")).unwrap();
    let lost = all.iter().filter(|name| name.starts_with("MANIFEST"));
    let disk = lost.fold(disk.kill(), |disk, name| damaged(&disk, name, |_| None));
    let disk = damaged(&disk, log, |mut bytes| {
        let key = bytes.windows(6).position(|window| window == b"batch0").expect("the batch is in the log");
        bytes[key] ^= 1;
        Some(bytes)
    });
    let report = repair(&disk.env()).unwrap();
    let db = open(&disk.env(), options()).unwrap();
    assert_eq!(db.get(b"before").unwrap(), Some(b"in a table".to_vec()), "{report}");
    for number in 0..5 {
        let key = format!("batch{number}").into_bytes();
        let is_there = db.get(&key).unwrap().is_some();
        assert!(is_there || report.loss_of(&key).is_some(), "{number} is gone and not named: {report}");
        assert!(is_there || number == 0, "{number} was whole: {report}");
    }
}

/// A manifest that was cut is a whole one of an earlier time: the log alone tells, and what it does not mention is what a repair needs.
#[test]
fn an_open_that_fails_removes_nothing() {
    for golden in [Golden::new(true), Golden::new(false), Golden::with_holes()] {
        let all = golden.names();
        let manifest = all.iter().find(|name| name.starts_with("MANIFEST")).unwrap();
        let len = read(&golden.disk.env(), &path(manifest)).len();
        let mut refused = 0;
        for cut in (0..len).step_by(7) {
            let disk = golden.damaged(manifest, |bytes| Some(bytes[..cut].to_vec()));
            let Err(error) = open(&disk.env(), options()) else { continue };
            refused += 1;
            let left = names(&disk.env(), "/db");
            let gone: Vec<_> = all.iter().filter(|name| !left.contains(name)).collect();
            assert!(gone.is_empty(), "{manifest}, {cut} of {len} bytes: {gone:?} are gone: {error}");
        }
        assert!(refused > 0, "each was opened");
    }
}

#[test]
fn a_flipped_bit_of_the_manifest_costs_nothing() {
    for close in [true, false] {
        let golden = Golden::new(close);
        for end in ["MANIFEST", "CURRENT"] {
            flip(&golden, end, if end == "CURRENT" { 5 } else { 71 }, &|repaired, disk, what| {
                golden.assert_exact(&disk.env(), &format!("{what}\n{}", repaired.report));
            });
        }
    }
}

/// Damages `times` files of `disk` in ways that `random` chooses.
fn damage_at_random(disk: &SimDisk, random: &mut Random, times: usize) -> String {
    let (env, mut what) = (disk.env(), String::new());
    for _ in 0..times {
        let files: Vec<_> = names(&env, "/db").into_iter().filter(|name| is_file(name)).collect();
        let (name, other) = (&files[random.below(files.len())], &files[random.below(files.len())]);
        let mut bytes = read(&env, &path(name));
        // A manifest that was cut is a whole one of an earlier time, which need not know of the last segment of the log.
        let first = if name.starts_with("MANIFEST") { 2 } else { 0 };
        let (way, at) = (first + random.below(6 - first), random.below(bytes.len().max(1)));
        what += &format!("{name}: way {way} at {at} of {}; ", bytes.len());
        match way {
            0 => bytes.truncate(at),
            1 => bytes.iter_mut().skip(at).take(512).for_each(|byte| *byte = 0),
            2 => bytes = read(&env, &path(other)),
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        }
        env.fs.remove_file(&path(name)).unwrap();
        if way < 5 || at % 3 > 0 {
            let file = env.fs.create_new(&path(name)).unwrap();
            file.write_at(&bytes, 0).unwrap();
        }
    }
    what
}

/// What the newest table had is in the log as well, from which it is replayed: nothing of it may be taken for older than that.
#[test]
fn tables_of_which_only_references_are_left_are_told_without_a_manifest() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "tables of which only references are left");
    let golden = Golden::new(true);
    let disk = golden
        .names()
        .iter()
        .filter(|name| name.starts_with("MANIFEST"))
        .fold(golden.disk.kill(), |disk, name| damaged(&disk, name, |_| None));
    let mut without_data = 0;
    // A log that stays, and one that does not.
    for damage_log in [false, true] {
        let disk = damaged(&disk, &golden.last_of_log(), |mut bytes| {
            let records_end = bytes.iter().rposition(|&byte| byte != 0).unwrap();
            bytes[records_end / 2] ^= u8::from(damage_log);
            Some(bytes)
        });
        for name in golden.names().iter().filter(|name| name.ends_with(".table")) {
            // Data blocks come first; the properties are the last block, behind which the footer of 68 bytes ends the file.
            for data_parts in 1..8 {
                let disk = damaged(&disk, name, |mut bytes| {
                    let (properties, data_end) = (bytes.len() - 68 - 20, bytes.len() * data_parts / 8);
                    (0..data_end).step_by(40).chain([properties]).for_each(|at| bytes[at] ^= 1);
                    Some(bytes)
                });
                let what = format!("{name}: {data_parts} parts of the data, the log: {damage_log}");
                let Repaired { report, .. } = repair_and_look(&golden, &disk, &what);
                assert_eq!(report.manifest, RepairedManifest::Lost, "{what}");
                without_data += usize::from(report.damaged_tables == 1);
                assert_lives(&disk.env(), &what);
            }
        }
    }
    assert!(without_data >= 7, "{without_data}");
}

#[test]
fn several_damages_at_once_are_told() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "several damages at once");
    let base = number_from_environment("TAMARACK_SEED").unwrap_or(0);
    let seeds = number_from_environment("TAMARACK_SEEDS").unwrap_or(150);
    let golden = Golden::new(true);
    for seed in base..base + seeds {
        let mut random = Random::new(seed);
        let disk = golden.disk.kill();
        let times = 2 + random.below(4);
        let what = format!("seed {seed}: {}", damage_at_random(&disk, &mut random, times));
        match repair(&disk.env()) {
            // Nothing is left that tells which database it was.
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}"),
            Ok(report) => {
                golden.assert_told(&disk.env(), &report, &what);
                assert!(repair(&disk.env()).unwrap().is_clean(), "{what}: a second repair finds something");
                assert_lives(&disk.env(), &what);
            }
        }
    }
}

#[test]
fn nothing_is_removed_and_a_trial_changes_nothing() {
    let golden = Golden::new(true);
    let name = golden.names().into_iter().find(|name| name.ends_with(".table")).unwrap();
    let disk = golden.damaged(&name, |mut bytes| {
        bytes[10] ^= 1;
        Some(bytes)
    });
    let env = disk.env();
    let before = names(&env, "/db");
    let contents: Vec<_> = before.iter().map(|name| read(&env, &path(name))).collect();
    let trial = RepairOptions { dry_run: true, ..RepairOptions::default() };
    let tried = Db::repair_with_env("/db", &options(), trial, &env).unwrap();
    assert!(tried.changed && tried.dry_run);
    assert_eq!(names(&env, "/db"), before, "a trial changes nothing");
    let report = repair(&env).unwrap();
    assert_eq!((tried.lost, tried.keys, tried.damage.len()), (report.lost, report.keys, report.damage.len()));
    let after = (names(&env, "/db"), names(&env, "/db/lost"));
    for (name, bytes) in before.iter().zip(contents) {
        let places = [("/db", &after.0), ("/db/lost", &after.1)];
        let kept = places.iter().any(|(directory, names)| {
            names.contains(name) && read(&env, &std::path::Path::new(directory).join(name)) == bytes
        });
        assert!(kept || name == "CURRENT", "{name} is gone");
    }
    assert!(after.1.contains(&name) && after.1.iter().any(|name| name.starts_with("REPORT")), "{after:?}");
}

#[test]
fn what_is_no_database_or_is_open_is_refused() {
    let golden = Golden::new(true);
    let env = golden.disk.env();
    let refused = |path: &str| {
        Db::repair_with_env(path, &options(), RepairOptions::default(), &env)
            .map(drop)
            .map_err(|error| error.kind())
    };
    assert_eq!(refused("/nothing"), Err(ErrorKind::InvalidArgument));
    env.fs.create_dir_all(std::path::Path::new("/other")).unwrap();
    env.fs.create_new(std::path::Path::new("/other/notes")).unwrap();
    assert_eq!(refused("/other"), Err(ErrorKind::InvalidArgument));
    assert_eq!(names(&env, "/other"), ["notes"]);
    let db = open(&env, Options::default()).unwrap();
    assert_eq!(refused("/db"), Err(ErrorKind::Locked));
    drop(db);
    assert_eq!(refused("/db"), Ok(()));
}
