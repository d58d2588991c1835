//! Logs: how records lie in blocks, what a crash leaves, and what is damage.

use tamarack_leveldb::{Covers, Error, Remark};

use crate::builder::{Edit, Log, Op, batch, delete, put};
use crate::home::{Content, Home, model, texts};

/// A database that has `bytes` for its only log.
fn home(bytes: &[u8]) -> Home {
    let home = Home::with(&[Edit::first(3, 4, 0)]);
    home.write("000003.log", bytes);
    home
}

fn large(key: &str, len: usize) -> Op {
    Op::Put(key.as_bytes().to_vec(), (0..len).map(|at| (at % 251) as u8).collect())
}

#[test]
fn records_of_every_length_around_the_end_of_a_block() {
    // The first record ends so many bytes before the end of the block: in front of a header, in a header, at the end.
    for left in 0..20 {
        let first = large("a", 32768 - 7 - 12 - 1 - 2 - 3 - left);
        let ops = [first, large("b", 70_000), put("c", ""), large("d", 3)];
        let records: Vec<_> = (1..).zip(&ops).map(|(at, op)| batch(at, std::slice::from_ref(op))).collect();
        let bytes = Log::of(&records);
        let home = home(&bytes);
        assert_eq!(home.content(), model(&ops), "{left} bytes left");
        assert_eq!(bytes[32768 - left.max(1)..32768].len(), left.max(1));
    }
}

#[test]
fn the_last_of_all_operations_counts() {
    let ops = [put("a", "1"), put("b", "2"), delete("a"), put("b", "3"), put("", "empty"), delete("x")];
    let home = home(&Log::of(&[batch(1, &ops[..4]), batch(5, &[]), batch(5, &ops[4..])]));
    assert_eq!(home.content(), texts(&[("", "empty"), ("b", "3")]));
    assert_eq!(home.read().expect("whole").remarks, []);
}

#[test]
fn at_every_length_a_log_is_a_prefix_of_its_batches() {
    let batches = [vec![put("a", "1")], vec![put("b", "2"), delete("a")], vec![put("c", "3")]];
    let mut log = Log::default();
    let (mut sequence, mut ends) = (1, vec![0]);
    for ops in &batches {
        log.record(&batch(sequence, ops));
        sequence += ops.len() as u64;
        ends.push(log.bytes.len());
    }
    for len in 0..=log.bytes.len() {
        let whole = ends.iter().filter(|end| **end > 0 && **end <= len).count();
        let found = home(&log.bytes[..len]).read().expect("a crash leaves such a log");
        assert_eq!(found.content, model(batches[..whole].iter().flatten()), "{len} bytes");
        let torn = matches!(found.remarks.as_slice(), [Remark::TornLog { .. }]);
        assert_eq!(torn, !ends.contains(&len), "{len} bytes");
    }
}

#[test]
fn a_record_that_is_torn_in_its_second_block_is_torn() {
    let bytes = Log::of(&[batch(1, &[put("a", "1")]), batch(2, &[large("b", 70_000)])]);
    for len in [32768 - 1, 32768, 32768 + 3, 32768 + 7, 65536, 65536 + 100] {
        let found = home(&bytes[..len]).read().expect("a crash leaves such a log");
        assert_eq!(found.content, texts(&[("a", "1")]), "{len} bytes");
        assert!(
            matches!(found.remarks.as_slice(), [Remark::TornLog { offset: 24, .. }]),
            "{:?}",
            found.remarks
        );
    }
}

#[test]
fn zeros_at_the_end_are_nothing_and_elsewhere_damage() {
    let first = batch(1, &[put("a", "1")]);
    let mut log = Log::default();
    log.record(&first);
    let end = log.bytes.len();
    log.bytes.resize(40_000, 0);
    assert_eq!(home(&log.bytes).content(), texts(&[("a", "1")]));
    log.bytes.resize(65536, 0);
    log.record(&batch(2, &[put("b", "2")]));
    let damaged = home(&log.bytes);
    let damage = damaged.damage();
    assert_eq!((damage.offset, damage.file.ends_with("000003.log")), (end as u64, true), "{damage}");
    let found = damaged.salvage();
    assert_eq!(found.content, texts(&[("a", "1"), ("b", "2")]));
    assert_eq!(found.losses.len(), 1);
}

