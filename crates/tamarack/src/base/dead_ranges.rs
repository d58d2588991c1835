//! The dead ranges of a segment: stretches of whole records that nobody will ever read again, given back to the file
//! system where they cover whole blocks. What stands there is not the log any more, be it zeros or the old bytes.
//!
//! Owns: what such a map may look like. The manifest stores it, versions carry it, readers of segments ask it.
//! Invariant (I-13): ranges are not empty, ascend, do not touch, lie behind a segment's header, and begin and end where
//! records do.

use std::ops::Range;

use super::sync::Arc;

/// Bytes of the header with which every segment begins: no record lies before.
pub const FIRST_RECORD: u64 = 80;

/// The dead ranges of one segment. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadRanges {
    ranges: Arc<Vec<Range<u64>>>,
}

impl DeadRanges {
    /// A map of `ranges`.
    ///
    /// # Errors
    /// Says which of them cannot be.
    pub fn new(ranges: Vec<Range<u64>>) -> Result<Self, String> {
        let mut free = FIRST_RECORD;
        for (number, range) in ranges.iter().enumerate() {
            if range.start >= range.end {
                return Err(format!("the dead range at {} is empty", range.start));
            }
            // Behind another range a record stands that is not dead: else both were one.
            if range.start < free || (number > 0 && range.start == free) {
                return Err(format!("a dead range begins at {}, which is not behind {free}", range.start));
            }
            free = range.end;
        }
        Ok(Self { ranges: Arc::new(ranges) })
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().cloned()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    /// Where the last one ends; 0 if there are none.
    pub fn end(&self) -> u64 {
        self.ranges.last().map_or(0, |range| range.end)
    }

    /// Bytes in all of them.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// The range that has a byte of `place`.
    pub fn find(&self, place: &Range<u64>) -> Option<Range<u64>> {
        let at = self.ranges.partition_point(|range| range.end <= place.start);
        self.ranges.get(at).filter(|range| range.start < place.end).cloned()
    }

    /// Whether the record at `offset` is dead.
    pub fn contains(&self, offset: u64) -> bool {
        self.find(&(offset..offset + 1)).is_some()
    }

    /// Whether everything in `other` is in these, too.
    pub fn cover(&self, other: &Self) -> bool {
        other.iter().all(|range| {
            self.find(&range).is_some_and(|found| found.start <= range.start && range.end <= found.end)
        })
    }

    /// The stretches of `all` that are not dead.
    pub fn between(&self, all: Range<u64>) -> Vec<Range<u64>> {
        let mut stretches = Vec::with_capacity(self.count() + 1);
        let mut start = all.start;
        for range in self.iter() {
            stretches.push(start..range.start);
            start = range.end;
        }
        stretches.push(start..all.end);
        stretches.retain(|stretch| stretch.start < stretch.end);
        stretches
    }

    /// What a file system with blocks of `block` bytes takes back of them.
    pub fn holes(&self, block: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        self.iter().filter_map(move |range| hole(&range, block))
    }

    /// Bytes that it takes back.
    pub fn hole_bytes(&self, block: u64) -> u64 {
        self.holes(block).map(|hole| hole.end - hole.start).sum()
    }
}

/// The whole blocks in `range`.
pub fn hole(range: &Range<u64>, block: u64) -> Option<Range<u64>> {
    let block = block.max(1);
    let hole = range.start.checked_next_multiple_of(block)?..range.end / block * block;
    (hole.start < hole.end).then_some(hole)
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of one range is what is meant")]
mod tests {
    use super::*;

    fn ranges(ranges: &[Range<u64>]) -> DeadRanges {
        DeadRanges::new(ranges.to_vec()).expect("are in order")
    }

    /// I-13.
    #[test]
    fn what_overlaps_touches_or_reaches_into_the_header_is_no_map() {
        for bad in [
            vec![79..100],
            vec![100..100],
            vec![Range { start: 200, end: 100 }],
            vec![100..200, 150..300],
            vec![100..200, 200..300],
            vec![300..400, 100..200],
        ] {
            assert!(DeadRanges::new(bad.clone()).is_err(), "{bad:?}");
        }
        assert_eq!(ranges(&[80..100, 101..300]).bytes(), 219);
    }

    #[test]
    fn places_are_found_and_the_rest_is_between() {
        let dead = ranges(&[100..200, 300..400]);
        let found: Vec<_> = [99, 100, 199, 200, 299, 300, 399, 400].map(|at| dead.contains(at)).into();
        assert_eq!(found, [false, true, true, false, false, true, true, false]);
        assert_eq!(dead.find(&(50..101)), Some(100..200));
        assert_eq!(dead.find(&(200..300)), None);
        assert_eq!(dead.between(80..500), [80..100, 200..300, 400..500]);
        assert_eq!(ranges(&[80..200, 300..500]).between(80..500), [200..300]);
        assert_eq!(DeadRanges::default().between(80..500), [80..500]);
        assert!(dead.cover(&ranges(&[100..150])) && dead.cover(&DeadRanges::default()));
        assert!(!dead.cover(&ranges(&[100..201])) && !DeadRanges::default().cover(&dead));
    }

    #[test]
    fn holes_are_whole_blocks() {
        let dead = ranges(&[100..4096, 5000..12_288, 20_000..24_000, 24_576..32_768]);
        assert_eq!(dead.holes(4096).collect::<Vec<_>>(), [8192..12_288, 24_576..32_768]);
        assert_eq!(dead.hole_bytes(4096), 3 * 4096);
        assert_eq!(hole(&(0..10), 0), Some(0..10));
    }
}
