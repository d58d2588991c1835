//! Tests of the choice of segments that are sorted together.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// Keys of a full segment. Each counts as a byte.
const FULL: usize = 64;

fn piece(id: u32, bytes: u64, runs: u32, first: u32, last: u32) -> Piece {
    Piece { id: SegmentId(id), bytes, noted_bytes: bytes, runs, first, last }
}

fn chosen(pieces: &[Piece], runs_max: u32, bytes_max: u64) -> Vec<u32> {
    let limits = Limits { runs_max, bytes_max, noted_bytes_max: u64::MAX };
    choose(pieces, limits, |_| true).iter().map(|id| id.0).collect()
}

#[test]
fn runs_are_counted_where_most_lie_over_one_key() {
    assert_eq!(most_runs(&[]), 0);
    let apart = [piece(1, 9, 1, 0, 4), piece(2, 9, 1, 5, 7), piece(3, 9, 1, 8, 8)];
    assert_eq!(most_runs(&apart), 1);
    let touching = [piece(1, 9, 1, 0, 5), piece(2, 9, 3, 5, 7), piece(3, 9, 1, 6, 8)];
    assert_eq!(most_runs(&touching), 4);
}

#[test]
fn what_is_within_the_bound_stays() {
    let pieces: Vec<_> = (0..8).map(|id| piece(id, 10, 1, 0, 9)).collect();
    assert_eq!(chosen(&pieces, 8, 1000), []);
    assert_eq!(chosen(&pieces, 7, 1000), [0, 1, 2, 3, 4, 5, 6, 7], "all are alike");
    assert_eq!(chosen(&pieces, 7, 25), [0, 1], "as many as fit");
    assert_eq!(chosen(&pieces, 7, 15), [], "no two do");
}

#[test]
fn no_job_has_more_keys_than_fit_into_memory() {
    let large = (0..6).map(|id| Piece { noted_bytes: 1, ..piece(id, 10, 1, 0, 9) });
    let pieces: Vec<_> = large.chain((6..12).map(|id| piece(id, 10, 1, 0, 9))).collect();
    let chosen =
        |noted_bytes_max| choose(&pieces, Limits { runs_max: 3, bytes_max: 1000, noted_bytes_max }, |_| true);
    assert_eq!(chosen(u64::MAX).len(), 12);
    assert_eq!(chosen(26).len(), 8, "six of one byte, and two of ten");
    assert_eq!(chosen(5).len(), 5);
}

#[test]
fn what_is_not_sorted_goes_first_even_alone() {
    let pieces = [piece(1, 10, 1, 0, 9), piece(2, 10, 1, 0, 9), piece(3, 50, 9, 0, 9)];
    assert_eq!(chosen(&pieces, 8, 50), [3]);
    assert_eq!(chosen(&pieces, 11, 50), []);
}

#[test]
fn the_dense_are_left_alone_while_the_sparse_will_do() {
    let dense = (0..8).map(|id| piece(id, 100, 1, 0, 9));
    let sparse = (8..12).map(|id| piece(id, 10, 1, 0, 9));
    let pieces: Vec<_> = dense.chain(sparse).collect();
    assert_eq!(chosen(&pieces, 9, 1000), [8, 9, 10, 11]);
    assert_eq!(chosen(&pieces, 8, 200), [0, 8, 9, 10, 11], "one has to go with them");
    assert_eq!(
        chosen(&pieces, 8, 1000).len(),
        12,
        "and then its like, or the next would soon have to go again"
    );
}

#[test]
fn what_spans_much_is_merged_with_all_it_overlaps() {
    let dense = (0..4).map(|id| piece(id, 10, 1, 10 * id, 10 * id + 9));
    let pieces: Vec<_> = dense.chain([piece(4, 10, 1, 0, 39)]).collect();
    assert_eq!(chosen(&pieces, 1, 1000), [0, 1, 2, 3, 4]);
    assert_eq!(chosen(&pieces, 1, 35), [0, 1, 4]);
}

#[test]
fn where_the_worst_is_not_worth_it_the_next_may_be() {
    let pieces = [
        piece(1, 10, 1, 0, 1),
        piece(2, 10, 1, 0, 1),
        piece(3, 10, 1, 0, 1),
        piece(4, 5, 1, 5, 6),
        piece(5, 5, 1, 5, 6),
    ];
    let limits = Limits { runs_max: 1, bytes_max: 30, noted_bytes_max: u64::MAX };
    assert_eq!(choose(&pieces, limits, |victims| victims.len() == 2), [SegmentId(4), SegmentId(5)]);
    assert_eq!(choose(&pieces, limits, |_| false), []);
}

