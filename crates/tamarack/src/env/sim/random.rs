//! Numbers that a seed determines: for this world, and for tests that want some of their own.

use std::io;

use crate::base::sync::PlainMutex;
use crate::env::Rng;

/// A sequence of numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// The world's source of randomness.
#[derive(Debug)]
pub struct SimRng(PlainMutex<Random>);

impl SimRng {
    /// The source that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(PlainMutex::new(Random::new(seed)))
    }
}

impl Rng for SimRng {
    fn random_u64(&self) -> io::Result<u64> {
        Ok(self.0.lock().number())
    }
}
