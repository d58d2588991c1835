//! `import-leveldb`: what comes over, what is refused, what an interruption and damage leave.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use crate::leveldb_builder::{Edit, Log, Op, Shape, batch, entries, put};
use crate::world::World;

/// A database that LevelDB has written, and what it finds in it, one line `key<tab>value` in hexadecimal for each entry.
fn golden(name: &str) -> (PathBuf, Vec<u8>) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tamarack-leveldb/tests/data").join(name);
    let content = fs::read(directory.with_extension("tsv")).expect("it lies there");
    (directory, content)
}

/// A copy of it in `world`, as `ldb`.
fn copied(world: &World, name: &str) -> Vec<u8> {
    let (directory, content) = golden(name);
    fs::create_dir(world.path("ldb")).expect("it can be made");
    for file in fs::read_dir(directory).expect("a directory").flatten() {
        fs::copy(file.path(), world.path("ldb").join(file.file_name())).expect("it can be copied");
    }
    content
}

/// A LevelDB database of a log and a table, as `ldb`.
fn built(world: &World, in_table: &[Op], in_log: &[Op]) {
    let table = Shape::default().table(&entries(1, in_table));
    let next = in_table.len() as u64 + 1;
    let edit = Edit::first(3, 9, next).add(1, 5, &table);
    fs::create_dir(world.path("ldb")).expect("it can be made");
    world.write("ldb/000005.ldb", &table.bytes);
    world.write("ldb/000003.log", Log::of(&[batch(next, in_log)]));
    world.write("ldb/MANIFEST-000002", Log::of(&[edit.0]));
    world.write("ldb/CURRENT", "MANIFEST-000002\n");
    world.write("ldb/LOCK", "");
}

fn scan(world: &World, db: &str) -> Vec<u8> {
    world.ok(&["scan", db, "--key-format", "hex", "--value-format", "hex"]).stdout
}

/// Names, bytes and times of the files in a directory.
fn state(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let file = |path: PathBuf| {
        let modified = fs::metadata(&path).expect("it is there").modified().expect("a time");
        let bytes = fs::read(&path).expect("a file");
        (path, (bytes, modified))
    };
    fs::read_dir(directory).expect("a directory").flatten().map(|entry| file(entry.path())).collect()
}

fn error(stderr: &str) -> Value {
    serde_json::from_str(stderr).expect("one JSON object")
}

/// Nothing is left in `world` but what was there.
fn only(world: &World, names: &[&str]) {
    let entries = fs::read_dir(world.path("")).expect("a directory").flatten();
    let mut found: Vec<_> = entries.map(|entry| entry.file_name().into_string().expect("text")).collect();
    found.sort();
    assert_eq!(found, names);
}

#[test]
fn what_leveldb_has_written_comes_over() {
    for name in ["snappy", "log", "compacted", "torn"] {
        let world = World::new();
        let expected = copied(&world, name);
        let before = state(&world.path("ldb"));
        let lines = expected.iter().filter(|byte| **byte == b'\n').count();
        let run = world.ok(&["import-leveldb", "ldb", "new/place/db/", "--json"]).json();
        assert_eq!((&run["entries"], &run["verified"]), (&lines.into(), &true.into()), "{run}");
        assert_eq!((&run["losses_total"], &run["too_long"]), (&0.into(), &0.into()), "{run}");
        assert_eq!(run["checksum"].as_str().map(str::len), Some(16));
        assert_eq!(run["remarks"].as_array().map(Vec::len), Some(usize::from(name == "torn")), "{run}");
        assert_eq!(scan(&world, "new/place/db"), expected, "{name}");
        assert_eq!(state(&world.path("ldb")), before, "the source is as it was");
        world.ok(&["check", "new/place/db", "--level", "values"]);
        only(&world, &["ldb", "new"]);
        // An equal database has an equal checksum.
        let again = world.ok(&["import-leveldb", "ldb", "again", "--json", "--no-verify"]).json();
        assert_eq!((&again["checksum"], &again["verified"]), (&run["checksum"], &false.into()));
    }
}

