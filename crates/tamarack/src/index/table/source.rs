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
/// stretch the device is already at the next ones.
#[derive(Debug)]
pub struct ReadAhead {
    /// What is held begins here; [`NOWHERE`] if a block can follow nothing.
    offset: u64,
    bytes: Vec<u8>,
    window: u64,
    window_max: u64,
    /// As far as this the device has been asked for what comes, in the direction of the scan; [`NOWHERE`] if for nothing.
    advised_to: u64,
}

/// Smallest stretch that is read at a time.
const WINDOW_MIN: u64 = 16 * 1024;
/// So many of the largest stretches are on their way to memory: the device has much else to read for a scan that wants values.
const STRETCHES_AHEAD: u64 = 4;
/// No place in a file.
const NOWHERE: u64 = u64::MAX;

impl ReadAhead {
    /// Nothing yet; later at most `window_max` bytes at a time.
    pub fn new(window_max: u64) -> Self {
        Self { offset: NOWHERE, bytes: Vec::new(), window: 0, window_max, advised_to: NOWHERE }
    }

    /// What comes of this in the next table of a scan, which goes on there at `offset`: either end of its blocks.
    pub fn go_on_at(mut self, offset: u64) -> Self {
        self.bytes.clear();
        Self { offset, advised_to: NOWHERE, ..self }
    }

    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// Whether it has not jumped.
    pub fn is_reading_on(&self) -> bool {
        self.window > 0
    }

    /// Whether stretches do not become larger any more: the scan has come a long way.
    pub fn is_long(&self) -> bool {
        self.window == self.window_max
    }

    fn holds(&self, handle: BlockHandle) -> bool {
        self.offset != NOWHERE && handle.offset >= self.offset && handle.end() <= self.end()
    }

    /// Forgets what was to be held: it was not to be had.
    fn lose(&mut self) {
        (self.offset, self.window) = (NOWHERE, 0);
        self.bytes.clear();
    }

    /// Whether it is long, and all that comes of the first `end` bytes in its direction is read, or on its way.
    pub fn has_asked_for_rest(&self, end: u64) -> bool {
        self.is_long() && (self.advised_to == 0 || self.advised_to != NOWHERE && self.advised_to >= end)
    }

    /// What a long scan will want first of the table that it goes on to, of the first `end` bytes of it.
    pub fn beginning(&self, forward: bool, end: u64) -> Range<u64> {
        let bytes = STRETCHES_AHEAD * self.window_max;
        if forward { 0..bytes.min(end) } else { end.saturating_sub(bytes)..end }
    }

