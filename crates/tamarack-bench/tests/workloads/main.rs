//! Runs workloads on a store in memory, and compares what they report with what the store holds.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests are at home in the operating system"
)]

mod garbage;
mod memory;
mod value_sizes;
mod ycsb;

use std::path::Path;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tamarack_bench::{Bed, Failure, Limits, Plan, Report, Workload};

use memory::Memory;

#[derive(Parser)]
struct Arguments {
    #[arg(value_enum)]
    workloads: Vec<Workload>,
    #[command(flatten)]
    plan: Plan,
}

/// Runs what the command line says; returns the store and the reports.
fn run(store: Memory, command: &str) -> (Memory, Vec<Report>) {
    let arguments = Arguments::parse_from(["bench"].into_iter().chain(command.split_whitespace()));
    let Arguments { workloads, plan } = arguments;
    plan.check(&workloads).expect("the plan holds together");
    let limits = Limits { ratio: 1.0, slack: 0 };
    let existed = !store.entries().is_empty();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut bed = Bed::new(store, &directory, &plan, &workloads, limits);
    if existed {
        bed.find_existing().expect("memory does not fail");
    }
    let run =
        |workload: &Workload| bed.run(*workload, &|_| ()).unwrap_or_else(|failure| panic!("{failure:?}"));
    let reports = workloads.iter().map(run).collect();
    (bed.into_store(), reports)
}

#[test]
fn bytes_that_were_read_are_told_from_those_that_were_written() {
    let workloads = "fillrandom readrandom readseq seekrandom multireadrandom ycsbload ycsbf";
    let (_, reports) = run(Memory::default(), &format!("{workloads} --num 100 --value-size 84"));
    let read: Vec<u64> = reports.iter().map(|report| report.user_bytes_read / 100).collect();
    assert_eq!(read, [0, 100, 100, 100, 100, 0, 100]);
    let written = |index: usize| reports[index].user_bytes - reports[index].user_bytes_read;
    assert_eq!((written(0), written(1), written(5)), (10_000, 0, 10_000));
    assert!((3_000..7_000).contains(&written(6)), "half of F's operations write: {}", written(6));
}

#[test]
fn what_is_due_while_the_store_stalls_counts_from_then() {
    let stall = Duration::from_millis(50);
    let (store, reports) =
        run(Memory::that_stalls(100, stall), "fillrandom readseq --num 400 --rate 2000 --threads 2");
    assert_eq!(store.puts(), 400);
    assert_eq!(
        reports.iter().map(|report| (report.ops, report.rate)).collect::<Vec<_>>(),
        [(400, Some(2000)); 2]
    );
    assert!(
        reports.iter().all(|report| report.seconds > 399.0 / 2000.0 - 1e-3),
        "nothing is done before it is due"
    );
    let latency = reports[0].latency_us;
    assert!(latency.max >= 50_000.0, "{latency:?}");
    // One of two threads waits for 50 ms, in which 50 of its operations are due: half of these wait for half as long.
    assert!(latency.p99 >= 25_000.0 && latency.p90 >= 5_000.0, "{latency:?}");
}

#[test]
fn a_store_is_not_charged_for_being_watched() {
    let watched = Duration::from_secs(1);
    let (_, reports) = run(Memory::that_is_watched(watched), "fillseq --num 10");
    assert!((0.0..1.0).contains(&reports[0].settled_seconds), "{}", reports[0].settled_seconds);
}

#[test]
fn cold_workloads_have_the_store_opened_anew() {
    for (cold, opened) in [("--cold", 2), ("--verify", 0)] {
        let arguments = Arguments::parse_from(["bench", "fillrandom", "--num", "100", cold]);
        let (plan, limits) = (arguments.plan, Limits { ratio: 1.0, slack: 0 });
        let mut bed = Bed::new(Memory::default(), Path::new("src"), &plan, &arguments.workloads, limits);
        let mut times = 0;
        for workload in [Workload::Fillrandom, Workload::Readrandom] {
            bed = bed
                .cooled(|store| {
                    times += 1;
                    Ok::<_, std::convert::Infallible>(store)
                })
                .expect("memory does not fail");
            bed.run(workload, &|_| ()).unwrap_or_else(|failure| panic!("{failure:?}"));
        }
        assert_eq!((times, bed.store().entries().len()), (opened, 100), "{cold}");
    }
}

