//! Tests of the segment's bytes; the hex examples are those of `docs/formats/segment.md`.

use super::*;
use crate::vlog::cold::relocation_key;
use crate::vlog::relocation::Relocations;

fn header() -> SegmentHeader {
    SegmentHeader {
        cube: CubeId(0x0102_0304_0506_0708),
        id: SegmentId(7),
        salt: 0x1122_3344_5566_7788,
        predecessor: LogPosition { segment: SegmentId(6), offset: 4096 },
        first_sequence: Sequence(42),
        durable: LogPosition { segment: SegmentId(6), offset: 1024 },
    }
}

fn hex_block(page: &str, title: &str) -> Vec<u8> {
    let after = page.split_once(title).expect("the page has the example").1;
    let block = after.split("```").nth(1).expect("a fenced block follows").trim_start_matches("hex");
    let digits: String = block
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""))
        .flat_map(str::chars)
        .filter(|digit| !digit.is_whitespace())
        .collect();
    (0..digits.len() / 2)
        .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("hex"))
        .collect()
}

const PAGE: &str = include_str!("../../../../docs/formats/segment.md");

#[test]
fn the_documented_header_decodes() {
    let bytes = hex_block(PAGE, "### Example: a header");
    assert_eq!(bytes, header().encode(), "{:02x?}", header().encode());
    assert_eq!(SegmentHeader::decode(bytes[..].try_into().expect("80 bytes")), Ok(header()));
}

fn put() -> RecordHeader {
    RecordHeader {
        kind: RecordKind::Put,
        place: BatchPlace::ONLY,
        codec: Codec::None,
        key_len: 3,
        stored_len: 5,
        sequence: Sequence(42),
        value_checksum: Checksum::unseeded().with(b"value").finish(),
    }
}

#[test]
fn the_documented_record_decodes() {
    let mut bytes = put().encode(header().seed(), SEGMENT_HEADER_BYTES, b"key").to_vec();
    bytes.extend_from_slice(b"keyvalue");
    let documented = hex_block(PAGE, "### Example: a record");
    assert_eq!(documented, bytes, "{bytes:02x?}");
    let head = &documented[..RECORD_HEADER_BYTES + 3];
    check_head(header().seed(), SEGMENT_HEADER_BYTES, head).expect("the checksum holds");
    assert_eq!(RecordHeader::decode(head[..RECORD_HEADER_BYTES].try_into().expect("24 bytes")), Ok(put()));
}

#[test]
fn a_sequence_number_that_no_index_could_keep_is_no_records() {
    let decode = |sequence| {
        let record = RecordHeader { sequence, ..put() };
        let bytes = record.encode(header().seed(), SEGMENT_HEADER_BYTES, b"key");
        RecordHeader::decode(bytes[..RECORD_HEADER_BYTES].try_into().expect("24 bytes"))
    };
    assert!(decode(Sequence::MAX).is_ok());
    for sequence in [Sequence(Sequence::MAX.0 + 1), Sequence(u64::MAX)] {
        let error = decode(sequence).expect_err("too large");
        assert!(error.contains(&sequence.to_string()), "{error}");
    }
}

#[test]
fn the_documented_mark_decodes() {
    let durable = LogPosition { segment: SegmentId(7), offset: 112 };
    let bytes = encode_mark(header().seed(), 112, Sequence(42), durable);
    let documented = hex_block(PAGE, "### Example: a mark");
    assert_eq!(documented, bytes, "{bytes:02x?}");
    assert_eq!(find_mark(header().seed(), 112, &documented), Some(durable));
    assert_eq!(find_mark(header().seed(), 113, &documented), None, "a mark counts only in its place");
}

#[test]
fn the_documented_relocation_table_decodes() {
    let table = Relocations::new(vec![(80, 116), (300, 80)]);
    let (key, value) = (relocation_key(SegmentId(7)), table.encode());
    let relocations = RecordHeader {
        kind: RecordKind::Relocations,
        key_len: key.len() as u16,
        stored_len: value.len() as u32,
        value_checksum: Checksum::unseeded().with(&value).finish(),
        ..put()
    };
    let mut bytes = relocations.encode(header().seed(), 152, &key).to_vec();
    bytes.extend_from_slice(&key);
    bytes.extend_from_slice(&value);
    let documented = hex_block(PAGE, "### Example: a relocation table");
    assert_eq!(documented, bytes, "{bytes:02x?}");
    assert_eq!(Relocations::decode(&documented[RECORD_HEADER_BYTES + key.len()..]), Some(table));
}

#[test]
fn every_flipped_bit_of_a_header_is_noticed() {
    let whole = header().encode();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(SegmentHeader::decode(&bytes).is_err(), "bit {bit}");
    }
    assert_eq!(SegmentHeader::decode(&[0; 80]), Err(HeaderFault::Blank));
}

#[test]
fn a_newer_version_is_told_from_damage() {
    let mut bytes = header().encode();
    bytes[8] = 9;
    let crc = Checksum::unseeded().with(&bytes[..76]).finish();
    bytes[76..].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderFault::Version(9)));
}

#[test]
fn every_flipped_bit_of_a_record_head_is_noticed() {
    let seed = header().seed();
    let mut whole = put().encode(seed, 80, b"key").to_vec();
    whole.extend_from_slice(b"key");
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(check_head(seed, 80, &bytes).is_err(), "bit {bit}");
    }
    assert!(check_head(seed, 81, &whole).is_err(), "the place is part of the checksum");
}

#[test]
fn footers_round_trip_and_notice_every_flipped_bit() {
    let seed = header().seed();
    let footer = Footer {
        records_end: 300,
        value_records: 2,
        value_record_bytes: 64,
        smallest: Some(Vec::new()),
        largest: Some(b"key".to_vec()),
        offsets: vec![80, 112, 148],
    };
    let bytes = footer.encode(seed);
    let decode = |bytes: &[u8]| {
        let trailer = bytes.last_chunk().expect("longer than a trailer");
        let (start, len, crc) = Footer::decode_trailer(seed, 300 + bytes.len() as u64, trailer)?;
        Footer::decode_payload(seed, start, &bytes[..len as usize], crc).ok()
    };
    assert_eq!(decode(&bytes), Some(footer));
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(decode(&flipped), None, "bit {bit}");
    }
    for (value_records, value_record_bytes) in [(2, 301), (2, u64::MAX), (65, 64)] {
        let made_up = Footer { value_records, value_record_bytes, ..decode(&bytes).expect("a footer") };
        assert_eq!(decode(&made_up.encode(seed)), None, "{value_records} of {value_record_bytes} bytes");
    }
}
