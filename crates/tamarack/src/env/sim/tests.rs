//! What a disk keeps, rule by rule, and what crashes leave.

#![expect(unsafe_code, reason = "the methods of a mapping are unsafe")]
#![expect(clippy::unwrap_used, reason = "what a test prepares must not fail")]

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use super::crash::{Fate, Kind};
use super::directory::{NameChange, Names};
use super::effect::{Change, Effect};
use super::state::ROOT;
use super::*;
use crate::base::sync::Arc;
use crate::env::fault::{EIO, ENOSPC};
use crate::env::{File, Fs, LockMode, put_in_place, read_file, write_aside};

const SEEDS: u64 = 400;

fn disk() -> SimDisk {
    SimDisk::new(&SimOptions::default())
}

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn fs(disk: &SimDisk) -> Arc<dyn Fs> {
    disk.env().fs
}

/// A file with those bytes, nothing of which is durable.
fn create(disk: &SimDisk, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = fs(disk).create_new(path(name)).unwrap();
    file.write_at(bytes, 0).unwrap();
    file
}

/// The same, durable with its name.
fn create_durable(disk: &SimDisk, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = create(disk, name, bytes);
    file.sync_data().unwrap();
    fs(disk).sync_dir(path("/")).unwrap();
    file
}

fn read(disk: &SimDisk, name: &str) -> Option<Vec<u8>> {
    read_file(&*fs(disk), path(name)).ok()
}

/// Everything that `look` sees of the crashes of many seeds.
fn after_crashes<T: Ord>(disk: &SimDisk, look: impl Fn(&SimDisk) -> T) -> BTreeSet<T> {
    (0..SEEDS).map(|seed| look(&disk.crash(seed))).collect()
}

#[test]
fn a_file_needs_both_syncs() {
    for (sync_data, sync_dir) in [(false, false), (true, false), (false, true), (true, true)] {
        let disk = disk();
        let file = create(&disk, "file", b"bytes");
        if sync_data {
            file.sync_data().unwrap();
        }
        if sync_dir {
            fs(&disk).sync_dir(path("/")).unwrap();
        }
        let kept = read(&disk.crash_to_durable(), "file");
        let expected = match (sync_dir, sync_data) {
            (false, _) => None,
            (true, false) => Some(Vec::new()),
            (true, true) => Some(b"bytes".to_vec()),
        };
        assert_eq!(kept, expected, "data {sync_data}, directory {sync_dir}");
        assert_eq!(read(&disk.kill(), "file"), Some(b"bytes".to_vec()), "a kill loses nothing");
        let found = after_crashes(&disk, |crashed| read(crashed, "file"));
        assert_eq!(found.contains(&None), !sync_dir);
        assert_eq!(found.iter().flatten().any(|bytes| bytes != b"bytes"), !sync_data);
        assert!(found.contains(&Some(b"bytes".to_vec())), "everything may arrive");
    }
}

#[test]
fn a_sync_covers_what_was_written_before_and_nothing_after() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[1; 2000]);
    file.write_at(&[2; 1000], 1500).unwrap();
    let found = after_crashes(&disk, |crashed| read(crashed, "file").unwrap());
    assert!(found.iter().all(|bytes| bytes[..1500] == [1; 1500]), "what was synced stays");
    assert!(found.iter().any(|bytes| bytes.len() == 2000) && found.iter().any(|bytes| bytes.len() == 2500));
    file.sync_data().unwrap();
    assert_eq!(after_crashes(&disk, |crashed| read(crashed, "file").unwrap()).len(), 1);
}

#[test]
fn writes_are_lost_torn_and_reordered_by_sector_and_page() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[0; 8192]);
    file.write_at(&[1; 8192], 0).unwrap();
    file.write_at(&[2; 8192], 0).unwrap();
    let found = after_crashes(&disk, |crashed| read(crashed, "file").unwrap());
    let whole_sectors =
        |bytes: &Vec<u8>| bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0]));
    assert!(found.iter().all(whole_sectors), "a sector is one moment");
    for byte in 0..3 {
        assert!(found.contains(&vec![byte; 8192]), "all as it was at moment {byte}");
    }
    assert!(found.iter().any(|bytes| bytes[0] == 0 && bytes[8191] == 2), "the end without the beginning");
    assert!(found.iter().any(|bytes| bytes[..4096] == [1; 4096] && bytes[4096..] == [2; 4096]), "by page");
    assert!(found.iter().any(|bytes| bytes[..512] == [2; 512] && bytes[512] == 0), "by sector");
}

