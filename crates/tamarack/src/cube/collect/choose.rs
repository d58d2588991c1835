//! Which segments to collect. Pure.

use std::cmp::Reverse;

use crate::base::ids::SegmentId;
use crate::base::options::GcPolicy;

/// A segment that may be collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The segment.
    pub id: SegmentId,
    /// Bytes of it that collecting could free if nothing were alive.
    pub bytes: u64,
    /// At most so many of them are alive.
    pub live_bytes: u64,
    /// How many operations ago it was written, about.
    pub age: u64,
}

impl Candidate {
    /// What collecting it gains for what it costs, after Rosenblum and Ousterhout (SOSP '91): dead bytes, held to stay so
    /// the longer the segment has been there, over bytes read and written. Age counts by its tenth root, not as it is: where
    /// all keys are overwritten alike it tells nothing, and choosing by it costs copies; where some are written more often
    /// than others, it tells which segments are about to die. Of the roots tried for either, this one copies least.
    fn benefit(&self) -> f64 {
        let alive = self.live_share();
        (1.0 - alive) * (self.age.max(1) as f64).powf(0.1) / (1.0 + alive)
    }

    /// The part of it that is alive; all of nothing.
    pub fn live_share(&self) -> f64 {
        if self.bytes == 0 { 1.0 } else { (self.live_bytes as f64 / self.bytes as f64).min(1.0) }
    }
}

/// The victims of one collection: the best candidate by `policy` of those of which at most `live_share_max` is alive,
/// and others behind it as long as their survivors fit into `output_bytes_max` together. Never the newest of all candidates, in
/// which most may die yet, unless it is the only one that is worth collecting.
pub fn choose(
    candidates: &[Candidate],
    policy: GcPolicy,
    live_share_max: f64,
    output_bytes_max: u64,
) -> Vec<SegmentId> {
    let mut worthwhile: Vec<&Candidate> =
        candidates.iter().filter(|candidate| candidate.live_share() <= live_share_max).collect();
    let newest = candidates.iter().min_by_key(|candidate| (candidate.age, Reverse(candidate.id)));
    if worthwhile.len() > 1 {
        worthwhile.retain(|candidate| Some(*candidate) != newest);
    }
    worthwhile.sort_by(|left, right| match policy {
        GcPolicy::Tail => right.age.cmp(&left.age).then(left.id.cmp(&right.id)),
        GcPolicy::CostBenefit | GcPolicy::Off => {
            right.benefit().total_cmp(&left.benefit()).then(left.id.cmp(&right.id))
        }
    });
    let mut output = 0_u64;
    let mut victims = Vec::new();
    for candidate in worthwhile {
        output = output.saturating_add(candidate.live_bytes);
        if !victims.is_empty() && output > output_bytes_max {
            break;
        }
        victims.push(candidate.id);
    }
    victims
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: u32, live_bytes: u64, age: u64) -> Candidate {
        Candidate { id: SegmentId(id), bytes: 100, live_bytes, age }
    }

    fn chosen(candidates: &[Candidate]) -> Vec<u32> {
        choose(candidates, GcPolicy::CostBenefit, 0.8, 100).iter().map(|id| id.0).collect()
    }

    #[test]
    fn the_deadest_of_one_age_go_first_and_fill_one_output() {
        let candidates = [candidate(1, 60, 9), candidate(2, 30, 9), candidate(3, 10, 9), candidate(4, 79, 9)];
        assert_eq!(chosen(&candidates), [3, 2, 1]);
        assert_eq!(chosen(&[candidate(4, 79, 9), candidate(5, 100, 1)]), [4], "one is always taken");
    }

    #[test]
    fn old_segments_go_before_young_ones_that_are_a_little_deader() {
        let newest = candidate(9, 100, 1);
        assert_eq!(chosen(&[candidate(1, 50, 1), candidate(2, 60, 1000), newest]), [2]);
        assert_eq!(chosen(&[candidate(1, 0, 1000), candidate(2, 60, 1001), newest]), [1, 2]);
    }

    #[test]
    fn the_newest_of_all_waits_as_long_as_another_is_worth_it() {
        let newest = candidate(3, 0, 1);
        assert_eq!(chosen(&[newest, candidate(2, 79, 2), candidate(1, 79, 3)]), [1]);
        assert_eq!(chosen(&[newest, candidate(2, 79, 2)]), [2]);
        assert_eq!(chosen(&[newest, candidate(2, 81, 2)]), [3], "nothing else is");
        assert_eq!(
            chosen(&[candidate(2, 10, 2), candidate(1, 20, 2), candidate(3, 100, 1)]),
            [2, 1],
            "it is another"
        );
        assert_eq!(chosen(&[candidate(4, 0, 1), newest]), [3], "of one age the one with the larger id");
    }

    #[test]
    fn the_tail_is_the_oldest() {
        let candidates = [candidate(1, 0, 2), candidate(2, 70, 9), candidate(3, 0, 1)];
        assert_eq!(choose(&candidates, GcPolicy::Tail, 0.8, 70), [SegmentId(2), SegmentId(1)]);
    }

    #[test]
    fn what_is_mostly_alive_stays() {
        assert_eq!(chosen(&[candidate(1, 81, 1_000_000)]), []);
        assert_eq!(chosen(&[Candidate { bytes: 0, ..candidate(1, 0, 1) }]), [], "there is nothing to free");
        assert_eq!(chosen(&[]), []);
    }
}
