//! What `bench` measures besides single figures, and how it shows it: pages, saved reports, limits.

use std::path::Path;

use serde_json::{Value, json};

use crate::world::World;

#[test]
fn values_of_varying_sizes_are_verified_and_counted() {
    let world = World::new();
    for sizes in ["0..2000", "pareto"] {
        let arguments =
            ["bench", "fillrandom", "overwrite", "readrandom", "--num", "2000", "--value-size", sizes];
        let reports = world.ok(&[&arguments[..], &["--verify", "--json"]].concat()).json_lines();
        assert_eq!((&reports[2]["verified"], &reports[2]["value_sizes"]).0, &json!(2000));
        let read = reports[2]["user_bytes_read"].as_f64().expect("bytes were read");
        let live = reports[2]["live_bytes"].as_f64().expect("bytes are live");
        assert!((0.8..1.2).contains(&(read / live)), "as many keys were read as there are: {}", reports[2]);
    }
    let recovered =
        world.ok(&["bench", "recover", "--num", "500", "--value-size", "pareto", "--json"]).json();
    assert_eq!(recovered["verified"], json!(500));
    let refused = world.run(&["bench", "fillseq", "--value-size", "9..1"]).expect_status(2);
    assert!(refused.stderr.contains("LEAST..LARGEST"), "{}", refused.stderr);
}

#[test]
fn latencies_and_operations_over_time_can_be_plotted() {
    let world = World::new();
    let run = world.ok(&["bench", "fillrandom", "readrandom", "--num", "5000", "--threads", "3", "--json"]);
    for report in run.json_lines() {
        let sum = |pairs: &Value| -> u64 {
            let pairs = pairs.as_array().expect("a list of pairs");
            pairs.iter().map(|pair| pair[1].as_u64().expect("a count")).sum()
        };
        assert_eq!(sum(&report["latency_histogram"]), 5000, "{report}");
        let ops: Vec<u64> = serde_json::from_value(report["throughput"]["ops"].clone()).expect("counts");
        assert_eq!(ops.iter().sum::<u64>(), 5000, "{report}");
        let interval = report["throughput"]["interval_seconds"].as_f64().expect("a number");
        let seconds = report["seconds"].as_f64().expect("a number");
        assert!((ops.len() - 1) as f64 * interval <= seconds, "{report}");
    }
}

#[test]
fn a_page_is_written_and_made_again_from_what_was_saved() {
    let world = World::new();
    let bench = |size: &str, files: &[&str]| {
        let workloads = ["bench", "fillrandom", "readrandom", "--num", "500", "--value-size", size];
        world.ok(&[&workloads[..], files].concat());
    };
    bench("100", &["--html", "one.html", "--save", "one.json"]);
    let page = String::from_utf8(world.read("one.html")).expect("a page is text");
    for part in
        ["<!DOCTYPE html>", "Tamarack", "bench fillrandom readrandom --num 500", "file system", "</html>"]
    {
        assert!(page.contains(part), "no {part}");
    }
    world.ok(&["bench-page", "one.json", "--html", "again.html"]);
    assert_eq!(String::from_utf8(world.read("again.html")).expect("a page is text"), page);
    bench("1000", &["--save", "two.json"]);
    world.ok(&["bench-page", "one.json", "two.json", "--html", "both.html"]);
    let both = String::from_utf8(world.read("both.html")).expect("a page is text");
    assert!(both.contains("bytes per value") && both.contains("--value-size 1000"), "two sizes make lines");
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let world = World::new();
    world.ok(&["bench", "fillseq", "--num", "100", "--save", "here.json"]);
    let mut other: Value = serde_json::from_slice(&world.read("here.json")).expect("it is JSON");
    other["machine"]["cpu"] = json!("another one");
    world.write("there.json", other.to_string());
    world.write("text.json", "no reports");
    let refused =
        world.run(&["bench-page", "here.json", "there.json", "--html", "page.html"]).expect_status(3);
    assert!(refused.stderr.contains("there.json: not of one machine: cpu"), "{}", refused.stderr);
    let refused = world.run(&["bench-page", "text.json", "--html", "page.html"]).expect_status(3);
    assert!(refused.stderr.contains("text.json is not what bench --save writes"), "{}", refused.stderr);
    let refused =
        world.run(&["bench", "fillseq", "--num", "100", "--html", "missing/page.html"]).expect_status(3);
    assert!(refused.stderr.contains("missing/page.html"), "before anything is run: {}", refused.stderr);
    assert!(refused.stdout.is_empty());
}

