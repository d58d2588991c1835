//! Opening, and which files stay and which go.

use super::*;
use crate::base::error::ErrorKind;
use crate::base::ids::LogPosition;
use crate::base::segment::SegmentMeta;

#[test]
fn opening_finds_what_create_and_install_left() {
    let mut harness = filled(10);
    let segment = SegmentMeta {
        written: Sequence(1),
        id: SegmentId(1),
        end: 900,
        file_bytes: 1000,
        value_records: 40,
        value_record_bytes: 880,
    };
    harness.fs.put(&FileName::Segment(segment.id).path(Path::new(DIRECTORY)), &[0; 1000]);
    let head = LogPosition { segment: SegmentId(2), offset: 96 };
    let edit = VersionEdit { add_segments: vec![segment], log_head: Some(head), ..VersionEdit::default() };
    harness.index.install(edit).expect("nothing fails");
    harness.reopen();
    let version = harness.index.version();
    let numbers = version.numbers();
    assert_eq!((harness.index.cube(), numbers.log_head), (CubeId(7), head));
    assert_eq!((numbers.last_sequence, numbers.next_segment_id), (Sequence(40), SegmentId(2)));
    assert_eq!(version.segments().get(SegmentId(1)).expect("is there").live.values, 40);
    assert_eq!((version.tables().count(), version.segments().sealed().count()), (4, 1));
}

/// I-04 and I-06.
#[test]
fn dead_segments_go_when_the_edit_is_durable() {
    let harness = filled(10);
    let path = FileName::Segment(SegmentId(1)).path(Path::new(DIRECTORY));
    let active = harness.index.files().segment(SegmentId(1));
    let segment = SegmentMeta {
        id: SegmentId(1),
        written: Sequence(1),
        end: 0,
        file_bytes: 0,
        value_records: 40,
        value_record_bytes: 880,
    };
    let head = LogPosition { segment: SegmentId(2), offset: 0 };
    let edit = VersionEdit { add_segments: vec![segment], log_head: Some(head), ..VersionEdit::default() };
    let version = harness.index.install(edit).expect("nothing fails");
    assert_eq!(version.droppable_segments(|_| false), []);
    let keys: Vec<Vec<u8>> = (0..10).map(|number| format!("{number:06}").into_bytes()).collect();
    let deletes: Vec<_> = keys.iter().zip(100..).map(|(key, at)| (&key[..], at, EntryKind::Delete)).collect();
    harness.flush(&deletes, &[]);
    harness.compact_all(&[]);
    let version_before = harness.index.version();
    let dead = version_before.droppable_segments(|_| false);
    assert_eq!(dead, [SegmentId(1)]);
    let dropped = std::thread::scope(|scope| {
        let drop = || harness.index.drop_dead_segments().expect("nothing fails");
        let droppers: Vec<_> = (0..3).map(|_| scope.spawn(drop)).collect();
        droppers
            .into_iter()
            .filter_map(|dropper| dropper.join().expect("nobody panics").then_some(()))
            .count()
    });
    assert_eq!(dropped, 1, "one of them drops it");
    drop((version, version_before));
    assert!(harness.fs.exists(&path).expect("nothing fails"), "the log still holds the handle");
    drop(active);
    assert!(!harness.fs.exists(&path).expect("nothing fails"));
}

#[test]
fn what_does_not_belong_is_removed_unless_read_only() {
    let mut harness = filled(10);
    for name in ["999999.table", "MANIFEST-000099", "CURRENT.tmp", "000009.vlog", "notes.txt"] {
        harness.fs.put(&Path::new(DIRECTORY).join(name), b"rest");
    }
    let names = harness.fs.names(DIRECTORY);
    let changes = harness.fs.changes();
    let (index, _) = harness.open(true).expect("is whole");
    assert_eq!((harness.fs.names(DIRECTORY), harness.fs.changes()), (names, changes));
    assert_eq!(index.install(VersionEdit::default()).expect_err("read-only").kind(), ErrorKind::ReadOnly);
    assert_eq!(scan(&index, &index.version(), 5000).len(), 10);
    harness.reopen();
    let names = harness.fs.names(DIRECTORY);
    assert!(
        !names.iter().any(|name| ["999999.table", "MANIFEST-000099", "CURRENT.tmp"].contains(&&name[..]))
    );
    assert!(names.contains(&"000009.vlog".to_owned()) && names.contains(&"notes.txt".to_owned()));
}

#[test]
fn missing_and_cut_files_are_named() {
    let harness = filled(10);
    let path = harness.index.version().level(0)[0].handle.path();
    let whole = harness.fs.get(&path);
    harness.fs.put(&path, &whole[..whole.len() - 1]);
    let error = harness.open(false).expect_err("is cut");
    assert!(error.is_corruption() && error.message().contains("000004.table"), "{error}");
    harness.fs.remove_file(&path).expect("is there");
    let error = harness.open(true).expect_err("is missing");
    assert!(error.is_corruption() && error.message().contains("000004.table"), "{error}");
    harness.fs.put(&path, &whole);
    harness.fs.remove_file(&FileName::Segment(SegmentId(1)).path(Path::new(DIRECTORY))).expect("is there");
    let error = harness.open(true).expect_err("a table points into it");
    assert!(error.is_corruption() && error.message().contains("000001.vlog"), "{error}");
}

#[test]
fn creating_twice_is_refused() {
    let harness = Harness::new();
    let observer = Box::new(RecordedFiles::default());
    let again = Index::create(&env(&harness.fs), Path::new(DIRECTORY), CubeId(8), options(), observer);
    assert_eq!(again.expect_err("there is one already").kind(), ErrorKind::InvalidArgument);
}
