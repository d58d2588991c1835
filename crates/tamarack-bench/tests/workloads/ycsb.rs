//! YCSB's workloads as they reach the store, beside their published definitions: Cooper et al., SoCC 2010, table 2, and for F,
//! which is younger than the paper, the definition that comes with YCSB.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::memory::Memory;
use crate::run;

const RECORDS: u64 = 1000;
const OPERATIONS: u64 = 10_000;

/// What a workload of so many operations asks of the store, beyond the load.
struct Asked {
    gets: u64,
    puts: u64,
    walks: u64,
    /// How often each record was read by itself, the one most often read first.
    frequencies: Vec<u64>,
    store: Memory,
    found: u64,
}

fn ask(workload: &str) -> Asked {
    let command = format!("ycsbload {workload} --num {RECORDS} --ops {OPERATIONS} --value-size 1 --verify");
    let (store, reports) = run(Memory::default(), &command);
    assert_eq!(reports[1].ops, OPERATIONS);
    let mut frequencies: Vec<u64> = store.gets().into_values().collect();
    frequencies.sort_unstable_by(|a, b| b.cmp(a));
    Asked {
        gets: frequencies.iter().sum(),
        puts: store.puts() - RECORDS,
        walks: store.walks(),
        frequencies,
        found: reports[1].found,
        store,
    }
}

/// What `hundredths` of all operations may be: five standard deviations around the mean.
fn part(hundredths: u64) -> Range<u64> {
    let (count, part) = (OPERATIONS as f64, hundredths as f64 / 100.0);
    let (mean, off) = (count * part, 5.0 * (count * part * (1.0 - part)).sqrt());
    (mean - off).round() as u64..(mean + off).round() as u64 + 1
}

/// Of the reads of single keys, by how many others came later than the one that was read, as many have each of the lowest ages as Zipf's
/// law has it for so many ranks.
pub fn follows_the_law(ages: &BTreeMap<usize, u64>, ranks: u64) {
    let zeta = |ranks: Range<u64>| ranks.map(|rank| ((rank + 1) as f64).powf(-0.99)).sum::<f64>();
    let reads: u64 = ages.values().sum();
    for first in [1, 2, 10, 100, 500] {
        let part = zeta(0..first) / zeta(0..ranks);
        let (found, reads) =
            (ages.range(..first as usize).map(|(_, reads)| reads).sum::<u64>() as f64, reads as f64);
        // As far as Gray's method keeps to the law.
        let method = if first > 2 { 0.03 * reads } else { 0.0 };
        let off = 5.0 * (reads * part * (1.0 - part)).sqrt() + method;
        let expected = reads * part;
        assert!((found - expected).abs() < off, "{found} of the newest {first}, not {expected}");
    }
}

#[test]
fn operations_have_their_published_parts() {
    // Workload, reads, updates, inserts, scans, reads that an update follows.
    let table = [
        ("ycsba", 50, 50, 0, 0, 0),
        ("ycsbb", 95, 5, 0, 0, 0),
        ("ycsbc", 100, 0, 0, 0, 0),
        ("ycsbd", 95, 0, 5, 0, 0),
        ("ycsbe", 0, 0, 5, 95, 0),
        ("ycsbf", 50, 0, 0, 0, 50),
    ];
    for (workload, reads, updates, inserts, scans, modifications) in table {
        let asked = ask(workload);
        let inserted = asked.store.entries().len() as u64 - RECORDS;
        for (what, found, hundredths) in [
            ("gets", asked.gets, reads + modifications),
            ("puts", asked.puts, updates + inserts + modifications),
            ("walks", asked.walks, scans),
            ("inserts", inserted, inserts),
        ] {
            let expected = part(hundredths);
            assert!(expected.contains(&found), "{workload}: {found} {what}, not {expected:?}");
        }
    }
}

#[test]
fn records_are_read_by_the_law_of_zipf() {
    let zeta = |ranks: Range<u64>| ranks.map(|rank| ((rank + 1) as f64).powf(-0.99)).sum::<f64>();
    for workload in ["ycsba", "ycsbb", "ycsbc", "ycsbf"] {
        let asked = ask(workload);
        for first in [1, 2, 100] {
            let part = zeta(0..first) / zeta(0..RECORDS);
            let found = asked.frequencies[..first as usize].iter().sum::<u64>() as f64;
            let reads = asked.gets as f64;
            // What Gray's method leaves out between the second and the hundredth rank is less than two hundredths.
            let off = 5.0 * (reads * part * (1.0 - part)).sqrt() + if first > 2 { 0.02 * reads } else { 0.0 };
            let expected = reads * part;
            assert!(
                (found - expected).abs() < off,
                "{workload}: {found} of the first {first}, not {expected}"
            );
        }
    }
}

#[test]
fn the_newest_records_are_read_most_in_d() {
    let asked = ask("ycsbd");
    // A record is the newest for twenty operations on average: nobody stays in front, unlike with one fixed order.
    let most = asked.frequencies[0] as f64 / asked.gets as f64;
    assert!(most < 0.05, "one record has {most} of all reads");
    // Records that were there from the beginning, two thirds of all in the end, are read ever more seldom.
    let (loaded, _) = run(Memory::default(), &format!("ycsbload --num {RECORDS} --value-size 1"));
    let gets = asked.store.gets();
    let of_loaded: u64 = loaded.entries().keys().filter_map(|key| gets.get(key)).sum();
    assert!(of_loaded * 2 < asked.gets, "{of_loaded} of {} reads are of loaded records", asked.gets);
}

#[test]
fn records_are_read_in_d_by_the_law_of_zipf_over_how_lately_they_were_inserted() {
    let (store, _) =
        run(Memory::default(), &format!("ycsbload ycsbd --num {RECORDS} --ops {OPERATIONS} --value-size 1"));
    follows_the_law(&store.ages(), RECORDS);
}

#[test]
fn a_distribution_that_is_asked_for_is_obeyed() {
    let ages = |workload: &str, distribution: &str| {
        let command = format!("ycsbload {workload} --num {RECORDS} --ops {OPERATIONS} --value-size 1");
        let (store, reports) = run(Memory::default(), &format!("{command} --distribution {distribution}"));
        assert_eq!(reports[1].distribution.name(), distribution);
        store.ages()
    };
    for workload in ["ycsbb", "ycsbc", "ycsbd"] {
        follows_the_law(&ages(workload, "latest"), RECORDS);
        for distribution in ["uniform", "zipfian"] {
            let ages = ages(workload, distribution);
            let newest: u64 = ages.range(..20).map(|(_, reads)| reads).sum();
            // By the law of the latest it would be almost half.
            assert!(newest * 5 < OPERATIONS, "{workload}, {distribution}: {newest} of the newest twenty");
        }
    }
}

#[test]
fn scans_are_of_one_to_a_hundred_records() {
    let asked = ask("ycsbe");
    // The last records of the keys cut scans short; one in twenty of them at most.
    let mean = asked.found as f64 / asked.walks as f64;
    assert!((47.5..51.5).contains(&mean), "scans find {mean} records on average");
}