#[test]
fn a_person_is_told_what_was_done() {
    let world = World::new();
    copied(&world, "compacted");
    let text = world.ok(&["import-leveldb", "ldb", "db"]).text();
    assert!(text.starts_with("imported 96 entries ("), "{text}");
    assert!(text.contains("from 2 tables and 1 log in "), "{text}");
    assert!(text.contains("58 older versions, 12 deleted keys"), "{text}");
    assert!(text.contains("checksum ") && text.contains("read back and equal"), "{text}");
}

#[test]
fn an_empty_directory_is_filled_and_any_other_left_alone() {
    let world = World::new();
    let expected = copied(&world, "log");
    fs::create_dir(world.path("db")).expect("it can be made");
    world.ok(&["import-leveldb", "ldb", "db"]);
    assert_eq!(scan(&world, "db"), expected);
    let before = state(&world.path("db"));
    let run = world.run(&["import-leveldb", "ldb", "db"]).expect_status(2);
    assert!(run.stderr.contains("not empty") && run.stderr.contains("tamarack load"), "{run:?}");
    assert_eq!(state(&world.path("db")), before);
    // Neither into the source, nor beside its files.
    let before = state(&world.path("ldb"));
    world.run(&["import-leveldb", "ldb", "ldb"]).expect_status(2);
    for place in ["ldb/db", "ldb/a/b/db", "./ldb/../ldb/db"] {
        let run = world.run(&["import-leveldb", "ldb", place]).expect_status(2);
        assert!(run.stderr.contains("must not change"), "{run:?}");
    }
    assert_eq!(state(&world.path("ldb")), before);
    world.run(&["import-leveldb", "ldb", ".."]).expect_status(2);
}

#[test]
fn an_open_database_is_refused_and_kept_out() {
    let world = World::new();
    let expected = copied(&world, "log");
    let file = File::options().write(true).open(world.path("ldb/LOCK")).expect("it is there");
    // As LevelDB holds it.
    rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).expect("free");
    let run = world.run(&["import-leveldb", "ldb", "db", "--json"]).expect_status(5);
    assert_eq!(error(&run.stderr)["error"], "locked");
    assert!(run.stderr.contains("close it"), "{run:?}");
    let salvage = world.run(&["import-leveldb", "ldb", "db", "--salvage"]).expect_status(5);
    assert!(salvage.stdout.is_empty());
    only(&world, &["ldb"]);
    drop(file);
    world.ok(&["import-leveldb", "ldb", "db"]);
    assert_eq!(scan(&world, "db"), expected);
}

#[test]
fn a_directory_that_may_not_be_written_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let expected = copied(&world, "compacted");
    for entry in fs::read_dir(world.path("ldb")).expect("a directory").flatten() {
        fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o444)).expect("they are ours");
    }
    fs::set_permissions(world.path("ldb"), fs::Permissions::from_mode(0o555)).expect("it is ours");
    world.ok(&["import-leveldb", "ldb", "db"]);
    assert_eq!(scan(&world, "db"), expected);
}

