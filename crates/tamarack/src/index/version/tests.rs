//! Scripts: a version, an edit, and what comes out.

use super::script::{edit, render, version};
use super::*;

/// Applies `change` to the version `before` and compares the outcome, or the message of the refusal, with
/// `after`. Lines are compared without indentation.
fn check(before: &str, change: &str, after: &str) {
    let before = version(before);
    let outcome = match before.apply(&edit(change, before.files())) {
        Ok(next) => {
            next.audit().expect("every version is sound");
            render(&next)
        }
        Err(reason) => format!("refused: {reason}"),
    };
    let lines =
        |text: &str| text.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("\n");
    assert_eq!(lines(&outcome), lines(after));
}

#[test]
fn levels_are_kept_in_order() {
    check("L0: 3[a-z]", "L0: 5[a-z] 4[c-d]", "L0: 5[a-z] 4[c-d] 3[a-z]");
    check("L1: 3[h-k]", "L1: 5[x-z] 4[c-d]", "L1: 4[c-d] 3[h-k] 5[x-z]");
    check("L1: 3[h-k] 4[l-m]", "drop L1: 3", "L1: 4[l-m]");
    check("L0: 3[h-k]", "drop L0: 3\nL1: 3[h-k]", "L1: 3[h-k]");
}

/// I-03 among them: an edit that makes tables of one level overlap is refused. I-05: so is one that moves the log
/// head back.
#[test]
fn edits_that_break_an_invariant_are_refused() {
    check("L1: 3[h-k]", "L1: 4[k-m]", "refused: tables 3 and 4 of L1 overlap");
    check("L1: 3[h-k]", "L1: 4[a-z]", "refused: tables 4 and 3 of L1 overlap");
    check("L1: 3[h-k]", "L2: 3[a-b]", "refused: table 3 is there twice");
    check("L1: 3[h-k]", "drop L2: 3", "refused: table 3 is dropped from L2 but is not there");
    check("L1: 3[h-k]", "drop L1: 3 3", "refused: table 3 is dropped from L1 but is not there");
    check("", "L1: 3[k-h]", "refused: the range of table 3 is upside down");
    check("", "L7: 3[h-k]", "refused: there is no level 7");
    check("", "drop L9: 3", "refused: there is no level 9");
    check("head 4:96", "head 4:95", "refused: the log head moves back from 4:96 to 4:95");
    check("segment 4", "segment 4", "refused: segment 4 is added twice");
    check("", "drop segment 4", "refused: segment 4 is dropped but unknown");
    check(
        "segment 4\nL0: 1[a-b] refs=4:2:20",
        "drop segment 4",
        "refused: segment 4 is dropped with 2 live values",
    );
}

#[test]
fn liveness_follows_the_tables() {
    check(
        "L0: 1[a-b] refs=4:2:20,5:1:7
         segment 4",
        "L0: 2[a-b] refs=4:1:5,5:1:1",
        "L0: 2[a-b] 1[a-b]
         segment 4 bytes=1000 live=3:25
         unsealed 5 live=2:8",
    );
    check(
        "L0: 1[a-b] refs=4:2:20,5:1:7
         segment 4",
        "drop L0: 1
         drop segment 4
         L1: 2[a-b] refs=5:1:7
         segment 5",
        "L1: 2[a-b]
         segment 5 bytes=1000 live=1:7",
    );
    check("L0: 1[a-b] refs=4:2:20", "drop L0: 1", "");
}

/// I-07: the log is durable up to its head, and what made these segments dead lies before it.
#[test]
fn segments_below_the_head_without_references_can_be_dropped() {
    let droppable = |head: &str, needed: &[u32]| -> Vec<u32> {
        let text = "L0: 1[a-b] refs=4:2:20
             segment 3
             segment 4
             segment 5
             segment 6
             head "
            .to_owned();
        let dead = version(&(text + head)).droppable_segments(|id| needed.contains(&id.0));
        dead.into_iter().map(|id| id.0).collect()
    };
    assert_eq!(droppable("3:99", &[]), []);
    assert_eq!(droppable("5:0", &[]), [3]);
    assert_eq!(droppable("6:8", &[]), [3, 5]);
    assert_eq!(droppable("6:8", &[3]), [5]);
}

const COLD: u32 = 1 << 31;

