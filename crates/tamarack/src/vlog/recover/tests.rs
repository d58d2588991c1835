//! What is replayed of whole records that no log has in this order. Records that are not whole are the business of
//! `tests/engine/truncation.rs`; here every checksum is right.

use super::*;
use crate::base::checksum::Checksum;
use crate::base::codec::Codec;
use crate::base::comparator::Bytewise;
use crate::env::sim::{SimDisk, SimOptions};
use crate::vlog::format::{BatchPlace, RecordHeader, RecordKind};

const CUBE: CubeId = CubeId(7);
const ID: SegmentId = SegmentId(1);

/// The operations that recovery finds in a log that has these records, and whether it says that more stood behind them.
fn replayed(records: &[(u64, BatchPlace)]) -> (Vec<u64>, bool) {
    let fs = SimDisk::new(&SimOptions::default()).env().fs;
    let directory = Path::new("/");
    let header = SegmentHeader {
        cube: CUBE,
        id: ID,
        salt: 5,
        predecessor: LogPosition::default(),
        first_sequence: Sequence(1),
        durable: LogPosition::default(),
    };
    let mut bytes = header.encode().to_vec();
    for &(sequence, place) in records {
        let record = RecordHeader {
            kind: RecordKind::Put,
            place,
            codec: Codec::None,
            key_len: 3,
            stored_len: 5,
            sequence: Sequence(sequence),
            value_checksum: Checksum::unseeded().with(b"value").finish(),
        };
        bytes.extend_from_slice(&record.encode(header.seed(), bytes.len() as u64, b"key"));
        bytes.extend_from_slice(b"keyvalue");
    }
    let file = fs.create_new(&FileName::Segment(ID).path(directory)).expect("nothing fails");
    file.write_at(&bytes, 0).expect("nothing fails");
    let order = KeyOrder::new(Arc::new(Bytewise));
    let task = Task {
        fs: &*fs,
        directory,
        cube: CUBE,
        order: &order,
        head: LogPosition::default(),
        last_sequence: Sequence(0),
        sealed_end: LogPosition::default(),
        inline_value_max: 16,
        check_values: true,
        mend: true,
        read_only: true,
    };
    let mut operations = Vec::new();
    let recovered = recover(&task, &mut |operation| {
        operations.push(operation.sequence.0);
        Ok(())
    });
    (operations, recovered.expect("nothing of it was durable").report.torn_tail.is_some())
}

#[test]
fn records_that_do_not_follow_what_is_before_them_end_the_log() {
    let (only, first, middle, last) = (
        BatchPlace::ONLY,
        BatchPlace { first: true, last: false },
        BatchPlace { first: false, last: false },
        BatchPlace { first: false, last: true },
    );
    for (records, expected) in [
        (&[(1, only), (2, first), (3, middle), (4, last), (5, only)][..], &[1, 2, 3, 4, 5][..]),
        (&[(1, only), (3, only)], &[1]),
        (&[(1, only), (2, only), (2, only)], &[1, 2]),
        (&[(1, only), (2, only), (1, only)], &[1, 2]),
        (&[(1, only), (2, middle), (3, last)], &[1]),
        (&[(1, only), (2, last)], &[1]),
        (&[(1, only), (2, first), (4, last)], &[1]),
        (&[(1, only), (2, first), (3, only)], &[1]),
        (&[(1, only), (2, first), (3, first), (4, last)], &[1]),
        (&[(1, only), (2, first), (2, middle), (3, last)], &[1]),
        (&[(1, only), (2, first), (3, middle)], &[1]),
    ] {
        let is_whole = records.len() == expected.len();
        assert_eq!(replayed(records), (expected.to_vec(), !is_whole), "{records:?}");
    }
}
