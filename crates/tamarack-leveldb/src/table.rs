//! A table (`doc/table_format.md`): data blocks, blocks with meta data that a reader from front to back does not need, an index of
//! the data blocks, and a footer that leads to it.
//!
//! Opening reads footer and index. Every block has a checksum, which is checked before anything in it is looked at.

use std::path::Path;

use crate::block::Block;
use crate::checksum::{crc32c, masked};
use crate::coding::Input;
use crate::compression;
use crate::error::{Damage, Error, Result};
use crate::file::SourceFile;
use crate::keys;
use crate::manifest;

/// Bytes of the footer: two places of blocks in room for the longest, and a number.
const FOOTER: u64 = 48;

/// The number at the end of every table of LevelDB's.
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;

/// Those at the end of RocksDB's tables.
const MAGIC_OF_ROCKSDB: [u64; 3] = [0x88e2_41b7_85f4_cff7, 0x8242_2296_63bf_9564, 0x4f34_18eb_7a8f_13b8];

/// Bytes behind a block: how it is compressed, and a checksum.
pub const BLOCK_TRAILER: u64 = 5;

/// Where a block is; its trailer follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
}

impl Handle {
    /// The next place in `input`.
    pub fn take(input: &mut Input<'_>) -> Option<Self> {
        Some(Self { offset: input.varint64()?, len: input.varint64()? })
    }

    /// Bytes of the block with its trailer.
    pub fn stored_len(self) -> u64 {
        self.len.saturating_add(BLOCK_TRAILER)
    }
}

/// A data block as the index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataBlock {
    /// Where it is.
    pub handle: Handle,
    /// A user's key that none of its keys is beyond, if the index could be read.
    pub up_to: Option<Vec<u8>>,
}

/// Opens the table at `path`, whose first `bytes` bytes count.
///
/// # Errors
/// [`Error::Damage`] if it is shorter than that, or not there; [`Error::NotLevelDb`] if it is RocksDB's; [`Error::Io`].
pub fn open(path: &Path, bytes: u64) -> Result<SourceFile> {
    let file = SourceFile::open(path)?;
    if file.len() < bytes {
        let found = format!("the end of the file at {}", file.len());
        return Err(file.damage(file.len(), format!("a table of {bytes} bytes"), found).into());
    }
    Ok(file)
}

/// The data blocks of a table of `bytes` bytes by its index.
///
/// # Errors
/// [`Error::Damage`]; [`Error::NotLevelDb`] if it is one of RocksDB's; [`Error::Io`].
pub fn index(file: &SourceFile, bytes: u64) -> Result<Vec<DataBlock>> {
    let handle = footer(file, bytes)?;
    let mut raw = Vec::new();
    read_block(file, handle, &mut Vec::new(), &mut raw)?;
    let bad = |found: String| -> Error { file.damage(handle.offset, "an index", found).into() };
    let mut block = Block::new(raw).map_err(bad)?;
    let mut blocks: Vec<DataBlock> = Vec::new();
    while block.advance().map_err(bad)? {
        let place = Handle::take(&mut Input::new(block.value()));
        let place = place.ok_or_else(|| bad("an entry without the place of a block".to_owned()))?;
        if keys::split(block.key()).is_none() {
            return Err(bad("a key that is no internal one".to_owned()));
        }
        let up_to = Some(keys::user_key(block.key()).to_vec());
        blocks.push(DataBlock { handle: place, up_to });
    }
    Ok(blocks)
}

/// Where the index is.
fn footer(file: &SourceFile, bytes: u64) -> Result<Handle> {
    let Some(offset) = bytes.checked_sub(FOOTER) else {
        return Err(file.damage(0, format!("a table of at least {FOOTER} bytes"), bytes.to_string()).into());
    };
    let mut footer = Vec::new();
    file.read(offset, FOOTER, &mut footer)?;
    let (places, magic) = footer.split_at(FOOTER as usize - 8);
    let magic = Input::new(magic).fixed64().unwrap_or_default();
    if MAGIC_OF_ROCKSDB.contains(&magic) {
        return Err(manifest::of_rocksdb(file.path()));
    }
    if magic != MAGIC {
        return Err(file
            .damage(offset + FOOTER - 8, format!("{MAGIC:016x}"), format!("{magic:016x}"))
            .into());
    }
    let mut places = Input::new(places);
    let handle = Handle::take(&mut places).and_then(|_| Handle::take(&mut places));
    handle.ok_or_else(|| file.damage(offset, "the places of two blocks", "something else").into())
}

/// Reads a block, checks it, and puts its raw bytes into `raw`; `packed` is memory to work in.
///
/// # Errors
/// [`Error::Damage`]; [`Error::Io`].
pub fn read_block(file: &SourceFile, handle: Handle, packed: &mut Vec<u8>, raw: &mut Vec<u8>) -> Result<()> {
    file.read(handle.offset, handle.stored_len(), packed)?;
    let damage = |expected: String, found: String| -> Damage { file.damage(handle.offset, expected, found) };
    let (stored, kind) = check(packed).map_err(|(expected, found)| damage(expected, found))?;
    compression::decompress(kind, stored, raw).map_err(|found| damage("a block".to_owned(), found).into())
}

/// Takes a block with its trailer apart: its bytes, and how they are compressed.
fn check(bytes: &[u8]) -> std::result::Result<(&[u8], u8), (String, String)> {
    let whole = bytes.split_last_chunk::<4>().and_then(|(covered, crc)| {
        let (kind, stored) = covered.split_last()?;
        Some((covered, stored, *kind, u32::from_le_bytes(*crc)))
    });
    let (covered, stored, kind, expected) =
        whole.ok_or_else(|| ("a block".to_owned(), format!("{} bytes", bytes.len())))?;
    let found = masked(crc32c(0, covered));
    if found != expected {
        return Err((format!("the checksum {expected:08x}"), format!("{found:08x}")));
    }
    Ok((stored, kind))
}
