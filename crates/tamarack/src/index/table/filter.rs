//! The filter of a table: a Bloom filter whose every key stays within one cache line.
//!
//! The upper half of a key's hash chooses the line; nine bits at a time of the hash multiplied by an odd constant
//! choose bits of it. One key touches one cache line, at the price of about a fifth more false positives than an
//! unblocked filter of the same size has.

use super::format::FILTER_LINE_BYTES;
use crate::base::prefetch::prefetch;

const LINE_BITS: u64 = FILTER_LINE_BYTES as u64 * 8;
const BITS_PER_PROBE: u32 = LINE_BITS.trailing_zeros();
/// Probes that one 64-bit number is good for.
const PROBES_PER_MIX: u32 = u64::BITS / BITS_PER_PROBE;
const PROBES_MAX: u32 = 2 * PROBES_PER_MIX;
/// Odd, with bits spread evenly: the golden ratio of 2^64.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// A line, aligned so that it is one cache line in memory too.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line([u64; FILTER_LINE_BYTES / 8]);

/// A filter in memory.
#[derive(Debug, Clone)]
pub struct Filter {
    lines: Box<[Line]>,
    probes: u32,
}

impl Filter {
    /// The filter over user keys of these hashes.
    pub fn build(hashes: &[u64], bits_per_key: u32) -> Self {
        let bits = hashes.len() as u64 * u64::from(bits_per_key);
        let lines = bits.div_ceil(LINE_BITS).max(1) as usize;
        // ln 2 probes for every bit per key give the fewest false positives.
        let probes = (bits_per_key.saturating_mul(69) / 100).clamp(1, PROBES_MAX);
        let mut lines = vec![Line([0; FILTER_LINE_BYTES / 8]); lines].into_boxed_slice();
        for &hash in hashes {
            let index = line_of(hash, lines.len());
            let line = &mut lines[index].0;
            for bit in bits_of(hash, probes) {
                line[bit / 64] |= 1 << (bit % 64);
            }
        }
        Self { lines, probes }
    }

    /// The raw block: the lines, and the number of probes in a byte behind them.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.lines.len() * FILTER_LINE_BYTES + 1);
        for word in self.lines.iter().flat_map(|line| line.0) {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.push(self.probes as u8);
        out
    }

    /// The filter in a raw block.
    pub fn decode(raw: &[u8]) -> Option<Self> {
        let (&probes, lines) = raw.split_last()?;
        let probes = u32::from(probes);
        let (lines, rest) = lines.as_chunks::<FILTER_LINE_BYTES>();
        if !rest.is_empty() || lines.is_empty() || !(1..=PROBES_MAX).contains(&probes) {
            return None;
        }
        let decode_line = |line: &[u8; FILTER_LINE_BYTES]| {
            let (words, _) = line.as_chunks::<8>();
            Line(std::array::from_fn(|index| u64::from_le_bytes(words[index])))
        };
        Some(Self { lines: lines.iter().map(decode_line).collect(), probes })
    }

    /// Whether a key of this hash may be among the table's. "No" is certain.
    pub fn may_contain(&self, hash: u64) -> bool {
        let line = &self.lines[line_of(hash, self.lines.len())].0;
        bits_of(hash, self.probes).all(|bit| line[bit / 64] >> (bit % 64) & 1 == 1)
    }

    /// Has the processor fetch the line of keys of this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&raw const self.lines[line_of(hash, self.lines.len())]);
    }

    /// Bytes of memory it takes.
    pub fn memory_bytes(&self) -> usize {
        self.lines.len() * FILTER_LINE_BYTES
    }
}

fn line_of(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

fn bits_of(hash: u64, probes: u32) -> impl Iterator<Item = usize> {
    let (mut mixed, mut window) = (hash, 0);
    (0..probes).map(move |probe| {
        if probe % PROBES_PER_MIX == 0 {
            mixed = mixed.wrapping_mul(MIX).rotate_left(32);
            window = mixed;
        }
        let bit = window % LINE_BITS;
        window >>= BITS_PER_PROBE;
        bit as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::keys::hash_user_key;

    fn hash(number: u32) -> u64 {
        hash_user_key(format!("user{number:08}").as_bytes())
    }

    #[test]
    fn every_key_is_found_and_few_others_are() {
        for (bits_per_key, false_positives_max) in [(5, 0.12), (10, 0.0125), (16, 0.0015), (20, 0.0006)] {
            let hashes: Vec<u64> = (0..20_000).map(hash).collect();
            let filter = Filter::build(&hashes, bits_per_key);
            let filter = Filter::decode(&filter.encode()).expect("what was encoded");
            assert!(hashes.iter().all(|&hash| filter.may_contain(hash)));
            let others = 100_000;
            let hits = (0..others).filter(|number| filter.may_contain(hash(1_000_000 + number))).count();
            let rate = hits as f64 / f64::from(others);
            assert!(rate < false_positives_max, "{bits_per_key} bits a key: {rate}");
        }
    }

    #[test]
    fn other_bytes_are_no_filter() {
        assert!(Filter::decode(&[]).is_none());
        assert!(Filter::decode(&[7]).is_none());
        assert!(Filter::decode(&[1; 64]).is_none());
        assert!(Filter::decode(&[0; 65]).is_none());
        assert!(Filter::decode(&[15; 65]).is_none());
        assert!(Filter::decode(&[14; 65]).is_some());
    }
}
