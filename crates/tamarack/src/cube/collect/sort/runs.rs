//! Which segments to sort together. Pure.
//!
//! A segment counts as so many *runs* as its records, read from the first to the last, begin again with a smaller key.
//! Over a key lie the runs of all segments whose key range has it. Where these are too many, some of the segments there
//! are merged. Outputs are disjoint in key range, so wherever the victims lay there is one run afterwards; nowhere are
//! there more than before.
//!
//! Which of them: those that are not sorted first, as sorting them gains most; then those with the fewest bytes for the
//! keys that they span, as long as the next one is no denser than all that were taken together. That is size-tiered
//! compaction (Bigtable's merging compaction, Cassandra's size-tiered strategy) with density in the place of size: what is
//! merged with its like is about as many times denser as there were segments, so that a byte is rewritten
//! as often as the logarithm of all data over one job's says. What has to be taken besides, to keep the bound, costs more,
//! but no job takes more than [`Limits`] allow.

use std::collections::BTreeSet;

use crate::base::ids::SegmentId;

/// A segment, as far as the choice goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The segment.
    pub id: SegmentId,
    /// Bytes of records in it that are alive.
    pub bytes: u64,
    /// Bytes of memory that their keys take while they are sorted, and what is noted beside these, about.
    pub noted_bytes: u64,
    /// The runs in it, at least 1: how many, it may be estimated.
    pub runs: u32,
    /// The rank of its smallest key among the keys that are known of all segments ...
    pub first: u32,
    /// ... and of its largest.
    pub last: u32,
}

impl Piece {
    fn covers(&self, rank: u32) -> bool {
        self.first <= rank && rank <= self.last
    }

    /// Bytes for each rank that it spans.
    fn density(&self) -> f64 {
        self.bytes as f64 / (f64::from(self.last - self.first) + 1.0)
    }
}

/// What the choice keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Over no key should there be more runs.
    pub runs_max: u32,
    /// The victims of one job hold at most so many live bytes ...
    pub bytes_max: u64,
    /// ... whose keys take so many bytes of memory.
    pub noted_bytes_max: u64,
}

/// The most runs that lie over one key.
pub fn most_runs(pieces: &[Piece]) -> u32 {
    depths(pieces).into_iter().map(|(depth, _)| depth).max().unwrap_or(0)
}

/// The victims of the next job that `is_worth` it: around the key with the most runs, if these are too many. Empty if
/// there is no such job.
pub fn choose(pieces: &[Piece], limits: Limits, is_worth: impl Fn(&[SegmentId]) -> bool) -> Vec<SegmentId> {
    let mut crowded = depths(pieces);
    crowded.retain(|&(depth, _)| depth > limits.runs_max);
    crowded.sort_by_key(|&(depth, rank)| (std::cmp::Reverse(depth), rank));
    let mut refused = BTreeSet::new();
    for (_, rank) in crowded {
        let victims = gather(pieces, rank, limits);
        if victims.is_empty() || refused.contains(&victims) {
            continue;
        }
        if is_worth(&victims) {
            return victims;
        }
        refused.insert(victims);
    }
    Vec::new()
}

/// How many runs lie over each rank at which a piece begins: nowhere do they become more.
fn depths(pieces: &[Piece]) -> Vec<(u32, u32)> {
    let mut starts: Vec<&Piece> = pieces.iter().collect();
    let mut ends = starts.clone();
    starts.sort_by_key(|piece| piece.first);
    ends.sort_by_key(|piece| piece.last);
    let mut ended = ends.into_iter().peekable();
    let (mut depth, mut depths) = (0_u32, Vec::new());
    for beginning in starts.chunk_by(|left, right| left.first == right.first) {
        let rank = beginning[0].first;
        while let Some(piece) = ended.next_if(|piece| piece.last < rank) {
            depth -= piece.runs;
        }
        depth += beginning.iter().map(|piece| piece.runs).sum::<u32>();
        depths.push((depth, rank));
    }
    depths
}

/// Victims that are worth merging around `rank`; empty if no two fit.
fn gather(pieces: &[Piece], rank: u32, limits: Limits) -> Vec<SegmentId> {
    let mut victims =
        Victims { taken: Vec::new(), ids: BTreeSet::new(), bytes: 0, noted_bytes: 0, density: 0.0 };
    let covering = sparsest_first(pieces, rank);
    let excess = covering.iter().map(|piece| piece.runs).sum::<u32>().saturating_sub(limits.runs_max);
    for piece in covering {
        let wanted = victims.runs_less() < excess || piece.runs > 1 || piece.density() <= victims.density;
        if piece.bytes > limits.bytes_max || piece.noted_bytes > limits.noted_bytes_max {
            // No job takes it.
            continue;
        }
        if !wanted || !victims.take(piece, limits) {
            break;
        }
    }
    if victims.runs_less() == 0 {
        return Vec::new();
    }
    victims.extend(pieces, rank, limits);
    victims.ids.into_iter().collect()
}

/// The pieces over `rank` in the order in which they are taken.
fn sparsest_first(pieces: &[Piece], rank: u32) -> Vec<&Piece> {
    let mut covering: Vec<&Piece> = pieces.iter().filter(|piece| piece.covers(rank)).collect();
    covering.sort_by(|left, right| {
        let unsorted = (right.runs > 1).cmp(&(left.runs > 1));
        unsorted.then(left.density().total_cmp(&right.density())).then(left.id.cmp(&right.id))
    });
    covering
}

/// Victims as they are gathered. All of them together leave no gap between their key ranges.
struct Victims<'a> {
    taken: Vec<&'a Piece>,
    ids: BTreeSet<SegmentId>,
    bytes: u64,
    noted_bytes: u64,
    density: f64,
}

impl<'a> Victims<'a> {
    /// How many runs merging them saves where all of them lie.
    fn runs_less(&self) -> u32 {
        self.taken.iter().map(|piece| piece.runs).sum::<u32>().saturating_sub(1)
    }

    fn take(&mut self, piece: &'a Piece, limits: Limits) -> bool {
        let fits = self.bytes.saturating_add(piece.bytes) <= limits.bytes_max
            && self.noted_bytes.saturating_add(piece.noted_bytes) <= limits.noted_bytes_max;
        if fits {
            self.bytes += piece.bytes;
            self.noted_bytes += piece.noted_bytes;
            self.density += piece.density();
            self.ids.insert(piece.id);
            self.taken.push(piece);
        }
        fits
    }

    /// Takes more, to the right of `rank`, where there would still be too many runs over what was taken: a segment that spans
    /// much is rewritten once with all that it overlaps, rather than once with each.
    fn extend(&mut self, pieces: &'a [Piece], rank: u32, limits: Limits) {
        let mut starts: Vec<u32> =
            pieces.iter().map(|piece| piece.first).filter(|&first| first > rank).collect();
        starts.sort_unstable();
        starts.dedup();
        for start in starts {
            if !self.taken.iter().any(|piece| piece.covers(start)) {
                return;
            }
            let mut others = sparsest_first(pieces, start);
            others.retain(|piece| !self.ids.contains(&piece.id));
            let mut left = others.iter().map(|piece| piece.runs).sum::<u32>() + 1;
            for piece in others {
                if left <= limits.runs_max {
                    break;
                }
                if !self.take(piece, limits) {
                    return;
                }
                left -= piece.runs;
            }
        }
    }
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
