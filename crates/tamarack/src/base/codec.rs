//! Compression of blocks and values: which codecs there are and how stored bytes become raw bytes again.

use std::cell::RefCell;
use std::io;

use zstd::bulk::{Compressor, Decompressor};

use super::error::{Error, Result};

thread_local! {
    /// Contexts of Zstandard: to make one takes several times as long as a block of 4 KiB.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// How stored bytes are compressed. The byte of each codec is part of the formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Codec {
    /// Stored as they are.
    #[default]
    None = 0,
    /// LZ4: fast, modest ratios.
    Lz4 = 1,
    /// Zstandard at its default level: slower, better ratios.
    Zstd = 2,
}

/// Compressed bytes are kept only if they save at least one byte in this many.
const SAVING_MIN: usize = 8;

impl Codec {
    /// The codec encoded as `byte`.
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            2 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Compresses `raw`. Returns `None` when that is not worth it, and the bytes should be stored as they are.
    /// The raw length is part of the result: four little-endian bytes in front.
    pub fn compress(self, raw: &[u8]) -> Result<Option<Vec<u8>>> {
        let Ok(raw_len) = u32::try_from(raw.len()) else { return Ok(None) };
        let mut out = raw_len.to_le_bytes().to_vec();
        match self {
            Self::None => return Ok(None),
            Self::Lz4 => out.extend_from_slice(&lz4_flex::block::compress(raw)),
            Self::Zstd => {
                let packed = zstd_compress(raw)
                    .map_err(|error| Error::invalid_argument(format!("zstd cannot compress: {error}")))?;
                out.extend_from_slice(&packed);
            }
        }
        Ok((out.len() < raw.len() - raw.len() / SAVING_MIN).then_some(out))
    }

    /// The raw length that `stored` announces, before anything is allocated. `None` if `stored` is too short.
    pub fn raw_len(self, stored: &[u8]) -> Option<u64> {
        match self {
            Self::None => Some(stored.len() as u64),
            Self::Lz4 | Self::Zstd => stored.first_chunk().map(|bytes| u64::from(u32::from_le_bytes(*bytes))),
        }
    }

    /// Raw bytes that one compressed byte can stand for at most. In LZ4 a byte adds at most 255 to the length of a match;
    /// a block of Zstandard has at most 128 KiB, and takes at least four bytes.
    fn expansion_max(self) -> u64 {
        match self {
            Self::None => 1,
            Self::Lz4 => 255,
            Self::Zstd => (128 << 10) / 4,
        }
    }

    /// Appends the raw bytes of `stored` to `out`. The stored bytes have passed their checksum, so a failure
    /// is described for a corruption error: `Err` holds what was found.
    pub fn decompress_into(self, stored: &[u8], out: &mut Vec<u8>) -> std::result::Result<(), String> {
        if self == Self::None {
            out.extend_from_slice(stored);
            return Ok(());
        }
        let (start, raw_len) = (out.len(), self.credible_raw_len(stored)?);
        out.resize(start + raw_len, 0);
        self.decompress(stored, &mut out[start..])
    }

    /// The raw length that `stored` announces, if so many bytes can be worth that: a forged one cannot ask for more memory.
    /// Fails as [`decompress_into`](Self::decompress_into).
    pub fn credible_raw_len(self, stored: &[u8]) -> std::result::Result<usize, String> {
        let raw_len = self.raw_len(stored).ok_or_else(|| format!("{} compressed bytes", stored.len()))?;
        let packed_len = stored.len() - self.prefix_bytes();
        if raw_len > packed_len as u64 * self.expansion_max() {
            return Err(format!("a raw length of {raw_len} for {packed_len} compressed bytes"));
        }
        Ok(raw_len as usize)
    }