#[test]
fn lengths_outrun_data() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[]);
    file.write_at(&[7; 1024], 0).unwrap();
    let found = after_crashes(&disk, |crashed| read(crashed, "file").unwrap());
    assert!(found.contains(&Vec::new()) && found.contains(&vec![7; 1024]));
    assert!(found.contains(&vec![0; 1024]), "zeros in place of data");
    let garbage = |bytes: &Vec<u8>| bytes.iter().any(|byte| ![0, 7].contains(byte));
    assert!(found.iter().any(garbage), "something else in place of data");
    assert!(found.iter().all(|bytes| [0, 1024].contains(&bytes.len())));

    let reserved = create_durable(&disk, "reserved", &[]);
    reserved.allocate(0, 1024).unwrap();
    reserved.write_at(&[7; 1024], 0).unwrap();
    let found = after_crashes(&disk, |crashed| read(crashed, "reserved").unwrap());
    assert!(found.contains(&vec![0; 1024]) && !found.iter().any(garbage), "what was reserved reads as zeros");
}

#[test]
fn mapped_bytes_reach_the_disk_in_any_order_and_by_halves() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[]);
    file.allocate(0, 8192).unwrap();
    file.sync_data().unwrap();
    let mapping = file.map(16384).unwrap();
    // SAFETY: the range lies inside what was reserved, and nobody else uses it.
    unsafe { mapping.write(0, &[1; 100]) };
    // SAFETY: as above.
    unsafe { mapping.write(6000, &[2; 100]) };
    // SAFETY: nobody writes any more.
    assert_eq!(unsafe { mapping.bytes(6000, 100) }, [2; 100]);
    drop((mapping, file));
    assert_eq!(read(&disk, "file").unwrap()[..100], [1; 100], "at once for all");
    let found = after_crashes(&disk, |crashed| read(crashed, "file").unwrap());
    assert!(found.iter().all(|bytes| bytes.len() == 8192));
    assert!(found.contains(&vec![0; 8192]));
    assert!(found.iter().any(|bytes| bytes[99] == 0 && bytes[6099] == 2), "the later without the earlier");
    assert!(found.iter().any(|bytes| bytes[0] == 1 && bytes[99] == 0), "a half");
    fs(&disk).open_read(path("file")).unwrap().sync_data().unwrap();
    let found = after_crashes(&disk, |crashed| read(crashed, "file").unwrap());
    assert!(found.len() == 1 && found.iter().all(|bytes| bytes[99] == 1 && bytes[6099] == 2));
}

#[test]
fn a_mapped_file_may_be_cut_and_grow() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[]);
    file.allocate(0, 1000).unwrap();
    let mapping = file.map(1000).unwrap();
    // SAFETY: the range lies inside what was reserved, and nobody else uses it.
    unsafe { mapping.write(0, &[1; 1000]) };
    file.write_at(&[2; 200], 900).unwrap();
    file.set_len(1050).unwrap();
    file.set_len(1100).unwrap();
    let expected = [&[1; 900][..], &[2; 150], &[0; 50]].concat();
    assert_eq!(read(&disk, "file"), Some(expected.clone()));
    // SAFETY: nobody writes any more.
    assert_eq!(unsafe { mapping.bytes(899, 3) }, [1, 2, 2]);
    file.sync_data().unwrap();
    assert_eq!(read(&disk.crash_to_durable(), "file"), Some(expected));
}

#[test]
fn holes_and_cuts_are_undone_unless_synced() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[1; 12288]);
    file.punch_hole(4096, 4096).unwrap();
    assert_eq!(file.allocated_bytes().unwrap(), 8192);
    let holes = |crashed: &SimDisk| read(crashed, "file").unwrap()[4096] == 0;
    assert_eq!(after_crashes(&disk, holes), BTreeSet::from([false, true]));
    file.sync_data().unwrap();
    assert_eq!(after_crashes(&disk, holes), BTreeSet::from([true]));
    file.set_len(100).unwrap();
    let lengths = |crashed: &SimDisk| read(crashed, "file").unwrap().len();
    assert_eq!(after_crashes(&disk, lengths), BTreeSet::from([100, 12288]));
}

