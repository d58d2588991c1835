//! `bench`.

use serde_json::{Value, json};

use crate::world::World;

const SMALL: [&str; 5] = ["--num", "2000", "--value-size", "200", "--json"];

fn field(report: &Value, name: &str) -> f64 {
    report[name].as_f64().unwrap_or_else(|| panic!("{name} is no number in {report}"))
}

#[test]
fn every_workload_reports_and_verifies() {
    let world = World::new();
    let workloads = [
        "fillrandom",
        "fillsync",
        "overwrite",
        "readrandom",
        "readmissing",
        "readseq",
        "readreverse",
        "deleterandom",
        "readrandom",
        "fillseq",
        "readseq",
    ];
    for extra in [&["--threads", "1"][..], &["--threads", "3", "--batch-size", "7"]] {
        let run = world.ok(&[&["bench"], &workloads[..], &SMALL, &["--verify"], extra].concat());
        let reports = run.json_lines();
        let names: Vec<&str> = reports.iter().filter_map(|report| report["workload"].as_str()).collect();
        assert_eq!(names, workloads);
        for report in &reports {
            for name in ["seconds", "ops_per_second", "cpu_seconds", "settled_seconds", "disk_bytes"] {
                assert!(field(report, name) >= 0.0);
            }
            let utilization = field(report, "cpu_seconds") / field(report, "settled_seconds");
            assert!((field(report, "cpu_utilization") - utilization).abs() < 1e-9);
            let latency = &report["latency_us"];
            assert!(field(latency, "p50") <= field(latency, "p99"));
            assert!(field(latency, "p99") <= field(latency, "p999"));
            assert!(field(latency, "p999") <= field(latency, "max"));
        }
        assert_eq!(reports[0]["ops"], json!(2000));
        assert_eq!(reports[0]["user_bytes"], json!(2000 * 216));
        assert_eq!(reports[0]["live_bytes"], json!(2000 * 216), "a random fill writes every key once");
        assert_eq!(reports[3]["found"], json!(2000));
        assert_eq!(reports[3]["verified"], json!(2000));
        assert_eq!(reports[4]["found"], json!(0));
        assert_eq!((&reports[5]["found"], &reports[6]["verified"]), (&json!(2000), &json!(2000)));
        assert!(field(&reports[7], "live_bytes") < 2000.0 * 216.0);
        assert_eq!(reports[10]["verified"], json!(2000));
    }
    assert_eq!(
        std::fs::read_dir(world.path(".")).expect("it is there").count(),
        0,
        "the temporary database is removed"
    );
}

#[test]
fn reads_of_many_seeks_and_reads_beside_a_writer_find_everything() {
    let world = World::new();
    let workloads =
        ["fillrandom", "multireadrandom", "seekrandom", "readwhilewriting", "fill100k", "readseq"];
    for extra in [&[][..], &["--threads", "2", "--keys-per-read", "7", "--entries-per-seek", "3"]] {
        let run = world.ok(&[&["bench"], &workloads[..], &SMALL, &["--verify"], extra].concat());
        let reports = run.json_lines();
        let names: Vec<&str> = reports.iter().filter_map(|report| report["workload"].as_str()).collect();
        assert_eq!(names, workloads);
        assert_eq!((&reports[1]["found"], &reports[1]["verified"]), (&json!(2000), &json!(2000)));
        let entries = if extra.is_empty() { 2000.0 } else { 6000.0 };
        // A seek to the last key finds but one.
        assert!(field(&reports[2], "found") > 0.99 * entries, "{}", reports[2]);
        assert_eq!((&reports[3]["ops"], &reports[3]["found"]), (&json!(2000), &json!(2000)));
        assert!(field(&reports[3], "written_meanwhile") > 0.0);
        assert_eq!((&reports[4]["ops"], &reports[4]["value_size"]), (&json!(100), &json!(100_000)));
        assert_eq!(reports[4]["live_bytes"], json!(1900 * 216 + 100 * 100_016));
        assert_eq!((&reports[5]["found"], &reports[5]["verified"]), (&json!(2000), &json!(2000)));
    }
}

