//! Reads blocks of a table file and checks them: every byte that the rest of the reader sees has come through
//! here, lies inside the file, and has passed its checksum.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use super::format::{
    BLOCK_TRAILER_BYTES, BlockHandle, COMPRESSED_RAW_BYTES_MAX, Damage, FOOTER_BYTES, Footer,
};
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
}

/// What a scan has read ahead of itself. It reads single blocks at first, and ever larger stretches while every
/// block follows the one before it.
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

    fn holds(&self, handle: BlockHandle) -> bool {
        handle.offset >= self.offset && handle.end() <= self.end()
    }

    /// How much to read for a block at `offset` that is not held: no more than that block if the scan jumps.
    fn widen(&mut self, offset: u64) -> u64 {
        let follows = (self.offset..=self.end()).contains(&offset) && !self.bytes.is_empty();
        self.window = if follows { (self.window * 2).clamp(WINDOW_MIN, self.window_max) } else { 0 };
        self.window
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
        let source = Self { file, path, seed, blocks_end };
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
        self.read_exact(&mut bytes, handle.offset)?;
        self.unpack(handle, Cow::Owned(bytes))
    }

    /// The same for a scan that will want the blocks behind it too, up to `end`.
    pub fn read_ahead(&self, handle: BlockHandle, end: u64, ahead: &mut ReadAhead) -> Result<Vec<u8>> {
        let len = self.whole_len(handle)?;
        if !ahead.holds(handle) {
            let rest = end.min(self.blocks_end).saturating_sub(handle.offset);
            let want = ahead.widen(handle.offset).min(rest).max(len as u64);
            ahead.bytes.clear();
            ahead.bytes.resize(want as usize, 0);
            ahead.offset = handle.offset;
            if let Err(error) = self.read_exact(&mut ahead.bytes, handle.offset) {
                ahead.bytes.clear();
                return Err(error);
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
