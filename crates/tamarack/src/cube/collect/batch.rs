//! Survivors of a collection whose keys are in memory, from the heads that were read to the order in which they are copied.

use crate::base::ids::Sequence;
use crate::base::key_sort::{SORT_BYTES, places_by_key};
use crate::base::keys::KeyOrder;
use crate::vlog::format::record_len;
use crate::vlog::heads::Head;

/// A record that stays, or may do so.
#[derive(Debug, Clone, Copy)]
pub struct Survivor {
    /// Which victim it is in.
    pub victim: u32,
    /// Which of the victim's records it is, by its place among those referenced.
    pub record: u32,
    /// Where its key begins in the batch's keys, and how long it is.
    pub key: (u32, u16),
    /// Where it begins in the batch's records, if it is small.
    pub whole: Option<u32>,
    /// Length of its stored value.
    pub stored_len: u32,
    /// Its sequence number.
    pub sequence: Sequence,
}

/// Survivors whose keys are in memory, and all of them that are small: a second read would cost more than they do.
#[derive(Debug, Default)]
pub struct Batch {
    /// The survivors, in the order of their places until they are sorted, and hidden ones among them until they are sifted.
    pub survivors: Vec<Survivor>,
    keys: Vec<u8>,
    records: Vec<u8>,
    /// No more bytes of records are kept, if somebody said so.
    records_max: Option<usize>,
}

impl Batch {
    /// The key of one of its survivors.
    pub fn key(&self, survivor: &Survivor) -> &[u8] {
        let (start, len) = survivor.key;
        &self.keys[start as usize..start as usize + usize::from(len)]
    }

    /// All bytes of one of its survivors, if they are in memory.
    pub fn record(&self, survivor: &Survivor) -> Option<&[u8]> {
        let start = survivor.whole? as usize;
        let len = record_len(usize::from(survivor.key.1), u64::from(survivor.stored_len));
        Some(&self.records[start..start + len as usize])
    }

    /// Keeps at most so many bytes of whole records, and makes room for them.
    pub fn keep_records(&mut self, bytes: usize) {
        self.records.reserve_exact(bytes);
        self.records_max = Some(bytes);
    }

    /// Whether all survivors are kept whole. If not, none is any more.
    pub fn holds_all_records(&mut self) -> bool {
        let all = self.survivors.iter().all(|survivor| survivor.whole.is_some());
        if !all {
            self.survivors.iter_mut().for_each(|survivor| survivor.whole = None);
            self.records = Vec::new();
        }
        all
    }

    /// Bytes of memory that it takes while it is sorted.
    pub fn memory_bytes(&self) -> usize {
        self.noted_bytes() + self.records.len()
    }

    /// The same without records that are kept whole: keys, and what is noted beside them.
    pub fn noted_bytes(&self) -> usize {
        let sorted_anew = self.survivors.len() * size_of::<Survivor>() + self.keys.len();
        2 * sorted_anew + self.survivors.len() * SORT_BYTES
    }

    /// Forgets everything but keeps the memory.
    pub fn clear(&mut self) {
        self.survivors.clear();
        self.keys.clear();
        self.records.clear();
    }

    /// Adds record number `record` of victim number `victim`, of which `head` was read.
    pub fn push(&mut self, victim: u32, record: u32, head: Head<'_>) {
        let header = head.header;
        let bytes_max = self.records_max.unwrap_or(usize::MAX);
        let kept = head.record.filter(|kept| self.records.len() + kept.len() <= bytes_max);
        let whole = kept.map(|_| end_of(&self.records));
        self.records.extend_from_slice(kept.unwrap_or_default());
        let key = (end_of(&self.keys), header.key_len);
        self.keys.extend_from_slice(head.key);
        let (stored_len, sequence) = (header.stored_len, header.sequence);
        self.survivors.push(Survivor { victim, record, key, whole, stored_len, sequence });
    }

    /// Sorts by key, and versions of a key from the newest to the oldest. Keys end up one after the other in memory, for
    /// all who walk along them.
    pub fn sort(&mut self, order: &KeyOrder) {
        let at = |place: u32| {
            let survivor = &self.survivors[place as usize];
            (self.key(survivor), survivor.sequence)
        };
        let places = places_by_key(order, end_of(&self.survivors), at);
        let mut survivors = Vec::with_capacity(self.survivors.len());
        let mut keys = Vec::with_capacity(self.keys.len());
        for place in places {
            let survivor = self.survivors[place as usize];
            survivors.push(Survivor { key: (end_of(&keys), survivor.key.1), ..survivor });
            keys.extend_from_slice(self.key(&survivor));
        }
        (self.survivors, self.keys) = (survivors, keys);
    }
}

fn end_of<T>(all: &[T]) -> u32 {
    u32::try_from(all.len()).expect("a batch is bounded far below 4 GiB")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::checksum::{FileKind, Seed};
    use crate::base::codec::Codec;
    use crate::base::comparator::{Bytewise, Descending};
    use crate::base::ids::CubeId;
    use crate::base::sync::Arc;
    use crate::vlog::format::{BatchPlace, RECORD_HEADER_BYTES, RecordHeader, RecordKind};

    const VALUE_BYTES: usize = 3;

    fn header(key: &[u8], number: u32) -> RecordHeader {
        RecordHeader {
            kind: RecordKind::Put,
            place: BatchPlace::ONLY,
            codec: Codec::None,
            key_len: key.len() as u16,
            stored_len: VALUE_BYTES as u32,
            sequence: Sequence(u64::from(number)),
            value_checksum: 0,
        }
    }

    proptest! {
        #[test]
        fn batches_are_sorted_by_key_and_then_newest_first(
            prefix in proptest::collection::vec(any::<u8>(), 0..4),
            keys in proptest::collection::vec(proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(255)], 0..11), 0..50),
            descending: bool,
        ) {
            let order = if descending { KeyOrder::new(Arc::new(Descending)) } else { KeyOrder::new(Arc::new(Bytewise)) };
            let keys: Vec<Vec<u8>> = keys.into_iter().map(|key| [&prefix[..], &key].concat()).collect();
            let seed = Seed::new(CubeId(1), FileKind::Segment, 1, 1);
            let mut batch = Batch::default();
            for (key, number) in keys.iter().zip(0..) {
                let header = header(key, number);
                let whole = [&header.encode(seed, 0, key)[..], key, &[7; VALUE_BYTES]].concat();
                let record = (number % 3 > 0).then_some(&whole[..]);
                batch.push(0, number, Head { header, key, record });
            }
            batch.sort(&order);
            for survivor in &batch.survivors {
                let (key, record) = (batch.key(survivor), batch.record(survivor));
                prop_assert_eq!(record.is_some(), survivor.record % 3 > 0);
                prop_assert!(record.is_none_or(|record| record[RECORD_HEADER_BYTES..].starts_with(key)));
            }
            let mut expected: Vec<(Vec<u8>, u32)> = keys.into_iter().zip(0..).collect();
            expected.sort_by(|(left, first), (right, second)| {
                order.compare_user(left, right).then(second.cmp(first))
            });
            let sorted: Vec<_> =
                batch.survivors.iter().map(|survivor| (batch.key(survivor).to_vec(), survivor.record)).collect();
            prop_assert_eq!(sorted, expected);
        }
    }
}