#[test]
fn values_may_be_large_and_everything_read_before() {
    let world = World::new();
    let workloads = ["fillrandom", "readrandom", "multireadrandom", "overwrite", "readseq"];
    let plan =
        ["--num", "40", "--value-size", "256KiB", "--keys-per-read", "8", "--warm", "--verify", "--json"];
    let reports = world.ok(&[&["bench"], &workloads[..], &plan].concat()).json_lines();
    assert_eq!(reports[0]["user_bytes"], json!(40 * (16 + 262_144)));
    assert_eq!(reports[0]["live_bytes"], reports[0]["user_bytes"]);
    for report in [&reports[1], &reports[2], &reports[4]] {
        assert_eq!((&report["found"], &report["verified"]), (&json!(40), &json!(40)), "{report}");
        assert_eq!((&report["value_size"], &report["warm"]), (&json!(262_144), &json!(true)));
        assert_eq!(report["loaded_by"], json!("fillrandom"));
    }
}

#[test]
fn a_workload_ends_when_its_time_is_up_and_reads_from_the_device_when_it_is_cold() {
    let world = World::new();
    let extra = ["--seconds", "1", "--threads", "2", "--verify", "--cold", "--batch-size", "3"];
    let run = world.ok(&[&["bench", "fillrandom", "overwrite", "readrandom"], &SMALL[..], &extra].concat());
    let reports = run.json_lines();
    assert_eq!(reports[0]["ops"], json!(2000), "a fill writes every key");
    for report in &reports[1..] {
        assert!((1.0..50.0).contains(&field(report, "seconds")) && field(report, "ops") > 0.0, "{report}");
    }
    assert_eq!(reports[2]["found"], reports[2]["ops"]);
    let extra = ["--seconds", "100", "--ops", "10"];
    let run = world.ok(&[&["bench", "fillseq", "readrandom"], &SMALL[..], &extra].concat());
    assert_eq!(run.json_lines()[1]["ops"], json!(10));
}

#[test]
fn workloads_of_ycsb_find_their_records() {
    let world = World::new();
    let workloads = ["ycsbload", "ycsba", "ycsbb", "ycsbc", "ycsbd", "ycsbe", "ycsbf", "readseq"];
    for threads in ["1", "3"] {
        let extra = ["--verify", "--ops", "1000", "--threads", threads, "--db", threads];
        let run = world.ok(&[&["bench"], &workloads[..], &SMALL, &extra].concat());
        let reports = run.json_lines();
        let names: Vec<&str> = reports.iter().filter_map(|report| report["workload"].as_str()).collect();
        assert_eq!(names, workloads);
        let operations: Vec<f64> = reports.iter().map(|report| field(report, "ops")).collect();
        assert_eq!(operations[..7], [2000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0]);
        assert_eq!(reports[3]["found"], json!(1000), "C reads nothing but records");
        let records = field(&reports[4], "live_bytes") / 216.0;
        assert!((2001.0..2200.0).contains(&records), "D inserts: {records}");
        assert!(field(&reports[5], "found") > 20_000.0, "E scans: {}", reports[5]);
        // Of what reads and writes, what was written counts alone; where the system does not say, nothing does.
        for report in reports[..7].iter().filter(|report| !report["device_write_bytes"].is_null()) {
            let written = field(report, "user_bytes") - field(report, "user_bytes_read");
            let each = report["write_amplification"].as_f64();
            assert_eq!(each.is_none(), report["workload"] == "ycsbc", "{report}");
            let differs = |each: f64| (each * written - field(report, "device_write_bytes")).abs() > 1.0;
            assert!(!each.is_some_and(differs), "{report}");
        }
        // What was inserted is known when the database is opened again.
        let again = ["bench", "ycsbd", "--db", threads, "--ops", "500"];
        let run = world.ok(&[&again[..], &SMALL].concat());
        assert!(field(&run.json(), "live_bytes") / 216.0 > field(&reports[6], "live_bytes") / 216.0);
    }
}

