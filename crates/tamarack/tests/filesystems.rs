//! Real file systems: full ones, read-only ones, directories that may not be written; and ends that only the kernel can
//! bring about: file systems that are shut down or become read-only under a database, and processes that run out of memory.
//!
//! Small file systems (in memory, and ext4 in a file) are mounted in a mount namespace of a child process, so they
//! are gone when the child is, however it ends; and a child that dies of SIGBUS is told from one that fails. Where
//! the machine does not permit that, the test says so in one line, and why.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    unsafe_code,
    reason = "tests prepare and inspect the real world, and ask the kernel for what no safe call does"
)]

mod common;

#[path = "filesystems/ends.rs"]
mod ends;
#[path = "filesystems/history.rs"]
mod history;
#[path = "filesystems/mount.rs"]
mod mount;
#[path = "filesystems/shutdown.rs"]
mod shutdown;

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use mount::{mount, run};

use common::process::this_program;
use common::{PATIENCE_SECONDS, Random, Watchdog, assert_clean, content, copy_directory, fast_directory};
use tamarack::{Db, ErrorKind, LogMode, Options, WriteOptions};

/// What the child is to do, and where.
const TASK: &str = "TAMARACK_FILESYSTEM_TASK";
const PLACE: &str = "TAMARACK_FILESYSTEM_PLACE";
/// How a child says that it may not do its task.
const SKIPPED: &str = "skipped: ";
/// How it tells something else.
const TOLD: &str = "told: ";
/// The user without rights.
const NOBODY: u32 = 65534;

const MIB: usize = 1 << 20;

/// A full file system refuses a write this often before the test goes on.
const REFUSALS: u32 = 5;

fn options(log_mode: LogMode) -> Options {
    Options {
        log_mode,
        memtable_bytes: 64 << 10,
        segment_bytes_max: 512 << 10,
        recovery_log_max: 2 << 20,
        table_bytes_max: 64 << 10,
        level_bytes_base: 64 << 10,
        ..Options::default()
    }
}

/// What was acknowledged.
struct Ledger {
    random: Random,
    kept: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Ledger {
    fn new() -> Self {
        Self { random: Random::new(1), kept: BTreeMap::new() }
    }

    /// Writes a new key.
    fn put(&mut self, db: &Db, sync: bool) -> tamarack::Result<()> {
        let key = format!("{:08x}", self.random.number() as u32).into_bytes();
        let len = self.random.pick(&[20, 300, 3000, 20_000]);
        let value = self.random.bytes(len);
        db.put_with(&key, &value, &WriteOptions { sync })?;
        self.kept.insert(key, value);
        Ok(())
    }

    /// Writes until the file system is full, and has said so several times.
    fn fill(&mut self, db: &Db, what: &str) {
        let mut refused = 0;
        for _ in 0..100_000 {
            let Err(error) = self.put(db, false) else { continue };
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{what}: {error}");
            assert!(error.message().contains("db/"), "{what}: no file is named: {error}");
            refused += 1;
            if refused == REFUSALS {
                return;
            }
        }
        panic!("{what}: the file system is never full");
    }

    /// Deletes one key in seven. A log that is written plainly reserves nothing, so that a job may have taken the space
    /// for a deletion; it is refused then.
    fn delete_some(&mut self, db: &Db, log_mode: LogMode, what: &str) {
        let goes: Vec<_> = self.kept.keys().step_by(7).cloned().collect();
        for key in goes {
            match db.delete(&key) {
                Ok(()) => drop(self.kept.remove(&key)),
                Err(error) if log_mode == LogMode::Plain && error.kind() == ErrorKind::NoSpace => {}
                Err(error) => panic!("{what}: delete: {error}"),
            }
        }
    }

    fn assert_reads(&self, db: &Db, what: &str) {
        for (key, value) in &self.kept {
            let found = db.get(key).unwrap_or_else(|error| panic!("{what}: get: {error}"));
            assert!(found.as_ref() == Some(value), "{what}: another value than was acknowledged");
        }
        assert!(content(db) == self.kept, "{what}: a walk shows something else than was acknowledged");
    }
}

/// Background work that was under way when there was no space may fail once more, and say so.
fn once_there_is_space(what: &str, mut call: impl FnMut() -> tamarack::Result<()>) {
    for _ in 0..REFUSALS {
        match call() {
            Ok(()) => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::NoSpace, "{what}: {error}"),
        }
    }
    panic!("{what}: there is space, and no success");
}

