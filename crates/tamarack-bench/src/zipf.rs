//! Numbers by Zipf's law: the n-th most frequent is drawn in proportion to `1 / n^0.99`, as YCSB does (Gray et al.,
//! "Quickly generating billion-record synthetic databases", 1994).

use crate::keys::Random;

const EXPONENT: f64 = 0.99;

/// Draws ranks below a count.
#[derive(Debug, Clone)]
pub struct Zipf {
    count: u64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// Ranks `0..count`.
    pub fn new(count: u64) -> Self {
        let zeta = zeta(count);
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - EXPONENT)) / (1.0 - zeta_of(1..=2) / zeta);
        Self { count, zeta, alpha: 1.0 / (1.0 - EXPONENT), eta }
    }

    /// A rank; 0 is the most frequent.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let uniform = (random.number() >> 11) as f64 / (1_u64 << 53) as f64;
        let place = uniform * self.zeta;
        if place < 1.0 || self.count == 1 {
            return 0;
        }
        if place < 1.0 + 0.5_f64.powf(EXPONENT) || self.count == 2 {
            return 1;
        }
        let rank = self.count as f64 * (self.eta * uniform - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.count - 1)
    }
}

/// The sum of the weights of `count` ranks: the first are added up, the rest is an integral, which is right to more digits
/// than anybody draws.
fn zeta(count: u64) -> f64 {
    const EXACT: u64 = 1_000_000;
    let exact = zeta_of(1..=count.min(EXACT));
    let integral = |to: f64| to.powf(1.0 - EXPONENT) / (1.0 - EXPONENT);
    if count <= EXACT { exact } else { exact + integral(count as f64 + 0.5) - integral(EXACT as f64 + 0.5) }
}

fn zeta_of(ranks: std::ops::RangeInclusive<u64>) -> f64 {
    ranks.map(|rank| (rank as f64).powf(-EXPONENT)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 1_000_000;

    /// How often each rank of so many was drawn.
    fn drawn(count: u64) -> Vec<u64> {
        let (zipf, mut random) = (Zipf::new(count), Random::new(1));
        let mut seen = vec![0; count as usize];
        (0..DRAWS).for_each(|_| seen[zipf.draw(&mut random) as usize] += 1);
        seen
    }

    /// How many standard deviations `found` draws are from the part of all that there should be.
    fn deviation(found: u64, part: f64) -> f64 {
        let draws = DRAWS as f64;
        (found as f64 - draws * part) / (draws * part * (1.0 - part)).sqrt()
    }

    #[test]
    fn the_first_two_ranks_have_their_exact_parts() {
        for count in [100, 10_000] {
            let seen = drawn(count);
            // Added up here anew, with the exponent as published.
            let sum: f64 = (1..=count).map(|rank| (rank as f64).powf(-0.99)).sum();
            for rank in [1, 2] {
                let off = deviation(seen[rank - 1], (rank as f64).powf(-0.99) / sum);
                assert!(off.abs() < 4.5, "rank {rank} of {count}: {off} standard deviations off");
            }
        }
    }

    #[test]
    fn all_ranks_up_to_one_have_the_part_of_the_published_method() {
        let count = 10_000;
        let seen = drawn(count);
        let sum: f64 = (1..=count).map(|rank| (rank as f64).powf(-0.99)).sum();
        let eta = (1.0 - (2.0 / count as f64).powf(0.01)) / (1.0 - (1.0 + 0.5_f64.powf(0.99)) / sum);
        for last in [10, 100, 1000, 5000] {
            let found: u64 = seen[..last as usize].iter().sum();
            // The inverse of the method's formula for the rank that belongs to a uniform number.
            let method = 1.0 - (1.0 - (last as f64 / count as f64).powf(0.01)) / eta;
            let off = deviation(found, method);
            assert!(off.abs() < 4.5, "up to rank {last}: {off} standard deviations off");
            // The method itself is near the law.
            let law = (1..=last).map(|rank| f64::from(rank).powf(-0.99)).sum::<f64>() / sum;
            assert!(
                (method / law - 1.0).abs() < 0.06,
                "up to rank {last}: {method} of the draws, {law} by the law"
            );
        }
    }

    #[test]
    fn the_sum_of_many_weights_is_right() {
        let exact: f64 = (1..=3_000_000_u64).rev().map(|rank| (rank as f64).powf(-0.99)).sum();
        assert!((zeta(3_000_000) / exact - 1.0).abs() < 1e-9);
    }

    #[test]
    fn few_ranks_are_no_trouble() {
        let mut random = Random::new(2);
        for count in 1..5 {
            let zipf = Zipf::new(count);
            assert!((0..1000).all(|_| zipf.draw(&mut random) < count));
        }
    }
}
