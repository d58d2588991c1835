//! A world whose calls fail: full disks, failed syncs and reads, read-only file systems. Errors are clean, nothing hangs,
//! and what was acknowledged is there. Each call in its turn fails in `error_sweep.rs`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::common::garbage::{
    KEYS, assert_holds, assert_no_orphans, assert_recovers, fill, half_dead, quiet,
};
use crate::common::place::Place;
use crate::common::{
    PATIENCE_SECONDS, Watchdog, assert_clean, content, copy_directory, file_names, open, tiny,
};
use tamarack::testing::{Call, ENOSPC, EROFS, Fault};
use tamarack::{Db, ErrorKind, GcGoal, IterOptions, LogMode, Options, ReadOptions, WriteBatch, WriteOptions};

/// What was tried, and what became of it.
#[derive(Default)]
struct Ledger {
    next: u32,
    /// What an acknowledged write has put there.
    kept: BTreeMap<Vec<u8>, Vec<u8>>,
    /// What a failed write may have put there.
    in_doubt: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Ledger {
    /// Writes a batch of new keys.
    fn write(&mut self, db: &Db, sync: bool) -> tamarack::Result<()> {
        self.next += 1;
        let mut batch = WriteBatch::new();
        let mut entries = BTreeMap::new();
        for part in 0..1 + self.next % 3 {
            let key = format!("key{:05}/{part}", self.next).into_bytes();
            let value = vec![self.next as u8; [4, 40, 400][(self.next % 7 % 3) as usize]];
            batch.put(&key, &value).unwrap();
            entries.insert(key, value);
        }
        let outcome = db.write(&batch, &WriteOptions { sync });
        match &outcome {
            Ok(()) => self.kept.append(&mut entries),
            Err(error) if error.kind() == ErrorKind::NoSpace => {}
            Err(_) => self.in_doubt.append(&mut entries),
        }
        outcome
    }

    fn assert_reads(&self, db: &Db, what: &str) {
        for (key, value) in &self.kept {
            let found = db.get(key).unwrap_or_else(|error| panic!("{what}: get of {key:?}: {error}"));
            assert!(found.as_ref() == Some(value), "{what}: {key:?} gives {found:?}");
        }
        for (key, value) in content(db) {
            let expected = self.kept.get(&key).or_else(|| self.in_doubt.get(&key));
            assert!(expected == Some(&value), "{what}: {key:?} was never written so");
        }
    }

    /// Opens the database in a world without faults: everything acknowledged is there, and it works.
    fn assert_recovers(&mut self, path: &Path, options: &Options, what: &str) {
        let db = open(path, options).unwrap_or_else(|error| panic!("{what}: reopening: {error}"));
        self.assert_reads(&db, what);
        self.write(&db, true).unwrap();
        assert_clean(&db);
        db.close().unwrap();
    }
}

/// Background work that was under way when the disk was still full may fail once more, and say so.
fn once_there_is_space(what: &str, mut call: impl FnMut() -> tamarack::Result<()>) {
    for _ in 0..5 {
        match call() {
            Ok(()) => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::NoSpace, "{what}: {error}"),
        }
    }
    panic!("{what}: there is space, and no success in five attempts");
}

#[test]
fn a_full_disk_refuses_writes_and_takes_them_again_once_there_is_space() {
    let modes = [LogMode::Auto, LogMode::Plain].map(|mode| [(mode, None), (mode, Some(0))]);
    for (log_mode, reserved_bytes) in modes.into_iter().flatten() {
        for quota in (0..90_000).step_by(1500) {
            let what = format!("{log_mode:?}, {quota} bytes left");
            let _watchdog = Watchdog::new(PATIENCE_SECONDS, what.clone());
            let place = Place::new(Options { log_mode, reserved_bytes, ..tiny() });
            let db = place.open();
            let mut ledger = Ledger::default();
            (0..20).for_each(|_| ledger.write(&db, false).unwrap());
            place.faults.set_quota(Some(place.faults.space_used() + quota));
            let mut refused = 0;
            for _ in 0..2000 {
                if let Err(error) = ledger.write(&db, false) {
                    assert_eq!(error.kind(), ErrorKind::NoSpace, "{what}: {error}");
                    refused += 1;
                    if refused == 5 {
                        break;
                    }
                }
            }
            assert_eq!(refused, 5, "{what}: the disk is never full");
            ledger.assert_reads(&db, &what);
            place.faults.set_quota(None);
            for number in 0..25 {
                once_there_is_space(&what, || ledger.write(&db, number % 5 == 0));
            }
            once_there_is_space(&what, || db.flush());
            once_there_is_space(&what, || db.compact_range(None, None));
            once_there_is_space(&what, || db.wait_idle());
            ledger.assert_reads(&db, &what);
            assert_clean(&db);
            db.close().unwrap_or_else(|error| panic!("{what}: {error}"));
            ledger.assert_recovers(&place.path(), &place.options, &what);
        }
    }
}

