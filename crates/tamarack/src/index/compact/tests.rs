//! Scripts: a version, what runs already, and the plan that comes out.

use std::collections::BTreeSet;

use crate::base::ids::SegmentId;
use crate::base::sync::Arc;

use super::super::version::Version;
use super::super::version::script::{render_tables, version};
use super::plan::PlanKind;
use super::*;

fn options() -> CompactionOptions {
    CompactionOptions {
        l0_tables: 4,
        base_weight: 100,
        table_bytes_max: 10,
        relocation_bytes_max: 400,
        due: Due::USUAL,
        unreadable: BTreeSet::new(),
    }
}

fn render(plan: &CompactionPlan) -> String {
    let kind = match plan.kind {
        PlanKind::Move => "move",
        PlanKind::Merge => "merge",
    };
    let mut text = format!("{kind} L{} {}", plan.level, render_tables(&plan.upper));
    if !plan.lower.is_empty() {
        text += &format!(" with L{} {}", plan.output_level, render_tables(&plan.lower));
    }
    if plan.level == plan.output_level {
        text += " in place";
    }
    text
}

/// Picks as long as something is due, everything running at the same time.
fn picks(text: &str) -> Vec<String> {
    let version = Arc::new(version(text));
    let mut in_progress = InProgress::default();
    let mut plans = Vec::new();
    while let Some(plan) = pick(&version, &in_progress, &options()) {
        in_progress.start(&plan);
        plans.push(render(&plan));
        assert!(plans.len() < 100, "the picker does not stop: {plans:?}");
    }
    plans
}

#[test]
fn nothing_is_due_below_the_targets() {
    assert!(picks("").is_empty());
    assert!(picks("L0: 3[a-c] 2[a-c] 1[a-c]\nL1: 10[a-b] bytes=99\nL2: 11[a-z] bytes=999").is_empty());
    assert!(picks("L6: 11[a-z] bytes=999999999").is_empty(), "nothing lies below the last level");
}

#[test]
fn l0_takes_what_overlaps_and_the_older_with_it() {
    let text = "L0: 4[a-c] 3[b-f] 2[e-h] 1[x-z]
                L1: 10[a-a] 11[g-i] 12[k-m] 13[y-z]";
    assert_eq!(
        picks(text),
        ["merge L0 1[x-z] with L1 13[y-z]", "merge L0 4[a-c] 3[b-f] 2[e-h] with L1 10[a-a] 11[g-i]"][..1],
        "one is enough to bring L0 below its trigger"
    );
    let text = "L0: 6[a-c] 5[b-f] 4[e-h] 3[x-z] 2[x-z]\nL0: 1[m-m]";
    assert_eq!(picks(text), ["move L0 1[m-m]", "merge L0 3[x-z] 2[x-z]"]);
    let text = "L0: 6[a-c] 5[b-f] 4[e-h] 3[a-z] 2[x-z] 1[m-m]";
    assert_eq!(picks(text), ["merge L0 6[a-c] 5[b-f] 4[e-h] 3[a-z] 2[x-z] 1[m-m]"]);
}

#[test]
fn ranges_that_run_are_left_alone() {
    // The whole of L1 is in the first plan, so neither L1 nor the rest of L0 can do anything.
    let text = "L0: 5[a-z] 4[a-z] 3[a-z] 2[a-z] 1[a-z]
                L1: 10[a-m] bytes=300 11[n-z] bytes=300
                L2: 20[a-m] 21[n-z]";
    assert_eq!(picks(text), ["merge L1 10[a-m] with L2 20[a-m]", "merge L1 11[n-z] with L2 21[n-z]"]);
    let text = "L1: 10[a-f] bytes=300 11[g-m] bytes=300
                L2: 20[e-h] bytes=10";
    assert_eq!(picks(text), ["merge L1 10[a-f] with L2 20[e-h]"], "both need table 20");
    let text = "L1: 10[a-b] bytes=300
                L2: 20[b-c] bytes=5000 21[d-e] bytes=5000
                L3: 30[c-e] bytes=70";
    assert_eq!(
        picks(text),
        ["merge L2 20[b-c] with L3 30[c-e]"],
        "the fullest level goes first; table 10 reaches into it, table 21 shares table 30 with it"
    );
}

