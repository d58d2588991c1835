//! The example of `docs/formats/table.md`: what the builder writes, and what the reader finds there.

use super::TableOptions;
use super::memory_file::MemoryFile;
use super::reader::TableReader;
use super::tests::{Entry, build, key, open, options, pointer};
use crate::base::error::Result;
use crate::base::ids::SegmentId;
use crate::base::keys::EntryKind;
use crate::index::cursor::Cursor;

const PAGE: &str = include_str!("../../../../../docs/formats/table.md");

/// The bytes of the page's hex example: lines of an offset, bytes, and a comment behind a semicolon.
fn example() -> Vec<u8> {
    let (_, example) = PAGE.split_once("```hex").expect("the page has an example");
    let (example, _) = example.split_once("```").expect("the example ends");
    let mut bytes = Vec::new();
    for line in example.lines() {
        let line = line.split(';').next().unwrap_or_default();
        let Some((offset, hex)) = line.split_once(':') else { continue };
        assert_eq!(usize::from_str_radix(offset, 16), Ok(bytes.len()), "the offset at the start of a line");
        bytes
            .extend(hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("two hex digits")));
    }
    bytes
}

fn entries() -> [Entry; 5] {
    [
        (key(b"apple", 9, EntryKind::Inline), b"green".to_vec()),
        (key(b"apricot", 8, EntryKind::Pointer), pointer(1, 4096, 300)),
        (key(b"apricot", 3, EntryKind::Pointer), pointer(1, 64, 500)),
        (key(b"banana", 5, EntryKind::Delete), Vec::new()),
        (key(b"cherry", 7, EntryKind::Pointer), pointer(2, 64, 1000)),
    ]
}

fn example_options() -> TableOptions {
    TableOptions { block_bytes: 48, ..options() }
}

#[test]
fn the_builder_writes_the_example() -> Result<()> {
    let (summary, file) = build(&entries(), &example_options())?;
    assert_eq!(file.bytes(), example());
    assert_eq!(summary.file_bytes, example().len() as u64);
    Ok(())
}

#[test]
fn the_reader_finds_what_the_example_says() -> Result<()> {
    let table = open(MemoryFile::with(example()), &example_options(), 0)?;
    let mut cursor = TableReader::cursor(&table, true);
    cursor.seek_to_first()?;
    for (key, payload) in entries() {
        assert_eq!((cursor.key(), cursor.payload()), (&key[..], &payload[..]));
        cursor.next()?;
    }
    assert!(!cursor.valid());
    let references = table.references()?.collect::<Result<Vec<_>>>()?;
    assert_eq!(references, [(SegmentId(1), vec![64, 4096]), (SegmentId(2), vec![64])]);
    let report = table.verify()?;
    assert_eq!((report.entries, report.references, report.blocks), (5, 3, 7));
    Ok(())
}