/// Takes space away: at most `bytes`; returns how much it was.
fn take_space(path: &Path, bytes: usize) -> usize {
    let mut file = File::create(path).unwrap();
    let mut taken = 0;
    for piece in [64 << 10, 4 << 10, 512] {
        while taken + piece <= bytes && file.write_all(&vec![0xba; piece]).is_ok() {
            taken += piece;
        }
    }
    taken
}

/// Fills the file system again and again, with ever other room to spare.
fn full(mount: &Path, log_mode: LogMode) {
    let (path, ballast) = (mount.join("db"), mount.join("ballast"));
    let mut ledger = Ledger::new();
    for round in 0..4 {
        let what = format!("{log_mode:?}, round {round}");
        // More than the head-room, so that its return is room for new data.
        take_space(&ballast, 3 * MIB + round * (300 << 10));
        let db = Db::open(&path, options(log_mode)).unwrap_or_else(|error| panic!("{what}: {error}"));
        ledger.fill(&db, &what);
        ledger.assert_reads(&db, &what);
        // The log has left space for what makes space, and for the tables.
        ledger.delete_some(&db, log_mode, &what);
        if log_mode == LogMode::Mapped {
            db.flush().unwrap_or_else(|error| panic!("{what}: flush: {error}"));
        }
        ledger.assert_reads(&db, &what);
        std::fs::remove_file(&ballast).unwrap();
        for number in 0..10 {
            once_there_is_space(&what, || ledger.put(&db, number % 3 == 0));
        }
        once_there_is_space(&what, || db.flush());
        once_there_is_space(&what, || db.wait_idle());
        ledger.assert_reads(&db, &what);
        assert_clean(&db);
        if round % 2 == 0 {
            db.close().unwrap_or_else(|error| panic!("{what}: {error}"));
        } else {
            drop(db);
        }
        let db = Db::open(&path, options(log_mode)).unwrap();
        ledger.assert_reads(&db, &format!("{what}, opened again"));
        // Room for the next round: everything but a few keys goes.
        let goes: Vec<_> = ledger.kept.keys().skip(5).cloned().collect();
        for key in goes {
            db.delete(&key).unwrap();
            ledger.kept.remove(&key);
        }
        db.compact_range(None, None).unwrap();
        db.close().unwrap();
    }
}

/// Somebody else takes all the space, to the last byte, once the log has reserved its own.
fn reserved(mount: &Path, log_mode: LogMode) {
    let (path, ballast) = (mount.join("db"), mount.join("ballast"));
    let what = format!("{log_mode:?}, all space taken by another file");
    let mut ledger = Ledger::new();
    let db = Db::open(&path, options(log_mode)).unwrap();
    ledger.put(&db, true).unwrap();
    take_space(&ballast, usize::MAX);
    let before = ledger.kept.len();
    ledger.fill(&db, &what);
    if log_mode == LogMode::Mapped {
        assert!(ledger.kept.len() > before, "{what}: what was reserved could not be used");
    }
    ledger.assert_reads(&db, &what);
    // The kernel writes the mapped pages to where there must be space.
    let synced = db.sync();
    assert!(synced.is_ok(), "{what}: {synced:?}");
    // As after a kill: what was acknowledged is found, once there is room to write it anew.
    let killed = fast_directory();
    copy_directory(&path, &killed.path().join("db"));
    ledger.assert_reads(&Db::open(killed.path().join("db"), options(log_mode)).unwrap(), &what);
    drop(db);
    std::fs::remove_file(&ballast).unwrap();
    let db = Db::open(&path, options(log_mode)).unwrap();
    ledger.assert_reads(&db, &what);
    assert_clean(&db);
}