#[test]
fn the_table_with_the_most_weight_for_its_cost_goes_first() {
    let text = "L1: 10[a-b] bytes=50 11[c-d] bytes=50 12[e-f] bytes=50
                L2: 20[a-d] bytes=100 21[e-f] bytes=40";
    assert_eq!(picks(text)[0], "merge L1 12[e-f] with L2 21[e-f]");
    let values = "L1: 10[a-b] bytes=50 11[c-d] bytes=50 refs=4:1:6400 12[e-f] bytes=50
                  L2: 20[a-d] bytes=100 21[e-f] bytes=40";
    assert_eq!(picks(values)[0], "merge L1 11[c-d] with L2 20[a-d]");
}

#[test]
fn equals_take_turns() {
    let tables = "L1: 10[a-b] bytes=90 11[c-d] bytes=90 12[e-f] bytes=90
                  L2: 20[a-b] bytes=90 21[c-d] bytes=90 22[e-f] bytes=90";
    assert_eq!(picks(tables)[0], "merge L1 10[a-b] with L2 20[a-b]");
    assert_eq!(picks(&format!("{tables}\ncursor L1 b"))[0], "merge L1 11[c-d] with L2 21[c-d]");
    assert_eq!(picks(&format!("{tables}\ncursor L1 f"))[0], "merge L1 10[a-b] with L2 20[a-b]");
}

#[test]
fn referenced_values_and_deletions_fill_a_level() {
    let light = "L1: 10[a-b] bytes=90\nL2: 20[a-b]";
    assert!(picks(light).is_empty());
    let values = "L1: 10[a-b] bytes=90 refs=4:10:1280\nL2: 20[a-b]";
    assert_eq!(picks(values), ["merge L1 10[a-b] with L2 20[a-b]"], "90 + 1280 / 128 reach 100");
    let deletions = "L1: 10[a-b] bytes=90 del=5\nL2: 20[a-b] refs=4:10:640";
    assert_eq!(picks(deletions), ["merge L1 10[a-b] with L2 20[a-b]"], "90 + 5 * 640 / 10 / 32 reach 100");
    let cheap = "L1: 10[a-b] bytes=90 del=5\nL2: 20[a-b] refs=4:10:310";
    assert!(picks(cheap).is_empty(), "the values that the deletions hide are too small");
}

#[test]
fn a_table_that_meets_nothing_moves() {
    assert_eq!(picks("L1: 10[a-b] bytes=100\nL2: 20[c-d]"), ["move L1 10[a-b]"]);
    assert_eq!(picks("L1: 10[a-b] bytes=100 del=1\nL3: 30[b-d]"), ["move L1 10[a-b]"]);
    assert_eq!(
        picks("L1: 10[a-b] bytes=100 del=1\nL3: 30[c-d]"),
        ["merge L1 10[a-b]"],
        "its deletions vanish"
    );
    assert_eq!(picks("L1: 10[a-b] bytes=100\nL3: 30[a-b] bytes=101"), ["merge L1 10[a-b]"], "too much below");
}

#[test]
fn eager_compaction_starts_early() {
    let version = Arc::new(version("L1: 10[a-b] bytes=30\nL2: 20[a-b]"));
    let in_progress = InProgress::default();
    assert!(pick(&version, &in_progress, &options()).is_none());
    let eager = CompactionOptions { due: Due::EAGER, ..options() };
    let plan = pick(&version, &in_progress, &eager).expect("30 % are above 25 %");
    assert_eq!(render(&plan), "merge L1 10[a-b] with L2 20[a-b]");
}

