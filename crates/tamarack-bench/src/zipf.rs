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
        let uniform = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
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

    #[test]
    fn ranks_follow_the_law() {
        const DRAWS: u64 = 400_000;
        let (count, mut random) = (1000, Random::new(1));
        let zipf = Zipf::new(count);
        let mut seen = vec![0_u64; count as usize];
        for _ in 0..DRAWS {
            seen[zipf.draw(&mut random) as usize] += 1;
        }
        for rank in [1, 2, 10, 100] {
            let expected = DRAWS as f64 / zeta(count) / f64::from(rank).powf(EXPONENT);
            let found = seen[rank as usize - 1] as f64;
            assert!((found / expected - 1.0).abs() < 0.3, "rank {rank}: {found} of {expected}");
        }
        let head: u64 = seen[..200].iter().sum();
        let expected = zeta(200) / zeta(count);
        assert!((head as f64 / DRAWS as f64 - expected).abs() < 0.02, "{head} of {DRAWS} in the first fifth");
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
