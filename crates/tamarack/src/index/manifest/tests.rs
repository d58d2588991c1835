//! Round trips, torn tails, damage to every byte, failed writes, and the example of the format page.

use std::path::Path;

use crate::base::comparator::{Bytewise, Comparator};
use crate::base::error::{Error, ErrorKind};
use crate::base::ids::{CubeId, Sequence};
use crate::base::keys::KeyOrder;
use crate::base::names::FileName;
use crate::base::segment::SegmentMeta;
use crate::base::sync::Arc;

use super::super::testing::{MemoryFs, RecordedFiles};
use super::super::version::script::{edit, render};
use super::super::version::{Files, Version, VersionEdit};
use super::format;
use super::{ManifestWriter, Recovered, read};

const CUBE: CubeId = CubeId(0x0102_0304_0506_0708);

struct Store {
    fs: Arc<MemoryFs>,
    files: Arc<Files>,
    order: KeyOrder,
}

impl Store {
    fn new() -> Self {
        let fs = MemoryFs::new();
        let files = Files::new(fs.clone(), Path::new("cube"), Box::new(RecordedFiles::default()));
        Self { fs, files, order: KeyOrder::new(Arc::new(Bytewise)) }
    }

    fn empty(&self) -> Version {
        Version::empty(self.order.clone(), self.files.clone())
    }

    fn create(&self) -> ManifestWriter {
        ManifestWriter::create(self.files.clone(), CUBE, 1, &self.empty().snapshot(CUBE))
            .expect("nothing fails")
    }

    fn edit(&self, text: &str) -> VersionEdit {
        edit(text, &self.files)
    }

    fn read(&self) -> Result<Recovered, Error> {
        read(&self.files, &self.order)
    }

    fn manifest(&self, number: u64) -> Vec<u8> {
        self.fs.get(&FileName::Manifest(number).path(Path::new("cube")))
    }

    fn put_manifest(&self, number: u64, bytes: &[u8]) {
        self.fs.put(&FileName::Manifest(number).path(Path::new("cube")), bytes);
    }
}

const EDITS: [&str; 3] = [
    "L0: 1[a-m] refs=1:2:200,4:1:50 del=3\nhead 2:96\nsegment 1",
    "L0: 2[b-z]\nsegment 2\ncursor L3 kk",
    "drop L0: 1\nL1: 3[a-m]\ndrop segment 1\nhead 3:80\ndead 2 80-200 300-990",
];

/// A store with the edits, the manifest's length after each (without and with its mark), and the version then.
fn with_edits() -> (Store, Vec<(u64, u64)>, Vec<String>) {
    let store = Store::new();
    let mut writer = store.create();
    let mut version = store.empty();
    let mut ends = vec![(writer.bytes() - format::RECORD_HEADER_BYTES as u64, writer.bytes())];
    let mut texts = vec![render(&version)];
    for text in EDITS {
        let edit = store.edit(text);
        writer.append(&edit).expect("nothing fails");
        version = version.apply(&edit).expect("fits");
        ends.push((writer.bytes() - format::RECORD_HEADER_BYTES as u64, writer.bytes()));
        texts.push(render(&version));
    }
    (store, ends, texts)
}

#[test]
fn edits_come_back() {
    let (store, _, texts) = with_edits();
    let before = store.fs.changes();
    let recovered = store.read().expect("is whole");
    assert_eq!((recovered.number, recovered.cube, recovered.torn), (1, CUBE, None));
    assert_eq!(render(&recovered.version), texts[3]);
    assert_eq!(recovered.version.numbers().compaction_cursors[3], b"kk");
    let table = &recovered.version.level(0)[0];
    assert_eq!((table.deletes, table.entries), (0, 10));
    assert_eq!(store.fs.changes(), before, "reading writes nothing");
}

