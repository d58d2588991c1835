//! `import-leveldb` against the LevelDB of the machine, if it has one: databases with tables on several levels, overwrites,
//! deletions and values of mixed sizes, compared byte by byte with what LevelDB itself finds in them.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::world::World;

/// Compiles the program that uses LevelDB; none, and a line that says so, if the machine cannot.
fn program(world: &World) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tamarack-leveldb/tests/data/leveldb.c");
    let path = world.path("leveldb");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut cc = Command::new(compiler);
    cc.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O1", "-o"]).arg(&path).arg(source).arg("-lleveldb");
    let is_compiled = cc.output().is_ok_and(|output| output.status.success());
    if !is_compiled {
        println!("skipped: LevelDB and a C compiler are needed (Debian: gcc libleveldb-dev)");
    }
    is_compiled.then_some(path)
}

/// Imports so many entries, and compares them with LevelDB's.
fn compare(entries: u64) {
    let world = World::new();
    let Some(program) = program(&world) else { return };
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(world.path("")).stdin(Stdio::null());
        command
    };
    let is_written = run(&["million", "ldb", &entries.to_string()]).status().expect("it runs").success();
    assert!(is_written);
    let report = world.ok(&["import-leveldb", "ldb", "db", "--json"]).json();
    println!("{report}");
    assert_eq!((&report["entries"], &report["verified"]), (&entries.into(), &true.into()));
    assert!(report["tables"].as_u64() > Some(1) && report["log_operations"].as_u64() > Some(1), "{report}");
    assert_eq!(report["deleted_keys"], (entries / 4 + 1));
    let mut theirs = run(&["dump", "ldb"]).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut ours = world
        .command(&["scan", "db", "--key-format", "hex", "--value-format", "hex"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut ours_out = BufReader::with_capacity(1 << 20, ours.stdout.take().expect("piped"));
    let mut theirs_out = BufReader::with_capacity(1 << 20, theirs.stdout.take().expect("piped"));
    let (mut one, mut other) = (Vec::new(), Vec::new());
    let mut lines = 0;
    loop {
        one.clear();
        other.clear();
        ours_out.read_until(b'\n', &mut one).expect("it can be read");
        theirs_out.read_until(b'\n', &mut other).expect("it can be read");
        assert!(one == other, "entry {lines}");
        if one.is_empty() {
            break;
        }
        lines += 1;
    }
    assert_eq!(lines, entries);
    assert!(ours.wait().expect("it ends").success() && theirs.wait().expect("it ends").success());
}

#[test]
fn some_thousand_entries_are_equal() {
    compare(60_000);
}

/// The same at the size at which LevelDB has several levels. Ordinary runs should not write half a gigabyte, so this is run by
/// hand: after a change of the reader.
#[test]
#[ignore = "writes half a gigabyte, half a minute: cargo test -p tamarack-cli --test program -- --ignored --nocapture million"]
fn a_million_entries_are_equal() {
    compare(1_000_000);
}

#[test]
fn a_program_that_has_it_open_keeps_us_out_and_is_kept_out() {
    let world = World::new();
    let Some(program) = program(&world) else { return };
    let mut holder = Command::new(&program)
        .args(["hold", "ldb"])
        .current_dir(world.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut line = [0; 5];
    holder.stdout.as_mut().expect("piped").read_exact(&mut line).expect("it says that it is open");
    assert_eq!(&line, b"open\n");
    world.run(&["import-leveldb", "ldb", "db"]).expect_status(5);
    drop(holder.stdin.take());
    assert!(holder.wait().expect("it ends").success());
    // A read lock of ours is in the way of LevelDB's.
    let lock = std::fs::File::open(world.path("ldb/LOCK")).expect("it is there");
    rustix::fs::fcntl_lock(&lock, rustix::fs::FlockOperation::NonBlockingLockShared).expect("free");
    let dump = Command::new(&program).args(["dump", "ldb"]).current_dir(world.path("")).output();
    assert!(String::from_utf8_lossy(&dump.expect("it runs").stderr).contains("LOCK"));
    // Several may read it.
    world.ok(&["import-leveldb", "ldb", "db"]);
}
