//! The ways in which LevelDB compresses blocks: not at all, by Snappy, and since 2023 by Zstandard. Takes any bytes, and gives no
//! more memory than they can be worth.

use std::cell::RefCell;

use zstd::bulk::Decompressor;
use zstd::zstd_safe;

const NONE: u8 = 0;
const SNAPPY: u8 = 1;
const ZSTD: u8 = 2;

/// Raw bytes for each compressed one at most: three bytes of Snappy copy 64.
const SNAPPY_EXPANSION: u64 = 22;

/// The same for Zstandard, whose blocks have at most 128 KiB, and take at least four bytes.
const ZSTD_EXPANSION: u64 = (128 << 10) / 4;

thread_local! {
    /// To make a context takes longer than to use it for a block.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Whether `byte` stands for one of the ways.
pub fn is_known(byte: u8) -> bool {
    byte <= ZSTD
}

/// Puts the raw bytes of `packed`, compressed in the way that `byte` stands for, into `raw`, whose content goes.
///
/// # Errors
/// What was found in place of compressed bytes.
pub fn decompress(byte: u8, packed: &[u8], raw: &mut Vec<u8>) -> Result<(), String> {
    raw.clear();
    match byte {
        NONE => raw.extend_from_slice(packed),
        SNAPPY => {
            let failed = |error| format!("bytes that Snappy did not write ({error})");
            let len = snap::raw::decompress_len(packed).map_err(failed)?;
            grow(raw, len as u64, packed.len(), SNAPPY_EXPANSION)?;
            let written = snap::raw::Decoder::new().decompress(packed, raw).map_err(failed)?;
            raw.truncate(written);
        }
        ZSTD => {
            let len = zstd_safe::get_frame_content_size(packed).ok().flatten();
            let len = len.ok_or("bytes that are no frame of Zstandard with its length")?;
            grow(raw, len, packed.len(), ZSTD_EXPANSION)?;
            let written = DECOMPRESSOR.with_borrow_mut(|context| match context {
                Some(context) => context.decompress_to_buffer(packed, raw.as_mut_slice()),
                None => context.insert(Decompressor::new()?).decompress_to_buffer(packed, raw.as_mut_slice()),
            });
            let written = written.map_err(|error| format!("bytes that Zstandard did not write ({error})"))?;
            raw.truncate(written);
        }
        _ => return Err(format!("a block compressed in the way {byte}, which LevelDB does not have")),
    }
    Ok(())
}

/// Makes room for `len` raw bytes, if so many compressed ones can be worth them.
fn grow(raw: &mut Vec<u8>, len: u64, packed: usize, expansion: u64) -> Result<(), String> {
    let most = (packed as u64).saturating_mul(expansion);
    match usize::try_from(len) {
        Ok(size) if len <= most => {
            raw.resize(size, 0);
            Ok(())
        }
        _ => Err(format!("a raw length of {len} for {packed} compressed bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(byte: u8, raw: &[u8]) -> Vec<u8> {
        match byte {
            SNAPPY => snap::raw::Encoder::new().compress_vec(raw).expect("compresses"),
            ZSTD => zstd::bulk::compress(raw, 1).expect("compresses"),
            _ => raw.to_vec(),
        }
    }

    #[test]
    fn every_way_gives_the_bytes_back() {
        for raw in [&b""[..], b"a", &b"tamarack ".repeat(500), &vec![0; 1 << 20]] {
            for byte in [NONE, SNAPPY, ZSTD] {
                let mut out = b"old".to_vec();
                decompress(byte, &packed(byte, raw), &mut out).expect("its own output");
                assert!(out == raw, "way {byte}, {} bytes", raw.len());
                assert!(is_known(byte));
            }
        }
    }

    #[test]
    fn what_was_cut_is_told() {
        for byte in [SNAPPY, ZSTD] {
            let packed = packed(byte, &b"tamarack ".repeat(50));
            for len in 0..packed.len() {
                assert!(decompress(byte, &packed[..len], &mut Vec::new()).is_err(), "way {byte}, {len}");
            }
        }
        let error = decompress(4, b"", &mut Vec::new()).expect_err("LevelDB has three ways");
        assert!(error.contains("way 4"), "{error}");
    }

    #[test]
    fn forged_lengths_get_no_memory() {
        let mut raw = Vec::new();
        let error = decompress(SNAPPY, b"\xff\xff\xff\xff\x0f\x00a", &mut raw).expect_err("too long");
        assert!(error.contains("a raw length of 4294967295"), "{error}");
        let mut frame = packed(ZSTD, &[7; 300]);
        // The frame's header: magic number, descriptor with a length of two bytes, and that length.
        frame[5..7].copy_from_slice(&[0xff, 0xff]);
        assert!(decompress(ZSTD, &frame, &mut raw).is_err());
        assert!(raw.capacity() <= 1 << 17, "{}", raw.capacity());
    }
}