#[test]
fn what_is_zeroed_is_undone_unless_synced_and_keeps_its_blocks() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[1; 12288]);
    file.zero(4096, 4096).unwrap();
    assert_eq!((file.allocated_bytes().unwrap(), file.len().unwrap()), (12288, 12288));
    let zeros = |crashed: &SimDisk| read(crashed, "file").unwrap()[4096] == 0;
    assert_eq!(after_crashes(&disk, zeros), BTreeSet::from([false, true]));
    file.sync_data().unwrap();
    assert_eq!(after_crashes(&disk, zeros), BTreeSet::from([true]));
    assert_eq!(read(&disk, "file").unwrap()[4095..8193].iter().map(|&byte| u64::from(byte)).sum::<u64>(), 2);
}

#[test]
fn names_survive_apart_but_in_order() {
    let disk = disk();
    for name in ["a", "b"] {
        create(&disk, name, name.as_bytes()).sync_data().unwrap();
    }
    fs(&disk).remove_file(path("a")).unwrap();
    let found = after_crashes(&disk, |crashed| (read(crashed, "a").is_some(), read(crashed, "b").is_some()));
    assert_eq!(found.len(), 4, "each alone, both, none: {found:?}");

    fs(&disk).sync_dir(path("/")).unwrap();
    assert_eq!(read(&disk.crash_to_durable(), "a"), None);
    fs(&disk).rename(path("b"), path("c")).unwrap();
    let found = after_crashes(&disk, |crashed| (read(crashed, "b").is_some(), read(crashed, "c").is_some()));
    assert_eq!(found, BTreeSet::from([(true, false), (false, true)]), "a renamed file has one name");
}

#[test]
fn a_replaced_file_is_the_old_or_the_new_one() {
    let disk = disk();
    create_durable(&disk, "CURRENT", b"old");
    let new = create(&disk, "CURRENT.tmp", b"new");
    new.sync_data().unwrap();
    fs(&disk).rename(path("CURRENT.tmp"), path("CURRENT")).unwrap();
    let found = after_crashes(&disk, |crashed| read(crashed, "CURRENT").unwrap());
    assert_eq!(found, BTreeSet::from([b"new".to_vec(), b"old".to_vec()]));
    write_aside(&*fs(&disk), path("CURRENT"), b"third").unwrap();
    put_in_place(&*fs(&disk), path("CURRENT")).unwrap();
    assert_eq!(after_crashes(&disk, |crashed| read(crashed, "CURRENT")).len(), 1);
}

#[test]
fn a_removed_file_lives_while_it_is_open_and_until_its_name_is_gone_for_good() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[1; 5000]);
    let free = || fs(&disk).free_bytes(path("/")).unwrap();
    let full = free();
    fs(&disk).remove_file(path("file")).unwrap();
    assert_eq!((file.len().unwrap(), file.links().unwrap(), free()), (5000, 0, full));
    drop(file);
    assert_eq!(free(), full + 8192, "room comes back with the last that has it open");
    let found = after_crashes(&disk, |crashed| read(crashed, "file"));
    assert_eq!(found, BTreeSet::from([None, Some(vec![1; 5000])]), "the name may come back, with the bytes");
    fs(&disk).sync_dir(path("/")).unwrap();
    assert_eq!(after_crashes(&disk, |crashed| read(crashed, "file")), BTreeSet::from([None]));
}

