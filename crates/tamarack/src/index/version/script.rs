//! The text form of versions and edits that scripts use.
//!
//! ```text
//! L0: 7[a-m] 5[c-z]          tables by level: id[smallest-largest], options after the range
//! L1: 3[a-c] bytes=20 del=5 refs=1:2:200,4:1:50
//! segment 4 bytes=1000       a sealed segment
//! dead 4 100-200 300-400     its dead ranges
//! move 4 to 9:500            its records are in segment 9, its relocation table there at 500
//! head 4:96                  the log head
//! drop L1: 3                 (edits) tables that leave
//! drop segment 4             (edits)
//! cursor L2 k                a compaction cursor
//! ```
//! A table's entries have the sequence numbers 10 × id to 10 × id + 9, its file has 10 bytes and its entries
//! number 10, unless options say otherwise.

use std::fmt::Write;
use std::path::Path;

use crate::base::comparator::Bytewise;
use crate::base::dead_ranges::DeadRanges;
use crate::base::ids::{LogPosition, SegmentId, Sequence, TableId};
use crate::base::keys::{EntryKind, KeyOrder, put_internal_key};
use crate::base::pointer::ValuePointer;
use crate::base::segment::{SegmentMeta, SegmentMove, SegmentReference};
use crate::base::sync::Arc;

use super::super::testing::{MemoryFs, RecordedFiles};
use super::{Files, MovedEntry, TableMeta, Version, VersionEdit};

/// An empty version over a file system in memory.
pub fn empty() -> Version {
    let files = Files::new(MemoryFs::new(), Path::new("cube"), Box::new(RecordedFiles::default()));
    Version::empty(KeyOrder::new(Arc::new(Bytewise)), files)
}

/// The version that the lines describe.
pub fn version(text: &str) -> Version {
    let empty = empty();
    let edit = edit(text, empty.files());
    let version = empty.apply(&edit).expect("the script describes a version");
    version.audit().expect("the script describes a version");
    version
}

/// The edit that the lines describe.
pub fn edit(text: &str, files: &Arc<Files>) -> VersionEdit {
    let mut edit = VersionEdit::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "drop" if words[1] == "segment" => edit.drop_segments.push(SegmentId(number(words[2]))),
            "drop" => {
                let level = level(words[1]);
                edit.drop_tables.extend(words[2..].iter().map(|id| (level, TableId(number(id)))));
            }
            "dead" => {
                let ranges = words[2..].iter().map(|word| {
                    let (start, end) = word.split_once('-').expect("start-end");
                    number(start)..number(end)
                });
                let dead = DeadRanges::new(ranges.collect()).expect("ranges in order");
                edit.dead_ranges.push((SegmentId(number(words[1])), dead));
            }
            "move" => edit.move_segments.push(SegmentMove {
                id: SegmentId(number(words[1])),
                table: relocation_table(position(words[3])),
            }),
            "segment" => edit.add_segments.push(segment(&words[1..])),
            "head" => edit.log_head = Some(position(words[1])),
            "cursor" => edit.compaction_cursors.push((level(words[1]), words[2].as_bytes().to_vec())),
            _ => {
                let level = level(words[0]);
                for table in tables(&words[1..], files) {
                    edit.add_tables.push((level, Arc::new(table)));
                }
            }
        }
    }
    edit
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("a number, not {text}"))
}

fn level(word: &str) -> u8 {
    number(word.trim_start_matches('L').trim_end_matches(':'))
}

fn position(word: &str) -> LogPosition {
    let (segment, offset) = word.split_once(':').expect("segment:offset");
    LogPosition { segment: SegmentId(number(segment)), offset: number(offset) }
}

fn relocation_table(at: LogPosition) -> ValuePointer {
    ValuePointer { segment: at.segment, offset: at.offset as u32, stored_len: 100 }
}