#[test]
fn a_length_that_is_damaged_is_not_taken_for_a_torn_record() {
    let mut log = Log::default();
    log.record(&batch(1, &[put("a", "1")]));
    let last = log.bytes.len();
    log.record(&batch(2, &[put("b", "2")]));
    for (byte, flip) in [(4, 0x80), (5, 0x01), (5, 0xff)] {
        let mut bytes = log.bytes.clone();
        bytes[last + byte] ^= flip;
        let damage = home(&bytes).damage();
        assert_eq!(damage.offset, last as u64, "{damage}");
    }
}

#[test]
fn only_the_last_log_may_be_torn() {
    let torn = Log::of(&[batch(1, &[put("a", "1")]), batch(2, &[put("b", "2")])]);
    let torn = &torn[..torn.len() - 1];
    let home = Home::with(&[Edit::first(3, 9, 0)]);
    home.write("000003.log", torn);
    home.write("000005.log", b"");
    assert_eq!(home.content(), texts(&[("a", "1")]), "nothing was written after the crash");
    home.write("000005.log", &torn[..10]);
    let remarks = home.read().expect("nothing whole was written after it").remarks;
    assert!(matches!(remarks[..], [Remark::TornLog { .. }, Remark::TornLog { .. }]), "{remarks:?}");
    home.write("000005.log", b"");
    home.write("000006.log", Log::of(&[batch(3, &[put("c", "3")])]));
    let damage = home.damage();
    assert!(damage.file.ends_with("000003.log") && damage.offset == 24, "{damage}");
    let found = home.salvage();
    assert_eq!(found.content, texts(&[("a", "1"), ("c", "3")]));
    assert_eq!(found.losses[0].covers, Covers::Operations);
    assert!(matches!(found.remarks.as_slice(), [Remark::Gap { numbers: 1, .. }]), "{:?}", found.remarks);
}

#[test]
fn logs_that_have_become_tables_are_left_alone() {
    let put_log = |home: &Home, number: u64, sequence: u64, key: &str| {
        home.write(&format!("{number:06}.log"), Log::of(&[batch(sequence, &[put(key, "1")])]));
    };
    let home = Home::with(&[Edit::first(5, 9, 0)]);
    put_log(&home, 3, 1, "old");
    put_log(&home, 5, 2, "now");
    put_log(&home, 7, 3, "new");
    assert_eq!(home.content(), texts(&[("new", "1"), ("now", "1")]));
    home.manifest(&[Edit::first(5, 9, 0).number(9, 3)]);
    assert_eq!(home.content(), texts(&[("new", "1"), ("now", "1"), ("old", "1")]), "the previous log counts");
    home.remove("000005.log");
    let damage = home.damage();
    assert!(damage.file.ends_with("000005.log"), "{damage}");
    assert_eq!(home.salvage().content, texts(&[("new", "1"), ("old", "1")]));
}

