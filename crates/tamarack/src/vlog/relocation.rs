//! Relocation tables: where the records of a segment are, after garbage collection has copied them.
//!
//! A table is the value of a record of the segment that holds the copies (`docs/formats/segment.md`). In memory it
//! takes eight bytes for each record (8.3 with all around it, in tables of a thousand records: `tests/relocations.rs`); how
//! many tables are in memory is bounded by the cache of the [`SegmentReader`](super::reader::SegmentReader), and
//! where all do not fit, compactions dissolve them (`index/compact/dissolve.rs`).

use crate::base::coding::{put_varint, take_varint, take_varint_u32};

/// Where records are: pairs of the offset in the segment they were moved from, ascending, and the present one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relocations {
    pairs: Vec<(u32, u32)>,
}

impl Relocations {
    /// A table of `pairs` in any order, each former offset once.
    pub fn new(mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        debug_assert!(pairs.is_sorted_by(|left, right| left.0 < right.0), "a record is moved once");
        Self { pairs }
    }

    /// Where the record is that was at `offset`; `None` if it was not moved.
    ///
    /// Records are mostly of about the same length, so that a record's rank follows from its offset: the search begins
    /// where it should be, and doubles its steps from there.
    pub fn find(&self, offset: u32) -> Option<u32> {
        let (first, last) = (self.pairs.first()?.0, self.pairs.last()?.0);
        if offset < first || offset > last {
            return None;
        }
        let share = |distance: u32| u64::from(distance) * (self.pairs.len() as u64 - 1);
        let guess = (share(offset - first) / u64::from((last - first).max(1))) as usize;
        let (mut low, mut high, mut step) = (guess, guess, 1);
        while self.pairs[low].0 > offset {
            high = low;
            low = low.saturating_sub(step);
            step *= 2;
        }
        while self.pairs[high].0 < offset {
            low = high;
            high = (high + step).min(self.pairs.len() - 1);
            step *= 2;
        }
        let near = &self.pairs[low..=high];
        let at = near.binary_search_by_key(&offset, |&(before, _)| before).ok()?;
        Some(near[at].1)
    }

    /// Where the records are that this table tells of, after they were moved once more as `onward` says. Those that were
    /// left behind are not in it.
    pub fn then(&self, onward: &Self) -> Self {
        let pair = |&(before, now): &(u32, u32)| Some((before, onward.find(now)?));
        Self { pairs: self.pairs.iter().filter_map(pair).collect() }
    }

    /// Bytes of memory it takes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.pairs.capacity() * size_of::<(u32, u32)>()
    }

    /// The value of its record: how many there are, and for each the distance of its former offset from the one
    /// before and its present offset, in varints.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.pairs.len() * 6 + 5);
        put_varint(&mut out, self.pairs.len() as u64);
        let mut previous = 0;
        for &(before, now) in &self.pairs {
            put_varint(&mut out, u64::from(before - previous));
            put_varint(&mut out, u64::from(now));
            previous = before;
        }
        out
    }

    /// Decodes a whole value; `None` if it encodes no table.
    pub fn decode(mut input: &[u8]) -> Option<Self> {
        let input = &mut input;
        let count = take_varint(input).filter(|&count| count <= input.len() as u64 / 2)?;
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(count as usize);
        let mut before = 0_u32;
        for _ in 0..count {
            let distance = take_varint_u32(input)?;
            if distance == 0 && !pairs.is_empty() {
                return None;
            }
            before = before.checked_add(distance)?;
            pairs.push((before, take_varint_u32(input)?));
        }
        input.is_empty().then_some(Self { pairs })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tables_round_trip_and_find() {
        for pairs in [vec![], vec![(80, 80)], vec![(5000, 80), (80, u32::MAX), (u32::MAX, 90)]] {
            let table = Relocations::new(pairs.clone());
            assert_eq!(Relocations::decode(&table.encode()), Some(table.clone()));
            for (before, now) in pairs {
                assert_eq!(table.find(before), Some(now));
                assert_eq!(table.find(before - 1), None);
            }
        }
    }

    proptest! {
        #[test]
        fn a_record_is_found_wherever_it_is(
            before in prop::collection::btree_set(prop_oneof![0..200_u32, 0..u32::MAX, u32::MAX - 9..=u32::MAX], 0..60),
            others in prop::collection::vec(any::<u32>(), 20),
        ) {
            let table = Relocations::new(before.iter().map(|&offset| (offset, !offset)).collect());
            for offset in before.iter().copied().chain(others).chain([0, 1, 199, u32::MAX]) {
                prop_assert_eq!(table.find(offset), before.contains(&offset).then_some(!offset));
            }
        }
    }

    #[test]
    fn tables_follow_one_another() {
        let first = Relocations::new(vec![(80, 500), (90, 80), (100, 300)]);
        let onward = Relocations::new(vec![(80, 81), (300, 80), (700, 90)]);
        assert_eq!(first.then(&onward), Relocations::new(vec![(90, 81), (100, 80)]));
    }

    #[test]
    fn other_bytes_are_no_table() {
        let whole = Relocations::new(vec![(80, 100), (300, 80)]).encode();
        for len in 0..whole.len() {
            assert_eq!(Relocations::decode(&whole[..len]), None, "{len} bytes");
        }
        assert_eq!(Relocations::decode(&[&whole[..], &[0]].concat()), None, "a byte too many");
        assert_eq!(Relocations::decode(&[2, 80, 1, 0, 1]), None, "the same offset twice");
        assert_eq!(
            Relocations::decode(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1, 1]),
            None,
            "more than there are bytes"
        );
    }
}
