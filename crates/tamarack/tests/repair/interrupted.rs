//! A repair that is killed, or loses power, at any of its changes can be done again with the same result.

use tamarack::ErrorKind;
use tamarack::testing::{Call, EIO, ENOSPC, Env, Fault, FaultEnv, SimDisk};

use crate::common::{PATIENCE_SECONDS, Watchdog};
use crate::golden::{Golden, assert_lives, damaged, names, path, read, repair};

fn bit(at: usize) -> impl FnOnce(Vec<u8>) -> Option<Vec<u8>> {
    move |mut bytes: Vec<u8>| {
        let at = at.min(bytes.len() - 1);
        bytes[at] ^= 4;
        Some(bytes)
    }
}

/// Damages that make a repair do each of the things it can do.
fn damages(golden: &Golden) -> Vec<(String, SimDisk)> {
    let names = golden.names();
    let some = |end: &str| names.iter().find(|name| name.ends_with(end) || name.starts_with(end)).unwrap();
    let last = |end: &str| names.iter().rfind(|name| name.ends_with(end)).unwrap();
    let log = golden.damaged(&golden.last_of_log(), bit(90));
    let mut table = read(&golden.disk.env(), &path(some(".table")));
    table.truncate(table.len() / 2);
    let early = |bytes: Vec<u8>| Some(bytes[..bytes.len() / 2].to_vec());
    vec![
        ("a table".into(), golden.damaged(some(".table"), bit(40))),
        ("a table is gone".into(), golden.damaged(last(".table"), |_| None)),
        ("a segment".into(), golden.damaged(some(".vlog"), bit(400))),
        ("a cold segment".into(), golden.damaged(some(".cold"), bit(400))),
        ("the log".into(), log.kill()),
        ("the log, and a table was begun".into(), damaged(&log, "000900.table", |_| Some(table))),
        ("the log, and an early manifest".into(), damaged(&log, some("MANIFEST"), early)),
        ("the manifest".into(), golden.damaged(some("MANIFEST"), bit(60))),
        ("CURRENT".into(), golden.damaged("CURRENT", |_| None)),
        ("CURRENT, and the log".into(), damaged(&log, "CURRENT", |_| None)),
    ]
}

#[test]
fn a_repair_that_is_cut_off_anywhere_can_be_done_again() {
    let golden = Golden::new(false);
    cut_off(&golden, damages(&golden), &SimDisk::env);
}

#[test]
fn a_repair_that_is_cut_off_where_files_have_one_name_each_can_be_done_again() {
    let golden = Golden::new(false);
    let mut damages = damages(&golden);
    damages.retain(|(damage, _)| ["a table", "the log", "the manifest"].contains(&damage.as_str()));
    cut_off(&golden, damages, &|disk| {
        let (env, faults) = FaultEnv::new(disk.env());
        faults.set_unsupported(Call::Link, true);
        env
    });
}

/// Cuts repairs of `damages` off at each change.
fn cut_off(golden: &Golden, damages: Vec<(String, SimDisk)>, env_of: &dyn Fn(&SimDisk) -> Env) {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "repairs that are cut off");
    for (damage, disk) in damages {
        let whole = disk.kill();
        let report = repair(&whole.env()).unwrap();
        golden.assert_told(&whole.env(), &report, &damage);
        let expected = state(&whole);
        assert!(state(&whole.crash_to_durable()) == expected, "{damage}: what was repaired is not durable");
        for change in 0.. {
            let (damaged, disk) = (&disk, disk.kill());
            let first = disk.changes();
            disk.kill_at(first + change);
            repair(&env_of(&disk)).unwrap();
            let Some(killed) = disk.take_killed() else { break };
            let crashed = [
                ("killed", killed.kill()),
                ("crash", killed.crash(change)),
                ("crash", killed.crash_to_durable()),
            ];
            for (how, left) in crashed {
                let what = format!("{damage}, {how} at change {change}");
                let env = left.env();
                let is_done = last_manifest_counts(&left, damaged);
                let again = repair(&env_of(&left)).unwrap_or_else(|error| panic!("{what}: {error}"));
                let told = if is_done || again.is_clean() { &report } else { &again };
                assert!(state(&left) == expected, "{what}: another result: {again}");
                golden.assert_told(&env, told, &what);
                let third = repair(&env).unwrap();
                assert!(third.is_clean(), "{what}: {third}");
                let left = names(&env, "/db");
                assert!(!left.iter().any(|name| name.starts_with("repairing")), "{what}: {left:?}");
                if change % 16 == 0 {
                    assert_lives(&env, &what);
                }
            }
        }
    }
}