#[test]
fn an_existing_database_is_read_but_not_filled() {
    let world = World::new();
    world.ok(&[&["bench", "fillseq", "--db", "db"], &SMALL[..]].concat());
    let run =
        world.ok(&[&["bench", "readrandom", "overwrite", "--db", "db", "--verify"], &SMALL[..]].concat());
    assert_eq!(run.json_lines()[0]["found"], json!(2000));
    let refused = world.run(&[&["bench", "fillrandom", "--db", "db"], &SMALL[..]].concat()).expect_status(2);
    assert!(refused.stderr.contains("--overwrite-db"), "{}", refused.stderr);
    world.ok(&[&["bench", "fillrandom", "--db", "db", "--overwrite-db"], &SMALL[..]].concat());
    let wrong = world.run(&["bench", "readrandom", "--db", "db", "--num", "2000", "--value-size", "100"]);
    assert!(wrong.expect_status(4).stderr.contains("verification failed"));
}

#[test]
fn a_killed_writer_loses_nothing_and_its_log_is_replayed() {
    let world = World::new();
    for extra in
        [&[][..], &["--threads", "3", "--batch-size", "7"], &["--memtable-mib", "1", "--sync-every", "50"]]
    {
        let run = world.ok(&[&["bench", "recover"], &SMALL[..], extra].concat());
        let report = run.json();
        assert_eq!((&report["workload"], &report["ops"]), (&json!("recover"), &json!(2000)));
        assert_eq!(report["recovered_operations"], json!(2000), "nothing was flushed");
        assert_eq!((&report["found"], &report["verified"]), (&json!(2000), &json!(2000)));
        assert!(field(&report, "recovered_bytes") > 2000.0 * 216.0);
        assert!(field(&report, "rewritten_bytes") <= field(&report, "disk_bytes"));
        assert_eq!(report["open_seconds"], report["seconds"]);
    }
    let run = world.ok(&["bench", "recover", "--num", "200000", "--value-size", "200", "--json"]);
    let report = run.json();
    let (memory, kept) = (field(&report, "memory_bytes_peak"), field(&report, "recovered_bytes"));
    assert!((0.9..3.0).contains(&(memory / kept)), "a memtable has all of it: {report}");
    assert!(field(&report, "disk_bytes_peak") >= field(&report, "disk_bytes"), "{report}");
    let refused = world.run(&["bench", "recover", "readseq"]).expect_status(2);
    assert!(refused.stderr.contains("alone"), "{}", refused.stderr);
}

#[test]
fn keys_are_written_while_garbage_is_collected_and_none_is_lost() {
    let world = World::new();
    let num = ["--num", "20000", "--value-size", "2000", "--ops", "40000", "--dead-percent", "75"];
    let bench = |workload: &str| {
        let file = format!("{workload}.json");
        let arguments =
            [&["bench", workload, "readseq", "--verify", "--json", "--save", &file], &num[..]].concat();
        world.ok(&arguments).json_lines()
    };
    for workload in ["fillbesidegarbage", "fillwhilecollecting"] {
        let reports = bench(workload);
        assert_eq!((&reports[0]["ops"], &reports[0]["dead_percent"]), (&json!(20_000), &json!(75)));
        assert_eq!(reports[0]["live_bytes"], json!(25_000 * 2016));
        assert_eq!((&reports[1]["found"], &reports[1]["verified"]), (&json!(25_000), &json!(25_000)));
        if workload == "fillbesidegarbage" {
            assert_eq!(reports[0]["freed_bytes"], Value::Null);
            assert_eq!(reports[0]["collection_bytes_written"], json!(0), "nobody collects");
            assert!(field(&reports[0], "disk_bytes") > 40_000.0 * 2016.0, "nothing is given back");
        } else {
            assert!(field(&reports[0], "collected_files") > 0.0, "{}", reports[0]);
            assert!(field(&reports[0], "freed_bytes") > 10_000.0 * 2016.0, "{}", reports[0]);
        }
    }
    world.ok(&["bench-page", "fillbesidegarbage.json", "fillwhilecollecting.json", "--html", "page.html"]);
    let page = String::from_utf8(world.read("page.html")).expect("a page is text");
    assert!(page.contains("GC (WiscKey, Figure 13)") && page.contains("line dashed"), "{page}");
    let refused = world.run(&["bench", "fillseq", "fillwhilecollecting", "--num", "10"]).expect_status(2);
    assert!(refused.stderr.contains("must be the first workload"), "{}", refused.stderr);
    let text = world.ok(&["bench", "fillwhilecollecting", "--num", "100"]).text();
    assert!(text.contains("beside 50 % of dead values, collected from"), "{text}");
}