#[test]
fn a_manifest_cut_anywhere_is_a_prefix_or_an_error() {
    let (store, ends, texts) = with_edits();
    let whole = store.manifest(1);
    for len in 0..whole.len() {
        store.put_manifest(1, &whole[..len]);
        let expected = ends.iter().rposition(|&(end, _)| end <= len as u64);
        match (store.read(), expected) {
            (Ok(recovered), Some(edits)) => {
                assert_eq!(render(&recovered.version), texts[edits], "cut at {len}");
                let clean = ends.iter().any(|&(end, marked)| [end, marked].contains(&(len as u64)));
                assert_eq!(recovered.torn.is_none(), clean, "cut at {len}");
            }
            (Err(error), None) => assert!(error.is_corruption(), "cut at {len}: {error}"),
            (outcome, _) => panic!("cut at {len}: {outcome:?}"),
        }
    }
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let (store, ends, texts) = with_edits();
    let whole = store.manifest(1);
    let last_mark = ends[3].0 as usize;
    for at in 0..whole.len() {
        for bit in [0, 3, 7] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            store.put_manifest(1, &bytes);
            match store.read() {
                // Every edit stands before a mark, so none of them is ever mistaken for a torn tail.
                Ok(recovered) => {
                    assert!(at >= last_mark && recovered.torn.is_some(), "byte {at}");
                    assert_eq!(render(&recovered.version), texts[3]);
                }
                Err(error) => {
                    assert!(at < last_mark, "byte {at}: {error}");
                    let corruption = error.as_corruption().unwrap_or_else(|| panic!("byte {at}: {error}"));
                    assert!(corruption.offset <= at as u64 && corruption.file.ends_with("MANIFEST-000001"));
                }
            }
        }
    }
}

#[test]
fn an_edit_that_was_never_acknowledged_is_dropped_and_reported() {
    let (store, ends, texts) = with_edits();
    let whole = store.manifest(1);
    let (unmarked, record) = (ends[2].1 as usize, ends[2].1 as usize..ends[3].0 as usize);
    let mut damaged = whole[..record.end].to_vec();
    for at in record.clone() {
        damaged[at] ^= 0x40;
        store.put_manifest(1, &damaged);
        let recovered = store.read().expect("the last record has no mark");
        assert_eq!(render(&recovered.version), texts[2], "byte {at}");
        assert_eq!(recovered.torn.expect("is reported").offset, unmarked as u64);
        damaged[at] ^= 0x40;
    }
    damaged[record].fill(0);
    store.put_manifest(1, &damaged);
    assert_eq!(store.read().expect("zeros are a tail").torn.expect("is reported").reason, "only zeros");
}

#[test]
fn a_mark_that_arrives_after_the_next_edit_is_no_damage() {
    let (store, ends, texts) = with_edits();
    let (whole, mark) = (store.manifest(1), ends[2].0 as usize..ends[2].1 as usize);
    for arrived in 0..mark.len() {
        let mut bytes = whole.clone();
        bytes[mark.start + arrived..mark.end].fill(0);
        store.put_manifest(1, &bytes);
        assert!(store.read().expect_err("a later mark says that all was durable").is_corruption());
        for end in [mark.end + format::RECORD_HEADER_BYTES, ends[3].0 as usize] {
            store.put_manifest(1, &bytes[..end]);
            let recovered = store.read().expect("the edit was never acknowledged");
            assert_eq!(render(&recovered.version), texts[2], "{arrived} bytes of the mark");
            assert_eq!(recovered.torn.expect("there is more").offset, mark.start as u64);
        }
    }
}

#[test]
fn unknown_fields_are_unsupported() {
    let (store, ends, _) = with_edits();
    let mut bytes = store.manifest(1);
    format::put_record(&mut bytes, format::seed(CUBE, 1), ends[3].1, &[14, 0]);
    store.put_manifest(1, &bytes);
    assert_eq!(store.read().expect_err("a newer format").kind(), ErrorKind::Unsupported);
}

