//! Which reads fetch many values: sorted by place, neighbours joined into one. Pure.

use std::ops::Range;

use super::format::record_len;
use crate::base::ids::SegmentId;
use crate::base::large_pages::LARGE_PAGE_BYTES;
use crate::base::pointer::ValuePointer;

/// A gap of at most this many bytes between two records is read along rather than skipped.
const GAP_BYTES_MAX: u64 = 16 * 1024;
/// One read fetches at most this many bytes, unless a single record is larger: little enough that what was read is still
/// in the processor's cache when it is checked, enough that the device reads in sequence.
pub(super) const RUN_BYTES_MAX: u64 = 256 * 1024;
/// The same past the system's cache, where nobody reads ahead: two fit into one large page, as whole sectors.
pub const RUN_BYTES_MAX_PAST_CACHE: u64 = LARGE_PAGE_BYTES / 2 - 32 * 1024;
/// A read of so many bytes is part of a walk along the log: the kernel may read ahead of it.
pub const WALK_BYTES_MIN: u64 = RUN_BYTES_MAX / 2;

/// One value wanted.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Whatever the caller knows it by.
    pub place: usize,
    /// Where it lies.
    pub pointer: ValuePointer,
    /// Where, among the caller's keys, the one is that it was written under.
    pub key: Range<usize>,
}

impl Wanted {
    /// Segment and offset, as one number.
    pub(super) fn position(&self) -> u64 {
        u64::from(self.pointer.segment.0) << 32 | u64::from(self.pointer.offset)
    }

    fn record_len(&self) -> u64 {
        record_len(self.key.len(), u64::from(self.pointer.stored_len))
    }
}

/// Records that one read fetches, in the order of their place.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// Where they are.
    pub segment: SegmentId,
    /// The first byte of the first ...
    pub start: u64,
    /// ... and the one behind the last.
    pub end: u64,
    /// Which of the wanted they are.
    pub members: Range<usize>,
    /// Whether the records have gaps between them and do not overlap: then their values can move together.
    pub has_gaps: bool,
}

impl Run {
    /// Bytes from the first record to the last.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether `next` goes on where it ends, or close behind.
    pub fn goes_on_with(&self, next: &Self) -> bool {
        self.segment == next.segment && next.start <= self.end + GAP_BYTES_MAX
    }

    /// Whether it is part of a walk along the log.
    pub fn is_walk(&self) -> bool {
        self.len() >= WALK_BYTES_MIN
    }
}

/// Groups `wanted`, sorted by place, into reads of up to `bytes_max`.
pub(super) fn plan(wanted: &[Wanted], bytes_max: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut overlap = false;
    for (at, want) in wanted.iter().enumerate() {
        let (segment, start) = (want.pointer.segment, u64::from(want.pointer.offset));
        let end = start + want.record_len();
        match runs.last_mut() {
            Some(run)
                if run.segment == segment
                    && start <= run.end + GAP_BYTES_MAX
                    && end.max(run.end) - run.start <= bytes_max =>
            {
                overlap |= start < run.end;
                run.has_gaps = !overlap && (run.has_gaps || start > run.end);
                run.end = run.end.max(end);
                run.members.end = at + 1;
            }
            _ => {
                overlap = false;
                runs.push(Run { segment, start, end, members: at..at + 1, has_gaps: false });
            }
        }
    }
    runs
}

/// `runs` in pieces, each of which goes along the log without a break.
pub(super) fn stretches(runs: &[Run]) -> impl Iterator<Item = &[Run]> {
    runs.chunk_by(Run::goes_on_with)
}

/// The piece that begins with run `at`, if one does.
pub(super) fn stretch_at(runs: &[Run], at: usize) -> Option<&[Run]> {
    let begins = at == 0 || !runs[at - 1].goes_on_with(&runs[at]);
    begins.then(|| stretches(&runs[at..]).next()).flatten()
}

/// Where such a piece begins and ends, if it is a walk along the log: one large value is none.
pub(super) fn walk(stretch: &[Run]) -> Option<(SegmentId, Range<u64>)> {
    let (first, last) = (stretch.first()?, stretch.last()?);
    let values = last.members.end - first.members.start;
    let is_walk = last.end - first.start >= WALK_BYTES_MIN && values > 1;
    is_walk.then_some((first.segment, first.start..last.end))
}

