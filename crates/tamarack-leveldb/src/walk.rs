//! Finds the data blocks of a table whose index or footer is lost.
//!
//! Data blocks follow one another from the beginning of the file, and a checksum ends each; so a block is where a
//! checksum is right. The walk ends at the first block that is damaged, for nothing tells where the next one begins, and at
//! the first one that is no data block. Bytes that are not a block pass for one once in some billions.

use crate::block::Block;
use crate::checksum::{crc32c, masked};
use crate::coding::Input;
use crate::compression;
use crate::error::{Error, Result};
use crate::file::SourceFile;
use crate::keys;
use crate::table::{self, BLOCK_TRAILER, DataBlock, Handle};

/// Bytes that are read at once.
const CHUNK: u64 = 1 << 20;

/// A block that ends nowhere within so many bytes is taken for damaged.
const BLOCK_MAX: u64 = 64 << 20;

/// What a walk has found.
#[derive(Debug, Default)]
pub struct Walk {
    /// Data blocks in their order.
    pub blocks: Vec<DataBlock>,
    /// Where they end.
    pub end: u64,
    /// Whether these are all: behind them is an index that has the same.
    pub is_complete: bool,
}

/// What a block holds.
enum Content {
    /// Entries of the database, the last of which has this key; and what the values would be as places of blocks.
    Entries { last: Vec<u8>, places: Option<Vec<Handle>> },
    /// Something else.
    Other,
}

/// Walks over `file` from its beginning.
///
/// # Errors
/// [`Error::Io`]: damage ends the walk.
pub fn walk(file: &SourceFile) -> Result<Walk> {
    let mut found = Walk::default();
    let mut is_data = true;
    let mut offset = 0;
    while let Some(handle) = next_block(file, offset)? {
        offset += handle.stored_len();
        let Content::Entries { last, places } = read(file, handle)? else {
            // Behind the data are blocks of other kinds, and then no data any more.
            is_data = false;
            continue;
        };
        match found.blocks.first() {
            // An index is made of internal keys, too: it must not pass for data.
            Some(first) if places.as_ref().is_some_and(|places| places[0] == first.handle) => {
                let blocks = found.blocks.iter().map(|block| block.handle);
                found.is_complete = places.is_some_and(|places| blocks.eq(places));
                break;
            }
            _ if is_data => {
                found.blocks.push(DataBlock { handle, up_to: Some(last) });
                found.end = offset;
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The block that begins at `offset`, if a checksum says where it ends.
fn next_block(file: &SourceFile, offset: u64) -> Result<Option<Handle>> {
    let end = file.len().min(offset.saturating_add(BLOCK_MAX));
    let mut bytes = Vec::new();
    let (mut crc, mut at) = (0, offset);
    while at + BLOCK_TRAILER <= end {
        // The bytes that are to be looked at, and behind them those of a trailer.
        let step = CHUNK.min(end - at - BLOCK_TRAILER + 1);
        match file.read(at, step + BLOCK_TRAILER - 1, &mut bytes) {
            Ok(()) => {}
            Err(Error::Damage(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
        for window in bytes.windows(BLOCK_TRAILER as usize) {
            if ends(crc, window) {
                return Ok(Some(Handle { offset, len: at - offset }));
            }
            crc = crc32c(crc, &window[..1]);
            at += 1;
        }
    }
    Ok(None)
}

/// Whether `trailer` is that of a block whose bytes have the checksum `crc`.
fn ends(crc: u32, trailer: &[u8]) -> bool {
    let mut input = Input::new(trailer);
    let (Some(kind), Some(stored)) = (input.byte(), input.fixed32()) else { return false };
    compression::is_known(kind) && masked(crc32c(crc, &[kind])) == stored
}

fn read(file: &SourceFile, handle: Handle) -> Result<Content> {
    let mut raw = Vec::new();
    match table::read_block(file, handle, &mut Vec::new(), &mut raw) {
        Ok(()) => Ok(content(raw).unwrap_or(Content::Other)),
        Err(Error::Damage(_)) => Ok(Content::Other),
        Err(error) => Err(error),
    }
}

fn content(raw: Vec<u8>) -> Option<Content> {
    let mut block = Block::new(raw).ok()?;
    let mut last = None;
    let mut places = Some(Vec::new());
    while block.advance().ok()? {
        keys::split(block.key())?;
        last = Some(keys::user_key(block.key()).to_vec());
        let mut input = Input::new(block.value());
        let place = Handle::take(&mut input).filter(|_| input.is_empty());
        places = places.zip(place).map(|(mut places, place)| {
            places.push(place);
            places
        });
    }
    Some(Content::Entries { last: last?, places })
}
