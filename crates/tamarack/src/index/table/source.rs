//! Reads blocks of a table file and checks them: every byte that the rest of the reader sees has come through
//! here, lies inside the file, and has passed its checksum.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::format::{
    BLOCK_TRAILER_BYTES, BlockHandle, COMPRESSED_RAW_BYTES_MAX, Damage, FOOTER_BYTES, Footer,
};
use super::read_around::ReadAround;
use crate::base::checksum::{Checksum, Seed};
use crate::base::codec::Codec;
use crate::base::coding::u32_at;
use crate::base::error::{Error, Result};
use crate::base::sync::Arc;
use crate::env::{self, File};

/// A table file.
#[derive(Debug)]
pub struct BlockSource {
    file: Arc<dyn File>,
    path: PathBuf,
    seed: Seed,
    blocks_end: u64,
    around: ReadAround,
}

/// What a scan has read ahead of itself. It reads single blocks at first, and ever larger stretches while every
/// block follows the one before it, or lies before the one behind it if the scan goes backward. While it goes through a
/// stretch the device is already at the next one.
#[derive(Debug)]
pub struct ReadAhead {
    offset: u64,
    bytes: Vec<u8>,
    window: u64,
    window_max: u64,
}

/// Smallest stretch that is read at a time.
const WINDOW_MIN: u64 = 16 * 1024;

impl ReadAhead {
    /// Nothing yet; later at most `window_max` bytes at a time.
    pub fn new(window_max: u64) -> Self {
        Self { offset: 0, bytes: Vec::new(), window: 0, window_max }
    }

    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// Whether it has not jumped.
    fn is_reading_on(&self) -> bool {
        self.window > 0
    }

    fn holds(&self, handle: BlockHandle) -> bool {
        handle.offset >= self.offset && handle.end() <= self.end()
    }

    /// What to read for the block at `handle`, which is not held, and what of the first `end` bytes a scan that goes on
    /// like this will want after that: no more than the block, and nothing, if it has jumped.
    fn widen(&mut self, handle: BlockHandle, end: u64) -> (Range<u64>, Range<u64>) {
        let block = handle.offset..handle.end();
        let (start, held) = (self.offset, !self.bytes.is_empty());
        let forward = held && (start..=self.end()).contains(&block.start);
        let backward = held && !forward && block.start < start && block.end >= start;
        if !forward && !backward {
            self.window = 0;
            return (block, 0..0);
        }
        self.window = (self.window * 2).clamp(WINDOW_MIN, self.window_max);
        if forward {
            let read = block.start..(block.start + self.window).min(end).max(block.end);
            let next = read.end..(read.end + self.window).min(end).max(read.end);
            (read, next)
        } else {
            let read = block.end.saturating_sub(self.window).min(block.start)..block.end;
            let next = read.start.saturating_sub(self.window)..read.start;
            (read, next)
        }
    }
}

impl BlockSource {
    /// The table in `file`, with its footer.
    pub fn open(file: Arc<dyn File>, path: PathBuf, seed: Seed) -> Result<(Self, Footer)> {
        let file_bytes = file.len().map_err(|error| Error::io("measure", &path, error))?;
        let Some(blocks_end) = file_bytes.checked_sub(FOOTER_BYTES as u64) else {
            let found = format!("{file_bytes} bytes");
            return Err(Error::corruption(&path, 0, "a table with a footer", found));
        };
        let source = Self { file, path, seed, blocks_end, around: ReadAround::default() };
        let mut bytes = [0; FOOTER_BYTES];
        source.read_exact(&mut bytes, blocks_end)?;
        let start = Checksum::seeded(seed, blocks_end);
        let version = Footer::check(&bytes, |fields, magic| start.with(fields).with(magic).finish())
            .map_err(|(expected, found)| source.corruption(blocks_end, expected, found))?;
        if version != super::format::VERSION {
            let path = source.path.display();
            return Err(Error::unsupported(format!("{path} is a table of format version {version}")));
        }
        let footer = Footer::decode(&bytes).ok_or_else(|| {
            source.corruption(blocks_end, "the fields of a footer", "bytes that encode none")
        })?;
        Ok((source, footer))
    }

    /// From now on reads along what lies around a block that was not in memory, if the table is small beside the `value_bytes` that
    /// its entries point to.
    pub fn read_around(&mut self, value_bytes: u64) {
        self.around = ReadAround::new(self.blocks_end, value_bytes);
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Where the last block ends and the footer begins.
    pub fn blocks_end(&self) -> u64 {
        self.blocks_end
    }

    /// The raw bytes of the block at `handle`.
    pub fn read(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.whole_len(handle)?];
        self.read_alone(&mut bytes, handle.offset)?;
        self.unpack(handle, Cow::Owned(bytes))
    }

    /// The same for a scan that will want the blocks behind it too, up to `end`, or those before it.
    pub fn read_ahead(&self, handle: BlockHandle, end: u64, ahead: &mut ReadAhead) -> Result<Vec<u8>> {
        let len = self.whole_len(handle)?;
        if !ahead.holds(handle) {
            let (read, next) = ahead.widen(handle, end.min(self.blocks_end));
            ahead.bytes.clear();
            ahead.bytes.resize((read.end - read.start) as usize, 0);
            ahead.offset = read.start;
            let done = if ahead.is_reading_on() {
                self.read_exact(&mut ahead.bytes, read.start)
            } else {
                self.read_alone(&mut ahead.bytes, read.start)
            };
            done.inspect_err(|_| ahead.bytes.clear())?;
            if !next.is_empty() {
                // Advice changes no result: without it the scan waits longer.
                self.file.read_ahead(next.start, next.end - next.start).ok();
            }
        }
        let start = (handle.offset - ahead.offset) as usize;
        self.unpack(handle, Cow::Borrowed(&ahead.bytes[start..start + len]))
    }