#[test]
fn damage_ends_the_import_and_leaves_nothing() {
    let world = World::new();
    copied(&world, "snappy");
    let table = world.path("ldb/000005.ldb");
    let mut bytes = fs::read(&table).expect("it is there");
    bytes[5000] ^= 4;
    fs::write(&table, &bytes).expect("it can be written");
    let run = world.run(&["import-leveldb", "ldb", "db"]).expect_status(4);
    assert!(run.stderr.contains("000005.ldb at offset ") && run.stderr.contains("--salvage"), "{run:?}");
    let run = world.run(&["import-leveldb", "ldb", "db", "--json"]).expect_status(4);
    let told = error(&run.stderr);
    assert_eq!((&told["error"], &told["file"]), (&"corruption".into(), &"ldb/000005.ldb".into()));
    let offset = told["offset"].as_u64().expect("an offset");
    assert!(offset <= 5000 && offset > 3500, "{told}");
    only(&world, &["ldb"]);

    let run = world.run(&["import-leveldb", "ldb", "db", "--salvage", "--json"]).expect_status(1).json();
    assert_eq!((&run["losses_total"], &run["losses"][0]["offset"]), (&1.into(), &offset.into()), "{run}");
    assert_eq!(run["losses"][0]["covers"], "keys");
    let (from, up_to) = (run["losses"][0]["from"].as_str(), run["losses"][0]["up_to"].as_str());
    let kept = world.ok(&["scan", "db", "--keys-only"]).text();
    assert!(kept.lines().count() > 300 && kept.lines().count() < 400);
    for number in 0..400 {
        let key = format!("fruit/{number:04}");
        let is_named =
            from.is_some_and(|from| from <= key.as_str()) && up_to.is_some_and(|up| up >= key.as_str());
        assert!(is_named || kept.lines().any(|line| line == key), "{key}");
    }
    world.ok(&["check", "db", "--level", "values"]);
    let text = world.run(&["import-leveldb", "ldb", "other", "--salvage"]).expect_status(1).text();
    assert!(text.contains("lost: ldb/000005.ldb at offset ") && text.contains("lost in all: "), "{text}");
    assert!(text.contains("older than it was, or back although it was deleted"), "{text}");
}

#[test]
fn a_lost_manifest_is_told_with_what_it_means() {
    let world = World::new();
    let expected = copied(&world, "compacted");
    fs::remove_file(world.path("ldb/CURRENT")).expect("it is there");
    fs::remove_file(world.path("ldb/MANIFEST-000012")).expect("it is there");
    world.run(&["import-leveldb", "ldb", "db"]).expect_status(4);
    let run = world.run(&["import-leveldb", "ldb", "db", "--salvage"]).expect_status(1);
    assert!(run.text().contains("entries may be back that had been deleted"), "{run:?}");
    assert_eq!(scan(&world, "db"), expected);
}

#[test]
fn keys_that_are_too_long_are_all_named_before_anything_is_made() {
    let world = World::new();
    let long = |letter: &str, len: usize| put(&letter.repeat(len), "v");
    built(
        &world,
        &[long("a", 65_536), long("b", 65_535), put("c", "1")],
        &[long("d", 70_000), put("e", "2")],
    );
    let run = world.run(&["import-leveldb", "ldb", "db"]).expect_status(3);
    for part in
        ["aaa... has 65536 bytes", "ddd... has 70000 bytes", "nothing was imported", "--skip-too-long"]
    {
        assert!(run.stderr.contains(part), "{run:?}");
    }
    assert!(!run.stderr.contains("bbb"), "{run:?}");
    only(&world, &["ldb"]);
    let run = world.run(&["import-leveldb", "ldb", "db", "--skip-too-long"]).expect_status(1);
    assert!(run.stderr.contains("has 65536 bytes") && run.stderr.contains("has 70000 bytes"), "{run:?}");
    assert!(run.text().contains("left out: 2 entries that are too long"), "{run:?}");
    let kept = world.ok(&["scan", "db", "--keys-only"]).text();
    assert_eq!(kept, format!("{}\nc\ne\n", "b".repeat(65_535)));
    let json = world.run(&["import-leveldb", "ldb", "other", "--skip-too-long", "--json"]).expect_status(1);
    assert_eq!((json.json()["too_long"].clone(), json.json()["reasons"][1].is_string()), (2.into(), true));
}