#[test]
fn the_space_of_a_deleted_half_is_watched() {
    let world = World::new();
    let limits = ["--max-space-amplification", "1.5", "--verify"];
    let run = world.ok(&[&["bench", "fillrandom", "deletehalf", "readseq"], &SMALL[..], &limits].concat());
    let reports = run.json_lines();
    let half = &reports[1];
    assert_eq!((&half["ops"], &half["live_bytes"]), (&json!(1000), &json!(1000 * 216)), "each key once");
    assert_eq!(half["bound_bytes"], json!(1500 * 216 + 16 * (32 << 20)));
    assert!(field(half, "below_bound_seconds") <= 120.0, "so little is always below it");
    assert!(field(half, "rest_disk_bytes") >= field(half, "live_bytes"));
    let ratio = field(half, "rest_disk_bytes") / field(half, "live_bytes");
    assert!((field(half, "rest_space_amplification") - ratio).abs() < 1e-9);
    assert_eq!((&reports[2]["found"], &reports[2]["verified"]), (&json!(1000), &json!(1000)));
    assert_eq!(reports[0]["bound_bytes"], Value::Null);
    let text = world.ok(&["bench", "fillseq", "deletehalf", "--num", "1000"]).text();
    assert!(text.lines().nth(3).is_some_and(|line| line.contains("at rest after")), "{text}");
}

#[test]
fn nothing_is_destroyed_where_what_was_asked_for_cannot_be_done() {
    let world = World::new();
    world.ok(&[&["bench", "fillseq", "--db", "db"], &SMALL[..]].concat());
    for (arguments, advice) in [
        (&["readrandom"][..], "fillseq"),
        (&["ycsbc"], "ycsbload"),
        (&["fillseq", "recover"], "alone"),
        (&["fillseq", "ycsbc"], "ycsbload"),
        (&["fillseq", "--max-space-amplification", "0.5"], "max_space_amplification"),
        (&["fillseq", "--save", "none/of/these"], "none/of/these"),
    ] {
        let refused = world.run(&[&["bench", "--db", "db", "--overwrite-db"], arguments].concat());
        assert!(refused.status != 0 && refused.stderr.contains(advice), "{}", refused.stderr);
    }
    let run = world.ok(&[&["bench", "readseq", "--db", "db", "--verify"], &SMALL[..]].concat());
    assert_eq!(run.json()["found"], json!(2000));
}

#[test]
fn a_directory_of_others_is_no_database() {
    let world = World::new();
    world.write("notes", "mine");
    let refused = world.run(&["bench", "readrandom", "--num", "10", "--db", "."]);
    assert!(refused.status == 2 && refused.stderr.contains("does not exist"), "{}", refused.stderr);
    assert_eq!(std::fs::read_dir(world.path(".")).expect("it is there").count(), 1);
}

#[test]
fn workloads_of_ycsb_ask_for_their_records() {
    let world = World::new();
    let refused = world.run(&[&["bench", "fillrandom", "ycsbc"], &SMALL[..]].concat()).expect_status(2);
    assert!(refused.stderr.contains("ycsbload"), "{}", refused.stderr);
    world.ok(&[&["bench", "ycsbload", "--db", "db"], &SMALL[..]].concat());
    let again = ["bench", "ycsbc", "--db", "db", "--num", "3000"];
    assert!(world.run(&again).expect_status(2).stderr.contains("--num"));
    let text = world.ok(&["bench", "ycsbload", "readrandom", "--num", "2000"]).text();
    assert!(text.lines().last().is_some_and(|line| line.ends_with("of 2,000 keys were there")), "{text}");
    // Nobody can know when its records are used up.
    let inserts = ["bench", "ycsbload", "ycsbd", "--num", "50", "--seconds", "20", "--json"];
    let reports = world.ok(&inserts).json_lines();
    assert_eq!(field(&reports[1], "live_bytes"), 100.0 * 1040.0, "{}", reports[1]);
}