/// A file system that is mounted for reading only, with a log that was closed or one whose writer was killed.
fn read_only(mount: &Path, remount: &dyn Fn(&str)) {
    let mut ledger = Ledger::new();
    let (closed, killed) = (mount.join("db"), mount.join("killed"));
    let db = Db::open(&closed, options(LogMode::Auto)).unwrap();
    (0..50).for_each(|_| ledger.put(&db, false).unwrap());
    db.wait_idle().unwrap();
    copy_directory(&closed, &killed);
    db.close().unwrap();
    remount("ro");
    for path in [&closed, &killed] {
        let error = Db::open(path, options(LogMode::Auto)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        let named = error.to_string().contains(path.file_name().unwrap().to_str().unwrap());
        assert!(named && error.to_string().contains("Read-only file system"), "{error}");
        let only_read = Options { read_only: true, ..options(LogMode::Auto) };
        let db = Db::open(path, only_read.clone()).unwrap();
        ledger.assert_reads(&db, "mounted read-only");
        assert_clean(&db);
        let other = Db::open(path, only_read).unwrap();
        ledger.assert_reads(&other, "a second reader");
        assert_eq!(db.put(b"key", b"value").unwrap_err().kind(), ErrorKind::ReadOnly);
        db.close().unwrap();
    }
    let error = Db::open(mount.join("new"), options(LogMode::Auto)).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("new"), "{error}");
    remount("rw");
    for path in [&closed, &killed] {
        let db = Db::open(path, options(LogMode::Auto)).unwrap();
        ledger.assert_reads(&db, "writable again");
        db.put_with(b"key", b"value", &WriteOptions::synced()).unwrap();
        db.close().unwrap();
    }
}

/// A directory in which this user may not write.
fn unwritable(place: &Path) {
    let path = place.join("db");
    let mode = |mode| std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    let mut ledger = Ledger::new();
    let db = Db::open(&path, options(LogMode::Auto)).unwrap();
    (0..50).for_each(|_| ledger.put(&db, false).unwrap());
    db.close().unwrap();
    mode(0o500);
    for refused in [path.clone(), path.join("new")] {
        let error = Db::open(&refused, options(LogMode::Auto)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        let text = error.to_string();
        assert!(text.contains("db") && text.contains("Permission denied"), "{error}");
    }
    let db = Db::open(&path, Options { read_only: true, ..options(LogMode::Auto) }).unwrap();
    ledger.assert_reads(&db, "a directory that may only be read");
    drop(db);
    mode(0o000);
    let error = Db::open(&path, Options { read_only: true, ..options(LogMode::Auto) }).unwrap_err();
    assert!(error.to_string().contains("Permission denied"), "{error}");
    mode(0o700);
    let db = Db::open(&path, options(LogMode::Auto)).unwrap();
    ledger.put(&db, true).unwrap();
    ledger.assert_reads(&db, "writable again");
}

/// The child. Does nothing when it is run as an ordinary test.
#[test]
fn the_process_that_mounts() {
    let (Ok(task), Ok(place)) = (std::env::var(TASK), std::env::var(PLACE)) else { return };
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, task.clone());
    let place = PathBuf::from(place);
    if task == "unwritable" {
        return unwritable(&place);
    }
    let words: Vec<&str> = task.split(' ').collect();
    if let ["shutdown" | "becomes-read-only", ..] = words[1..] {
        let done = match words[..] {
            [kind, "shutdown", count] => shutdown::shutdowns(kind, &place, count.parse().unwrap()),
            _ => ends::becomes_read_only(&place),
        };
        return done.unwrap_or_else(|why| println!("\n{SKIPPED}{why}"));
    }
    let mount = match mount(words[0], &place) {
        Ok(mount) => mount,
        Err(why) => return println!("\n{SKIPPED}{why}"),
    };
    let log_mode = if words.contains(&"plain") { LogMode::Plain } else { LogMode::Mapped };
    match words[1] {
        "full" => full(&mount, log_mode),
        "reserved" => reserved(&mount, log_mode),
        "read-only" => read_only(&mount, &|how| {
            let how = format!("remount,{how}");
            drop(run("mount", &["-o", &how, mount.to_str().unwrap()]).unwrap());
        }),
        other => panic!("there is no task {other}"),
    }
}