/// I-10: what was moved is found as long as somebody points to it, and its home stays.
#[test]
fn segments_move_with_what_had_moved_into_them() {
    let first = version(&format!(
        "L1: 1[a-b] refs=4:2:20,5:1:7
         segment 4
         segment 5
         segment {COLD}
         move 4 to {COLD}:500
         head 9:0"
    ));
    assert_eq!(first.droppable_segments(|_| false), []);
    let onward = |text: &str| first.apply(&script::edit(text, first.files()));
    let home = COLD + 1;
    onward(&format!("segment {home}\nmove {COLD} to {home}:600")).expect_err("4 is left without a home");
    let second = onward(&format!("segment {home}\nmove {COLD} to {home}:600\nmove 4 to {home}:700"));
    let second = second.expect("everything moves");
    assert_eq!(second.audit(), Ok(()));
    assert_eq!(second.segments().live_by_home()[&SegmentId(home)].values, 2);
    assert_eq!(second.droppable_segments(|_| false), [SegmentId(COLD)], "nothing points there any more");
    assert_eq!(second.droppable_segments(|id| id == SegmentId(COLD)), []);
    onward(&format!("drop segment {COLD}")).expect_err("4 has its records there");
    onward("drop segment 5").expect_err("a table points there");
    let dead = second.apply(&script::edit("drop L1: 1", first.files())).expect("a table may go");
    assert_eq!(dead.droppable_segments(|_| false).len(), 4, "the moved ones, 5, and their home");
    let all = format!("drop segment 4\ndrop segment {COLD}\ndrop segment {home}\ndrop segment 5");
    assert_eq!(dead.apply(&script::edit(&all, first.files())).expect("all dead").audit(), Ok(()));
}

/// I-10.
#[test]
fn tables_reference_no_segment_that_is_gone() {
    let version = version("L1: 1[a-b] refs=4:2:20\nsegment 4\nhead 5:0");
    let onward = |text: &str| version.apply(&script::edit(text, version.files()));
    onward("L2: 2[a-b] refs=3:1:9").expect_err("segment 3 is before the head and unknown");
    onward(&format!("L2: 2[a-b] refs={COLD}:1:9")).expect_err("there is no cold segment");
    onward("L2: 2[a-b] refs=5:1:9").expect("segment 5 may still be written to");
}

#[test]
fn numbers_never_go_back() {
    let version = version("L0: 7[a-b]\nsegment 9");
    let numbers = version.numbers();
    assert_eq!(
        (numbers.last_sequence, numbers.next_table_id, numbers.next_segment_id),
        (Sequence(79), TableId(8), SegmentId(10))
    );
    let lower = VersionEdit {
        last_sequence: Some(Sequence(1)),
        next_table_id: Some(TableId(1)),
        next_segment_id: Some(SegmentId(1)),
        ..VersionEdit::default()
    };
    assert_eq!(version.apply(&lower).expect("fits").numbers(), numbers);
}

#[test]
fn a_snapshot_makes_the_same_version() {
    let version = version(
        "L0: 8[a-z] refs=5:1:7
         L2: 3[a-b] refs=4:2:20 4[c-d] del=5
         segment 4
         head 4:96
         cursor L2 b",
    );
    let again =
        script::empty().apply(&version.snapshot(CubeId(1))).expect("a snapshot fits an empty version");
    assert_eq!(render(&again), render(&version));
    assert_eq!(again.numbers(), version.numbers());
}

#[test]
fn the_audit_finds_wrong_sums() {
    let mut version = version("L0: 1[a-b] refs=4:2:20\nsegment 4");
    assert_eq!(version.audit(), Ok(()));
    let references = version.level(0)[0].references.clone();
    Arc::make_mut(&mut version.segments).add(&references).expect("fits");
    version.audit().expect_err("a reference was counted twice");
}

#[test]
fn overlapping_tables_are_found() {
    let version = version("L1: 1[b-d] 2[f-h] 3[k-m]");
    let find = |start: Option<&str>, end: Option<&str>| {
        let tables =
            overlapping(version.level(1), version.order(), start.map(str::as_bytes), end.map(str::as_bytes));
        tables.iter().map(|table| table.id.0).collect::<Vec<_>>()
    };
    assert_eq!(find(None, None), [1, 2, 3]);
    assert_eq!(find(Some("d"), Some("f")), [1, 2]);
    assert_eq!(find(Some("e"), Some("e")), []);
    assert_eq!(find(Some("i"), None), [3]);
    assert_eq!(find(None, Some("a")), []);
}
