//! Which keys a benchmark uses: zero-padded decimal numbers, taken in order, permuted, or drawn at random.

/// Mixes the bits of `number`: the finaliser of SplitMix64, a bijection.
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// A fast generator of random numbers (SplitMix64). Good for workloads, not for secrets.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: mix(seed) }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `bound`, all equally likely but for a bias too small to measure.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }
}

/// A random permutation of `0..count` that needs no memory: a Feistel network over the smallest square of a
/// power of two that is large enough, applied again while the result is too large.
#[derive(Debug, Clone)]
pub struct Permutation {
    count: u64,
    half_bits: u32,
    round_keys: [u64; 4],
}

impl Permutation {
    /// The permutation of `0..count` that belongs to `seed`.
    pub fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let mut random = Random::new(seed);
        Self {
            count,
            half_bits: bits.div_ceil(2).max(1),
            round_keys: std::array::from_fn(|_| random.number()),
        }
    }

    /// Where `number` goes.
    pub fn at(&self, number: u64) -> u64 {
        assert!(number < self.count, "the permutation is defined below its count");
        let mut image = number;
        loop {
            image = self.network(image);
            if image < self.count {
                return image;
            }
        }
    }

    fn network(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.round_keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        left << self.half_bits | right
    }
}

/// Writes the key of `number` into `key`, which has the keys' length.
pub fn write(number: u64, key: &mut [u8]) {
    let mut rest = number;
    for byte in key.iter_mut().rev() {
        *byte = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// The number of a key; `None` if it is none of ours.
pub fn parse(key: &[u8], key_size: usize) -> Option<u64> {
    if key.len() != key_size {
        return None;
    }
    key.iter().try_fold(0u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_permutation_takes_every_number_once(count in 1u64..5000, seed in any::<u64>()) {
            let permutation = Permutation::new(count, seed);
            let mut seen = vec![false; count as usize];
            for number in 0..count {
                let image = permutation.at(number) as usize;
                prop_assert!(!std::mem::replace(&mut seen[image], true), "{} comes twice", image);
            }
        }

        #[test]
        fn keys_come_back(number in 0u64..10_000_000_000_000_000) {
            let mut key = [0; 16];
            write(number, &mut key);
            prop_assert_eq!(parse(&key, 16), Some(number));
        }

        #[test]
        fn drawn_numbers_are_below_their_bound(bound in 1u64.., seed in any::<u64>()) {
            prop_assert!(Random::new(seed).below(bound) < bound);
        }
    }

    #[test]
    fn a_permutation_is_far_from_the_order() {
        let count = 10_000;
        let permutation = Permutation::new(count, 1);
        let rising = (1..count).filter(|n| permutation.at(*n) > permutation.at(n - 1)).count();
        assert!((4_700..5_300).contains(&rising), "{rising} of {count} rise");
        let fixed = (0..count).filter(|n| permutation.at(*n) == *n).count();
        assert!(fixed < 10, "{fixed} numbers stay in place");
    }

    #[test]
    fn keys_are_padded() {
        let mut key = [0; 6];
        write(1234, &mut key);
        assert_eq!(&key, b"001234");
        assert_eq!(parse(b"00123x", 6), None);
        assert_eq!(parse(b"1234", 6), None);
    }
}