    /// Fills `raw`, which has the length that `stored` announces, with its raw bytes. Fails as
    /// [`decompress_into`](Self::decompress_into).
    pub fn decompress(self, stored: &[u8], raw: &mut [u8]) -> std::result::Result<(), String> {
        let packed = &stored[self.prefix_bytes()..];
        let written = match self {
            Self::None => {
                raw.copy_from_slice(packed);
                raw.len()
            }
            Self::Lz4 => lz4_flex::block::decompress_into(packed, raw)
                .map_err(|error| format!("LZ4 data that does not decode ({error})"))?,
            Self::Zstd => zstd_decompress(packed, raw)
                .map_err(|error| format!("Zstandard data that does not decode ({error})"))?,
        };
        if written != raw.len() {
            return Err(format!("{written} raw bytes where {} were announced", raw.len()));
        }
        Ok(())
    }

    /// Bytes of `stored` that tell the raw length.
    fn prefix_bytes(self) -> usize {
        if self == Self::None { 0 } else { 4 }
    }
}

fn zstd_compress(raw: &[u8]) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|context| match context {
        Some(context) => context.compress(raw),
        None => context.insert(Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL)?).compress(raw),
    })
}

fn zstd_decompress(packed: &[u8], out: &mut [u8]) -> io::Result<usize> {
    DECOMPRESSOR.with_borrow_mut(|context| match context {
        Some(context) => context.decompress_to_buffer(packed, out),
        None => context.insert(Decompressor::new()?).decompress_to_buffer(packed, out),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that compress. Zstandard is written in C, where Miri cannot follow.
    const CODECS: &[Codec] = if cfg!(miri) { &[Codec::Lz4] } else { &[Codec::Lz4, Codec::Zstd] };

    #[test]
    fn compressible_bytes_round_trip() {
        let raw = b"tamarack ".repeat(500);
        for codec in CODECS {
            let stored = codec.compress(&raw).expect("compresses").expect("is worth it");
            assert!(stored.len() < raw.len() / 4);
            assert_eq!(codec.raw_len(&stored), Some(raw.len() as u64));
            let mut out = b"kept".to_vec();
            codec.decompress_into(&stored, &mut out).expect("decodes");
            assert_eq!(&out[4..], raw);
        }
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let raw = b"tamarack ".repeat(50);
        for codec in CODECS {
            let stored = codec.compress(&raw).expect("compresses").expect("is worth it");
            for cut in 0..stored.len() {
                assert!(
                    codec.decompress_into(&stored[..cut], &mut Vec::new()).is_err(),
                    "{codec:?} cut at {cut}"
                );
                let mut out = Vec::new();
                codec.decompress_into(&stored, &mut out).expect("decodes");
                assert_eq!(out, raw);
            }
        }
    }

    #[test]
    fn incompressible_bytes_are_left_alone() {
        let raw: Vec<u8> = (0..1000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        assert_eq!(Codec::Lz4.compress(&raw).expect("no failure"), None);
        assert_eq!(Codec::None.compress(&[0; 1000]).expect("no failure"), None);
        for codec in CODECS {
            assert_eq!(codec.compress(&[]).expect("no failure"), None);
        }
    }

    #[test]
    fn what_compresses_best_is_not_taken_for_forged() {
        let raw = vec![0; if cfg!(miri) { 1 << 14 } else { 1 << 24 }];
        for codec in CODECS {
            let stored = codec.compress(&raw).expect("compresses").expect("is worth it");
            let mut out = Vec::new();
            codec.decompress_into(&stored, &mut out).expect("decodes");
            assert!(out == raw, "{codec:?}");
        }
    }

    #[test]
    fn forged_lengths_are_refused_before_allocating() {
        for codec in CODECS {
            let mut stored = (4 * codec.expansion_max() as u32 + 1).to_le_bytes().to_vec();
            stored.extend_from_slice(&[0; 4]);
            let mut out = Vec::new();
            assert!(codec.decompress_into(&stored, &mut out).is_err());
            assert_eq!(out.capacity(), 0);
            assert!(codec.decompress_into(&[1, 2], &mut Vec::new()).is_err());
        }
    }
}
