//! Exit statuses and messages when something is wrong.

use std::fs;
use std::io::{Read, Write};

use serde_json::Value;

use crate::world::World;

#[test]
fn wrong_requests_have_status_two() {
    let world = World::new();
    for arguments in [
        &["put", "db"][..],
        &["frobnicate"],
        &["get", "db", "0g", "--key-format", "hex"],
        &["scan", "db", "--start", "b", "--end", "a"],
        &["dump", "db", "--resume"],
        &["bench", "readseq"],
        &["bench", "fillseq", "--num", "1000", "--key-size", "2"],
        &["import-dir", "db", "db", "--prefix", "a", "--raw"],
        &["gc", "db", "--until", "0.5"],
        &["gc", "db", "--until", "1.5", "--once"],
    ] {
        let run = world.run(arguments).expect_status(2);
        assert!(!run.stderr.is_empty() && run.stdout.is_empty(), "{run:?}");
    }
    assert!(!world.path("db").exists(), "a wrong request makes no database");
}

#[test]
fn a_missing_database_is_an_error_and_is_not_made() {
    let world = World::new();
    for command in ["scan", "dump", "stats", "check", "compact", "gc"] {
        let run = world.run(&[command, "db"]).expect_status(3);
        assert_eq!(run.stderr, "tamarack: there is no database at db\n");
    }
    world.run(&["del", "db", "key"]).expect_status(3);
    let run = world.run(&["get", "db", "key", "--json"]).expect_status(3);
    let error: Value = serde_json::from_str(&run.stderr).expect("one JSON object");
    assert_eq!(error["error"], "other");
    assert_eq!(error["exit_status"], 3);
    assert!(!world.path("db").exists());
}

#[test]
fn an_open_database_is_locked() {
    let world = World::new();
    world.ok(&["put", "db", "key", "value"]);
    let mut holder = world.start(&["load", "db", "-"]);
    let mut input = holder.stdin.take().expect("standard input is piped");
    // A pipe takes far less than this: when it is all written, the program has read some, and it reads only
    // with the database open.
    input.write_all(&b"\n".repeat(1 << 20)).expect("the program reads its input");
    let refused = world.run(&["put", "db", "key", "other", "--json"]).expect_status(5);
    let error: Value = serde_json::from_str(&refused.stderr).expect("one JSON object");
    assert_eq!((&error["error"], &error["exit_status"]), (&"locked".into(), &5.into()));
    drop(input);
    assert!(holder.wait().expect("the holder ends").success());
    world.ok(&["put", "db", "key", "other"]);
}

#[test]
fn damage_is_corruption_and_names_its_place() {
    let world = World::new();
    let pattern = b"a value that can be found in its file, ".repeat(500);
    world.write("value", &pattern);
    world.ok(&["put", "db", "damaged", "--file", "value", "--sync"]);
    world.ok(&["put", "db", "later", "x", "--sync"]);
    let damaged = fs::read_dir(world.path("db")).expect("the database is a directory").any(|entry| {
        let path = entry.expect("a file of the database").path();
        let mut bytes = fs::read(&path).unwrap_or_default();
        let place = bytes.windows(pattern.len()).position(|window| window == pattern);
        if let Some(place) = place {
            bytes[place + 100] ^= 1;
            fs::write(&path, &bytes).expect("the file can be written");
        }
        place.is_some()
    });
    assert!(damaged, "the value is in no file of the database");
    let run = world.run(&["get", "db", "damaged", "--output", "out", "--json"]).expect_status(4);
    let error: Value = serde_json::from_str(&run.stderr).expect("one JSON object");
    assert_eq!(error["error"], "corruption");
    assert!(error["file"].is_string() && error["offset"].is_u64(), "{error}");
    assert!(run.stdout.is_empty() && !world.path("out").exists());
    let run = world.run(&["multi-get", "db", "later", "damaged"]).expect_status(4);
    assert_eq!(run.stdout, b"later\tx\n", "what comes before it is shown");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let world = World::new();
    let lines: String =
        (0..2000).map(|n| format!("{{\"key\":\"{n}\",\"value\":\"{}\"}}\n", "x".repeat(500))).collect();
    world.run_with_input(&["load", "db", "-"], lines.as_bytes()).expect_status(0);
    for command in ["scan", "dump"] {
        let mut child = world.start(&[command, "db"]);
        let mut stdout = child.stdout.take().expect("standard output is piped");
        stdout.read_exact(&mut [0; 100]).expect("there is more than that");
        drop(stdout);
        let output = child.wait_with_output().expect("the program ends");
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert_eq!(output.stderr, b"", "{command}");
    }
}

#[test]
fn nobody_who_reads_changes_no_status() {
    let world = World::new();
    world.ok(&["put", "db", "key", "value"]);
    // Nobody reads standard error.
    let mut child = world.start(&["get", "db", "missing"]);
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("the program ends").code(), Some(1), "not found");
    world.write("lines", b"{\"key\":\"1\",\"value\":\"x\"}\nno record\n");
    for arguments in [&["load", "other", "lines", "--skip-bad"][..], &["multi-get", "other", "1", "2"]] {
        assert_eq!(world.run(arguments).status, 1, "{arguments:?}");
        let mut child = world.start(arguments);
        drop(child.stdout.take());
        assert_eq!(child.wait().expect("the program ends").code(), Some(1), "{arguments:?}");
    }
    // Nor what a check has found.
    let table = fs::read_dir(world.path("db")).expect("the database is a directory");
    let log = table.map(|entry| entry.expect("a file").path()).find(|path| path.extension().is_some());
    let log = log.expect("a file of the log");
    let mut bytes = fs::read(&log).expect("the file can be read");
    let place = bytes.windows(5).position(|window| window == b"value").expect("the value is in the log");
    bytes[place] ^= 1;
    fs::write(&log, &bytes).expect("the file can be written");
    let arguments = ["check", "db", "--level", "values"];
    let seen = world.run(&arguments).status;
    let mut child = world.start(&arguments);
    drop(child.stdout.take());
    let unseen = child.wait().expect("the program ends").code();
    assert_eq!((seen, unseen), (1, Some(1)));
}