#[test]
fn all_entries_are_walked_over_and_counted() {
    let world = World::new();
    let run = world.ok(&[&["bench", "ycsbload", "readseq", "--threads", "4"], &SMALL[..]].concat());
    assert_eq!(run.json_lines()[1]["found"], json!(2000));
    world.ok(&[&["bench", "fillseq", "--db", "db"], &SMALL[..]].concat());
    let fewer = ["bench", "readrandom", "--db", "db", "--num", "100", "--value-size", "200", "--json"];
    assert_eq!(world.ok(&fewer).json()["live_bytes"], json!(2000 * 216));
}

#[test]
fn what_was_due_in_time_is_done() {
    let world = World::new();
    let rate = ["--rate", "20000", "--seconds", "1", "--sync", "--db", "db"];
    let run = world.ok(&[&["bench", "fillseq", "overwrite"], &SMALL[..], &rate].concat());
    assert_eq!(run.json_lines()[1]["ops"], json!(20_000));
}

#[test]
fn figures_that_nobody_could_mean_are_refused() {
    let world = World::new();
    for arguments in [
        &["fillseq", "--value-size", "18446744073709551615"][..],
        &["fillseq", "--value-size", "4294967296"],
        &["fillseq", "--num", "18446744073709551615", "--key-size", "20"],
        &["fillseq", "--memtable-mib", "17592186044416"],
        &["fillseq", "seekrandom", "--entries-per-seek", "0"],
        &["recover", "--cold"],
        &["recover", "--seconds", "1"],
    ] {
        let refused = world.run(&[&["bench"], arguments].concat()).expect_status(2);
        assert!(!refused.stderr.contains("panicked"), "{}", refused.stderr);
    }
    assert_eq!(std::fs::read_dir(world.path(".")).expect("it is there").count(), 0);
}

#[test]
fn people_get_a_table() {
    let world = World::new();
    let text = world.ok(&["bench", "fillseq", "readseq", "--num", "1000"]).text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("workload") && lines[1].starts_with("fillseq"), "{text}");
}

#[test]
fn space_and_what_is_written_are_reported() {
    let world = World::new();
    let skewed = [
        "--distribution",
        "zipfian",
        "--gc",
        "tail",
        "--max-space-amplification",
        "1.5",
        "--direct",
        "--verify",
    ];
    let run = world.ok(&[&["bench", "fillrandom", "overwrite", "readrandom"], &SMALL[..], &skewed].concat());
    let reports = run.json_lines();
    for report in &reports {
        assert!(field(report, "disk_bytes_peak") >= field(report, "disk_bytes"), "{report}");
        assert!(field(report, "space_amplification") >= 0.5, "{report}");
        for name in [
            "flush_bytes_written",
            "compaction_bytes_written",
            "collection_bytes_written",
            "sorting_bytes_written",
            "sorting_index_bytes_written",
            "memory_bytes_peak",
        ] {
            assert!(field(report, name) >= 0.0, "{report}");
        }
    }
    for report in &reports[..2] {
        assert!(field(report, "log_bytes_written") >= 2000.0 * 216.0, "each workload has its own: {report}");
        assert!(
            field(report, "log_bytes_written") < 2.0 * 2000.0 * 216.0,
            "each workload has its own: {report}"
        );
    }
    assert!(field(&reports[2], "log_bytes_written") < 100.0, "{}", reports[2]);
    assert_eq!(reports[2]["write_amplification"], Value::Null);
    assert_eq!(field(&reports[2], "verified"), 2000.0);
    world.run(&["bench", "fillseq", "--max-space-amplification", "0.5"]).expect_status(2);
}
