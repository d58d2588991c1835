//! Where the records of segments that are sorted are now: what compactions replace pointers by.

use crate::base::error::Result;
use crate::base::ids::SegmentId;
use crate::base::pointer::ValuePointer;
use crate::base::segment::Relocate;
use crate::base::sync::Arc;
use crate::index::Collection;
use crate::vlog::lease::Lease;

/// The copies of the records of some segments. Takes twelve bytes of memory for each, and exists in memory alone.
#[derive(Debug)]
pub struct Copies {
    victims: Vec<SegmentId>,
    /// By victim: offset before, segment and offset now.
    places: Vec<Vec<(u32, SegmentId, u32)>>,
}

impl Copies {
    /// None yet of the records of `victims`.
    pub fn new(victims: impl Iterator<Item = SegmentId>) -> Self {
        let victims: Vec<_> = victims.collect();
        Self { places: vec![Vec::new(); victims.len()], victims }
    }

    /// The record at `at` of the victim of that `number` has its copy in segment `id` at `now`.
    pub fn add(&mut self, number: usize, at: u32, id: SegmentId, now: u32) {
        self.places[number].push((at, id, now));
    }

    /// There are no more.
    pub fn seal(&mut self) {
        self.places.iter_mut().for_each(|places| places.sort_unstable());
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.places.iter().map(|places| places.len() as u64).sum()
    }

    /// Where the record at `place` is now; `None` if it is of a victim and has no copy.
    fn find(&self, place: ValuePointer) -> Option<ValuePointer> {
        let Some(number) = self.victims.iter().position(|&victim| victim == place.segment) else {
            return Some(place);
        };
        let places = &self.places[number];
        let found = places.binary_search_by_key(&place.offset, |&(at, ..)| at).ok()?;
        let (_, segment, offset) = places[found];
        Some(ValuePointer { segment, offset, ..place })
    }
}

/// Copies that nobody collects or drops, and the segments that they were made of neither, as long as somebody may write pointers to them.
#[derive(Debug)]
pub struct HeldCopies {
    copies: Copies,
    _collection: Collection,
}

impl HeldCopies {
    /// The copies that `collection` has added.
    pub fn new(copies: Copies, collection: Collection) -> Self {
        Self { copies, _collection: collection }
    }
}

/// Leads to where records are by relocation tables, and from there to their copies. A compaction has it until its outputs are
/// installed, whatever becomes of the others that replace pointers.
#[derive(Debug)]
pub struct ToCopies {
    pub lease: Arc<Lease>,
    pub held: Arc<HeldCopies>,
}

impl Relocate for ToCopies {
    fn relocate(&self, table: ValuePointer, pointer: ValuePointer) -> Result<Option<ValuePointer>> {
        self.lease.relocate(table, pointer)
    }

    fn onward(&self, place: ValuePointer) -> Option<ValuePointer> {
        self.held.copies.find(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_lead_to_their_copies_and_others_to_themselves() {
        let (first, second, cold) = (SegmentId(1), SegmentId(2), SegmentId::COLD_FIRST);
        let mut copies = Copies::new([first, second].into_iter());
        copies.add(1, 900, cold, 80);
        copies.add(1, 80, cold, 500);
        copies.add(0, 80, cold, 90);
        copies.seal();
        let at = |segment, offset| ValuePointer { segment, offset, stored_len: 7 };
        assert_eq!(copies.find(at(second, 80)), Some(at(cold, 500)));
        assert_eq!(copies.find(at(second, 900)), Some(at(cold, 80)));
        assert_eq!(copies.find(at(first, 80)), Some(at(cold, 90)));
        assert_eq!(copies.find(at(first, 900)), None, "left behind");
        assert_eq!(copies.find(at(SegmentId(3), 900)), Some(at(SegmentId(3), 900)));
        assert_eq!(copies.len(), 3);
    }
}