#[test]
fn fragments_that_do_not_fit_together_are_damage() {
    let whole = batch(1, &[put("a", "1")]);
    let (head, tail) = whole.split_at(5);
    let after = batch(2, &[put("b", "2")]);
    type Fragments<'a> = &'a [(u8, &'a [u8])];
    let cases: [(&str, Fragments<'_>, u64); 5] = [
        ("a middle without a first", &[(3, head)], 0),
        ("a last without a first", &[(4, tail)], 0),
        ("a first before a full one", &[(2, head)], 12),
        ("a middle before a full one", &[(2, head), (3, tail)], 12 + 7 + tail.len() as u64),
        ("an unknown type", &[(5, head)], 0),
    ];
    for (name, fragments, offset) in cases {
        let mut log = Log::default();
        fragments.iter().for_each(|(kind, data)| log.fragment(*kind, data));
        log.record(&after);
        let home = home(&log.bytes);
        assert_eq!(home.damage().offset, offset, "{name}");
        let found = home.salvage();
        assert_eq!((found.content, found.losses.len()), (texts(&[("b", "2")]), 1), "{name}");
    }
    // An empty first fragment at the end of a block, as LevelDB once wrote it, is none.
    let mut log = Log::default();
    log.fragment(2, b"");
    log.record(&whole);
    assert_eq!(home(&log.bytes).content(), texts(&[("a", "1")]));
}

#[test]
fn salvage_goes_on_behind_a_damaged_record() {
    let ops: Vec<Op> = (0..9).map(|at| put(&format!("key{at}"), "value")).collect();
    let mut log = Log::default();
    let mut starts = Vec::new();
    for (at, op) in (0_u64..).zip(&ops) {
        starts.push(log.bytes.len());
        log.record(&batch(at + 1, std::slice::from_ref(op)));
    }
    let mut bytes = log.bytes.clone();
    bytes[starts[4] + 20] ^= 1;
    let home = home(&bytes);
    assert_eq!(home.damage().offset, starts[4] as u64);
    let found = home.salvage();
    let mut rest = ops.clone();
    rest.remove(4);
    assert_eq!(found.content, model(&rest));
    assert_eq!((found.losses.len(), found.losses[0].bytes), (1, (starts[5] - starts[4]) as u64));
    assert!(matches!(found.remarks.as_slice(), [Remark::Gap { numbers: 1, .. }]), "{:?}", found.remarks);
}

#[test]
fn salvage_goes_on_in_the_next_block_where_a_length_is_damaged() {
    let ops: Vec<Op> = (0..2000).map(|at| put(&format!("key{at:04}"), "some value of a few bytes")).collect();
    let records: Vec<_> = (1..).zip(&ops).map(|(at, op)| batch(at, std::slice::from_ref(op))).collect();
    let mut bytes = Log::of(&records);
    bytes[5] ^= 0x10;
    let home = home(&bytes);
    assert_eq!(home.damage().offset, 0);
    let found = home.salvage();
    let all: Content = model(&ops);
    assert!(found.content.len() > 1000 && found.content.len() < 1500, "{}", found.content.len());
    assert!(found.content.iter().all(|entry| all.get(entry.0) == Some(entry.1)));
}

#[test]
fn a_record_that_is_no_batch_is_damage() {
    let home = home(&Log::of(&[b"short".to_vec(), batch(1, &[put("a", "1")])]));
    assert_eq!(home.damage().offset, 0);
    assert_eq!(home.salvage().content, texts(&[("a", "1")]));
}

#[test]
fn an_open_database_is_refused() {
    // A lock of POSIX belongs to a process, so another one has to hold it: `tamarack-cli` tries that. Here, that one of BSD, as
    // goleveldb has it, counts, too, and that a database without the file is read, and told of.
    let home = home(&Log::of(&[batch(1, &[put("a", "1")])]));
    let file = std::fs::File::open(home.path().join("LOCK")).expect("it is there");
    file.lock().expect("nobody has it");
    let found = home.read();
    assert!(matches!(found, Err(Error::Locked { .. })), "{:?}", found.err());
    file.unlock().expect("it is ours");
    home.remove("LOCK");
    let found = home.read().expect("whole");
    assert!(matches!(found.remarks.as_slice(), [Remark::NoLock(_)]), "{:?}", found.remarks);
    assert!(!home.path().join("LOCK").exists());
    let nowhere = crate::home::read(&home.path().join("nowhere"), Default::default());
    assert!(matches!(nowhere, Err(Error::Io { .. })), "{nowhere:?}");
}
