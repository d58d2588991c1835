//! CRC-32C, computed with the processor's instructions for it where there are any, and seeded so that bytes which are
//! whole but stand in the wrong place fail.

use crc_fast::{CrcAlgorithm, Digest};

use super::ids::CubeId;

/// A checksum under construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum(u32);

impl Checksum {
    /// Starts from a seed that names where the bytes belong: cube, file and offset within the file.
    pub fn seeded(seed: Seed, offset: u64) -> Self {
        Self(append(seed.0, &offset.to_le_bytes()))
    }

    /// Starts from nothing, for bytes whose place is bound by another checksum.
    pub fn unseeded() -> Self {
        Self(0)
    }

    /// Adds `bytes`.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        Self(append(self.0, bytes))
    }

    /// The checksum to store.
    pub fn finish(self) -> u32 {
        self.0
    }
}

/// The CRC-32C of bytes of which the first have `crc`, and the others are `bytes`.
#[inline]
fn append(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    digest.finalize() as u32
}

/// The part of a checksum's seed that is the same for a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(u32);

/// Which kind of file a seed is for: equal numbers of different kinds must not share a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FileKind {
    /// A segment of the value log.
    Segment = 1,
    /// A table of the index.
    Table = 2,
    /// A manifest.
    Manifest = 3,
}

impl Seed {
    /// The seed of file `number` of `kind` in `cube`; `salt` is the file's own random number, or 0.
    pub fn new(cube: CubeId, kind: FileKind, number: u64, salt: u64) -> Self {
        let crc = append(0, &cube.0.to_le_bytes());
        let crc = append(crc, &[kind as u8]);
        let crc = append(crc, &number.to_le_bytes());
        Self(append(crc, &salt.to_le_bytes()))
    }
}

impl Seed {
    /// The seed under which `bytes`, standing at `offset`, have the checksum `checksum`. There is exactly one, whatever
    /// the bytes are: only that other bytes of the same file agree makes it known.
    pub fn that_gives(checksum: u32, offset: u64, bytes: &[u8]) -> Self {
        let start = rewind(!checksum, bytes);
        Self(!rewind(start, &offset.to_le_bytes()))
    }
}

/// The polynomial of CRC-32C, its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// What a byte does to a checksum that was 0.
const EFFECTS: [u32; 256] = {
    let mut effects = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut effect, mut bit) = (byte as u32, 0);
        while bit < 8 {
            effect = if effect & 1 == 1 { effect >> 1 ^ POLYNOMIAL } else { effect >> 1 };
            bit += 1;
        }
        effects[byte] = effect;
        byte += 1;
    }
    effects
};

/// The byte whose effect begins with each byte: the highest byte of a checksum tells which one came last.
const LAST_BYTES: [u8; 256] = {
    let mut last = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        last[(EFFECTS[byte] >> 24) as usize] = byte as u8;
        byte += 1;
    }
    last
};

/// The state of a CRC before `bytes`, if it is `state` after them.
fn rewind(state: u32, bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(state, |state, &byte| step_back(state) ^ u32::from(byte))
}

/// The state of a CRC before a byte 0, if it is `state` after it.
fn step_back(state: u32) -> u32 {
    let last = LAST_BYTES[(state >> 24) as usize];
    (state ^ EFFECTS[usize::from(last)]) << 8 | u32::from(last)
}