#[test]
fn a_run_that_fails_leaves_a_page_that_says_why() {
    let world = World::new();
    let small = ["--num", "100", "--value-size", "100", "--db", "db"];
    world.ok(&[&["bench", "fillseq"][..], &small].concat());
    let wrong = ["bench", "readmissing", "readrandom", "--num", "100", "--value-size", "50", "--db", "db"];
    world.run(&[&wrong[..], &["--save", "run.json"]].concat()).expect_status(4);
    let saved: Value = serde_json::from_slice(&world.read("run.json")).expect("it is JSON");
    assert_eq!(saved["rows"][0]["report"]["workload"], "readmissing");
    let reason = saved["rows"][1]["missing"].as_str().expect("a reason");
    assert!(reason.contains("verification failed"), "{reason}");
}

/// Whether a group with a limit can be made here: what `--memory-max` needs, tried in a way of its own.
fn may_limit_memory() -> bool {
    let first = Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    let root = if first.exists() { "/sys/fs/cgroup/memory" } else { "/sys/fs/cgroup" };
    let group = Path::new(root).join(format!("tamarack-test-{}", std::process::id()));
    if std::fs::create_dir(&group).is_err() {
        return false;
    }
    let limited = ["memory.limit_in_bytes", "memory.max"].into_iter().any(|name| group.join(name).exists());
    std::fs::remove_dir(&group).expect("it is empty");
    limited
}

#[test]
fn memory_is_limited_or_nothing_is_run() {
    let world = World::new();
    let sizes = [
        "--num",
        "1200",
        "--value-size",
        "65536",
        "--memtable-mib",
        "1",
        "--block-cache-mib",
        "1",
        "--row-cache-mib",
        "1",
    ];
    let arguments = [&["bench", "fillrandom", "readrandom", "--verify", "--json"][..], &sizes].concat();
    let run = world.run(&[&arguments[..], &["--memory-max", "24"]].concat());
    if !may_limit_memory() {
        println!("skipped: no control group of memory can be made here");
        let stderr = run.expect_status(3).stderr;
        assert!(
            stderr.contains("cannot limit the memory to 24 MiB") && stderr.contains("systemd-run"),
            "{stderr}"
        );
        return;
    }
    let reports = run.expect_status(0).json_lines();
    assert_eq!(reports[1]["memory_limit_bytes"], json!(24 << 20));
    assert_eq!(reports[1]["verified"], json!(1200));
    let counted = reports[1]["device_read_bytes"].as_f64().filter(|_| !in_memory(&world));
    match counted.zip(reports[1]["read_amplification"].as_f64()) {
        // 75 MiB of values in 24 MiB of memory: two thirds at least come from the device.
        Some((_, read)) => assert!(read > 0.6, "{}", reports[1]),
        None => println!("skipped: reads of the device are not counted here"),
    }
    assert_eq!(std::fs::read_dir(world.path(".")).expect("it is there").count(), 0, "all is removed");
}

/// Whether the world is on a file system in memory.
fn in_memory(world: &World) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let path = world.path(".").canonicalize().expect("it is there");
    let points = mounts.lines().filter_map(|line| {
        let [_, point, kind, ..] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        path.starts_with(point).then(|| (point.len(), kind.to_owned()))
    });
    points.max().is_some_and(|(_, kind)| kind == "tmpfs")
}

#[test]
fn a_limit_that_is_no_number_is_refused() {
    let world = World::new();
    for limit in ["0", "-1", "lots", "1.5"] {
        let limit = format!("--memory-max={limit}");
        let refused = world.run(&["bench", "fillseq", "--num", "10", &limit]).expect_status(2);
        assert!(refused.stderr.contains("--memory-max"), "{}", refused.stderr);
    }
}