#[test]
fn the_compaction_of_level_0_comes_by_and_by() {
    let level1 = "L1: 10[a-m] bytes=15 11[n-z] bytes=5";
    let of = |level0: &str| Arc::new(version(&format!("L0: {level0}\n{level1}")));
    let tables = ["2[a-z] bytes=10 1[a-z] bytes=10", "3[a-z] bytes=10 2[a-z] bytes=10 1[a-z] bytes=10"];
    let four = of("4[a-z] bytes=10 3[a-z] bytes=10 2[a-z] bytes=10 1[a-z] bytes=10");
    let (mut in_progress, options) = (InProgress::default(), options());
    let coming = |version| coming(version, &InProgress::default(), &options).near_bytes();
    let [two, three] = tables.map(of);
    assert_eq!([coming(&two), coming(&three), coming(&four)], [0, 25, 60], "from half of what makes it due");
    let early = CompactionOptions { due: Due::COMING, ..options.clone() };
    assert!(pick(&three, &in_progress, &options).is_none());
    assert!(pick(&three, &in_progress, &early).is_some_and(|plan| plan.level == 0), "but it may begin");
    let deeper = Arc::new(version("L1: 10[a-b] bytes=90\nL2: 20[a-b]"));
    assert!(pick(&deeper, &in_progress, &early).is_none(), "it alone");

    let plan = pick(&four, &in_progress, &options).expect("it is due");
    assert_eq!(plan.output_bytes_max(), 60);
    in_progress.start(&plan);
    assert_eq!(super::coming(&four, &in_progress, &options), Coming { bytes: 0, near: 0 }, "it runs");
}

/// Each relocation table takes about 133 bytes.
const MOVED: &str = "\nsegment 9\nmove 1 to 9:100\nmove 2 to 9:300\nmove 3 to 9:500\nmove 4 to 9:700";

#[test]
fn tables_are_rewritten_while_relocation_tables_take_too_much() {
    let tables = "L1: 10[a-b] refs=1:2:200 11[c-d] refs=2:5:500,9:90:90 12[e-f] refs=9:90:90
                  L2: 20[a-f] bytes=20 refs=1:2:200,3:7:700";
    assert_eq!(
        picks(&format!("{tables}{MOVED}")),
        ["merge L1 11[c-d] in place", "merge L2 20[a-f] in place", "merge L1 10[a-b] in place"],
        "most pointers per byte first, and none without any"
    );
    let fewer = "\nsegment 9\nmove 1 to 9:100\nmove 2 to 9:300\nmove 3 to 9:500";
    assert!(picks(&format!("{tables}{fewer}")).is_empty(), "three take no more than they may");
    let sparse = "L1: 10[a-b] bytes=40 11[c-d] bytes=40\nL6: 60[a-b] bytes=513 refs=1:2:200 61[c-d] bytes=512 refs=1:2:200";
    assert_eq!(
        picks(&format!("{sparse}{MOVED}"))[..],
        ["merge L6 61[c-d] in place"],
        "the other is too sparse"
    );
}

#[test]
fn relocation_tables_wait_for_levels_far_beyond_their_targets() {
    let tables = |bytes| format!("L1: 10[a-b] bytes={bytes}\nL2: 20[a-b] refs=1:2:200 21[c-d]{MOVED}");
    assert_eq!(picks(&tables(151))[0], "merge L1 10[a-b] with L2 20[a-b]");
    assert_eq!(picks(&tables(100))[0], "merge L2 20[a-b] in place");
    let eager =
        CompactionOptions { due: Due { level0: 1, deeper: 1 }, relocation_bytes_max: 10_000, ..options() };
    let version = Arc::new(version(&format!("L6: 60[a-b] refs=1:2:200{MOVED}")));
    assert!(pick(&version, &InProgress::default(), &eager).is_none(), "eagerness is about levels");
}

#[test]
fn nothing_is_rewritten_for_pointers_that_damage_keeps_as_they_are() {
    let version = Arc::new(version(&format!("L6: 60[a-b] refs=1:2:200{MOVED}")));
    let picked = |options| pick(&version, &InProgress::default(), &options).map(|plan| render(&plan));
    assert_eq!(picked(options()).as_deref(), Some("merge L6 60[a-b] in place"));
    let unreadable = BTreeSet::from([SegmentId(1), SegmentId(2)]);
    assert_eq!(picked(CompactionOptions { unreadable, ..options() }), None);
}