#[test]
fn two_names_are_one_file() {
    let disk = disk();
    let file = create_durable(&disk, "one", b"1");
    fs(&disk).create_dir_all(path("a/b")).unwrap();
    fs(&disk).hard_link(path("one"), path("a/b/two")).unwrap();
    assert_eq!(file.links().unwrap(), 2);
    assert_eq!(
        fs(&disk).hard_link(path("one"), path("a/b/two")).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    file.write_at(b"2", 0).unwrap();
    assert_eq!(read(&disk, "a/b/two"), Some(b"2".to_vec()));
    file.sync_data().unwrap();
    fs(&disk).sync_dir(path("a/b")).unwrap();
    assert_eq!(read(&disk.crash_to_durable(), "a/b/two"), None, "its directories have no durable names");
    fs(&disk).sync_dir(path("a")).unwrap();
    fs(&disk).sync_dir(path("/")).unwrap();
    let crashed = disk.crash_to_durable();
    assert_eq!(read(&crashed, "a/b/two"), Some(b"2".to_vec()));
    let file = fs(&crashed).open_write(path("one")).unwrap();
    assert_eq!(file.links().unwrap(), 2);
    file.write_at(b"3", 0).unwrap();
    assert_eq!(read(&crashed, "a/b/two"), Some(b"3".to_vec()), "and stay one");
    assert_eq!(read(&disk, "one"), Some(b"2".to_vec()), "the disk before goes its own way");
}

#[test]
fn a_full_disk_takes_a_part() {
    let disk = SimDisk::new(&SimOptions { capacity_bytes: 2048, block_bytes: 512, ..SimOptions::default() });
    let file = create(&disk, "file", &[1; 1000]);
    assert_eq!(fs(&disk).free_bytes(path("/")).unwrap(), 1024);
    let error = file.write_at(&[2; 4000], 900).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(ENOSPC));
    assert_eq!(file.len().unwrap(), 2048);
    assert_eq!(file.allocate(2048, 1).unwrap_err().raw_os_error(), Some(ENOSPC));
    file.punch_hole(0, 512).unwrap();
    create(&disk, "other", &[3; 512]);
    assert_eq!(file.write_at(&[4], 0).unwrap_err().raw_os_error(), Some(ENOSPC), "holes need room again");
    file.write_at(&[4], 512).unwrap();
}

#[test]
fn locks_exclude_each_other_and_die_with_the_machine() {
    let disk = disk();
    let lock = |disk: &SimDisk, mode| fs(disk).lock_dir(path("/"), mode);
    let exclusive = lock(&disk, LockMode::Exclusive).unwrap();
    assert_eq!(lock(&disk, LockMode::Shared).unwrap_err().kind(), ErrorKind::WouldBlock);
    lock(&disk.kill(), LockMode::Exclusive).unwrap();
    drop(exclusive);
    let shared = [lock(&disk, LockMode::Shared).unwrap(), lock(&disk, LockMode::Shared).unwrap()];
    assert!(lock(&disk, LockMode::Exclusive).is_err());
    let [first, second] = shared;
    drop(first);
    assert!(lock(&disk, LockMode::Exclusive).is_err());
    drop(second);
    lock(&disk, LockMode::Exclusive).unwrap();
}

