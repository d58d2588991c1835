//! Counting, failing and filling up, on top of the operating system.

use std::io;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::env::posix::posix_env;
use crate::env::{File, Fs, put_in_place, read_file, write_aside};

struct World {
    fs: Arc<dyn Fs>,
    faults: Arc<Faults>,
    dir: TempDir,
}

impl World {
    fn new() -> Self {
        let (env, faults) = FaultEnv::new(posix_env());
        Self { fs: env.fs, faults, dir: TempDir::new().expect("a temporary directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn create(&self, name: &str) -> Arc<dyn File> {
        self.fs.create_new(&self.path(name)).expect("nothing fails yet")
    }
}

fn kind<T>(result: io::Result<T>) -> Option<io::ErrorKind> {
    result.err().map(|error| error.kind())
}

#[test]
fn calls_and_bytes_are_counted_by_file() -> io::Result<()> {
    let world = World::new();
    let log = world.create("1.vlog");
    let table = world.create("2.table");
    log.write_at(&[1; 100], 0)?;
    table.write_at(&[2; 10], 0)?;
    log.sync_data()?;
    let faults = &world.faults;
    assert_eq!((faults.count(Call::Create), faults.count(Call::Write)), (2, 2));
    assert_eq!(faults.bytes_of(Call::Write, ".vlog"), 100);
    assert_eq!(faults.bytes_of(Call::Write, ""), 110);
    assert_eq!(faults.count_of(Call::SyncData, ".table"), 0);

    faults.reset_counts();
    assert_eq!(log.read_at(&mut [0; 64], 90)?, 10);
    assert_eq!(faults.count_of(Call::Read, ".vlog"), 1);
    assert_eq!(faults.bytes_of(Call::Read, ".vlog"), 10);
    assert_eq!(faults.count(Call::Write), 0);

    write_aside(&*world.fs, &world.path("CURRENT"), b"2")?;
    put_in_place(&*world.fs, &world.path("CURRENT"))?;
    assert_eq!(faults.count_of(Call::Rename, "CURRENT"), 1);
    assert_eq!(faults.count_of(Call::Write, "CURRENT.tmp"), 1);
    assert_eq!(faults.count(Call::SyncDir), 1);
    assert_eq!(faults.triggered(), 0);
    Ok(())
}

#[test]
fn a_watcher_sees_each_call_before_it_is_made() -> io::Result<()> {
    let world = World::new();
    let log = world.create("1.vlog");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    world.faults.watch(move |call, path| {
        let len = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        notes.lock().push((call, len));
    });
    log.write_at(b"four", 0)?;
    log.sync_data()?;
    world.faults.inject(Fault::on(Call::Write));
    log.write_at(b"five", 4).expect_err("injected");
    world.faults.unwatch();
    log.sync_data()?;
    let expected = [(Call::Write, 0), (Call::SyncData, 4), (Call::Write, 4)];
    assert_eq!(*seen.lock(), expected);
    Ok(())
}

#[test]
fn a_fault_strikes_the_chosen_call_once() -> io::Result<()> {
    let world = World::new();
    let log = world.create("1.vlog");
    let table = world.create("2.table");
    world.faults.inject(Fault::on(Call::SyncData).path_ending(".vlog").nth(2).errno(EROFS));
    log.sync_data()?;
    table.sync_data()?;
    log.write_at(b"x", 0)?;
    assert_eq!(kind(log.sync_data()), Some(io::ErrorKind::ReadOnlyFilesystem));
    log.sync_data()?;
    assert_eq!(world.faults.triggered(), 1);
    assert_eq!(world.faults.count(Call::SyncData), 4, "the failed call counts");
    Ok(())
}

#[test]
fn a_lasting_fault_strikes_until_healed() -> io::Result<()> {
    let world = World::new();
    let file = world.create("file");
    world.faults.inject(Fault::on_mutating().for_ever().kind(io::ErrorKind::StorageFull));
    assert_eq!(kind(file.write_at(b"x", 0)), Some(io::ErrorKind::StorageFull));
    assert_eq!(kind(world.fs.create_new(&world.path("other"))), Some(io::ErrorKind::StorageFull));
    assert_eq!(kind(world.fs.remove_file(&world.path("file"))), Some(io::ErrorKind::StorageFull));
    assert_eq!(file.read_at(&mut [0; 1], 0)?, 0, "reading changes nothing, and nothing was written");
    world.faults.heal();
    file.write_at(b"x", 0)?;

    world.faults.inject(Fault::on_any().nth(2));
    assert_eq!(file.len()?, 1);
    assert_eq!(file.len().map_err(|error| error.raw_os_error()), Err(Some(EIO)));
    assert_eq!(world.faults.triggered(), 4);
    Ok(())
}

#[test]
fn a_write_that_fails_may_have_written_a_half_or_all() -> io::Result<()> {
    let world = World::new();
    let file = world.create("file");
    world.faults.inject(Fault::on(Call::Write).short_write());
    assert!(file.write_at(b"abcdef", 0).is_err());
    assert_eq!(read_file(&*world.fs, &world.path("file"))?, b"abc");
    assert_eq!(world.faults.bytes_of(Call::Write, "file"), 3);
    world.faults.inject(Fault::on(Call::Write).whole_write());
    assert!(file.write_at(b"uvwxyz", 0).is_err());
    assert_eq!(read_file(&*world.fs, &world.path("file"))?, b"uvwxyz");
    Ok(())
}

#[test]
fn a_full_disk_takes_what_fits_and_recovers_when_space_is_freed() -> io::Result<()> {
    let world = World::new();
    let (fs, faults) = (&*world.fs, &*world.faults);
    let first = world.create("first");
    let second = world.create("second");
    first.write_at(&[1; 40], 0)?;
    first.write_at(&[2; 40], 0)?;
    assert_eq!(faults.space_used(), 40, "overwriting takes no space");
    faults.set_quota(Some(100));
    second.set_len(50)?;
    assert_eq!(kind(second.set_len(61)), Some(io::ErrorKind::StorageFull));
    assert_eq!(kind(first.write_at(&[3; 20], 35)), Some(io::ErrorKind::StorageFull));
    assert_eq!(first.len()?, 50, "the part that fits is written");
    assert_eq!(kind(second.allocate(0, 60)), Some(io::ErrorKind::StorageFull));
    first.write_at(&[4; 50], 0)?;
    assert_eq!(faults.space_used(), 100);

    second.set_len(20)?;
    assert_eq!(faults.space_used(), 70);
    fs.rename(&world.path("second"), &world.path("first"))?;
    assert_eq!(faults.space_used(), 20, "the replaced file is gone");
    fs.hard_link(&world.path("first"), &world.path("link"))?;
    assert_eq!(faults.space_used(), 40, "every name counts");
    fs.remove_file(&world.path("link"))?;
    fs.remove_file(&world.path("first"))?;
    assert_eq!(faults.space_used(), 0);
    let third = world.create("third");
    third.write_at(&[5; 100], 0)?;
    faults.set_quota(None);
    third.set_len(1 << 20)?;
    Ok(())
}

#[test]
fn mapped_files_count_by_what_is_allocated() -> io::Result<()> {
    let world = World::new();
    let file = world.create("file");
    let _mapping = file.map(1 << 20)?;
    assert_eq!(world.faults.space_used(), 0);
    world.faults.set_quota(Some(1 << 16));
    match file.allocate(0, 1 << 16) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(()),
        result => result?,
    }
    assert_eq!(world.faults.space_used(), 1 << 16);
    assert_eq!(kind(file.allocate(1 << 16, 1)), Some(io::ErrorKind::StorageFull));
    Ok(())
}

#[test]
fn calls_can_be_unsupported() -> io::Result<()> {
    let world = World::new();
    let file = world.create("file");
    for call in [Call::Map, Call::Allocate] {
        world.faults.set_unsupported(call, true);
    }
    assert_eq!(kind(file.map(4096)), Some(io::ErrorKind::Unsupported));
    assert_eq!(kind(file.allocate(0, 4096)), Some(io::ErrorKind::Unsupported));
    world.faults.set_unsupported(Call::Map, false);
    file.map(4096)?;
    Ok(())
}