/// What such a repair has put in place is in use from then on, whatever it has left of itself.
#[test]
fn what_a_repair_leaves_that_is_cut_off_once_it_took_effect_puts_nothing_aside_later() {
    let golden = Golden::new(false);
    let current = |disk: &SimDisk| read(&disk.env(), &path("CURRENT"));
    let manifests =
        |disk: &SimDisk| names(&disk.env(), "/db").into_iter().filter(|name| name.starts_with("MANIFEST"));
    let mut left_over = 0;
    for (damage, disk) in damages(&golden).into_iter().take(5) {
        for change in 0.. {
            let disk = disk.kill();
            disk.kill_at(disk.changes() + change);
            repair(&disk.env()).unwrap();
            let Some(killed) = disk.take_killed() else { break };
            let there = names(&killed.env(), "/db");
            if current(&killed) == current(&golden.disk) || !there.contains(&"repairing".to_owned()) {
                continue;
            }
            left_over += 1;
            let expected = state(&killed);
            // Its manifest is lost, before it is used or after.
            for is_used in [false, true] {
                let disk = killed.kill();
                if is_used {
                    crate::golden::open(&disk.env(), crate::golden::options()).unwrap().close().unwrap();
                    let there = names(&disk.env(), "/db");
                    assert!(
                        !there.contains(&"repairing".to_owned()),
                        "{damage}, killed at change {change}: {there:?}"
                    );
                }
                let lost = manifests(&disk).fold(disk.kill(), |disk, name| damaged(&disk, &name, |_| None));
                let report = repair(&lost.env()).unwrap();
                assert!(state(&lost) == expected, "{damage}, killed at change {change}: {report}");
            }
        }
    }
    assert!(left_over > 5, "{left_over} were cut off between");
}

/// A call that fails is no evidence of damage: the repair ends with its error, and comes to the same once calls succeed.
#[test]
fn every_call_of_a_repair_may_fail() {
    let golden = Golden::new(false);
    for (damage, disk) in damages(&golden) {
        let whole = disk.kill();
        let report = repair(&whole.env()).unwrap();
        let expected = state(&whole);
        let mut refused = 0;
        for nth in 1.. {
            let (errno, kind) = [(EIO, ErrorKind::Io), (ENOSPC, ErrorKind::NoSpace)][nth as usize % 2];
            let what = format!("{damage}, call {nth} fails with {kind}");
            let _watchdog = Watchdog::new(PATIENCE_SECONDS, what.clone());
            let (damaged, disk) = (&disk, disk.kill());
            let (env, faults) = FaultEnv::new(disk.env());
            faults.inject(Fault::on_any().nth(nth).errno(errno));
            let outcome = repair(&env);
            if faults.triggered() == 0 {
                break;
            }
            if let Err(error) = outcome {
                refused += 1;
                assert!([ErrorKind::Io, kind].contains(&error.kind()), "{what}: {error}");
            }
            assert_eq!(disk.open_handles(), 0, "{what}: open files");
            let is_done = last_manifest_counts(&disk, damaged);
            let again = repair(&disk.env()).unwrap_or_else(|error| panic!("{what}: {error}"));
            let told = if is_done || again.is_clean() { &report } else { &again };
            assert!(state(&disk) == expected, "{what}: another result: {again}");
            golden.assert_told(&disk.env(), told, &what);
        }
        assert!(refused > 30, "{damage}: hardly any call has failed");
    }
}

/// Whether `left` by a repair of `damaged` has no `CURRENT`, and the repair's manifest: it is whole, and believed, so that the repair
/// has taken effect, and its report is the one in `lost`.
fn last_manifest_counts(left: &SimDisk, damaged: &SimDisk) -> bool {
    let last = |disk: &SimDisk| {
        names(&disk.env(), "/db")
            .into_iter()
            .rfind(|name| name.starts_with("MANIFEST") && !name.ends_with(".tmp"))
    };
    !names(&left.env(), "/db").contains(&"CURRENT".to_owned()) && last(left) > last(damaged)
}

/// What can be read.
fn state(disk: &SimDisk) -> Vec<(Vec<u8>, Vec<u8>)> {
    let copy = disk.kill();
    let db = crate::golden::open(&copy.env(), crate::golden::options()).unwrap();
    crate::common::garbage::walk(&db, &tamarack::IterOptions::default(), false).unwrap()
}

#[test]
fn lost_keeps_what_an_earlier_repair_has_put_there() {
    let golden = Golden::new(true);
    let table = golden.names().into_iter().find(|name| name.ends_with(".table")).unwrap();
    let disk = golden.damaged(&table, bit(40));
    let env = disk.env();
    env.fs.create_dir_all(&path("lost")).unwrap();
    let mine = env.fs.create_new(&path("lost").join(&table)).unwrap();
    mine.write_at(b"mine", 0).unwrap();
    repair(&env).unwrap();
    assert_eq!(read(&env, &path("lost").join(&table)), b"mine");
    assert!(names(&env, "/db/lost").contains(&format!("{table}.1")));
}
