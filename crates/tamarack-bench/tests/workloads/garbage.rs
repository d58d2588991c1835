//! Writing beside garbage, and while it is collected.

use std::path::Path;

use clap::Parser;
use tamarack_bench::{Bed, Collected, Failure, Limits, Workload};

use crate::memory::Memory;
use crate::{Arguments, run};

#[test]
fn new_keys_are_written_where_a_part_of_the_old_ones_was_deleted() {
    for (fill, extra) in [
        ("fillbesidegarbage", ""),
        ("fillwhilecollecting", ""),
        ("fillwhilecollecting", "--threads 3 --batch-size 7"),
    ] {
        let command = format!(
            "{fill} readseq --num 1000 --ops 6000 --dead-percent 25 --value-size 84 --verify {extra}"
        );
        let (store, reports) = run(Memory::that_collects(), &command);
        let compacted = store.compacted().expect("it is compacted before anything is measured");
        assert_eq!(compacted.len(), 750, "{command}");
        assert!(compacted.keys().all(|key| key[..] < b"0000000000001000"[..]));
        let entries = store.entries();
        assert_eq!(entries.len(), 1750, "{command}");
        assert!(
            compacted.iter().all(|(key, value)| entries.get(key) == Some(value)),
            "old ones are left alone"
        );
        assert_eq!((reports[0].ops, reports[0].user_bytes), (1000, 100_000), "the new ones alone count");
        assert_eq!((reports[0].dead_percent, reports[0].live_bytes), (Some(25), 175_000));
        assert_eq!((reports[1].found, reports[1].verified), (1750, 1750));
        assert_eq!((reports[1].dead_percent, reports[1].collected), (None, None));
        let productive = store.collections().div_ceil(2);
        let collected = Collected {
            collected_files: productive,
            copied_bytes: 20 * productive,
            freed_bytes: 300 * productive,
        };
        let expected = (fill == "fillwhilecollecting").then_some(collected);
        assert_eq!((reports[0].collected, productive > 0), (expected, expected.is_some()), "{command}");
    }
}

#[test]
fn which_keys_die_has_nothing_to_do_with_when_they_were_written() {
    let (store, _) = run(Memory::that_collects(), "fillbesidegarbage --num 10000 --dead-percent 50");
    let compacted = store.compacted().expect("it is compacted");
    let first = compacted.keys().filter(|key| key[..] < b"0000000000005000"[..]).count();
    assert!((2300..2700).contains(&first), "half of the first half of the keys is left: {first}");
    let none = |percent: u8| {
        let command = format!("fillbesidegarbage --num 10 --dead-percent {percent}");
        run(Memory::that_collects(), &command).0.compacted().map(|entries| entries.len())
    };
    assert_eq!((none(0), none(100)), (Some(10), Some(0)));
}

#[test]
fn a_store_that_does_not_collect_on_request_says_so() {
    for workload in [Workload::Fillbesidegarbage, Workload::Fillwhilecollecting] {
        let plan = Arguments::parse_from(["bench", workload.name(), "--num", "10"]).plan;
        let (store, limits) = (Memory::default(), Limits { ratio: 1.0, slack: 0 });
        let mut bed = Bed::new(store, Path::new("."), &plan, std::slice::from_ref(&workload), limits);
        let refused = bed.run(workload, &|_| ()).err();
        let expected = format!("{} needs a store that collects garbage on request", workload.name());
        assert!(matches!(&refused, Some(Failure::Usage(text)) if text.starts_with(&expected)), "{refused:?}");
        assert_eq!(bed.store().puts(), 0, "before anything is written");
    }
}

#[test]
fn garbage_is_made_in_a_new_store_alone() {
    let check = |command: &str| {
        let Arguments { workloads, plan } =
            Arguments::parse_from(["bench"].into_iter().chain(command.split_whitespace()));
        plan.check(&workloads)
    };
    assert_eq!(check("fillwhilecollecting readseq fillrandom"), Ok(()));
    for command in ["fillseq fillwhilecollecting", "fillbesidegarbage fillbesidegarbage"] {
        let refused = check(command).expect_err("there is something before it");
        assert!(refused.contains("must be the first workload"), "{refused}");
    }
    let refused =
        check("fillbesidegarbage --num 100 --key-size 2").expect_err("there are twice as many keys");
    assert!(refused.contains("--key-size 3"), "{refused}");
}