/// Whether most of `wanted` need a read of their own.
pub fn lie_apart(wanted: &[Wanted]) -> bool {
    let mut sorted = wanted.to_vec();
    sorted.sort_unstable_by_key(Wanted::position);
    plan(&sorted, RUN_BYTES_MAX).len() * 2 > wanted.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(segment: u32, offset: u32, stored_len: u32) -> Wanted {
        let pointer = ValuePointer { segment: SegmentId(segment), offset, stored_len };
        Wanted { place: 0, pointer, key: 0..3 }
    }

    fn runs(wanted: &[Wanted]) -> Vec<(u32, u64, u64, usize)> {
        plan(wanted, RUN_BYTES_MAX)
            .iter()
            .map(|run| (run.segment.0, run.start, run.end, run.members.len()))
            .collect()
    }

    #[test]
    fn neighbours_are_joined_and_distant_records_are_not() {
        let wanted = [want(1, 100, 73), want(1, 200, 73), want(1, 90_000, 73), want(2, 90_100, 73)];
        assert_eq!(runs(&wanted), [(1, 100, 300, 2), (1, 90_000, 90_100, 1), (2, 90_100, 90_200, 1)]);
    }

    #[test]
    fn a_read_has_a_largest_size() {
        let wanted = [want(1, 0, 200_000), want(1, 200_100, 200_000), want(1, 400_200, 5_000_000)];
        assert_eq!(runs(&wanted).len(), 3);
    }

    #[test]
    fn a_walk_goes_on_from_read_to_read() {
        let walks_of = |wanted: &[Wanted]| {
            let runs = plan(wanted, RUN_BYTES_MAX);
            let walks = stretches(&runs).filter_map(walk);
            walks.map(|(segment, stretch)| (segment.0, stretch)).collect::<Vec<_>>()
        };
        let wanted: Vec<_> = (0..900).map(|number| want(1, 1000 * number, 973)).collect();
        assert_eq!(walks_of(&wanted), [(1, 0..900_000)]);
        assert_eq!(walks_of(&wanted[..100]), [], "that is no walk");
        let apart = wanted[..400].iter().chain(&wanted[500..]);
        assert_eq!(walks_of(&[want(1, 0, 200_000)]), [], "nor is one value");
        let elsewhere = (0..200).map(|number| want(2, 1000 * number, 973));
        let both: Vec<_> = apart.cloned().chain(elsewhere).collect();
        assert_eq!(walks_of(&both), [(1, 0..400_000), (1, 500_000..900_000), (2, 0..200_000)]);
        let runs = plan(&both, RUN_BYTES_MAX);
        let at_their_begins = (0..runs.len()).filter_map(|at| stretch_at(&runs, at));
        assert!(at_their_begins.map(<[_]>::len).eq(stretches(&runs).map(<[_]>::len)));
    }

    #[test]
    fn the_same_record_may_be_wanted_twice() {
        let wanted = [want(1, 100, 73), want(1, 100, 73)];
        assert_eq!(runs(&wanted), [(1, 100, 200, 2)]);
    }

    #[test]
    fn only_records_apart_are_moved_together() {
        let has_gaps = |wanted: &[Wanted]| {
            plan(wanted, RUN_BYTES_MAX).iter().map(|run| run.has_gaps).collect::<Vec<_>>()
        };
        assert_eq!(has_gaps(&[want(1, 100, 73), want(1, 200, 73)]), [false]);
        assert_eq!(has_gaps(&[want(1, 100, 73), want(1, 201, 73)]), [true]);
        assert_eq!(has_gaps(&[want(1, 100, 73), want(1, 300, 73), want(1, 399, 73)]), [false]);
        assert_eq!(has_gaps(&[want(1, 100, 73), want(1, 100, 73), want(1, 300, 73)]), [false]);
        assert_eq!(has_gaps(&[want(1, 100, 73), want(2, 100, 73), want(2, 300, 73)]), [false, true]);
    }
}