#[test]
fn files_that_are_not_there_or_read_only_are_refused() {
    let disk = disk();
    create(&disk, "file", b"bytes");
    let of = |result: std::io::Result<Arc<dyn File>>| result.unwrap_err().kind();
    assert_eq!(of(fs(&disk).open_read(path("none"))), ErrorKind::NotFound);
    assert_eq!(of(fs(&disk).create_new(path("file"))), ErrorKind::AlreadyExists);
    assert_eq!(of(fs(&disk).create_new(path("none/file"))), ErrorKind::NotFound);
    assert_eq!(of(fs(&disk).create_new(path("file/file"))), ErrorKind::NotADirectory);
    let read_only = fs(&disk).open_read(path("/file")).unwrap();
    assert_eq!(read_only.write_at(b"x", 0).unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert!(fs(&disk).exists(path("file")).unwrap() && !fs(&disk).exists(path("none")).unwrap());
    assert_eq!(fs(&disk).list(path("/")).unwrap(), ["file"]);
    assert_eq!(fs(&disk).remove_dir(path("/")).unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
}

#[test]
fn the_same_calls_leave_the_same_trace_and_the_same_crashes() {
    let run = |last: u8| {
        let disk = disk();
        let file = create(&disk, "file", &[1; 3000]);
        file.sync_data().unwrap();
        file.write_at(&[last], 0).unwrap();
        disk
    };
    assert_eq!(run(2).trace(), run(2).trace());
    assert_ne!(run(2).trace(), run(3).trace());
    let images = |disk: &SimDisk| (0..50).map(|seed| read(&disk.crash(seed), "file")).collect::<Vec<_>>();
    assert_eq!(images(&run(2)), images(&run(2)));
    let random = |disk: &SimDisk| disk.env().rng.random_u64().unwrap();
    assert_eq!(random(&run(2).crash(7)), random(&run(2).crash(7)));
    assert_ne!(random(&run(2).crash(7)), random(&run(2).crash(8)));
}

#[test]
fn a_kill_leaves_in_flight_what_was() {
    let disk = disk();
    let file = create_durable(&disk, "file", b"before");
    file.write_at(b"after", 0).unwrap();
    create(&disk, "new", b"new");
    fs(&disk).remove_file(path("file")).unwrap();
    let used = fs(&disk).free_bytes(path("/")).unwrap();
    let killed = disk.kill();
    assert_eq!((read(&killed, "file"), read(&killed, "new")), (None, Some(b"new".to_vec())));
    assert_eq!(fs(&killed).free_bytes(path("/")).unwrap(), used + 4096, "nobody has it open any more");
    let lost = killed.crash_to_durable();
    assert_eq!((read(&lost, "file"), read(&lost, "new")), (Some(b"before".to_vec()), None));
    fs(&killed).sync_dir(path("/")).unwrap();
    fs(&killed).open_write(path("new")).unwrap().sync_data().unwrap();
    assert_eq!(read(&killed.crash_to_durable(), "new"), Some(b"new".to_vec()), "it is another disk");
    assert_eq!(read(&disk.crash_to_durable(), "new"), None);
}

#[test]
fn a_kill_can_be_planned() {
    let disk = disk();
    let file = create_durable(&disk, "file", b"before");
    disk.note_fact(1, 10);
    disk.kill_at(disk.changes() + 1);
    file.set_len(0).unwrap();
    assert!(disk.take_killed().is_none(), "only when the change after that is made");
    disk.note_fact(1, 11);
    file.write_at(b"after", 0).unwrap();
    disk.note_fact(1, 12);
    let killed = disk.take_killed().unwrap();
    assert_eq!((read(&killed, "file"), killed.fact(1)), (Some(Vec::new()), Some(11)));
    assert_eq!(read(&killed.crash_to_durable(), "file"), Some(b"before".to_vec()));
    assert_eq!((read(&disk, "file"), disk.fact(1)), (Some(b"after".to_vec()), Some(12)));
    assert!(disk.take_killed().is_none());
    disk.kill_at(disk.changes());
    file.sync_data().unwrap();
    let before_sync = disk.take_killed().unwrap();
    assert_eq!(read(&before_sync.crash_to_durable(), "file"), Some(b"before".to_vec()));
}

#[test]
fn sleeping_takes_no_time_but_moves_the_clock() {
    let clock = disk().env().clock;
    let before = clock.monotonic();
    clock.sleep(Duration::from_secs(3600));
    assert_eq!(clock.monotonic() - before, Duration::from_secs(3600));
}

/// Each kind of crash, of one journal.
#[test]
fn each_kind_of_crash_keeps_its_part() {
    let write = |at, offset| Effect {
        at,
        change: Change::Write { offset, bytes: Arc::new(vec![1; 512]), mapped: false },
    };
    let journal = [write(3, 0), write(5, 512), write(9, 1024)];
    let kept = |kind| Fate::of(kind, 0).bytes(b"", &journal).len();
    assert_eq!(kept(Kind::Nothing), 0);
    assert_eq!(kept(Kind::Everything), 1536);
    assert_eq!([3, 4, 9, 10].map(|moment| kept(Kind::UpTo(moment))), [0, 512, 1024, 1536]);

    let changes = [NameChange::add(3, "a", ROOT), NameChange::replace(5, "a", "b", ROOT)];
    let kept =
        |kind, seed| Fate::of(kind, seed).names(&Names::new(), &changes).into_keys().collect::<Vec<_>>();
    assert_eq!(kept(Kind::Nothing, 0), Vec::<String>::new());
    assert_eq!(kept(Kind::Everything, 0), ["b"]);
    assert_eq!(kept(Kind::UpTo(5), 0), ["a"]);
    let any: BTreeSet<_> = (0..SEEDS).map(|seed| kept(Kind::Any, seed)).collect();
    assert_eq!(any.len(), 3, "the second never without the first: {any:?}");
    let kinds = (0..SEEDS).map(|seed| format!("{:?}", Fate::from_seed(seed, 1)));
    assert_eq!(kinds.map(|kind| kind.contains("Any")).collect::<BTreeSet<_>>().len(), 2);
}

/// All files that a crash may leave in the root, as the enumeration has it.
fn enumerated(disk: &SimDisk) -> BTreeSet<Vec<(String, Vec<u8>)>> {
    let moment = disk.take_moments().pop().expect("there is a present moment");
    let states = CrashStates::new(1 << 12).all(&moment).expect("little is in flight");
    let digests: BTreeSet<u64> = states.iter().map(CrashState::digest).collect();
    let images: BTreeSet<_> = states.iter().map(|state| files(&state.disk(&moment))).collect();
    assert_eq!(digests.len(), images.len(), "a digest stands for an image");
    for state in CrashStates::new(1 << 12).sampled(&moment, 3, 300) {
        assert!(digests.contains(&state.digest()), "a sample is one of all");
    }
    images
}

fn files(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    let mut names = fs(disk).list(path("/")).unwrap();
    names.sort();
    names.into_iter().map(|name| (name.clone(), read(disk, &name).unwrap())).collect()
}

#[test]
fn every_combination_of_sectors_is_enumerated_once() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[0; 6144]);
    file.write_at(&[1; 6144], 0).unwrap();
    assert_eq!(enumerated(&disk).len(), 1 << 12, "twelve sectors");
    file.sync_data().unwrap();
    assert_eq!(enumerated(&disk).len(), 1);
    file.write_at(&[2; 512], 0).unwrap();
    file.write_at(&[3; 100], 0).unwrap();
    file.write_at(&[4; 512], 512).unwrap();
    assert_eq!(enumerated(&disk).len(), 3 * 2, "a later write to a sector brings the earlier ones with it");
}

