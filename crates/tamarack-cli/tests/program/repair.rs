//! `repair`, and what damage says of it.

use std::fs;
use std::path::PathBuf;

use crate::world::World;

/// A database of values that are in the log, and small ones, in tables.
fn world() -> World {
    let world = World::new();
    let value = "x".repeat(2000);
    let lines: String = (0..300)
        .map(|number| {
            let value = if number % 3 == 0 { "small" } else { &value };
            format!("{{\"key\":\"key{number:04}\",\"value\":\"{value}\"}}\n")
        })
        .collect();
    world.run_with_input(&["load", "db", "-"], lines.as_bytes()).expect_status(0);
    world.ok(&["compact", "db"]);
    world
}

fn files(world: &World, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.path("db")).expect("the database is a directory");
    let paths = entries.map(|entry| entry.expect("a file").path());
    let mut files: Vec<_> = paths.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    files.sort();
    files
}

fn flip(path: &PathBuf, at: usize) {
    let mut bytes = fs::read(path).expect("the file can be read");
    bytes[at] ^= 1;
    fs::write(path, &bytes).expect("the file can be written");
}

#[test]
fn a_whole_database_needs_no_repair() {
    let world = world();
    let run = world.ok(&["repair", "db"]);
    assert!(run.text().contains("nothing to repair"), "{run:?}");
    let report = world.ok(&["repair", "db", "--dry-run", "--json"]).json();
    assert_eq!((&report["changed"], &report["lost"]), (&false.into(), &serde_json::json!([])));
}

#[test]
fn a_lost_manifest_costs_no_key_but_leaves_doubt() {
    let world = world();
    let before = world.ok(&["dump", "db"]).stdout;
    fs::remove_file(&files(&world, "CURRENT")[0]).expect("it is there");
    for manifest in fs::read_dir(world.path("db")).expect("a directory").flatten() {
        if manifest.file_name().to_string_lossy().starts_with("MANIFEST") {
            fs::remove_file(manifest.path()).expect("it is there");
        }
    }
    let refused = world.run(&["check", "db"]).expect_status(4);
    assert!(refused.stderr.contains("tamarack repair"), "{refused:?}");
    let tried = world.run(&["repair", "db", "--dry-run", "--json"]).expect_status(1).json();
    assert_eq!((&tried["manifest"], &tried["keys"]), (&"lost".into(), &300.into()));
    world.run(&["check", "db"]).expect_status(4);
    let report = world.run(&["repair", "db", "--json"]).expect_status(1).json();
    assert_eq!(report["lost"][0]["loss"], "may-be-older");
    assert_eq!(world.ok(&["dump", "db"]).stdout, before);
    world.ok(&["check", "db", "--level", "values"]);
    world.ok(&["repair", "db"]);
}

#[test]
fn a_damaged_value_is_named_and_all_others_stay() {
    let world = world();
    flip(&files(&world, ".vlog")[0], 3000);
    world.run(&["check", "db", "--level", "values"]).expect_status(1);
    let report = world.run(&["repair", "db", "--json"]).expect_status(1).json();
    let lost = report["lost"].as_array().expect("a list");
    assert_eq!(
        (lost.len(), &lost[0]["loss"], &lost[0]["operations"]),
        (1, &"lost".into(), &1.into()),
        "{report}"
    );
    let key = lost[0]["first"].as_str().expect("a key").to_owned();
    world.run(&["get", "db", &key]).expect_status(1);
    world.ok(&["check", "db", "--level", "values"]);
    let kept = world.ok(&["scan", "db", "--keys-only"]).text().lines().count();
    assert_eq!(kept, 299);
    let aside = fs::read_dir(world.path("db").join("lost")).expect("there is one").count();
    assert!(aside >= 2, "the segment and a report, at least");
}

#[test]
fn values_that_were_kept_in_tables_are_found_again_if_it_is_told_how_long_they_may_be() {
    let world = World::new();
    let sizes = ["--value-size", "100..3000", "--inline-value-max", "2000"];
    let fill = ["bench", "fillseq", "--num", "2000", "--memtable-mib", "1", "--db", "db"];
    world.ok(&[&fill[..], &sizes].concat());
    let before = world.ok(&["dump", "db"]).stdout;
    // Its files have two names each, so both are damaged.
    world.ok(&["checkpoint", "db", "copy"]);
    flip(&files(&world, ".table")[0], 3000);
    world.run(&["repair", "db", "--inline-value-max", "2000"]).expect_status(1);
    assert!(world.ok(&["dump", "db"]).stdout == before);
    world.run(&["repair", "copy"]).expect_status(1);
    assert!(world.ok(&["dump", "copy"]).stdout.len() < before.len());
}

#[test]
fn what_is_no_database_is_refused() {
    let world = World::new();
    world.run(&["repair", "db"]).expect_status(3);
    fs::create_dir(world.path("other")).expect("it can be made");
    fs::write(world.path("other").join("notes"), b"mine").expect("it can be written");
    world.run(&["repair", "other"]).expect_status(2);
    assert_eq!(fs::read_dir(world.path("other")).expect("a directory").count(), 1);
}