#[test]
fn pointers_of_level_0_are_replaced_on_the_way_down() {
    let tables = "L0: 4[c-d] refs=9:1:100 3[a-b] refs=1:9:900 2[a-c]\nL1: 10[a-c] bytes=40";
    assert_eq!(picks(&format!("{tables}{MOVED}")), ["merge L0 4[c-d] 3[a-b] 2[a-c] with L1 10[a-c]"]);
    let behind = "L0: 5[x-z] refs=1:9:900 4[c-d] 3[a-b] refs=1:9:900";
    assert_eq!(picks(&format!("{behind}{MOVED}")), ["move L0 3[a-b]"], "the oldest first");
}

/// What is rewritten so that nothing points to segments 1 and 9, everything running at the same time, and how it ends.
fn replacings(text: &str, running: Option<&CompactionPlan>) -> Vec<String> {
    let version = Arc::new(version(text));
    let mut in_progress = InProgress::default();
    if let Some(running) = running {
        in_progress.start(running);
    }
    let mut plans = Vec::new();
    loop {
        match pick_replacing(&version, &in_progress, &options(), &[SegmentId(1), SegmentId(9)]) {
            ManualStep::Plan(plan) => {
                in_progress.start(&plan);
                plans.push(render(&plan));
            }
            ManualStep::Blocked => plans.push("blocked".into()),
            ManualStep::Done => plans.push("done".into()),
        }
        assert!(plans.len() < 100, "it does not stop: {plans:?}");
        if ["blocked", "done"].contains(&plans.last().expect("one was added").as_str()) {
            return plans;
        }
    }
}

#[test]
fn tables_that_point_into_sorted_segments_are_rewritten() {
    assert_eq!(replacings("L0: 4[a-b] refs=2:1:100\nL1: 10[c-d] refs=8:1:100", None), ["done"]);
    assert_eq!(
        replacings(
            "L0: 4[a-d] refs=9:1:100 3[e-f]\nL1: 10[a-b] refs=1:1:100 11[c-d] 12[x-y] refs=1:1:100",
            None
        ),
        ["merge L0 4[a-d] with L1 10[a-b] 11[c-d]", "merge L1 12[x-y] in place", "blocked"],
        "level 0 first, with what it takes along; then nothing is known until these have ended"
    );
    let tables = "L2: 20[a-b] bytes=50 refs=1:1:100 21[c-d] bytes=40 refs=9:1:100 22[e-f] refs=1:1:100 23[g-h] \
                  24[i-j] refs=9:1:100";
    assert_eq!(
        replacings(tables, None),
        [
            "merge L2 20[a-b] 21[c-d] in place",
            "merge L2 22[e-f] in place",
            "merge L2 24[i-j] in place",
            "blocked"
        ],
        "only side by side, and not too many at once"
    );
}

#[test]
fn what_a_running_compaction_may_write_is_waited_for() {
    let before = Arc::new(version("L1: 10[a-b] refs=1:1:100"));
    let upper = before.level(1).to_vec();
    let running = CompactionPlan::new(&before, 1, 2, upper, &options());
    assert_eq!(replacings("L2: 20[a-b] refs=7:1:100", Some(&running)), ["blocked"]);
}

#[test]
fn a_finished_compaction_blocks_nothing() {
    let version = Arc::new(version("L1: 10[a-b] bytes=100\nL2: 20[a-b]"));
    let mut in_progress = InProgress::default();
    let plan = pick(&version, &in_progress, &options()).expect("is due");
    let ticket = in_progress.start(&plan);
    assert!(pick(&version, &in_progress, &options()).is_none());
    in_progress.finish(ticket);
    assert!(pick(&version, &in_progress, &options()).is_some() && in_progress.len() == 0);
}

/// The version after `plan` if each input became an output of the same range with a new id.
fn run(version: &Version, plan: &CompactionPlan) -> Version {
    let mut edit = super::super::version::VersionEdit::default();
    edit.drop_tables.extend(plan.upper.iter().map(|table| (plan.level, table.id)));
    edit.drop_tables.extend(plan.lower.iter().map(|table| (plan.output_level, table.id)));
    let first = plan.upper.iter().chain(&plan.lower).next().expect("a plan has inputs");
    let mut output = (**first).clone();
    let order = version.order();
    for table in plan.inputs() {
        if order.compare(&table.smallest, &output.smallest).is_lt() {
            output.smallest.clone_from(&table.smallest);
        }
        if order.compare(&table.largest, &output.largest).is_gt() {
            output.largest.clone_from(&table.largest);
        }
    }
    output.id = version.numbers().next_table_id;
    if plan.kind == PlanKind::Move {
        output.id = first.id;
    }
    edit.add_tables.push((plan.output_level, Arc::new(output)));
    version.apply(&edit).expect("plans fit their version")
}

