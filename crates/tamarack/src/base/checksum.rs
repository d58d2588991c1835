//! CRC-32C, computed with the processor's instruction where there is one, and seeded so that bytes which are
//! whole but stand in the wrong place fail.

use super::ids::CubeId;

/// A checksum under construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum(u32);

impl Checksum {
    /// Starts from a seed that names where the bytes belong: cube, file and offset within the file.
    pub fn seeded(seed: Seed, offset: u64) -> Self {
        Self(crc32c::crc32c_append(seed.0, &offset.to_le_bytes()))
    }

    /// Starts from nothing, for bytes whose place is bound by another checksum.
    pub fn unseeded() -> Self {
        Self(0)
    }

    /// Adds `bytes`.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        Self(crc32c::crc32c_append(self.0, bytes))
    }

    /// The checksum to store.
    pub fn finish(self) -> u32 {
        self.0
    }
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
        let crc = crc32c::crc32c(&cube.0.to_le_bytes());
        let crc = crc32c::crc32c_append(crc, &[kind as u8]);
        let crc = crc32c::crc32c_append(crc, &number.to_le_bytes());
        Self(crc32c::crc32c_append(crc, &salt.to_le_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer() {
        // The check value of CRC-32C from RFC 3720, appendix B.4: 32 zero bytes.
        assert_eq!(Checksum::unseeded().with(&[0; 32]).finish(), 0x8a91_36aa);
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
}