/// Not with eprintln, whose words the test's own capture would keep to itself.
fn tell(words: &str) {
    std::io::stderr().write_all(format!("tests/filesystems.rs: {words}\n").as_bytes()).unwrap();
}

fn tell_skipped(task: &str, why: &str) {
    tell(&format!("{task} was skipped: {why}"));
}

/// Runs a child with `task`.
fn child(mut command: Command, task: &str, place: &Path) {
    let output = command
        .args(["--exact", "the_process_that_mounts", "--nocapture", "--test-threads=1"])
        .env(TASK, task)
        .env(PLACE, place)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let status = output.status;
    assert!(status.success(), "{task}: {status}\n{said}{}", String::from_utf8_lossy(&output.stderr));
    if let Some(why) = said.lines().find_map(|line| line.strip_prefix(SKIPPED)) {
        tell_skipped(task, why);
    }
    said.lines().filter_map(|line| line.strip_prefix(TOLD)).for_each(tell);
}

/// Runs `tasks`, each in a mount namespace of its own.
fn in_namespaces(tasks: &[&str]) {
    let namespaces: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
    let tried = namespaces.map(|flags| run("unshare", &[flags, &["true"]].concat()));
    let Some(found) = tried.iter().position(Result::is_ok) else {
        let why = tried[0].clone().unwrap_err();
        return tasks.iter().for_each(|task| tell_skipped(task, &why));
    };
    for task in tasks {
        let place = fast_directory();
        let mut command = Command::new("unshare");
        command.args(namespaces[found]).arg(std::env::current_exe().unwrap());
        child(command, task, place.path());
    }
}

#[test]
fn a_full_file_system_loses_nothing_and_is_used_again_once_there_is_space() {
    in_namespaces(&["tmpfs full", "tmpfs full plain", "ext4 full", "ext4 full plain"]);
}

#[test]
fn a_mapped_log_does_not_die_when_others_take_all_the_space() {
    in_namespaces(&["tmpfs reserved", "tmpfs reserved plain", "ext4 reserved", "ext4 reserved plain"]);
}

#[test]
fn a_file_system_that_is_mounted_read_only_can_be_read() {
    in_namespaces(&["tmpfs read-only", "ext4 read-only"]);
}

/// Losses of power, of each file system.
const SHUTDOWNS: u64 = 150;
/// Processes that the kernel ends.
const ENDS_OF_MEMORY: u64 = 5;

/// The process that others end. Does nothing when it is run as an ordinary test.
#[test]
fn the_process_that_writes() {
    history::write_if_asked();
}

#[test]
fn a_file_system_that_is_shut_down_keeps_a_prefix_and_what_was_durable() {
    let count = common::number_from_environment("TAMARACK_SHUTDOWNS").unwrap_or(SHUTDOWNS);
    in_namespaces(&[&format!("ext4 shutdown {count}"), &format!("xfs shutdown {count}")]);
}

#[test]
fn a_file_system_that_becomes_read_only_is_an_error_and_can_be_read() {
    in_namespaces(&["ext4 becomes-read-only"]);
}

#[test]
fn a_process_that_runs_out_of_memory_loses_nothing() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "processes that run out of memory");
    if let Err(why) = ends::out_of_memory(ENDS_OF_MEMORY) {
        tell_skipped("the end of memory", &why);
    }
}

