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

/// I-13.
#[test]
fn dead_ranges_grow_and_go_with_their_segment() {
    let before = "segment 4 bytes=90000
         segment 5
         dead 4 100-20000 30000-40000
         head 5:0";
    let rest = "segment 5 bytes=1000 live=0:0\n";
    let after = |dead: &str| format!("segment 4 bytes=90000 live=0:0\n{rest}{dead}head 5:0");
    check(before, "", &after("dead 4 100-20000 30000-40000\n"));
    check(before, "dead 4 100-50000 60000-89990", &after("dead 4 100-50000 60000-89990\n"));
    check(before, "dead 4 100-20000", "refused: what was dead in segment 4 is not any more");
    check(before, "dead 4 200-40000", "refused: what was dead in segment 4 is not any more");
    check(before, "dead 4 100-89991", "refused: a dead range of segment 4 ends at 89991, behind its records");
    check(
        before,
        "dead 5 100-200",
        "refused: segment 5 has dead ranges but does not lie before the log head",
    );
    check(before, "dead 3 100-200", "refused: segment 3 has dead ranges but is not there");
    check(before, "drop segment 4", &format!("{rest}head 5:0"));
    let home = format!(
        "segment {COLD} bytes=90000
         move 4 to {COLD}:500"
    );
    let moved = format!("segment {COLD} bytes=90000 live=0:0\nmove 4 to {COLD}:500 live=0:0\nhead 5:0");
    check(before, &home, &format!("{rest}{moved}"));
    for dead in ["100-501", "500-501", "599-700"] {
        let refused = "refused: the relocation table of segment 4 lies in a dead range";
        check(before, &format!("{home}\ndead {COLD} {dead}"), refused);
    }
}

#[test]
fn what_is_given_back_is_counted_in_whole_blocks() {
    let version = version("segment 4 bytes=90000\ndead 4 100-20000 30000-40000\nhead 5:0");
    let segments = version.segments();
    let id = SegmentId(4);
    assert_eq!((segments.dead_bytes(id), segments.hole_bytes(id)), (29_900, 3 * 4096 + 4096));
    let dead: Vec<_> = [99, 100, 19_999, 20_000, 30_000].map(|at| segments.is_given_back(id, at)).into();
    assert_eq!(dead, [false, true, true, false, true]);
    assert!(!segments.is_given_back(SegmentId(5), 100));
    let for_jobs = version.without_values();
    assert!(for_jobs.segments().get(id).is_none() && for_jobs.segments().is_given_back(id, 100));
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
         segment 3 bytes=5000
         segment 4
         dead 3 80-100 4000-4990
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