#[test]
fn edits_that_do_not_fit_are_corruption() {
    let edits = ["drop L0: 99", "dead 2 80-100 300-990", "dead 2 80-991", "dead 7 80-100"];
    let edits = edits.map(|text| format::encode_edit(&Store::new().edit(text)));
    // A dead range that is empty, touches the one before, lies in the header; more of them than there are bytes.
    let ranges = [&[1, 80, 0][..], &[2, 80, 100, 0, 9], &[1, 79, 9], &[99, 80, 9]];
    let ranges = ranges.map(|ranges| [&[13, 2], ranges].concat());
    for payload in edits.into_iter().chain(ranges).chain([vec![3, 0, 1], vec![5, 0xff]]) {
        let (store, ends, _) = with_edits();
        let mut bytes = store.manifest(1);
        format::put_record(&mut bytes, format::seed(CUBE, 1), ends[3].1, &payload);
        store.put_manifest(1, &bytes);
        let error = store.read().expect_err("does not fit");
        assert_eq!(error.as_corruption().expect("a corruption").offset, ends[3].1);
    }
}

/// Checksums are right: somebody has made them up.
#[test]
fn sizes_that_no_files_have_are_corruption() {
    let edit = |text: &str| Store::new().edit(text);
    let segment = |change: fn(&mut SegmentMeta)| {
        let mut edit = edit("segment 9");
        change(&mut edit.add_segments[0]);
        edit
    };
    let made_up = [
        edit("segment 9 bytes=18446744073709551615\ndead 9 18446744073709551600-18446744073709551605"),
        edit("L0: 5[a-b] bytes=72057594037927937"),
        edit("L0: 5[a-b] bytes=36028797018963969\nsegment 9 bytes=36028797018963969"),
        edit("L0: 5[a-b] refs=3:1152921504606846976:10"),
        edit("L0: 5[a-b] refs=3:1:9223372036854775807 6[c-d] refs=4:1:9223372036854775807"),
        segment(|meta| meta.end = meta.file_bytes + 1),
        segment(|meta| meta.value_record_bytes = meta.end + 1),
        segment(|meta| meta.value_records = meta.value_record_bytes + 1),
        VersionEdit { last_sequence: Some(Sequence::MAX), ..VersionEdit::default() },
    ];
    for edit in made_up {
        let (store, ends, _) = with_edits();
        let mut bytes = store.manifest(1);
        format::put_record(&mut bytes, format::seed(CUBE, 1), ends[3].1, &format::encode_edit(&edit));
        store.put_manifest(1, &bytes);
        assert!(store.read().expect_err("no file is so large").is_corruption(), "{edit:?}");
    }
}

#[test]
fn rotation_keeps_the_version_and_removes_the_old_manifest() {
    let (store, _, texts) = with_edits();
    let version = store.read().expect("is whole").version;
    let mut writer =
        ManifestWriter::create(store.files.clone(), CUBE, 2, &version.snapshot(CUBE)).expect("works");
    assert!(writer.rotate(&version.snapshot(CUBE)).expect("works"));
    assert_eq!(store.fs.names("cube"), ["CURRENT", "MANIFEST-000001", "MANIFEST-000003"]);
    writer.append(&store.edit("L6: 9[x-z]")).expect("works");
    let recovered = store.read().expect("is whole");
    assert_eq!(recovered.number, 3);
    assert_eq!(render(&recovered.version), texts[3].replace("segment 2", "L6: 9[x-z]\nsegment 2"));
}

#[test]
fn a_failed_write_poisons_the_manifest() {
    for (operation, edits_after) in [("write", 0), ("sync", 1)] {
        let store = Store::new();
        let mut writer = store.create();
        store.fs.fail(operation, 0);
        let error = writer.append(&store.edit("L0: 1[a-m]")).expect_err("told to fail");
        assert_eq!(error.kind(), ErrorKind::Io);
        for _ in 0..2 {
            let error = writer.append(&store.edit("L0: 2[a-m]")).expect_err("is poisoned");
            assert_eq!(error.kind(), ErrorKind::ReadOnly);
            assert!(error.message().contains("open the database again"), "{error}");
        }
        assert!(writer.rotate(&store.empty().snapshot(CUBE)).is_err());
        let tables = store.read().expect("is whole").version.level(0).len();
        assert_eq!(tables, edits_after, "the memory file system keeps what was not synced");
    }
}

