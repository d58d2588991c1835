//! What a pointer must lead to. Flipped bytes are the business of `tests/engine/damage.rs`; here every checksum is right.

use std::path::{Path, PathBuf};

use super::*;
use crate::base::codec::Codec;
use crate::base::error::ErrorKind;
use crate::base::ids::{CubeId, LogPosition, Sequence};
use crate::base::large_pages::LARGE_PAGE_BYTES;
use crate::base::memory::Allotment;
use crate::base::names::FileName;
use crate::env::Fs;
use crate::env::fault::{Call, EIO, Fault, FaultEnv};
use crate::env::sim::{SimDisk, SimOptions};
use crate::vlog::fetch::{Fetch, How};
use crate::vlog::format::{BatchPlace, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::vlog::plan::Wanted;
use crate::vlog::queues::QUEUE_DEPTH;
use crate::vlog::walk_pages::WalkPages;

const HOW: How = How { verify: true, fill_cache: true };
const DIRECTORY: &str = "cube";
const ID: SegmentId = SegmentId(1);

/// A record's kind, key and value.
type Record<'a> = (RecordKind, &'a [u8], &'a [u8]);

/// A segment with each of `records`; a reader, and the pointers to them.
fn written(records: &[Record<'_>]) -> (SegmentReader, Vec<ValuePointer>) {
    written_to(SimDisk::new(&SimOptions::default()).env().fs, records)
}

fn written_to(fs: Arc<dyn Fs>, records: &[Record<'_>]) -> (SegmentReader, Vec<ValuePointer>) {
    fs.create_dir_all(Path::new(DIRECTORY)).expect("nothing fails");
    let header = SegmentHeader {
        cube: CubeId(7),
        id: ID,
        salt: 5,
        predecessor: LogPosition::default(),
        first_sequence: Sequence(1),
        durable: LogPosition::default(),
    };
    let mut bytes = header.encode().to_vec();
    assert_eq!(bytes.len() as u64, SEGMENT_HEADER_BYTES);
    let mut pointers = Vec::new();
    for (&(kind, key, value), sequence) in records.iter().zip(1..) {
        let offset = bytes.len() as u32;
        let record = RecordHeader {
            kind,
            place: BatchPlace::ONLY,
            codec: Codec::None,
            key_len: key.len() as u16,
            stored_len: value.len() as u32,
            sequence: Sequence(sequence),
            value_checksum: Checksum::unseeded().with(value).finish(),
        };
        bytes.extend_from_slice(&record.encode(header.seed(), u64::from(offset), key));
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        pointers.push(ValuePointer { segment: ID, offset, stored_len: value.len() as u32 });
    }
    let path = FileName::Segment(ID).path(Path::new(DIRECTORY));
    let file = fs.create_new(&path).expect("nothing fails");
    file.write_at(&bytes, 0).expect("nothing fails");
    (reader_of(fs, false), pointers)
}

/// Records of `keys`, each of which is its own value, with so much between them that they are not read together.
fn apart(keys: &[String]) -> Vec<Record<'_>> {
    const BETWEEN: Record<'_> = (RecordKind::Put, b"between", &[0; 24_000]);
    keys.iter().flat_map(|key| [(RecordKind::Put, key.as_bytes(), key.as_bytes()), BETWEEN]).collect()
}

/// What reads them.
fn reader_of(fs: Arc<dyn Fs>, direct: bool) -> SegmentReader {
    let order = KeyOrder::new(Arc::new(Bytewise));
    let segments = OpenSegments::new(fs, PathBuf::from(DIRECTORY), CubeId(7), 4, direct);
    SegmentReader::new(segments, order, 1 << 20)
}

#[test]
fn a_value_is_given_to_its_own_key_alone() {
    let put = RecordKind::Put;
    let (reader, pointers) = written(&[(put, b"one", b"first"), (put, b"two", b"other")]);
    let mut value = Vec::new();
    reader.read(pointers[0], b"one", true, &mut value).expect("it is there");
    assert_eq!(value, b"first");
    let shared = reader.read_shared(pointers[0], b"one", true).expect("it is there");
    assert_eq!((&*shared, &shared.bytes()[HEAD_BYTES..]), (&b"first"[..], &b"onefirst"[..]));
    for verify in [false, true] {
        let error = reader.read(pointers[1], b"one", verify, &mut value).expect_err("that of another key");
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("key"), "{error}");
        assert_eq!(value, b"");
        assert!(reader.read_shared(pointers[1], b"one", verify).is_err());
    }
}

#[test]
fn what_is_no_put_is_no_value() {
    for kind in [RecordKind::Relocations, RecordKind::Delete] {
        let (reader, pointers) = written(&[(kind, b"key", b"bytes")]);
        let error = reader.read(pointers[0], b"key", true, &mut Vec::new()).expect_err("no put");
        assert_eq!(error.kind(), ErrorKind::Corruption, "{kind:?}");
    }
}

#[test]
fn a_mended_relocation_table_is_for_readers_alone() {
    let fs = SimDisk::new(&SimOptions::default()).env().fs;
    let former = SegmentId(9);
    let table = Relocations::new(vec![(80, 90), (300, 400)]).encode();
    let records: [Record<'_>; 1] = [(RecordKind::Relocations, &relocation_key(former), &table)];
    let (whole, pointers) = written_to(Arc::clone(&fs), &records);
    assert_eq!(whole.relocations(pointers[0], former).expect("it is whole").find(300), Some(400));
    assert!(whole.relocations_in_memory(pointers[0]).is_some());

    let file = fs.open_write(&FileName::Segment(ID).path(Path::new(DIRECTORY))).expect("it is there");
    let end = SEGMENT_HEADER_BYTES + (RECORD_HEADER_BYTES + 4 + table.len()) as u64;
    file.write_at(&[table[table.len() - 1] ^ 1], end - 1).expect("nothing fails");
    let reader = reader_of(fs, false);
    for _ in 0..2 {
        let pointer = ValuePointer { segment: former, offset: 300, stored_len: 7 };
        let now = reader.relocate(pointers[0], pointer).expect("one byte is mended");
        assert_eq!(now, Some(ValuePointer { segment: ID, offset: 400, stored_len: 7 }));
        let error = reader.relocations(pointers[0], former).expect_err("it is damaged");
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("value checksum"), "{error}");
        assert!(reader.relocations_in_memory(pointers[0]).is_none());
    }
}

#[test]
fn what_is_in_memory_is_read_first_and_the_rest_by_whoever_waits() {
    // Every other page of the simulated disk is in memory; what lies between keeps reads from being joined.
    let keys: Vec<_> = (10..34).map(|number| number.to_string()).collect();
    let records = apart(&keys);
    let (reader, pointers) = written(&records);
    let wanted = |(place, &pointer)| Wanted { place, pointer, key: 2 * place..2 * place + 2 };
    let wanted: Vec<Wanted> = pointers.iter().step_by(2).enumerate().map(wanted).collect();
    let mut fetch = Fetch::new(&Arc::new(reader), Arc::new(keys.concat().into_bytes()), wanted, HOW, 100);
    assert_eq!(fetch.shares(), keys.len());

    let mut read = Vec::new();
    let mut collect = |fetch: &Fetch| {
        for share in fetch.take().0 {
            assert!(share.failed.is_empty(), "{:?}", share.failed);
            for value in share.found {
                assert_eq!(share.bytes[value.stored.range.clone()], *keys[value.place].as_bytes());
                read.push(value.place);
            }
        }
        read.len()
    };
    fetch.read_cached(false);
    let found = collect(&fetch);
    assert!((4..keys.len() - 4).contains(&found), "{found} of {} were in memory", keys.len());
    assert_eq!(fetch.shares(), keys.len() - found);
    fetch.work();
    assert_eq!(collect(&fetch), keys.len());
    read.sort_unstable();
    assert_eq!(read, Vec::from_iter(0..keys.len()));
}

#[test]
fn those_that_tell_whether_memory_is_scarce_are_few() {
    let keys: Vec<_> = (1000..3000).map(|number| number.to_string()).collect();
    let records = apart(&keys);
    let (reader, pointers) = written(&records);
    let reader = Arc::new(reader);
    let wanted = |(place, &pointer)| Wanted { place, pointer, key: 4 * place..4 * place + 4 };
    let wanted: Vec<Wanted> = pointers.iter().step_by(2).enumerate().map(wanted).collect();
    let keys_together = Arc::new(keys.concat().into_bytes());
    let found_at_once = |those_that_tell| {
        let mut fetch = Fetch::new(&reader, Arc::clone(&keys_together), wanted.clone(), HOW, 100);
        let were_here = fetch.read_cached(those_that_tell);
        let count = |fetch: &Fetch| fetch.take().0.iter().map(|share| share.found.len()).sum::<usize>();
        let found = count(&fetch);
        fetch.work();
        assert_eq!(found + count(&fetch), keys.len());
        (found, were_here)
    };
    // Every other page of the simulated disk is in memory, and each has many of the values.
    let (found, _) = found_at_once(false);
    assert!(found > 8, "{found}");
    let (found, were_here) = found_at_once(true);
    assert!((1..8).contains(&found) && !were_here, "{found} of the eight that tell");
}

#[test]
fn single_reads_tell_whether_memory_is_scarce_unless_they_go_past_the_cache() {
    // Every other page of the simulated disk is in memory.
    let records = vec![(RecordKind::Put, &b"key"[..], &[7; 1000][..]); 12_000];
    let fs = SimDisk::new(&SimOptions::default()).env().fs;
    let (through, pointers) = written_to(Arc::clone(&fs), &records);
    let past = reader_of(fs, true);
    for reader in [&through, &past] {
        for pointer in &pointers {
            reader.read(*pointer, b"key", true, &mut Vec::new()).expect("it is there");
        }
    }
    assert_eq!((through.scarcity().is_high(), past.scarcity().is_high()), (true, false));
}

#[test]
fn of_what_is_read_together_each_value_has_its_own_outcome() {
    // Worlds without queues of reads, and with them: there outcomes come in another order.
    let without = SimDisk::new(&SimOptions::default()).env();
    let (with, faults) = FaultEnv::new(SimDisk::new(&SimOptions::default()).env());
    // A read that fails once is tried again for each of its values.
    faults.inject(Fault::on(Call::Read).nth(5).errno(EIO));
    for env in [without, with] {
        let count = 3 * QUEUE_DEPTH as usize;
        let keys: Vec<_> = (0..count).map(|number| format!("{number:03}")).collect();
        let records = apart(&keys);
        let (reader, mut pointers) = written_to(Arc::clone(&env.fs), &records);
        // A byte of one is damaged, and another lies beyond the end.
        let path = FileName::Segment(ID).path(Path::new(DIRECTORY));
        let file = env.fs.open_write(&path).expect("opened");
        file.write_at(b"?", u64::from(pointers[2 * 7].offset) + RECORD_HEADER_BYTES as u64).expect("written");
        pointers[2 * 9].offset = u32::try_from(file.len().expect("measured")).expect("small") - 10;
        let wanted = |(place, &pointer)| Wanted { place, pointer, key: 3 * place..3 * place + 3 };
        let wanted: Vec<Wanted> = pointers.iter().step_by(2).enumerate().map(wanted).collect();
        let keys_together = Arc::new(keys.concat().into_bytes());
        let fetch = Fetch::new(&Arc::new(reader), keys_together, wanted, HOW, 5);
        fetch.work();
        assert_eq!(faults.triggered(), u64::from(fetch.shares() == 1), "in the other world nothing fails");
        let (mut read, mut failed) = (Vec::new(), Vec::new());
        for share in fetch.take().0 {
            for value in share.found {
                assert_eq!(share.bytes[value.stored.range.clone()], *keys[value.place].as_bytes());
                read.push(value.place);
            }
            failed.extend(share.failed.into_iter().map(|(place, error)| (place, error.kind())));
        }
        failed.sort_unstable_by_key(|(place, _)| *place);
        assert_eq!(failed, [(7, ErrorKind::Corruption), (9, ErrorKind::Corruption)]);
        read.extend([7, 9]);
        read.sort_unstable();
        assert_eq!(read, Vec::from_iter(0..count));
    }
}

#[test]
fn a_walk_has_pages_where_there_is_a_queue_and_memory_for_them() {
    let disk = SimDisk::new(&SimOptions::default()).env();
    let without_queue = reader_of(Arc::clone(&disk.fs), false);
    assert!(WalkPages::new(&without_queue, &Allotment::unlimited(), 1).is_none());
    let with_queue = reader_of(FaultEnv::new(disk).0.fs, false);
    let memory = Allotment::new(6 * LARGE_PAGE_BYTES);
    let pages = WalkPages::new(&with_queue, &memory, 9).expect("for three of them");
    assert!(WalkPages::new(&with_queue, &memory, 9).is_none(), "others are to find something, too");
    let pages = Arc::new(pages);
    let mut lent: Vec<_> = std::iter::from_fn(|| pages.lend()).collect();
    assert_eq!(lent.len(), 3);
    lent.pop();
    assert!(pages.lend().is_some() && pages.lend().is_some(), "it came back each time");
    drop((lent, pages));
    assert!(memory.take(6 * LARGE_PAGE_BYTES).is_some(), "all came back");
}

#[test]
fn of_what_is_read_together_past_the_cache_too() {
    let (env, faults) = FaultEnv::new(SimDisk::new(&SimOptions::default()).env());
    let keys: Vec<_> = (0..600).map(|number| format!("{number:03}")).collect();
    let value = |number: usize| vec![number as u8; 4000 + number];
    let values: Vec<_> = (0..keys.len()).map(value).collect();
    let records: Vec<Record<'_>> =
        keys.iter().zip(&values).map(|(key, value)| (RecordKind::Put, key.as_bytes(), &value[..])).collect();
    let (reader, pointers) = written_to(Arc::clone(&env.fs), &records);
    let path = FileName::Segment(ID).path(Path::new(DIRECTORY));
    let file = env.fs.open_write(&path).expect("opened");
    file.write_at(b"?", u64::from(pointers[7].offset) + RECORD_HEADER_BYTES as u64).expect("written");
    let (reader, keys_together) = (Arc::new(reader), Arc::new(keys.concat().into_bytes()));
    let pages = WalkPages::new(&reader, &Allotment::unlimited(), 1).expect("there is as much");
    for pages in [None, Some(Arc::new(pages))] {
        // Reads of many values at once fail, and it cannot be opened so once.
        faults.inject(Fault::on(Call::Read).nth(3).errno(EIO));
        faults.inject(Fault::on(Call::OpenPastCache).errno(EIO));
        let wanted = |(place, &pointer)| Wanted { place, pointer, key: 3 * place..3 * place + 3 };
        let wanted = pointers.iter().enumerate().map(wanted).collect();
        let how = How { fill_cache: false, ..HOW };
        let mut fetch = Fetch::new(&reader, Arc::clone(&keys_together), wanted, how, 5);
        assert_eq!(fetch.scattered().count(), 0, "all of it is a walk");
        fetch.take_routes(Vec::new(), pages.as_ref());
        fetch.work();
        let (mut read, mut failed) = (Vec::new(), Vec::new());
        for share in fetch.take().0 {
            for found in share.found {
                assert!(share.bytes[found.stored.range.clone()] == values[found.place], "{}", found.place);
                read.push(found.place);
            }
            failed.extend(share.failed.into_iter().map(|(place, error)| (place, error.kind())));
        }
        assert_eq!(failed, [(7, ErrorKind::Corruption)]);
        read.push(7);
        read.sort_unstable();
        assert_eq!(read, Vec::from_iter(0..keys.len()));
        reader.segments().forget(ID);
    }
    assert_eq!(faults.triggered(), 4);
}

#[test]
fn what_nobody_waits_for_is_not_read() {
    let keys: Vec<_> = (10..60).map(|number| number.to_string()).collect();
    let records = apart(&keys);
    for env in [
        SimDisk::new(&SimOptions::default()).env(),
        FaultEnv::new(SimDisk::new(&SimOptions::default()).env()).0,
    ] {
        let (reader, pointers) = written_to(env.fs, &records);
        let (reader, keys_together) = (Arc::new(reader), Arc::new(keys.concat().into_bytes()));
        let reads_of = |is_given_up: bool| {
            let wanted = |(place, &pointer)| Wanted { place, pointer, key: 2 * place..2 * place + 2 };
            let wanted = pointers.iter().step_by(2).enumerate().map(wanted).collect();
            let fetch = Fetch::new(&reader, Arc::clone(&keys_together), wanted, HOW, 5);
            if is_given_up {
                fetch.give_up();
            }
            fetch.work();
            fetch.take().0.iter().map(|share| share.found.len()).sum::<usize>()
        };
        assert_eq!((reads_of(true), reads_of(false)), (0, keys.len()));
    }
}