    /// What to read for the block at `handle`, which is not held, and what of the first `end` bytes to have on its way for a scan that goes on
    /// like this: no more than the block, and nothing, if it has jumped.
    fn widen(&mut self, handle: BlockHandle, end: u64) -> (Range<u64>, Range<u64>) {
        let block = handle.offset..handle.end();
        let (start, is_somewhere) = (self.offset, self.offset != NOWHERE);
        let forward = is_somewhere && (start..=self.end()).contains(&block.start);
        let backward = is_somewhere && !forward && block.start < start && block.end >= start;
        if !forward && !backward {
            self.window = 0;
            self.advised_to = NOWHERE;
            return (block, 0..0);
        }
        self.window = (self.window * 2).clamp(WINDOW_MIN, self.window_max);
        let ahead = if self.is_long() { STRETCHES_AHEAD * self.window } else { self.window };
        let read = if forward {
            block.start..(block.start + self.window).min(end).max(block.end)
        } else {
            block.end.saturating_sub(self.window).min(block.start)..block.end
        };
        let next = if forward {
            // From a turn on what was asked for lies elsewhere.
            let from = if self.advised_to == NOWHERE { read.end } else { self.advised_to.max(read.end) };
            from..(read.end + ahead).min(end).max(from)
        } else {
            let to = self.advised_to.min(read.start);
            read.start.saturating_sub(ahead).min(to)..to
        };
        self.advised_to = if forward { next.end } else { next.start };
        (read, next)
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
            done.inspect_err(|_| ahead.lose())?;
            self.have_read(next);
        }
        let start = (handle.offset - ahead.offset) as usize;
        self.unpack(handle, Cow::Borrowed(&ahead.bytes[start..start + len]))
    }

    /// Has the device begin to read `range`, which somebody will want soon.
    pub fn have_read(&self, range: Range<u64>) {
        if !range.is_empty() {
            // Advice changes no result: without it whoever wants this waits longer.
            self.file.read_ahead(range.start, range.end - range.start).ok();
        }
    }

    /// The same of a block, if there can be one there: what else `handle` says is told by who reads it.
    pub fn have_block_read(&self, handle: BlockHandle) {
        if let Ok(len) = self.whole_len(handle) {
            self.have_read(handle.offset..handle.offset + len as u64);
        }
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
            self.have_read(self.around.neighbourhood(offset));
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
        let forward = [
            (0..1, 0..0),
            (1..5, 5..9),
            (5..13, 13..45),
            (13..21, 45..53),
            (21..29, 53..61),
            (29..37, 61..64),
        ];
        assert_eq!(reads(0..37), forward);
        let backward = [
            (63..64, 0..0),
            (59..63, 55..59),
            (51..59, 19..51),
            (43..51, 11..19),
            (35..43, 3..11),
            (27..35, 0..3),
        ];
        assert_eq!(reads((27..64).rev()), backward);
    }

    #[test]
    fn a_scan_that_turns_asks_for_what_lies_on_the_other_side() {
        let there_and_back = reads((8..37).chain((0..21).rev()));
        assert_eq!(
            there_and_back[4..],
            [(29..37, 61..64), (20..21, 0..0), (16..20, 12..16), (8..16, 0..8), (0..8, 0..0)]
        );
    }

    #[test]
    fn in_the_next_table_a_scan_goes_on_as_it_was() {
        let mut ahead = ReadAhead::new(32 * 1024);
        let read = |ahead: &mut ReadAhead, number| {
            let (read, next) = ahead.widen(handle(number), END);
            (ahead.offset, ahead.bytes) = (read.start, vec![0; (read.end - read.start) as usize]);
            let blocks = |range: Range<u64>| range.start / BLOCK..range.end / BLOCK;
            (blocks(read), blocks(next))
        };
        for number in [0, 1, 5] {
            read(&mut ahead, number);
            assert!(!ahead.has_asked_for_rest(END));
        }
        assert!(ahead.is_long());
        read(&mut ahead, 13);
        read(&mut ahead, 21);
        read(&mut ahead, 29);
        assert!(ahead.has_asked_for_rest(END), "the last stretch is on its way");
        assert_eq!(ahead.beginning(true, END), 0..32 * BLOCK);
        let mut ahead = ahead.go_on_at(0);
        assert!(!ahead.has_asked_for_rest(END));
        assert_eq!(read(&mut ahead, 0), (0..8, 8..40));
        // Backward, and from a table that was too short for a long scan.
        let mut ahead = ReadAhead::new(32 * 1024);
        read(&mut ahead, 9);
        read(&mut ahead, 8);
        assert!(!ahead.is_long());
        let mut ahead = ahead.go_on_at(END);
        assert_eq!(read(&mut ahead, 63), (56..64, 24..56));
        read(&mut ahead, 55);
        assert!(!ahead.has_asked_for_rest(END));
        for number in [47, 39, 31] {
            read(&mut ahead, number);
        }
        assert!(ahead.has_asked_for_rest(END));
        assert_eq!(ahead.beginning(false, END), 32 * BLOCK..END);
    }

    #[test]
    fn what_could_not_be_read_is_followed_by_nothing() {
        let mut ahead = ReadAhead::new(32 * 1024);
        let (read, _) = ahead.widen(handle(3), END);
        ahead.offset = read.start;
        ahead.lose();
        assert!(!ahead.holds(handle(3)));
        assert_eq!(ahead.widen(handle(3), END).1, 0..0);
        assert!(!ahead.is_reading_on());
    }

    #[test]
    fn nothing_is_read_beyond_either_end_nor_after_a_jump() {
        assert_eq!(reads(59..64)[1..], [(60..64, 64..64)]);
        assert_eq!(reads((0..5).rev())[1..], [(0..4, 0..0)]);
        assert_eq!(reads([3, 4, 40, 20])[2..], [(40..41, 0..0), (20..21, 0..0)]);
    }
}