#[test]
fn lengths_names_and_holes_are_enumerated() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[9; 1024]);
    file.set_len(512).unwrap();
    file.write_at(&[1; 512], 1024).unwrap();
    // As long as it was, cut, or long again: then the new sector is there or not, and the cut one is zeros.
    assert_eq!(enumerated(&disk).len(), 4);
    file.sync_data().unwrap();
    file.punch_hole(0, 512).unwrap();
    fs(&disk).rename(path("file"), path("other")).unwrap();
    create(&disk, "new", b"").sync_data().unwrap();
    assert_eq!(enumerated(&disk).len(), 2 * 2 * 2);
}

#[test]
fn whatever_a_seed_leaves_is_among_what_is_enumerated() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[1; 1000]);
    file.allocate(0, 2000).unwrap();
    file.write_at(&[2; 700], 900).unwrap();
    let other = create(&disk, "other", &[3; 100]);
    other.set_len(50).unwrap();
    fs(&disk).remove_file(path("file")).unwrap();
    other.set_len(60).unwrap();
    let all = enumerated(&disk);
    let seeds = after_crashes(&disk, files);
    // Garbage behind the old end of a file is left to seeds.
    let plain: BTreeSet<_> = seeds.into_iter().filter(|files| !files.iter().any(has_garbage)).collect();
    assert!(
        plain.len() > 20 && plain.is_subset(&all),
        "{} of {}",
        plain.intersection(&all).count(),
        plain.len()
    );
}

fn has_garbage((_, bytes): &(String, Vec<u8>)) -> bool {
    bytes.iter().any(|byte| *byte > 3)
}

#[test]
fn a_copy_into_a_mapping_is_caught_half_way() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[0; 512]);
    let mapping = file.map(512).unwrap();
    // SAFETY: the range lies inside the file, and nobody else uses it.
    unsafe { mapping.write(100, &[1; 100]) };
    let half = [&[0; 100][..], &[1; 50], &[0; 362]].concat();
    let all = enumerated(&disk);
    assert!(all.len() == 3 && all.contains(&vec![("file".to_owned(), half)]));
}