fn manual(text: &str, start: Option<&str>, end: Option<&str>) -> Vec<String> {
    let mut version = Arc::new(version(text));
    let (start, end) = (start.map(str::as_bytes), end.map(str::as_bytes));
    let mut manual = ManualCompaction::new(&InProgress::default(), start, end);
    let mut steps = Vec::new();
    loop {
        match manual.next(&version, &InProgress::default(), &options()) {
            ManualStep::Plan(plan) => {
                steps.push(render(&plan));
                version = Arc::new(run(&version, &plan));
            }
            ManualStep::Blocked => panic!("nothing else runs"),
            ManualStep::Done => return steps,
        }
        assert!(steps.len() < 100, "it does not stop: {steps:?}");
    }
}

#[test]
fn manual_compaction_goes_down_level_by_level() {
    assert!(manual("", None, None).is_empty());
    assert_eq!(
        manual("L0: 3[a-c] 2[b-d] 1[x-z]\nL1: 10[c-e]\nL3: 30[a-c] 31[y-z]", None, None),
        [
            "merge L0 3[a-c] 2[b-d] 1[x-z] with L1 10[c-e]",
            "move L1 32[a-z]",
            "merge L2 32[a-z] with L3 30[a-c] 31[y-z]"
        ]
    );
    assert_eq!(manual("L2: 20[a-c] 21[d-f]", None, None), ["merge L2 20[a-c] 21[d-f] in place"]);
}

#[test]
fn manual_compaction_keeps_to_its_range() {
    let text = "L0: 3[a-c] 2[x-z] 1[m-m]\nL1: 10[b-c] 11[k-n]\nL2: 20[d-e] 21[a-a]";
    assert_eq!(
        manual(text, Some("a"), Some("b")),
        ["merge L0 3[a-c] with L1 10[b-c]", "merge L1 22[a-c] with L2 21[a-a]"]
    );
    assert!(manual(text, Some("f"), Some("h")).is_empty());
}

#[test]
fn large_levels_are_done_in_steps() {
    let text = "L2: 1[a-b] bytes=50 2[c-d] bytes=50 3[e-f] bytes=50\nL3: 4[a-f]";
    assert_eq!(
        manual(text, None, None),
        ["merge L2 1[a-b] 2[c-d] with L3 4[a-f]", "merge L2 3[e-f] with L3 5[a-f]"]
    );
}

#[test]
fn manual_compaction_waits_for_what_runs() {
    let version = Arc::new(version("L1: 10[a-b] bytes=100\nL2: 20[a-b]"));
    let mut in_progress = InProgress::default();
    let plan = pick(&version, &in_progress, &options()).expect("is due");
    let ticket = in_progress.start(&plan);
    let mut manual = ManualCompaction::new(&in_progress, None, None);
    assert!(matches!(manual.next(&version, &in_progress, &options()), ManualStep::Blocked));
    // What it writes may hold what only snapshots saw that were dropped before the request, and is written once more.
    let version = Arc::new(run(&version, &plan));
    in_progress.finish(ticket);
    let ManualStep::Plan(again) = manual.next(&version, &in_progress, &options()) else {
        panic!("there is a table")
    };
    let version = Arc::new(run(&version, &again));
    assert!(matches!(manual.next(&version, &in_progress, &options()), ManualStep::Done));
}

#[test]
fn older_entries_outside_of_a_plan_are_seen() {
    let version = Arc::new(version("L1: 10[a-k] bytes=100\nL2: 20[a-b]\nL4: 40[c-d]\nL6: 60[f-g]"));
    let plan = pick(&version, &InProgress::default(), &options()).expect("is due");
    let outside = |key: &str| !plan.nothing_older_outside(key.as_bytes());
    assert!(outside("c") && outside("cc") && outside("f"));
    assert!(!outside("a") && !outside("e") && !outside("z"));
}
