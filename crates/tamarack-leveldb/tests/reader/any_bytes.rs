//! No bytes make the reader panic: neither any at all, nor any behind the right checksums.

use proptest::prelude::*;
use tamarack_leveldb::Options;

use crate::builder::{Edit, Log, Shape, Table, append, footer, internal, varint};
use crate::home::{Home, read};

/// Reads the database in every way; only that it ends counts.
fn try_all(home: &Home) {
    for salvage in [false, true] {
        for any_comparator in [false, true] {
            let options = Options { salvage, any_comparator, ..Options::default() };
            drop(read(home.path(), options).map_err(|error| error.to_string()));
        }
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    // Small numbers are more often the beginning of something.
    prop::collection::vec(prop_oneof![0..12_u8, any::<u8>()], 0..200)
}

fn file_names() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["000004.log", "000005.ldb", "000006.sst", "MANIFEST-000002", "CURRENT"])
}

fn table() -> Table {
    Shape::default().table(&[(internal(b"a", 1, 1), b"1".to_vec())])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn files_of_any_bytes(files in prop::collection::vec((file_names(), bytes()), 1..4)) {
        let home = Home::with(&[Edit::first(4, 9, 1000).add(1, 5, &table())]);
        home.write("000004.log", b"");
        home.write("000005.ldb", table().bytes);
        files.iter().for_each(|(name, bytes)| home.write(name, bytes));
        try_all(&home);
    }

    #[test]
    fn records_of_any_bytes(edits in prop::collection::vec(bytes(), 0..3), batches in prop::collection::vec(bytes(), 0..4)) {
        let edits: Vec<Edit> =
            [Edit::first(4, 9, 1000)].into_iter().chain(edits.into_iter().map(Edit)).collect();
        let home = Home::with(&edits);
        home.write("000004.log", Log::of(&batches));
        try_all(&home);
    }

    #[test]
    fn blocks_of_any_bytes(blocks in prop::collection::vec((0..4_u8, bytes()), 1..4), index in prop::option::of(bytes())) {
        let mut bytes = Vec::new();
        let mut places = Vec::new();
        for (compression, raw) in &blocks {
            // What is announced as compressed is seldom what a compressor has written.
            let place = append(&mut bytes, 0, raw);
            let at = (place.0 + place.1) as usize;
            bytes[at] = *compression;
            let crc = crate::builder::masked(&bytes[place.0 as usize..=at]);
            bytes[at + 1..].copy_from_slice(&crc);
            let mut handle = Vec::new();
            varint(&mut handle, place.0);
            varint(&mut handle, place.1);
            places.push((internal(b"zzz", places.len() as u64, 1), handle));
        }
        let meta = append(&mut bytes, 0, b"\0\0\0\0\x01\0\0\0");
        let shape = Shape { restart_interval: 1, ..Shape::default() };
        let index = append(&mut bytes, 0, &index.unwrap_or_else(|| shape.block(&places)));
        footer(&mut bytes, meta, index);
        let table = Table { bytes, smallest: internal(b"", 9, 1), largest: internal(b"\xff", 1, 1), ..table() };
        let home = Home::with(&[Edit::first(0, 9, 1000).add(1, 5, &table)]);
        home.write("000005.ldb", &table.bytes);
        try_all(&home);
        home.remove("MANIFEST-000002");
        try_all(&home);
    }

    #[test]
    fn forged_places(numbers in prop::collection::vec(any::<u64>(), 4), len in 0..60_usize) {
        let mut bytes = table().bytes;
        bytes.truncate(len.min(bytes.len() - 48));
        footer(&mut bytes, (numbers[0], numbers[1] % 100), (numbers[2] % 100, numbers[3]));
        bytes.truncate(len + 48);
        let table = Table { bytes, ..table() };
        let home = Home::with(&[Edit::first(0, 9, 1000).add(1, 5, &table)]);
        home.write("000005.ldb", &table.bytes);
        try_all(&home);
    }
}