/// The looks at a database at rest make no files, wherever the disk became full; but compactions are tried again each 64 seconds.
#[test]
fn a_full_disk_is_not_asked_over_and_over_by_background_work() {
    const LOOKS: u64 = 1000;
    const SECONDS: u64 = 2;
    let tried_again = LOOKS * SECONDS / 64;
    for quota in (16_000..24_000).step_by(200) {
        let what = format!("a full disk at rest, {quota} bytes left");
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, what.clone());
        let place = Place::new(Options { log_mode: LogMode::Plain, ..tiny() });
        let db = place.open();
        let mut ledger = Ledger::default();
        place.faults.set_quota(Some(place.faults.space_used() + quota));
        while ledger.write(&db, false).is_ok() {}
        let before = place.faults.count(Call::Create);
        (0..LOOKS).for_each(|_| place.time.pass(Duration::from_secs(SECONDS)));
        // Waits for jobs that are under way; what it has to do itself takes space.
        if let Err(error) = db.close() {
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{what}: {error}");
        }
        let attempts = place.faults.count(Call::Create) - before;
        // Sooner at first, and each job that was under way once.
        assert!(attempts < tried_again + 20, "{what}: {attempts} attempts in {LOOKS} looks");
    }
}

#[test]
fn after_a_failed_sync_nothing_is_written_and_the_sync_is_not_tried_again() {
    for log_mode in [LogMode::Auto, LogMode::Plain] {
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a failed sync");
        let place = Place::new(Options { log_mode, ..tiny() });
        let db = place.open();
        let mut ledger = Ledger::default();
        (0..5).for_each(|_| ledger.write(&db, true).unwrap());
        db.wait_idle().unwrap();
        place.faults.inject(Fault::on(Call::SyncData).path_ending(".vlog"));
        let error = ledger.write(&db, true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.message().contains(".vlog"), "{error}");
        let syncs = place.faults.count_of(Call::SyncData, ".vlog");
        for outcome in
            [ledger.write(&db, false), ledger.write(&db, true), db.flush(), db.compact_range(None, None)]
        {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ReadOnly);
        }
        assert!(db.sync().is_err() && db.wait_idle().is_err());
        ledger.assert_reads(&db, "after a failed sync");
        assert!(
            db.stats().warnings.iter().any(|warning| warning.contains("sync")),
            "{:?}",
            db.stats().warnings
        );
        assert!(db.close().is_err());
        assert_eq!(place.faults.count_of(Call::SyncData, ".vlog"), syncs, "the sync was tried again");
        ledger.assert_recovers(&place.path(), &place.options, "after a failed sync");
    }
}