/// A child that was forked has a copy of the database, and of none of its threads.
#[test]
fn a_forked_child_that_drops_its_copy_leaves_its_parents_database_alone() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a forked child");
    let place = fast_directory();
    let path = place.path().join("db");
    let mut ledger = Ledger::new();
    let db = Db::open(&path, options(LogMode::Auto)).unwrap();
    (0..100).for_each(|_| ledger.put(&db, false).unwrap());
    db.wait_idle().unwrap();
    // SAFETY: the child calls nothing but the engine's `close` and `drop`, which wait for nobody, and ends without running anything else.
    let child = unsafe { libc::fork() };
    assert_ne!(child, -1, "{}", std::io::Error::last_os_error());
    if child == 0 {
        // SAFETY: it ends the child, should that hang.
        unsafe { libc::alarm(30) };
        let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let refused = db.clone().close().is_err_and(|error| error.kind() == ErrorKind::InvalidArgument);
            drop(db);
            refused
        }));
        // SAFETY: it ends the process.
        unsafe { libc::_exit(if dropped.is_ok_and(|refused| refused) { 0 } else { 1 }) }
    }
    let mut status = 0;
    // SAFETY: the number that is written to is there.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child's end");
    (0..100).for_each(|_| ledger.put(&db, false).unwrap());
    let locked = Db::open(&path, options(LogMode::Auto)).unwrap_err();
    assert_eq!(locked.kind(), ErrorKind::Locked);
    ledger.assert_reads(&db, "behind a fork");
    db.flush().unwrap();
    db.close().unwrap();
    let db = Db::open(&path, options(LogMode::Auto)).unwrap();
    ledger.assert_reads(&db, "opened again behind a fork");
    assert_clean(&db);
}

/// Where a process is to work that changes its working directory.
const WANDERER: &str = "TAMARACK_WANDERER";

/// The child. Does nothing when it is run as an ordinary test.
#[test]
fn the_process_that_changes_its_working_directory() {
    let Some(place) = std::env::var_os(WANDERER).map(PathBuf::from) else { return };
    std::env::set_current_dir(&place).unwrap();
    let mut ledger = Ledger::new();
    let db = Db::open("db", options(LogMode::Auto)).unwrap();
    std::env::set_current_dir(place.join("elsewhere")).unwrap();
    // Many segments, and tables that are compacted.
    (0..400).for_each(|_| ledger.put(&db, false).unwrap());
    db.compact_range(None, None).unwrap();
    ledger.delete_some(&db, LogMode::Auto, "elsewhere");
    db.gc(tamarack::GcGoal::Until(1.0)).unwrap();
    ledger.assert_reads(&db, "elsewhere");
    db.close().unwrap();
    std::env::set_current_dir(&place).unwrap();
    let db = Db::open("db", options(LogMode::Auto)).unwrap();
    ledger.assert_reads(&db, "back again");
    assert_clean(&db);
}

#[test]
fn a_process_may_change_its_working_directory() {
    let place = fast_directory();
    let elsewhere = place.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let other = Db::open(elsewhere.join("db"), options(LogMode::Auto)).unwrap();
    other.put(b"key", b"value").unwrap();
    other.flush().unwrap();
    let status =
        this_program("the_process_that_changes_its_working_directory").env(WANDERER, place.path()).status();
    assert!(status.unwrap().success());
    assert_eq!(other.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    assert_clean(&other);
}

#[test]
fn a_directory_that_may_not_be_written_is_named_and_can_be_read() {
    let place = fast_directory();
    let mut program = std::env::current_exe().unwrap();
    let owner = std::fs::metadata(place.path()).unwrap().uid();
    if owner != 0 {
        return child(Command::new(program), "unwritable", place.path());
    }
    // Nothing is forbidden to root: somebody else has to try, with a program that may be reached.
    let copy = place.path().join("program");
    // Not by this process: another thread may start a child meanwhile, which would hold the copy open for writing.
    run("cp", &[program.to_str().unwrap(), copy.to_str().unwrap()]).unwrap();
    program = copy;
    chown(place.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(program);
    command.uid(NOBODY).gid(NOBODY).current_dir(place.path());
    child(command, "unwritable", place.path());
}