    /// A corruption error of this file.
    pub fn corruption(&self, offset: u64, expected: impl Into<String>, found: impl Into<String>) -> Error {
        Error::corruption(&self.path, offset, expected, found)
    }

    /// The corruption error for damage inside the block at `offset`.
    pub fn damaged(&self, offset: u64, damage: Damage) -> Error {
        self.corruption(
            offset,
            damage.expected,
            format!("other bytes at position {} of the raw block", damage.position),
        )
    }

    /// Length of a block with its trailer, if all of it lies where blocks do.
    fn whole_len(&self, handle: BlockHandle) -> Result<usize> {
        let len = u64::from(handle.stored_len) + BLOCK_TRAILER_BYTES as u64;
        match handle.offset.checked_add(len) {
            Some(end) if end <= self.blocks_end => Ok(len as usize),
            _ => Err(self.corruption(
                handle.offset,
                format!("a block inside the {} bytes of blocks", self.blocks_end),
                format!("a handle of {} bytes", handle.stored_len),
            )),
        }
    }

    /// Reads a block that nobody reads ahead of.
    fn read_alone(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        if self.around.is_wanted() {
            // What fails here fails again below, and is told there.
            if self.file.read_cached(bytes, offset).is_ok_and(|found| found) {
                return Ok(());
            }
            let along = self.around.neighbourhood(offset);
            // Advice changes no result: without it the next ones wait longer.
            self.file.read_ahead(along.start, along.end - along.start).ok();
        }
        self.read_exact(bytes, offset)
    }

    fn read_exact(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        env::read_exact_at(&*self.file, bytes, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                self.corruption(offset, "a file as long as when it was opened", error.to_string())
            }
            _ => Error::io("read", &self.path, error),
        })
    }

    /// Checks stored bytes with their trailer and decompresses them.
    fn unpack(&self, handle: BlockHandle, bytes: Cow<'_, [u8]>) -> Result<Vec<u8>> {
        let stored_len = handle.stored_len as usize;
        let trailer = &bytes[stored_len..];
        let (codec, stored_checksum) = (trailer[0], u32_at(trailer, 1));
        let computed = Checksum::seeded(self.seed, handle.offset).with(&bytes[..=stored_len]).finish();
        if stored_checksum != computed {
            return Err(self.corruption(
                handle.offset,
                format!("a block of checksum {stored_checksum:#010x}"),
                format!("one of checksum {computed:#010x}"),
            ));
        }
        let codec = Codec::from_byte(codec)
            .ok_or_else(|| self.corruption(handle.offset, "a known codec", format!("codec {codec}")))?;
        if codec == Codec::None {
            let mut raw = bytes.into_owned();
            raw.truncate(stored_len);
            return Ok(raw);
        }
        let stored = &bytes[..stored_len];
        let raw_len = codec.raw_len(stored).unwrap_or(u64::MAX);
        if raw_len > COMPRESSED_RAW_BYTES_MAX as u64 {
            let expected = format!("at most {COMPRESSED_RAW_BYTES_MAX} raw bytes in a compressed block");
            return Err(self.corruption(handle.offset, expected, format!("{raw_len}")));
        }
        let mut raw = Vec::with_capacity(raw_len as usize);
        codec
            .decompress_into(stored, &mut raw)
            .map_err(|found| self.corruption(handle.offset, "compressed bytes that decode", found))?;
        Ok(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 4096;
    const END: u64 = 64 * BLOCK;

    fn handle(number: u64) -> BlockHandle {
        BlockHandle { offset: number * BLOCK, stored_len: (BLOCK - BLOCK_TRAILER_BYTES as u64) as u32 }
    }

    /// What is read for each of these blocks that is not held, and what after that, in blocks.
    fn reads(blocks: impl IntoIterator<Item = u64>) -> Vec<(Range<u64>, Range<u64>)> {
        let mut ahead = ReadAhead::new(32 * 1024);
        let mut reads = Vec::new();
        for block in blocks.into_iter().map(handle) {
            if !ahead.holds(block) {
                let (read, next) = ahead.widen(block, END);
                (ahead.offset, ahead.bytes) = (read.start, vec![0; (read.end - read.start) as usize]);
                assert!(ahead.holds(block));
                let blocks = |range: Range<u64>| range.start / BLOCK..range.end / BLOCK;
                reads.push((blocks(read), blocks(next)));
            }
        }
        reads
    }

    #[test]
    fn a_scan_reads_ever_larger_stretches_in_its_direction() {
        let forward = [(0..1, 0..0), (1..5, 5..9), (5..13, 13..21), (13..21, 21..29), (21..29, 29..37)];
        assert_eq!(reads(0..29), forward);
        let backward = [(63..64, 0..0), (59..63, 55..59), (51..59, 43..51), (43..51, 35..43)];
        assert_eq!(reads((43..64).rev()), backward);
    }

    #[test]
    fn nothing_is_read_beyond_either_end_nor_after_a_jump() {
        assert_eq!(reads(59..64)[1..], [(60..64, 64..64)]);
        assert_eq!(reads((0..5).rev())[1..], [(0..4, 0..0)]);
        assert_eq!(reads([3, 4, 40, 20])[2..], [(40..41, 0..0), (20..21, 0..0)]);
    }
}