#[test]
fn a_failed_read_is_an_error_and_not_an_absent_key() {
    let place =
        Place::new(Options { block_cache_bytes: 0, row_cache_bytes: 0, open_files_max: 16, ..tiny() });
    let mut ledger = Ledger::default();
    let db = place.open();
    (0..60).for_each(|_| ledger.write(&db, false).unwrap());
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    let db = place.open();
    for suffix in [".table", ".vlog"] {
        place.faults.inject(Fault::on(Call::Read).path_ending(suffix).for_ever());
        let keys: Vec<_> = ledger.kept.keys().collect();
        let values = db.multi_get(&keys, &ReadOptions::default());
        for ((key, value), together) in ledger.kept.iter().zip(values) {
            let inline = value.len() <= place.options.inline_value_max;
            for outcome in [db.get(key), together] {
                match outcome {
                    Ok(found) => {
                        assert!(suffix == ".vlog" && inline && found.as_ref() == Some(value), "{suffix}")
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{error}"),
                }
            }
        }
        let scanned: tamarack::Result<Vec<_>> = db.iter(&IterOptions::default()).unwrap().entries().collect();
        assert_eq!(scanned.unwrap_err().kind(), ErrorKind::Io);
        assert!(!db.check(tamarack::CheckLevel::Values).is_clean());
        place.faults.heal();
        ledger.assert_reads(&db, "healed");
        assert_clean(&db);
    }
    ledger.write(&db, true).unwrap();
}

#[test]
fn a_read_only_file_system_can_be_read() {
    let place = Place::new(tiny());
    let mut ledger = Ledger::default();
    let db = place.open();
    (0..40).for_each(|_| ledger.write(&db, false).unwrap());
    db.close().unwrap();
    place.faults.inject(Fault::on_mutating().errno(EROFS).for_ever());
    assert_eq!(place.try_open(&place.options).unwrap_err().kind(), ErrorKind::Io);
    let options = Options { read_only: true, ..tiny() };
    let db = place.try_open(&options).unwrap();
    ledger.assert_reads(&db, "read-only");
    assert_eq!(ledger.write(&db, false).unwrap_err().kind(), ErrorKind::ReadOnly);
    ledger.in_doubt.clear();
    assert_clean(&db);
    db.close().unwrap();
    place.faults.heal();
    ledger.assert_recovers(&place.path(), &place.options, "writable again");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let place = Place::new(tiny());
    std::fs::write(place.path(), b"a file").unwrap();
    let error = Db::open(place.path().join("below"), tiny()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("below"), "{error}");
    assert_eq!(Db::open(place.path(), tiny()).unwrap_err().kind(), ErrorKind::Io);
    std::fs::remove_file(place.path()).unwrap();
    for call in [Call::CreateDir, Call::Create, Call::LockDir] {
        place.faults.inject(Fault::on(call).kind(std::io::ErrorKind::PermissionDenied));
        let error = place.try_open(&place.options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{call:?}: {error}");
        assert!(error.message().contains("db"), "{call:?}: {error}");
    }
    place.open();
}

#[test]
fn without_mappings_or_reserved_space_the_log_is_written_plainly() {
    for call in [Call::Map, Call::Allocate] {
        let place = Place::new(tiny());
        place.faults.set_unsupported(call, true);
        let mut ledger = Ledger::default();
        let db = place.open();
        (0..60).for_each(|number| ledger.write(&db, number % 9 == 0).unwrap());
        assert!(place.faults.count_of(Call::Write, ".vlog") >= 60);
        ledger.assert_reads(&db, "plain");
        db.close().unwrap();
        let mapped = Options { log_mode: LogMode::Mapped, ..tiny() };
        let outcome = place.try_open(&mapped).and_then(|db| ledger.write(&db, false));
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Io);
        ledger.assert_recovers(&place.path(), &place.options, "plain");
    }
}

/// Begins a segment in which there is no room for a record, and then there is.
fn begin_a_segment_in_vain(place: &Place, ledger: &mut Ledger, file: &str) -> Db {
    let db = place.open();
    let full = Fault::on(Call::Write).path_ending(file).nth(2).errno(ENOSPC);
    place.faults.inject(full.for_ever());
    while ledger.write(&db, false).is_ok() {}
    db.wait_idle().unwrap();
    assert_eq!(db.stats().segments.last().unwrap().bytes, 80, "{file} has a header alone");
    db
}

#[test]
fn a_log_whose_head_is_in_an_empty_segment_can_be_opened_after_a_close() {
    for file in ["000002.vlog", "000003.vlog", "000007.vlog"] {
        let place = Place::new(Options { log_mode: LogMode::Plain, ..tiny() });
        let mut ledger = Ledger::default();
        let db = begin_a_segment_in_vain(&place, &mut ledger, file);
        db.flush().unwrap();
        place.faults.heal();
        db.close().unwrap();
        (0..3).for_each(|_| ledger.assert_recovers(&place.path(), &place.options, file));
    }
}

#[test]
fn an_empty_segment_in_the_midst_of_the_log_stays_in_it() {
    for (file, closes) in [("000002.vlog", true), ("000002.vlog", false), ("000005.vlog", true)] {
        // Nothing is flushed: all is replayed each time.
        let options = Options { log_mode: LogMode::Plain, memtable_bytes: 1 << 20, ..tiny() };
        let place = Place::new(Options { recovery_log_max: 64 << 20, ..options });
        let mut ledger = Ledger::default();
        let db = begin_a_segment_in_vain(&place, &mut ledger, file);
        place.faults.heal();
        // It does not fit, so the next segment is begun.
        db.put(b"large", &[7; 9000]).unwrap();
        ledger.kept.insert(b"large".to_vec(), vec![7; 9000]);
        let copy = place.beside("copy");
        if closes {
            db.close().unwrap();
            copy_directory(&place.path(), &copy);
        } else {
            copy_directory(&place.path(), &copy);
        }
        (0..3).for_each(|_| ledger.assert_recovers(&copy, &place.options, file));
    }
}

#[test]
fn records_left_by_a_failed_plain_write_do_not_spoil_the_log() {
    let short = Fault::on(Call::Write).path_ending(".vlog").short_write();
    let whole = Fault::on(Call::Write).path_ending(".vlog").whole_write();
    for (shorter, fault) in (0..12).flat_map(|shorter| [(shorter, &short), (shorter, &whole)]) {
        let place = Place::new(Options { log_mode: LogMode::Plain, segment_bytes_max: 16 << 10, ..tiny() });
        let db = place.open();
        db.put(b"before", b"1").unwrap();
        let mut batch = WriteBatch::new();
        (0..8).for_each(|number| batch.put(format!("fail{number}").as_bytes(), b"12345").unwrap());
        place.faults.inject(fault.clone());
        assert_eq!(db.write(&batch, &WriteOptions::default()).unwrap_err().kind(), ErrorKind::Io);
        // Of the same length as one record of the batch, or nearly.
        let outcome = db.put(b"after", &vec![7; shorter]);
        let copy = place.beside("copy");
        copy_directory(&place.path(), &copy);
        let found = content(&open(&copy, &place.options).unwrap());
        let what = format!("{shorter}, {fault:?}: {found:?}");
        assert_eq!(found.get(&b"before"[..]), Some(&b"1".to_vec()), "{what}");
        assert_eq!(found.contains_key(&b"after"[..]), outcome.is_ok(), "{what}");
        assert!(!found.keys().any(|key| key.starts_with(b"fail")), "{what}");
    }
}

/// The next record does not overwrite it, and the segment is not sealed, because its footer cannot be written.
#[test]
fn what_a_failed_plain_write_left_does_not_hide_the_next_segment() {
    for (sync, closes) in [(false, false), (true, false), (false, true), (true, true)] {
        let place = Place::new(Options { log_mode: LogMode::Plain, segment_bytes_max: 16 << 10, ..tiny() });
        let (db, options) = (place.open(), WriteOptions { sync });
        let write = |key: &[u8], value: &[u8]| {
            let mut batch = WriteBatch::new();
            batch.put(key, value).unwrap();
            db.write(&batch, &options)
        };
        write(b"before", &[1; 9000]).unwrap();
        place.faults.inject(Fault::on(Call::Write).path_ending("000001.vlog").whole_write());
        assert_eq!(write(b"failed", b"2").unwrap_err().kind(), ErrorKind::Io);
        place.faults.inject(Fault::on(Call::Write).path_ending("000001.vlog").errno(ENOSPC).for_ever());
        write(b"behind", &[3; 9000]).unwrap();
        assert!(
            file_names(&place.path()).contains(&"000002.vlog".to_owned()),
            "it does not fit into the first"
        );
        let copy = place.beside("copy");
        if closes {
            drop(db.close());
        }
        copy_directory(&place.path(), &copy);
        let found = content(&open(&copy, &place.options).unwrap());
        let found: Vec<_> = found.iter().map(|(key, value)| (&key[..], value[0], value.len())).collect();
        let expected = [(&b"before"[..], 1, 9000), (&b"behind"[..], 3, 9000)];
        assert_eq!(found, expected, "sync {sync}, closes {closes}");
    }
}

/// Of two failures, one for want of space and one of the sync behind it, the second is one that nothing comes back from.
#[test]
fn a_manifest_whose_sync_failed_gets_no_more_edits() {
    let place = Place::new(tiny());
    let db = place.open();
    db.put(b"1", b"1").unwrap();
    db.flush().unwrap();
    db.put(b"2", b"2").unwrap();
    // A file is known by the name with which it was made.
    place.faults.inject(Fault::on(Call::Write).path_ending("MANIFEST-000001.tmp").errno(ENOSPC));
    place.faults.inject(Fault::on(Call::SyncData).path_ending("MANIFEST-000001.tmp"));
    db.flush().unwrap_err();
    assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(db.put(b"3", b"3").unwrap_err().kind(), ErrorKind::ReadOnly);
    drop(db);
    place.faults.heal();
    let found = content(&place.open());
    assert_eq!(found.into_keys().collect::<Vec<_>>(), [b"1", b"2"]);
}

#[test]
fn a_large_value_that_no_call_can_write_is_copied_into_the_mapping() {
    for fault in [None, Some(Fault::on(Call::Write)), Some(Fault::on(Call::Write).short_write())] {
        let place = Place::new(Options::default());
        let db = place.open();
        db.put(b"small", b"1").unwrap();
        let (before, large) = (place.faults.count_of(Call::Write, ".vlog"), vec![7; 100_000]);
        if let Some(fault) = fault.clone() {
            place.faults.inject(fault.path_ending(".vlog").nth(3).for_ever());
        }
        db.put(b"large", &large).unwrap();
        db.put(b"larger", &[&large[..], &large].concat()).unwrap();
        assert!(place.faults.count_of(Call::Write, ".vlog") > before, "a call was tried");
        assert_eq!(place.faults.triggered() > 0, fault.is_some());
        let copy = place.beside("copy");
        copy_directory(&place.path(), &copy);
        let copy = open(&copy, &place.options).unwrap();
        assert_eq!(copy.get(b"large").unwrap().unwrap(), large, "{fault:?}");
        assert_eq!(content(&copy), content(&db), "{fault:?}");
        assert_eq!(content(&copy).len(), 3);
        place.faults.heal();
        db.close().unwrap();
    }
}

#[test]
fn without_space_for_a_new_manifest_the_old_one_goes_on() {
    for (call, path) in [
        (Call::Create, "MANIFEST-000002.tmp"),
        (Call::Write, "MANIFEST-000002.tmp"),
        (Call::Rename, "MANIFEST-000002"),
        (Call::Write, "CURRENT.tmp"),
    ] {
        let what = format!("{call:?} of {path}");
        let place = Place::new(Options { log_mode: LogMode::Plain, ..tiny() });
        let db = place.open();
        place.faults.inject(Fault::on(call).path_ending(path).errno(ENOSPC).for_ever());
        let mut ledger = Ledger::default();
        // How many edits come with a flush depends on which compactions run.
        let flush_until = |ledger: &mut Ledger, done: &dyn Fn() -> bool| {
            (1..=400).any(|round| {
                ledger.write(&db, false).unwrap();
                db.flush().unwrap_or_else(|error| panic!("{what}: {error}"));
                round >= 40 && done()
            })
        };
        assert!(flush_until(&mut ledger, &|| place.faults.triggered() > 0), "{what}: never");
        let killed = place.beside("killed");
        copy_directory(&place.path(), &killed);
        ledger.assert_reads(&open(&killed, &tiny()).unwrap(), &what);
        place.faults.heal();
        let renamed = place.faults.count_of(Call::Rename, "CURRENT");
        let is_new = || place.faults.count_of(Call::Rename, "CURRENT") > renamed;
        assert!(flush_until(&mut ledger, &is_new), "{what}: it stays too long");
        db.close().unwrap();
        let db = place.open();
        ledger.assert_reads(&db, &what);
        assert_clean(&db);
    }
}

/// What a job has made and the manifest has no space for is not left lying until the database is opened again.
#[test]
fn what_an_edit_has_no_space_for_is_removed_again() {
    type Job = fn(&Db) -> tamarack::Result<()>;
    let jobs: [(&str, Job); 4] = [
        ("flush", Db::flush),
        ("compact_range", |db| db.compact_range(None, None)),
        ("gc", |db| db.gc(GcGoal::Once).map(drop)),
        ("sort_values", Db::sort_values),
    ];
    for (name, job) in jobs {
        let mut failed = 0;
        for nth in 1..=4 {
            let what = format!("{name}, write {nth} to the manifest fails");
            let _watchdog = Watchdog::new(PATIENCE_SECONDS, what.clone());
            let place = Place::new(Options { value_runs_max: 1, ..quiet() });
            let db = place.open();
            let mut model = half_dead(&db);
            fill(&db, &mut model, (0..KEYS).rev().step_by(3), 2);
            // Else a job in the background, which is not done yet on a busy machine, could meet the failure.
            db.wait_idle().unwrap();
            place
                .faults
                .inject(Fault::on(Call::Write).path_ending("MANIFEST-000001.tmp").nth(nth).errno(ENOSPC));
            let outcome = job(&db);
            drop(db.wait_idle());
            place.faults.heal();
            if let Err(error) = outcome {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{what}: {error}");
                failed += 1;
            }
            job(&db).unwrap_or_else(|error| panic!("{what}: once there is space: {error}"));
            assert_no_orphans(&db, &place.path(), &what);
            let known: u64 = db.stats().levels.iter().map(|level| level.tables).sum();
            let tables = || file_names(&place.path()).iter().filter(|name| name.ends_with(".table")).count();
            // Files are removed in the background.
            let are_gone = (0..6000).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                tables() as u64 == known
            });
            assert!(are_gone, "{what}: {} files of {known} tables", tables());
            assert_holds(&db, &model, &what);
            db.close().unwrap();
            assert_recovers(&place.path(), &place.options, &model, &what);
        }
        assert!(failed > 0, "{name} writes nothing to the manifest");
    }
}
