//! Writes blocks one behind the other into a new file. The table builder owns one; nothing is durable before
//! [`finish`](BlockWriter::finish) has returned.

use std::path::PathBuf;

use super::format::{BLOCK_TRAILER_BYTES, BlockHandle, COMPRESSED_RAW_BYTES_MAX, Footer};
use crate::base::checksum::{Checksum, Seed};
use crate::base::codec::Codec;
use crate::base::error::{Error, Result};
use crate::base::sync::Arc;
use crate::env::File;
use crate::env::write_behind::WriteBehind;

/// Bytes that are collected before they are written.
const WRITE_BYTES: usize = 256 * 1024;

/// The end of a growing table file.
#[derive(Debug)]
pub struct BlockWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    seed: Seed,
    buffer: Vec<u8>,
    written: u64,
    behind: WriteBehind,
}

impl BlockWriter {
    /// A writer into `file`, which is empty.
    pub fn new(file: Arc<dyn File>, path: PathBuf, seed: Seed) -> Self {
        let buffer = Vec::with_capacity(WRITE_BYTES + WRITE_BYTES / 4);
        Self { file, path, seed, buffer, written: 0, behind: WriteBehind::default() }
    }

    /// Bytes of the file so far, written or not.
    pub fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Appends a block, compressed if that saves enough.
    pub fn append_block(&mut self, raw: &[u8], codec: Codec) -> Result<BlockHandle> {
        let offset = self.offset();
        let compressed = if raw.len() <= COMPRESSED_RAW_BYTES_MAX { codec.compress(raw)? } else { None };
        let (stored, codec) = match &compressed {
            Some(stored) => (&stored[..], codec),
            None => (raw, Codec::None),
        };
        let stored_len = u32::try_from(stored.len()).expect("blocks are far below 4 GiB");
        let checksum = Checksum::seeded(self.seed, offset).with(stored).with(&[codec as u8]).finish();
        self.buffer.extend_from_slice(stored);
        self.buffer.push(codec as u8);
        self.buffer.extend_from_slice(&checksum.to_le_bytes());
        let handle = BlockHandle { offset, stored_len };
        assert_eq!(handle.end(), self.offset(), "a block is followed by {BLOCK_TRAILER_BYTES} bytes");
        if self.buffer.len() >= WRITE_BYTES {
            self.write()?;
        }
        Ok(handle)
    }

    /// Appends the footer, and makes the file's data durable. Returns its length.
    pub fn finish(mut self, footer: &Footer) -> Result<u64> {
        let start = Checksum::seeded(self.seed, self.offset());
        let bytes = footer.encode(|fields, magic| start.with(fields).with(magic).finish());
        self.buffer.extend_from_slice(&bytes);
        self.write()?;
        self.file.sync_data().map_err(|error| Error::io("sync", &self.path, error))?;
        Ok(self.written)
    }

    fn write(&mut self) -> Result<()> {
        self.file
            .write_at(&self.buffer, self.written)
            .map_err(|error| Error::io("write", &self.path, error))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        self.behind.written(&*self.file, self.written);
        Ok(())
    }
}
