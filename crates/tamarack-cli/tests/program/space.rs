//! `gc` and `checkpoint`, and what `stats` says of them.

use serde_json::{Value, json};

use crate::world::World;

/// Keys that are all overwritten, but for one in ten: segments of which a tenth is alive.
fn overwritten(world: &World) {
    let value = "x".repeat(100_000);
    for round in 0..2 {
        let records: String = (0..400)
            .filter(|number| round == 0 || number % 10 > 0)
            .map(|number| json!({ "key": format!("key {number:03}"), "value": format!("{round}{value}") }))
            .map(|record| format!("{record}\n"))
            .collect();
        world.write("records", records);
        world.ok(&["load", "db", "records"]);
    }
}

fn number(object: &Value, name: &str) -> f64 {
    object[name].as_f64().unwrap_or_else(|| panic!("{name} is no number in {object}"))
}

#[test]
fn garbage_is_collected_and_counted() {
    let world = World::new();
    overwritten(&world);
    let entries = world.ok(&["dump", "db"]).stdout;
    let run = world.ok(&["gc", "db", "--once", "--json"]);
    assert_eq!(run.stderr, "", "who asks for JSON gets nothing else");
    let done = run.json();
    assert!(number(&done, "collected_segments") >= 1.0, "{done}");
    assert!(number(&done, "copied_bytes") > 0.0 && number(&done, "copied_records") > 0.0, "{done}");
    assert!(number(&done, "disk_bytes_after") < number(&done, "disk_bytes_before"), "{done}");
    assert!(number(&done, "space_amplification_before") > 1.3, "{done}");

    let stats = world.ok(&["stats", "db", "--json"]).json();
    let segments = stats["segments"].as_array().expect("a list of segments");
    let cold: Vec<_> = segments.iter().filter(|segment| segment["cold"] == json!(true)).collect();
    assert!(!cold.is_empty(), "{stats}");
    assert!(cold.iter().all(|segment| segment["file"].as_str().is_some_and(|name| name.ends_with(".cold"))));
    assert!(world.ok(&["stats", "db"]).text().contains(".cold"));

    let text = world.ok(&["gc", "db", "--until", "1.1"]).text();
    for word in ["before", "after", "on disk", "space amplification", "collected", "left behind"] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
    let nothing = world.ok(&["gc", "db", "--json"]).json();
    assert_eq!(nothing["collected_segments"], json!(0), "{nothing}");
    assert!(number(&nothing, "space_amplification_after") <= 1.3, "{nothing}");
    assert!(world.ok(&["dump", "db"]).stdout == entries);
    world.ok(&["check", "db", "--level", "values"]);
}

#[test]
fn what_is_going_on_is_told_where_no_bar_can_be_shown() {
    let world = World::new();
    overwritten(&world);
    let run = world.ok(&["gc", "db"]);
    let told: Vec<_> = run.stderr.lines().collect();
    assert!(told.len() >= 2 && told.iter().all(|line| line.starts_with("gc: ")), "{told:?}");
    assert!(told[0].starts_with("gc: collecting ") && told[0].contains("alive"), "{told:?}");
    let last = told[told.len() - 1];
    assert!(last.contains("collected") && last.contains("space amplification"), "{told:?}");
    // Nothing is left to do, so there is nothing to tell.
    assert_eq!(world.ok(&["gc", "db"]).stderr, "");
}

#[test]
fn garbage_is_collected_around_what_is_damaged() {
    let world = World::new();
    overwritten(&world);
    // One in ten values of the first round is alive; the first that is there is damaged.
    let alive = format!("0{}", "x".repeat(100_000));
    let record = [b"key 000", alive.as_bytes()].concat();
    let mut files = std::fs::read_dir(world.path("db")).expect("a directory").flatten();
    let damaged = files.find_map(|file| {
        let mut bytes = std::fs::read(file.path()).expect("the file can be read");
        let at = bytes.windows(record.len()).position(|window| window == record)?;
        bytes[at + record.len() / 2] ^= 1;
        std::fs::write(file.path(), bytes).expect("the file can be written");
        file.file_name().into_string().ok()
    });
    let damaged = damaged.expect("the value is in a file");

    let run = world.run(&["gc", "db", "--until", "1.1", "--bytes-per-second", "1000000000"]).expect_status(1);
    let told = run.text().lines().find(|line| line.contains("left alone")).expect("it is told").to_owned();
    assert!(told.contains(&damaged), "{told}");
    let again = world.run(&["gc", "db", "--until", "1.0", "--json"]).expect_status(1).json();
    let left_alone = again["left_alone"].as_array().expect("a list");
    assert!(
        left_alone.len() == 1 && left_alone[0].as_str().is_some_and(|why| why.contains(&damaged)),
        "{again}"
    );
    assert!(world.path("db").join(&damaged).exists(), "it is kept");
    // Nothing else was held up: what is left is what is alive, and that segment.
    assert!(number(&again, "disk_bytes_after") < number(&again, "live_bytes_after") + 40e6, "{again}");
    let check = world.run(&["check", "db", "--level", "values", "--json"]).expect_status(1).json();
    let problems = check["problems"].as_array().expect("a list");
    assert!(
        problems.iter().all(|problem| problem["message"].as_str().is_some_and(|why| why.contains(&damaged)))
    );
    assert_eq!(world.ok(&["get", "db", "key 010"]).text().trim_end(), alive);
    world.run(&["get", "db", "key 000"]).expect_status(4);
}

#[test]
fn a_copy_is_a_database_of_its_own() {
    let world = World::new();
    overwritten(&world);
    world.ok(&["gc", "db", "--once"]);
    let entries = world.ok(&["dump", "db"]).stdout;
    let done = world.ok(&["checkpoint", "db", "copy", "--json"]).json();
    assert!(number(&done, "linked_files") >= 2.0, "{done}");
    assert!(number(&done, "linked_bytes") > number(&done, "copied_bytes"), "{done}");
    world.ok(&["put", "db", "key 001", "changed"]);
    world.ok(&["compact", "copy"]);
    world.ok(&["gc", "copy"]);
    assert!(world.ok(&["dump", "copy"]).stdout == entries);
    world.ok(&["check", "copy", "--level", "values"]);
    world.ok(&["check", "db", "--level", "values"]);
    assert_eq!(world.ok(&["get", "db", "key 001"]).text(), "changed\n");

    let refused = world.run(&["checkpoint", "db", "copy"]).expect_status(2);
    assert!(refused.stderr.contains("empty directory"), "{}", refused.stderr);
    assert!(world.ok(&["checkpoint", "db", "another"]).text().starts_with("copied to another in "));
    world.run(&["checkpoint", "nothing", "third"]).expect_status(3);
    assert!(!world.path("third").exists());
}
