//! Values whose sizes vary.

use std::collections::BTreeSet;

use crate::memory::Memory;
use crate::run;

const ALL: &str = "fillrandom overwrite readrandom deleterandom readseq multireadrandom fill100k readrandom \
                   seekrandom readreverse --num 500 --ops 400 --verify";

#[test]
fn what_is_live_is_known_to_the_byte() {
    for sizes in ["777", "0..3000", "pareto", "pareto:0.9,2000,50000"] {
        for extra in ["", "--batch-size 7", "--threads 3"] {
            let (store, reports) = run(Memory::default(), &format!("{ALL} --value-size {sizes} {extra}"));
            let entries = store.entries();
            let live: usize = entries.iter().map(|(key, value)| key.len() + value.len()).sum();
            let last = reports.last().expect("there are reports");
            assert_eq!(last.live_bytes, live as u64, "{sizes} {extra}");
            assert_eq!(last.verified, entries.len() as u64, "each value is compared: {sizes} {extra}");
            let read = reports.iter().filter(|report| report.workload.starts_with("read"));
            assert!(read.into_iter().all(|report| report.verified > 0), "{sizes} {extra}");
        }
    }
}

#[test]
fn sizes_are_those_of_the_distribution() {
    let (store, reports) = run(Memory::default(), "fillrandom --num 2000 --value-size 10..19");
    let lengths: BTreeSet<usize> = store.entries().values().map(Vec::len).collect();
    assert_eq!(lengths, (10..20).collect());
    assert_eq!((reports[0].value_size, reports[0].value_sizes.as_deref()), (15, Some("10..19")));
    let written: usize = store.entries().values().map(|value| 16 + value.len()).sum();
    assert_eq!(reports[0].user_bytes, written as u64);
    let (_, reports) = run(Memory::default(), "fillrandom --num 10 --value-size 10");
    assert_eq!((reports[0].value_size, reports[0].value_sizes.as_deref()), (10, None));
}

#[test]
fn a_value_of_another_run_may_have_any_size_and_counts_as_the_mean() {
    let (store, _) = run(Memory::default(), "fillrandom --num 100 --value-size 0..1000");
    let (_, reports) = run(store, "readrandom --num 100 --value-size 0..1000 --verify");
    assert_eq!((reports[0].found, reports[0].verified), (100, 0));
    assert_eq!(reports[0].live_bytes, 100 * (16 + 500));
}