#[test]
fn a_sync_that_failed_leaves_pages_that_look_clean() {
    let outcomes: BTreeSet<_> = (0..40)
        .map(|seed| {
            let disk = disk();
            let file = create_durable(&disk, "file", &[1; 1024]);
            file.write_at(&[2; 1024], 0).unwrap();
            disk.inject(DiskFault::SyncFails, 0, seed);
            assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(EIO));
            assert_eq!(
                (disk.struck(), read(&disk, "file")),
                (1, Some(vec![2; 1024])),
                "reads show what was written"
            );
            file.sync_data().unwrap();
            let left = after_crashes(&disk, |crashed| read(crashed, "file").unwrap());
            assert_eq!(left.len(), 1, "nothing is in flight any more");
            file.write_at(&[3; 512], 0).unwrap();
            file.sync_data().unwrap();
            assert_eq!(
                read(&disk.crash_to_durable(), "file").unwrap()[..512],
                [3; 512],
                "what is written again arrives"
            );
            left
        })
        .collect();
    assert!(outcomes.len() > 2, "nothing, all or a part had arrived: {}", outcomes.len());
}

#[test]
fn a_short_write_does_half() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[1; 8]);
    disk.inject(DiskFault::ShortWrite, 1, 0);
    file.write_at(&[2; 2], 0).unwrap();
    assert_eq!(file.write_at(&[3; 4], 2).unwrap_err().raw_os_error(), Some(EIO));
    assert_eq!(read(&disk, "file"), Some(vec![2, 2, 3, 3, 1, 1, 1, 1]));
    file.write_at(&[4; 4], 2).unwrap();
}

#[test]
fn a_lost_write_is_there_until_the_power_goes() {
    let disk = disk();
    let file = create_durable(&disk, "file", &[1; 100]);
    disk.inject(DiskFault::LostWrite, 0, 0);
    file.write_at(&[2; 100], 50).unwrap();
    file.sync_data().unwrap();
    assert_eq!(read(&disk, "file").unwrap()[50..], [2; 100]);
    let expected = [&[1; 100][..], &[0; 50]].concat();
    assert_eq!(read(&disk.crash(1), "file"), Some(expected), "the length is kept");
}

#[test]
fn a_misdirected_write_lands_elsewhere() {
    let places: BTreeSet<_> = (0..60)
        .map(|seed| {
            let disk = disk();
            let file = create_durable(&disk, "file", &[0; 2048]);
            let other = create_durable(&disk, "other", &[0; 2048]);
            disk.inject(DiskFault::MisdirectedWrite, 0, seed);
            file.write_at(&[7; 512], 512).unwrap();
            assert_eq!(read(&disk, "file").unwrap()[512..1024], [7; 512]);
            assert_eq!(read(&disk, "other").unwrap(), [0; 2048]);
            file.sync_data().unwrap();
            other.sync_data().unwrap();
            let crashed = disk.crash_to_durable();
            ["file", "other"].map(|name| read(&crashed, name).unwrap().iter().position(|byte| *byte == 7))
        })
        .collect();
    assert!(places.len() > 4 && places.iter().all(|place| place.iter().flatten().count() == 1), "{places:?}");
}

#[test]
fn rot_flips_one_bit_for_good() {
    let disk = disk();
    create_durable(&disk, "file", &[0; 3000]);
    for seed in 0..20 {
        let rotten = disk.kill();
        let (file, offset) = rotten.rot(seed).expect("there is a byte");
        assert_eq!(file, path("/file"));
        for disk in [rotten.crash_to_durable(), rotten] {
            let bytes = read(&disk, "file").unwrap();
            let flipped: Vec<_> = bytes.iter().enumerate().filter(|(_, byte)| **byte != 0).collect();
            assert!(flipped.len() == 1 && flipped[0].0 as u64 == offset && flipped[0].1.count_ones() == 1);
        }
    }
    assert_eq!(SimDisk::new(&SimOptions::default()).rot(0), None);
}
