//! `put`, `get`, `del`, `scan`, `multi-get`, `stats`, `check`, `compact`.

use serde_json::json;

use crate::world::World;

#[test]
fn a_value_is_stored_found_and_removed() {
    let world = World::new();
    world.ok(&["put", "db", "key", "value"]);
    assert_eq!(world.ok(&["get", "db", "key"]).text(), "value\n");
    assert_eq!(world.ok(&["get", "db", "key", "--raw"]).text(), "value");
    world.ok(&["del", "db", "key", "another"]);
    let missing = world.run(&["get", "db", "key"]).expect_status(1);
    assert_eq!((missing.text().as_str(), missing.stderr.as_str()), ("", "tamarack: not found: key\n"));
}

#[test]
fn values_come_from_files_and_standard_input_byte_for_byte() {
    let world = World::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    world.write("in", &bytes);
    world.ok(&["put", "db", "file", "--file", "in", "--sync"]);
    world.run_with_input(&["put", "db", "stdin", "-"], &bytes).expect_status(0);
    for key in ["file", "stdin"] {
        assert_eq!(world.ok(&["get", "db", key, "--raw"]).stdout, bytes);
        world.ok(&["get", "db", key, "--output", "out"]);
        assert_eq!(world.read("out"), bytes);
    }
    world.ok(&["put", "db", "empty", ""]);
    assert_eq!(world.ok(&["get", "db", "empty", "--raw"]).stdout, b"");
}

#[test]
fn bytes_that_are_not_text_are_marked_and_never_changed() {
    let world = World::new();
    world.ok(&["put", "db", "ff00", "AP8=", "--key-format", "hex", "--value-format", "base64"]);
    let get = ["get", "db", "ff00", "--key-format", "hex"];
    assert_eq!(world.ok(&get).text(), "hex:00ff\n");
    assert_eq!(
        world.ok(&["get", "db", "ff00", "--key-format", "hex", "--json"]).json(),
        json!({ "key_hex": "ff00", "found": true, "bytes": 2, "value_hex": "00ff" })
    );
    assert_eq!(world.ok(&["scan", "db"]).text(), "hex:ff00\thex:00ff\n");
    assert_eq!(world.ok(&["scan", "db", "--value-format", "base64"]).text(), "hex:ff00\tAP8=\n");
    assert_eq!(world.ok(&["scan", "db", "--json"]).json(), json!({ "key_hex": "ff00", "value_hex": "00ff" }));
}

#[test]
fn scans_follow_their_range_in_both_directions() {
    let world = World::new();
    for key in ["a", "b1", "b2", "b3", "c"] {
        world.ok(&["put", "db", key, &format!("value of {key}")]);
    }
    let keys = |arguments: &[&str]| {
        let run = world.ok(&[&["scan", "db", "--keys-only"], arguments].concat());
        run.text().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(keys(&[]), ["a", "b1", "b2", "b3", "c"]);
    assert_eq!(keys(&["--reverse"]), ["c", "b3", "b2", "b1", "a"]);
    assert_eq!(keys(&["--prefix", "b"]), ["b1", "b2", "b3"]);
    assert_eq!(keys(&["--prefix", "b", "--reverse", "--limit", "2"]), ["b3", "b2"]);
    assert_eq!(keys(&["--start", "b2", "--end", "c"]), ["b2", "b3"]);
    assert_eq!(keys(&["--end", "b2", "--reverse"]), ["b1", "a"]);
    assert_eq!(keys(&["--start", "d"]), Vec::<String>::new());
    assert_eq!(world.ok(&["scan", "db", "--limit", "1"]).text(), "a\tvalue of a\n");
}

#[test]
fn several_keys_are_read_together() {
    let world = World::new();
    world.ok(&["put", "db", "a", "1"]);
    world.ok(&["put", "db", "b", "2"]);
    assert_eq!(world.ok(&["multi-get", "db", "b", "a"]).text(), "b\t2\na\t1\n");
    let run = world.run(&["multi-get", "db", "a", "x", "--json"]).expect_status(1);
    assert_eq!(
        run.json_lines(),
        [
            json!({ "key": "a", "found": true, "bytes": 1, "value": "1" }),
            json!({ "key": "x", "found": false })
        ]
    );
}

#[test]
fn the_shape_of_a_database_can_be_read_and_is_clean() {
    let world = World::new();
    for number in 0..20 {
        world.ok(&["put", "db", &format!("key {number}"), &"x".repeat(2000)]);
    }
    let text = world.ok(&["stats", "db"]).text();
    for word in ["on disk", "live values", "space amplification", "level", "segment", ".vlog"] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
    let stats = world.ok(&["stats", "db", "--json"]).json();
    for field in [
        "disk_bytes",
        "levels",
        "segments",
        "block_cache",
        "row_cache",
        "live_value_bytes",
        "dead_value_bytes",
        "hidden_bytes",
        "leaving_bytes",
        "hole_bytes",
        "disk_bytes_max",
        "quarantined_segments",
        "readers",
        "running_collections",
    ] {
        assert!(stats.get(field).is_some(), "{field} is missing in {stats}");
    }
    for level in ["structure", "checksums", "liveness", "values"] {
        let report = world.ok(&["check", "db", "--level", level, "--json"]).json();
        assert_eq!((&report["clean"], &report["problems"]), (&json!(true), &json!([])), "{report}");
    }
    assert!(world.ok(&["check", "db"]).text().ends_with("no problems\n"));
    let compacted = world.ok(&["compact", "db", "--json"]).json();
    assert!(compacted["disk_bytes_after"].is_u64(), "{compacted}");
    world.ok(&["compact", "db", "--start", "key 1", "--end", "key 2"]);
    world.ok(&["compact", "db", "--sort-values"]);
    assert_eq!(world.ok(&["scan", "db", "--keys-only"]).text().lines().count(), 20);
}