#[test]
fn a_workload_that_is_run_again_says_so() {
    let (_, reports) = run(Memory::default(), "fillseq readseq overwrite readseq --num 10");
    assert_eq!(reports.iter().map(|report| report.pass).collect::<Vec<_>>(), [1, 1, 1, 2]);
}

#[test]
fn every_workload_has_the_name_of_its_argument() {
    for workload in Workload::value_variants() {
        let name = workload.to_possible_value().expect("all can be named").get_name().to_owned();
        assert_eq!(workload.name(), name);
    }
}

#[test]
fn names_are_also_taken_as_db_bench_spells_them() {
    let (_, reports) = run(Memory::default(), "fill100K --num 200");
    assert_eq!((reports[0].workload.as_str(), reports[0].value_size), ("fill100k", 100_000));
}

#[test]
fn the_latest_keys_of_a_fill_are_drawn_most() {
    for fill in ["fillseq", "fillrandom"] {
        let command = format!("{fill} overwrite readrandom --num 1000 --value-size 1 --distribution latest");
        let (store, reports) = run(Memory::default(), &command);
        assert_eq!(reports[2].found, 1000);
        ycsb::follows_the_law(&store.ages(), 1000);
    }
    let (store, _) =
        run(Memory::default(), "fillsync readrandom --num 1000 --value-size 1 --distribution latest");
    assert!(store.ages().keys().all(|age| *age < 100), "a fill of a hundred keys has no others");
}

#[test]
fn the_latest_keys_of_another_run_are_not_known() {
    let (store, _) = run(Memory::default(), "fillseq --num 10");
    let plan = Arguments::parse_from(["bench", "readrandom", "--num", "10", "--distribution", "latest"]).plan;
    let workloads = [Workload::Readrandom];
    let mut bed = Bed::new(store, Path::new("."), &plan, &workloads, Limits { ratio: 1.0, slack: 0 });
    bed.find_existing().expect("memory does not fail");
    let refused = bed.operate(Workload::Readrandom, &|_| ()).err();
    assert!(matches!(&refused, Some(Failure::Usage(text)) if text.contains("fill")), "{refused:?}");
}

#[test]
fn as_many_writes_are_synced_as_were_asked_for() {
    for (command, expected) in [
        ("fillseq", 0),
        ("fillseq --sync", 100),
        ("fillseq --sync-every 1", 100),
        ("fillseq --sync-every 7", 14),
        ("fillseq deleterandom --sync-every 10", 20),
        ("fillseq --sync-every 10 --threads 3", 9),
        ("fillseq --sync-every 2 --batch-size 10", 5),
        ("fillsync --sync-every 10", 100),
    ] {
        let (store, reports) = run(Memory::default(), &format!("{command} --num 100"));
        assert_eq!(store.synced(), expected, "{command}");
        assert_eq!(reports[0].sync, expected == 100, "{command}");
    }
    let (_, reports) = run(Memory::default(), "fillseq --sync-every 7 --num 10");
    assert_eq!((reports[0].sync, reports[0].sync_every), (false, Some(7)));
}

#[test]
fn what_is_read_to_be_warm_does_not_count() {
    let (store, reports) = run(Memory::default(), "fillseq readrandom overwrite readseq --num 100 --warm");
    assert_eq!(store.walks(), 3, "one before each of the reading workloads, and one of readseq itself");
    assert_eq!(reports.iter().map(|report| report.warm).collect::<Vec<_>>(), [false, true, false, true]);
    assert_eq!(reports.iter().map(|report| report.found).collect::<Vec<_>>(), [0, 100, 0, 100]);
    let both = Arguments::try_parse_from(["bench", "readseq", "--warm", "--cold"]);
    assert!(both.is_err_and(|error| error.to_string().contains("--cold")));
}

#[test]
fn reports_tell_which_fill_has_written_what_they_are_about() {
    let command = "fillseq readseq fillsync readseq fillrandom readseq overwrite --num 200";
    let (_, reports) = run(Memory::default(), command);
    let loads: Vec<Option<&str>> = reports.iter().map(|report| report.loaded_by.as_deref()).collect();
    let [sequential, random] = [Some("fillseq"), Some("fillrandom")];
    assert_eq!(loads, [None, sequential, None, sequential, None, random, random]);
}