fn segment(words: &[&str]) -> SegmentMeta {
    let bytes = words.get(1).map_or(1000, |word| number(word.strip_prefix("bytes=").expect("bytes=")));
    let id = SegmentId(number(words[0]));
    SegmentMeta {
        id,
        written: Sequence(1),
        end: bytes - 10,
        file_bytes: bytes,
        value_records: 10,
        value_record_bytes: bytes - 20,
    }
}

fn tables(words: &[&str], files: &Arc<Files>) -> Vec<TableMeta> {
    let mut tables: Vec<TableMeta> = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((option, value)) => {
                set(tables.last_mut().expect("options stand after their table"), option, value);
            }
            None => tables.push(table(word, files)),
        }
    }
    tables
}

fn table(word: &str, files: &Arc<Files>) -> TableMeta {
    let (id, range) = word.strip_suffix(']').and_then(|word| word.split_once('[')).expect("id[a-z]");
    let (smallest, largest) = range.split_once('-').expect("smallest-largest");
    let id: u64 = number(id);
    let sequences = (Sequence(id * 10), Sequence(id * 10 + 9));
    let internal = |key: &str, sequence| {
        let mut internal = Vec::new();
        put_internal_key(&mut internal, key.as_bytes(), sequence, EntryKind::Pointer);
        internal
    };
    TableMeta {
        id: TableId(id),
        file_bytes: 10,
        entries: 10,
        deletes: 0,
        inline_bytes: 0,
        smallest: internal(smallest, sequences.1),
        largest: internal(largest, sequences.0),
        sequences,
        references: Vec::new(),
        referenced_value_bytes: 0,
        held: Default::default(),
        handle: files.table(TableId(id)),
    }
}

fn set(table: &mut TableMeta, option: &str, value: &str) {
    match option {
        "bytes" => table.file_bytes = number(value),
        "del" => table.deletes = number(value),
        "refs" => {
            for reference in value.split(',') {
                let parts: Vec<u64> = reference.split(':').map(number).collect();
                let segment = SegmentId(parts[0].try_into().expect("a segment id"));
                table.references.push(SegmentReference { segment, values: parts[1], bytes: parts[2] });
            }
            table.referenced_value_bytes = table.references.iter().map(|reference| reference.bytes).sum();
        }
        _ => panic!("no option {option}"),
    }
}

/// A version as text, in the form that [`version`] reads, as far as it goes.
pub fn render(version: &Version) -> String {
    let mut out = String::new();
    for level in 0..crate::base::limits::LEVELS {
        if !version.level(level).is_empty() {
            writeln!(out, "L{level}: {}", render_tables(version.level(level))).expect("a string grows");
        }
    }
    for entry in version.segments().sealed() {
        let (id, bytes) = (entry.meta.id, entry.meta.file_bytes);
        writeln!(out, "segment {id} bytes={bytes} live={}:{}", entry.live.values, entry.live.bytes)
            .expect("a string grows");
    }
    for (id, dead) in version.segments().all_dead_ranges() {
        let ranges: Vec<_> = dead.iter().map(|range| format!("{}-{}", range.start, range.end)).collect();
        writeln!(out, "dead {id} {}", ranges.join(" ")).expect("a string grows");
    }
    for (id, MovedEntry { table, live }) in version.segments().moved() {
        let (home, offset) = (table.segment, table.offset);
        writeln!(out, "move {id} to {home}:{offset} live={}:{}", live.values, live.bytes)
            .expect("a string grows");
    }
    for (id, live) in version.segments().unsealed() {
        writeln!(out, "unsealed {id} live={}:{}", live.values, live.bytes).expect("a string grows");
    }
    let numbers = version.numbers();
    if numbers.log_head != LogPosition::default() {
        writeln!(out, "head {}", numbers.log_head).expect("a string grows");
    }
    out
}

/// Tables as text.
pub fn render_tables(tables: &[Arc<TableMeta>]) -> String {
    let text = |table: &Arc<TableMeta>| {
        let key = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        format!("{}[{}-{}]", table.id, key(table.smallest_user_key()), key(table.largest_user_key()))
    };
    tables.iter().map(text).collect::<Vec<_>>().join(" ")
}
