//! Random histories in random files, beside a plain map.

use proptest::prelude::*;
use tamarack_leveldb::Options;

use crate::builder::{Edit, Log, Op, Shape, batch, entries};
use crate::home::{Home, model, read};

fn op() -> impl Strategy<Value = Op> {
    let key = prop_oneof![
        "[a-c]{0,3}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..4),
        prop::collection::vec(Just(0xff), 0..4),
    ];
    let value =
        prop_oneof![prop::collection::vec(any::<u8>(), 0..20), prop::collection::vec(Just(7), 0..5000)];
    (key, prop::option::weighted(0.7, value)).prop_map(|(key, value)| match value {
        Some(value) => Op::Put(key, value),
        None => Op::Delete(key),
    })
}

fn shape() -> impl Strategy<Value = Shape> {
    (0..3_u8, 1..600_usize, 1..20_usize, any::<bool>(), any::<bool>()).prop_map(
        |(compression, block_bytes, restart_interval, filter, short_successor)| Shape {
            compression,
            block_bytes,
            restart_interval,
            filter,
            short_successor,
        },
    )
}

/// A part of a history, and where it lies: in a table of some shape, or in a log in batches of some size.
type Part = (Vec<Op>, Result<Shape, usize>);

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let ops = || prop::collection::vec(op(), 1..25);
    let tables = prop::collection::vec((ops(), shape().prop_map(Ok)), 0..5);
    let logs = prop::collection::vec((ops(), (1..9_usize).prop_map(Err)), 0..3);
    (tables, logs).prop_map(|(tables, logs)| tables.into_iter().chain(logs).collect())
}

fn build(parts: &[Part], home: &Home) {
    let mut sequence = 1;
    let mut edits = Vec::new();
    for (number, (ops, place)) in (10..).zip(parts) {
        match place {
            Ok(shape) => {
                let table = shape.table(&entries(sequence, ops));
                home.write(&format!("{number:06}.ldb"), &table.bytes);
                edits.push(Edit::default().add(number % 3, number, &table));
            }
            Err(size) => {
                let mut log = Log::default();
                let mut next = sequence;
                for ops in ops.chunks(*size) {
                    log.record(&batch(next, ops));
                    next += ops.len() as u64;
                }
                home.write(&format!("{number:06}.log"), &log.bytes);
            }
        }
        sequence += ops.len() as u64;
    }
    edits.push(Edit::first(0, 99, sequence));
    home.manifest(&edits);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn a_history_ends_the_same_wherever_it_lies(parts in parts(), memory_bytes in 1..3000_usize) {
        let home = Home::new();
        build(&parts, &home);
        let all: Vec<&Op> = parts.iter().flat_map(|(ops, _)| ops).collect();
        let expected = model(all.iter().copied());
        for any_comparator in [false, true] {
            let options = Options { memory_bytes, any_comparator, ..Options::default() };
            let found = read(home.path(), options).expect("whole");
            prop_assert_eq!(&found.content, &expected);
            let shown = found.content.len() as u64 + found.counts.older_versions + found.counts.deletions;
            prop_assert_eq!(shown, all.len() as u64, "every operation is accounted for");
        }
        // Nothing but the sequence numbers is needed.
        home.remove("MANIFEST-000002");
        home.remove("CURRENT");
        if !parts.is_empty() {
            prop_assert_eq!(&home.salvage().content, &expected);
        }
    }
}