/// Makes bytes right again of which one is damaged, or their checksum is: `stored` where the present bytes give `computed`.
/// Whether they are; `false`, and nothing is changed, if no one byte explains it, or more than one might.
///
/// Bytes of which more are damaged look as if one were with a probability of `bytes.len()` / 16 million: whoever mends must
/// have other means to tell.
#[must_use]
pub fn mend_one_byte(bytes: &mut [u8], stored: u32, computed: u32) -> bool {
    let difference = stored ^ computed;
    let in_checksum = difference.to_le_bytes().iter().filter(|&&byte| byte != 0).count() == 1;
    let mut explained = usize::from(in_checksum);
    let mut damaged = None;
    // Back from the end: what the difference was before each byte, had that and all behind it been right.
    let mut before = difference;
    for at in (0..bytes.len()).rev() {
        before = step_back(before);
        if let Ok(flipped) = u8::try_from(before) {
            explained += 1;
            damaged = Some((at, flipped));
        }
    }
    if explained != 1 {
        return false;
    }
    if let Some((at, flipped)) = damaged {
        bytes[at] ^= flipped;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer() {
        // The check value of CRC-32C from RFC 3720, appendix B.4: 32 zero bytes.
        assert_eq!(Checksum::unseeded().with(&[0; 32]).finish(), 0x8a91_36aa);
    }

    /// Which instructions compute it depends on the processor, and on how many bytes there are, and where.
    #[test]
    fn whatever_computes_it_does_so_by_the_definition() {
        let bytes: Vec<u8> = (0..9000_u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 23) as u8).collect();
        let by_definition = |bytes: &[u8]| {
            let step = |state: u32, byte: &u8| state >> 8 ^ EFFECTS[usize::from(state as u8 ^ byte)];
            !bytes.iter().fold(!7, step)
        };
        let lens = (0..1200).chain((1200..8900).step_by(97)).step_by(STEP);
        for (from, len) in lens.enumerate().map(|(number, len)| (number % 67, len)) {
            let bytes = &bytes[from..][..len];
            assert_eq!(append(7, bytes), by_definition(bytes), "{len} bytes from {from}");
            let (first, second) = bytes.split_at(len / 3);
            assert_eq!(append(append(7, first), second), by_definition(bytes), "{len} bytes in two pieces");
        }
    }

    /// Of what is tried in every place, Miri tries some: it is some hundred times slower.
    const STEP: usize = if cfg!(miri) { 37 } else { 1 };

    #[test]
    fn one_damaged_byte_is_mended_wherever_it_is() {
        let good: Vec<u8> = (0..100_u8).map(|at| at.wrapping_mul(7)).collect();
        let start = Checksum::seeded(Seed::new(CubeId(1), FileKind::Segment, 2, 3), 4);
        let stored = start.with(&good).finish();
        for at in (0..good.len()).step_by(STEP) {
            for flipped in (1..=255).step_by(STEP) {
                let mut bytes = good.clone();
                bytes[at] ^= flipped;
                let computed = start.with(&bytes).finish();
                assert!(mend_one_byte(&mut bytes, stored, computed), "byte {at}");
                assert_eq!(bytes, good, "byte {at}");
            }
        }
        for at in 0..4 {
            let mut bytes = good.clone();
            assert!(mend_one_byte(&mut bytes, stored ^ 0x5a << (8 * at), stored));
            assert_eq!(bytes, good, "the checksum's byte {at}");
        }
    }

    #[test]
    fn two_damaged_bytes_are_left_alone() {
        let good = [9; 76];
        let stored = Checksum::unseeded().with(&good).finish();
        for (first, second) in
            (0..76).flat_map(|first| (0..first).map(move |second| (first, second))).step_by(STEP)
        {
            let mut bytes = good;
            (bytes[first], bytes[second]) = (bytes[first] ^ 0x40, bytes[second] ^ 1);
            let (damaged, computed) = (bytes, Checksum::unseeded().with(&bytes).finish());
            assert!(!mend_one_byte(&mut bytes, stored, computed), "{first} and {second}");
            assert_eq!(bytes, damaged);
        }
    }

    #[test]
    fn every_part_of_the_seed_matters() {
        let base = Seed::new(CubeId(1), FileKind::Segment, 2, 3);
        for other in [
            Seed::new(CubeId(9), FileKind::Segment, 2, 3),
            Seed::new(CubeId(1), FileKind::Table, 2, 3),
            Seed::new(CubeId(1), FileKind::Segment, 9, 3),
            Seed::new(CubeId(1), FileKind::Segment, 2, 9),
        ] {
            assert_ne!(Checksum::seeded(base, 0), Checksum::seeded(other, 0));
        }
        assert_ne!(Checksum::seeded(base, 0), Checksum::seeded(base, 8));
    }

    #[test]
    fn a_seed_follows_from_what_it_gave() {
        let seed = Seed::new(CubeId(7), FileKind::Segment, 9, 0x1234_5678_9abc_def0);
        for bytes in [&b""[..], b"k", b"some key and its header"] {
            let checksum = Checksum::seeded(seed, 4096).with(bytes).finish();
            assert_eq!(Seed::that_gives(checksum, 4096, bytes), seed);
            assert_ne!(Seed::that_gives(checksum, 4097, bytes), seed);
        }
    }
}
