//! `load` and `dump`.

use std::io::Write;

use serde_json::json;

use crate::world::World;

/// Loads `count` text records, some of them awkward, and returns them in key order as JSON lines.
fn fill(world: &World, count: u64) -> String {
    let lines: String = (0..count)
        .map(|number| {
            let value =
                format!("value \"{number}\",\t'of' {number}\n\\ {}", "ü".repeat(number as usize % 50));
            format!("{}\n", json!({ "key": format!("key,{number:06}"), "value": value }))
        })
        .collect();
    world.run_with_input(&["load", "db", "-"], lines.as_bytes()).expect_status(0);
    lines
}

#[test]
fn every_format_and_encoding_gives_the_records_back() {
    let world = World::new();
    let lines = fill(&world, 500);
    let mut number = 0;
    for format in ["jsonl", "csv", "tsv"] {
        for (key, value) in [("utf8", "utf8"), ("hex", "base64"), ("base64", "hex")] {
            for header in [&["--header"][..], &[]] {
                number += 1;
                let (file, db) = (format!("dump{number}"), format!("db{number}"));
                let form = ["--format", format, "--key-format", key, "--value-format", value];
                world.ok(&[&["dump", "db", &file], &form[..], header].concat());
                world.ok(&[&["load", &db, &file], &form[..], header].concat());
                assert_eq!(world.ok(&["dump", &db]).text(), lines, "{format} {key} {value} {header:?}");
            }
        }
    }
}

#[test]
fn bytes_that_are_not_text_survive_or_are_refused() {
    let world = World::new();
    world.ok(&["put", "db", "00ff", "fe", "--key-format", "hex", "--value-format", "hex"]);
    world.ok(&["dump", "db", "dump.jsonl"]);
    world.ok(&["load", "copy", "dump.jsonl"]);
    assert_eq!(world.ok(&["scan", "copy"]).text(), "hex:00ff\thex:fe\n");
    let refused = world.run(&["dump", "db", "dump.csv"]).expect_status(3);
    assert!(refused.stderr.contains("hex:00ff is not UTF-8"), "{}", refused.stderr);
    world.ok(&["dump", "db", "dump.csv", "--header", "--key-format", "hex", "--value-format", "base64"]);
    assert_eq!(world.read("dump.csv"), b"key_hex,value_base64\n00ff,/g==\n");
    world.ok(&["load", "other", "dump.csv", "--header"]);
    assert_eq!(world.ok(&["scan", "other"]).text(), "hex:00ff\thex:fe\n");
}

#[test]
fn a_range_can_be_dumped() {
    let world = World::new();
    fill(&world, 30);
    let text = world.ok(&["dump", "db", "--prefix", "key,00002", "--format", "tsv"]).text();
    assert_eq!(text.matches("key,").count(), 10);
}

#[test]
fn bad_lines_are_errors_with_their_number_or_skipped_and_counted() {
    let world = World::new();
    world.write("in.tsv", "a\t1\nbroken\nb\t2\nx\ty\tz\nc\t3\n");
    let stopped = world.run(&["load", "db", "in.tsv"]).expect_status(3);
    assert!(stopped.stderr.starts_with("tamarack: in.tsv:2: "), "{}", stopped.stderr);
    assert_eq!(world.ok(&["scan", "db", "--keys-only"]).text(), "a\n", "what came before is stored");
    let skipped = world.run(&["load", "db", "in.tsv", "--skip-bad"]).expect_status(1);
    assert!(skipped.stderr.contains("in.tsv:2: ") && skipped.stderr.contains("in.tsv:4: "));
    assert_eq!(world.ok(&["scan", "db", "--keys-only"]).text(), "a\nb\nc\n");
    let answer = world.run(&["load", "db", "in.tsv", "--skip-bad", "--json"]).expect_status(1);
    assert_eq!((&answer.json()["bad"], &answer.json()["loaded"]), (&json!(2), &json!(3)));
    assert_eq!(answer.stderr, "");
}

#[test]
fn a_killed_load_is_continued() {
    let world = World::new();
    let line = |number: u64| {
        let value = format!("{number}").repeat(30);
        format!("{}\n", json!({ "key": format!("{number:08}"), "value": value }))
    };
    let whole: String = (0..60_000).map(line).collect();
    world.write("in.jsonl", &whole);

    let mut child = world.start(&["load", "db", "-"]);
    let mut input = child.stdin.take().expect("standard input is piped");
    let part: String = (0..40_000).map(line).collect();
    input.write_all(part.as_bytes()).expect("the program reads its input");
    child.kill().expect("the program can be killed");
    child.wait().expect("the program is ours");
    drop(input);

    let answer = world.ok(&["load", "db", "in.jsonl", "--resume", "--json"]).json();
    let already_there = answer["already_there"].as_u64().expect("a number");
    assert!(already_there >= 4096, "whole batches had been acknowledged: {answer}");
    assert_eq!(answer["loaded"], json!(60_000 - already_there));
    assert_eq!(world.ok(&["dump", "db"]).text(), whole);
    let again = world.ok(&["load", "db", "in.jsonl", "--resume", "--json"]).json();
    assert_eq!((&again["loaded"], &again["already_there"]), (&json!(0), &json!(60_000)));
}

#[test]
fn an_interrupted_dump_is_continued() {
    let world = World::new();
    fill(&world, 300);
    for (file, header) in [("whole.jsonl", None), ("whole.csv", Some("--header")), ("whole.tsv", None)] {
        let arguments: Vec<&str> = ["dump", "db", file].into_iter().chain(header).collect();
        world.ok(&arguments);
        let whole = world.read(file);
        for cut in [0, 3, 17, 1000, whole.len() / 2, whole.len() - 1, whole.len()] {
            world.write(file, &whole[..cut]);
            world.ok(&[&arguments[..], &["--resume"]].concat());
            assert!(world.read(file) == whole, "{file} cut at {cut}");
        }
        let resumed = world.ok(&[&arguments[..], &["--resume", "--json"]].concat()).json();
        assert_eq!(resumed["already_there"], json!(299), "the last record is never trusted");
    }
}

#[test]
fn a_dump_that_is_asked_for_wrongly_leaves_the_file_alone() {
    let world = World::new();
    fill(&world, 3);
    world.write("dump.jsonl", "an earlier one");
    for wrong in [&["--start", "b", "--end", "a"][..], &["--prefix", "zz", "--key-format", "hex"]] {
        world.run(&[&["dump", "db", "dump.jsonl"], wrong].concat()).expect_status(2);
        assert_eq!(world.read("dump.jsonl"), b"an earlier one", "{wrong:?}");
    }
}