#[test]
fn what_an_interruption_has_left_is_told_and_removed_on_demand() {
    let world = World::new();
    let expected = copied(&world, "log");
    // A killed import leaves its database under the other name.
    world.ok(&["put", "db.importing", "half", "done"]);
    let run = world.run(&["import-leveldb", "ldb", "db"]).expect_status(3);
    assert!(run.stderr.contains("db.importing") && run.stderr.contains("--restart"), "{run:?}");
    world.ok(&["get", "db.importing", "half"]);
    world.ok(&["import-leveldb", "ldb", "db", "--restart"]);
    assert_eq!(scan(&world, "db"), expected);
    only(&world, &["db", "ldb"]);
    // What is not a database is not removed.
    fs::create_dir(world.path("two.importing")).expect("it can be made");
    world.write("two.importing/notes", "mine");
    world.run(&["import-leveldb", "ldb", "two", "--restart"]).expect_status(3);
    assert_eq!(world.read("two.importing/notes"), b"mine");
}

#[test]
fn a_killed_import_leaves_no_database() {
    let world = World::new();
    let value = "v".repeat(2000);
    let ops: Vec<Op> = (0..20_000).map(|key| put(&format!("key{key:05}"), &value)).collect();
    built(&world, &ops, &[put("last", "1")]);
    let mut import = world.start(&["import-leveldb", "ldb", "db"]);
    let has_files = |name: &str| fs::read_dir(world.path(name)).is_ok_and(|mut files| files.next().is_some());
    while !has_files("db.importing") && !has_files("db") {
        std::thread::yield_now();
    }
    import.kill().expect("it may have ended, but was not waited for");
    import.wait().expect("it ends");
    // Whenever it was killed: what has the name is complete, and what is not complete has another name.
    if world.path("db").exists() {
        only(&world, &["db", "ldb"]);
    } else {
        only(&world, &["db.importing", "ldb"]);
        world.run(&["import-leveldb", "ldb", "db"]).expect_status(3);
        world.ok(&["import-leveldb", "ldb", "db", "--restart"]);
    }
    let run = world.ok(&["scan", "db", "--keys-only"]);
    assert_eq!(run.text().lines().count(), 20_001);
}

#[test]
fn other_orders_and_other_stores_are_told() {
    let world = World::new();
    built(&world, &[put("a", "1")], &[put("b", "2")]);
    let table = Shape::default().table(&entries(1, &[put("a", "1")]));
    let mine = Edit::first(3, 9, 2).comparator("mine").add(1, 5, &table);
    world.write("ldb/MANIFEST-000002", Log::of(&[mine.0]));
    let run = world.run(&["import-leveldb", "ldb", "db"]).expect_status(3);
    assert!(run.stderr.contains("`mine`") && run.stderr.contains("--any-comparator"), "{run:?}");
    let run = world.ok(&["import-leveldb", "ldb", "db", "--any-comparator"]);
    assert!(run.text().contains("note: the comparator `mine`"), "{run:?}");
    assert_eq!(world.ok(&["scan", "db"]).text(), "a\t1\nb\t2\n");
    world.write("ldb/OPTIONS-000003", "");
    let run = world.run(&["import-leveldb", "ldb", "two"]).expect_status(3);
    assert!(run.stderr.contains("RocksDB"), "{run:?}");
    fs::create_dir(world.path("empty")).expect("it can be made");
    let run = world.run(&["import-leveldb", "empty", "two"]).expect_status(3);
    assert!(run.stderr.contains("no LevelDB database in empty"), "{run:?}");
    // A database of ours is none of LevelDB's.
    let run = world.run(&["import-leveldb", "db", "two"]).expect_status(3);
    assert!(run.stderr.contains("no LevelDB database in db"), "{run:?}");
    world.run(&["import-leveldb", "nowhere", "two"]).expect_status(3);
    only(&world, &["db", "empty", "ldb"]);
}

#[test]
fn the_engine_names_the_command() {
    let world = World::new();
    copied(&world, "log");
    let run = world.run(&["put", "ldb", "key", "value"]).expect_status(2);
    assert!(run.stderr.contains("tamarack import-leveldb"), "{run:?}");
}