/// Segments as they are: the keys of each, in the order of their places.
#[derive(Debug, Default)]
struct World {
    segments: Vec<(SegmentId, Vec<u32>)>,
    last: u32,
    written: u64,
    rewritten: u64,
}

impl World {
    fn add(&mut self, keys: &[u32]) {
        for keys in keys.chunks(FULL) {
            self.last += 1;
            self.segments.push((SegmentId(self.last), keys.to_vec()));
        }
    }

    fn pieces(&self) -> Vec<Piece> {
        let piece = |(id, keys): &(SegmentId, Vec<u32>)| Piece {
            id: *id,
            bytes: keys.len() as u64,
            noted_bytes: keys.len() as u64,
            runs: 1 + keys.windows(2).filter(|pair| pair[0] > pair[1]).count() as u32,
            first: *keys.iter().min().expect("no segment is empty"),
            last: *keys.iter().max().expect("no segment is empty"),
        };
        self.segments.iter().map(piece).collect()
    }

    fn depth_at(&self, key: u32) -> u32 {
        self.pieces().iter().filter(|piece| piece.covers(key)).map(|piece| piece.runs).sum()
    }

    /// Sorts `victims` into disjoint segments.
    fn sort(&mut self, victims: &[SegmentId]) {
        let (gone, stay) =
            std::mem::take(&mut self.segments).into_iter().partition(|(id, _)| victims.contains(id));
        self.segments = stay;
        let mut keys: Vec<u32> = Vec::new();
        gone.into_iter().for_each(|(_, more): (SegmentId, Vec<u32>)| keys.extend(more));
        keys.sort_unstable();
        self.rewritten += keys.len() as u64;
        self.add(&keys);
    }
}

proptest! {
    /// It comes to an end with no more runs than allowed; no job is too large, or makes more runs anywhere; and bytes
    /// are rewritten a few times.
    #[test]
    fn runs_become_few_at_bounded_cost(
        seed: u64,
        batches in proptest::collection::vec((1..12_usize, 0..3_u8), 1..12),
        runs_max in 1..10_u32,
        segments in 4..12_u64,
    ) {
        let limits = Limits { runs_max, bytes_max: segments * FULL as u64, noted_bytes_max: u64::MAX };
        let mut world = World::default();
        let mut seen = HashSet::new();
        let mut next = seed | 1;
        let mut random = || {
            next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (next >> 33) as u32
        };
        for (count, kind) in batches {
            // In all orders, in one, or in a narrow range. No two keys are alike: those would have to stay together.
            let (from, width) = if kind == 2 { (random(), 1 << 24) } else { (0, u32::MAX) };
            let mut keys: Vec<u32> = (0..count * FULL).map(|_| from.wrapping_add(random() % width)).collect();
            keys.retain(|key| seen.insert(*key));
            if kind == 1 {
                keys.sort_unstable();
            }
            world.written += keys.len() as u64;
            world.add(&keys);
            let mut jobs = 0;
            loop {
                let pieces = world.pieces();
                let victims = choose(&pieces, limits, |_| true);
                if victims.is_empty() {
                    break;
                }
                let of_job: Vec<_> = pieces.iter().filter(|piece| victims.contains(&piece.id)).collect();
                prop_assert!(of_job.iter().map(|piece| piece.bytes).sum::<u64>() <= limits.bytes_max);
                let keys: Vec<u32> = pieces.iter().flat_map(|piece| [piece.first, piece.last]).collect();
                let before: Vec<u32> = keys.iter().map(|&key| world.depth_at(key)).collect();
                world.sort(&victims);
                for (&key, before) in keys.iter().zip(before) {
                    prop_assert!(world.depth_at(key) <= before, "more runs over {key}");
                }
                jobs += 1;
                prop_assert!(jobs < 10_000, "it comes to an end");
            }
            prop_assert!(most_runs(&world.pieces()) <= runs_max);
        }
        if runs_max >= 4 {
            prop_assert!(world.rewritten <= 5 * world.written, "{} for {}", world.rewritten, world.written);
        }
    }
}
