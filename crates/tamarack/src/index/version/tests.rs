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
    let version = version(
        "L0: 1[a-b] refs=4:2:20
         segment 3
         segment 4
         segment 5
         segment 6",
    );
    let head = |segment, offset| LogPosition { segment: SegmentId(segment), offset };
    assert_eq!(version.droppable_segments(head(3, 99)), []);
    assert_eq!(version.droppable_segments(head(5, 0)), [SegmentId(3)]);
    assert_eq!(version.droppable_segments(head(6, 8)), [SegmentId(3), SegmentId(5)]);
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