#[test]
fn a_failed_mark_spares_its_edit_and_refuses_the_next() {
    let store = Store::new();
    let mut writer = store.create();
    store.fs.fail("write", 1);
    writer.append(&store.edit("L0: 1[a-m]")).expect("the edit is durable");
    assert_eq!(
        writer.append(&store.edit("L0: 2[a-m]")).expect_err("is poisoned").kind(),
        ErrorKind::ReadOnly
    );
    assert_eq!(store.read().expect("is whole").version.level(0).len(), 1);
}

#[test]
fn a_failed_rotation_leaves_a_whole_manifest_in_force() {
    for (operation, skip) in
        [("create", 0), ("write", 0), ("sync", 0), ("sync_dir", 0), ("create", 1), ("rename", 0)]
    {
        let (store, _, texts) = with_edits();
        let version = store.read().expect("is whole").version;
        let mut writer =
            ManifestWriter::create(store.files.clone(), CUBE, 2, &version.snapshot(CUBE)).expect("works");
        store.fs.fail(operation, skip);
        writer.rotate(&version.snapshot(CUBE)).expect_err("told to fail");
        let recovered = store.read().expect("is whole");
        assert_eq!((recovered.number, render(&recovered.version)), (2, texts[3].clone()), "{operation}");
        let again = ManifestWriter::create(store.files.clone(), CUBE, 3, &version.snapshot(CUBE));
        again.expect("what the failed attempt left is in nobody's way");
    }
}

#[test]
fn missing_and_damaged_names_are_named() {
    let store = Store::new();
    let error = store.read().expect_err("an empty directory");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("CURRENT"), "{error}");

    let (store, ..) = with_edits();
    let current = FileName::Current.path(Path::new("cube"));
    let text = store.fs.get(&current);
    for at in 0..text.len() {
        let mut bytes = text.clone();
        bytes[at] ^= 1;
        store.fs.put(&current, &bytes);
        assert!(store.read().expect_err("damaged").is_corruption());
        store.fs.put(&current, &text[..at]);
        assert!(store.read().expect_err("cut").is_corruption());
    }
    store.fs.put(&current, format::encode_current(8).as_bytes());
    assert!(store.read().expect_err("no such manifest").message().contains("MANIFEST-000008"));
    crate::env::Fs::remove_file(&*store.fs, &current).expect("is there");
    let error = store.read().expect_err("no CURRENT but a manifest");
    assert!(error.is_corruption() && error.message().contains("MANIFEST-000001"), "{error}");
}

#[derive(Debug)]
struct Backwards;

impl Comparator for Backwards {
    fn name(&self) -> &str {
        "test.Backwards"
    }
    fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
        right.cmp(left)
    }
}

#[test]
fn another_comparator_is_refused_by_name() {
    let (store, ..) = with_edits();
    let error = read(&store.files, &KeyOrder::new(Arc::new(Backwards))).expect_err("another order");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("tamarack.Bytewise") && error.message().contains("test.Backwards"));
}

/// The bytes in the format page's example.
fn example() -> Vec<u8> {
    let page = include_str!("../../../../../docs/formats/manifest.md");
    let block = page.split("```hex\n").nth(1).expect("an example").split("```").next().expect("an end");
    let digits = block.lines().flat_map(|line| line.split('|').next().unwrap_or("").split_whitespace());
    digits.map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
}

#[test]
fn the_example_of_the_format_page_is_read_and_written() {
    let store = Store::new();
    let mut writer = store.create();
    writer.append(&store.edit("L1: 3[a-c] bytes=300 del=1 refs=4:2:200\nhead 4:96")).expect("works");
    let dead = "segment 4 bytes=90000\ndead 4 100-20000 30000-40000\nhead 5:80";
    writer.append(&store.edit(dead)).expect("works");
    assert_eq!(store.manifest(1), example());
    assert_eq!(
        render(&store.read().expect("is whole").version),
        "L1: 3[a-c]\nsegment 4 bytes=90000 live=2:200\ndead 4 100-20000 30000-40000\nhead 5:80\n"
    );
    assert_eq!(format::encode_current(1), "MANIFEST-000001\n7ed3298a\n");
}
