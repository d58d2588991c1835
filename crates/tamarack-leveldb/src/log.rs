//! Logs and manifests as sequences of records (`doc/log_format.md`): blocks of 32 KiB, in them fragments with a checksum, of
//! which one or several make a record.
//!
//! A [`LogReader`] gives whole records alone, and says where there are none: damage, after which it goes on where it safely can,
//! or a torn end, which is what a crash leaves of the last record. It decides nothing: whether damage ends the reading is its
//! caller's affair. It never looks for records among other bytes, for a value may hold the log of another database.

use std::path::Path;

use crate::checksum::{crc32c, masked};
use crate::coding::Input;
use crate::error::{Damage, Result};
use crate::file::SourceFile;

/// Bytes of a block, which fragments do not cross.
const BLOCK: u64 = 32 << 10;

/// Bytes in front of a fragment: checksum, length, type.
const HEADER: usize = 7;

const FULL: u8 = 1;
const FIRST: u8 = 2;
const LAST: u8 = 4;

/// What comes next in a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// A whole record, which begins at this offset.
    Record(u64),
    /// So many bytes that are no whole record.
    Damaged(Damage, u64),
    /// The file ends in the middle of a record.
    Torn {
        /// Where the record begins.
        offset: u64,
        /// Its bytes that are there.
        bytes: u64,
    },
    /// The end, of the file or of what was written of it.
    End,
}

/// Reads the records of one file.
#[derive(Debug)]
pub struct LogReader {
    file: SourceFile,
    /// Where the block begins.
    block_start: u64,
    block: Vec<u8>,
    /// The next fragment, in the block.
    position: usize,
    /// Where the record begins of which fragments have been read.
    assembling: Option<u64>,
    /// Where zeros begin behind which nothing has been found so far.
    zeros: Option<u64>,
    /// What is wrong with the first block.
    first: Option<Item>,
}

/// A header and what it says.
struct Header {
    checksum: u32,
    len: usize,
    kind: u8,
}

impl LogReader {
    /// The records of the file at `path`.
    ///
    /// # Errors
    /// Those of [`SourceFile::open`].
    pub fn open(path: &Path) -> Result<Self> {
        let file = SourceFile::open(path)?;
        let mut reader = Self {
            file,
            block_start: 0,
            block: Vec::new(),
            position: 0,
            assembling: None,
            zeros: None,
            first: None,
        };
        reader.first = reader.enter(0)?;
        Ok(reader)
    }

    /// The file's bytes.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Where the next fragment begins.
    pub fn offset(&self) -> u64 {
        self.block_start + self.position as u64
    }

    /// Reads on, up to the end of the next record, whose bytes are then in `record`.
    ///
    /// # Errors
    /// [`Io`](crate::Error::Io) alone: damage is an item.
    pub fn next(&mut self, record: &mut Vec<u8>) -> Result<Item> {
        if let Some(damaged) = self.first.take() {
            return Ok(damaged);
        }
        loop {
            let rest = &self.block[self.position..];
            if rest.len() < HEADER {
                if self.is_last_block() {
                    return Ok(self.end(rest.len()));
                }
                if let Some(item) = self.enter(self.block_start + BLOCK)? {
                    return Ok(item);
                }
                continue;
            }
            let header = Header::decode(rest);
            if header.is_empty() && rest.iter().all(|&byte| byte == 0) {
                self.zeros.get_or_insert(self.block_start + self.position as u64);
                self.position = self.block.len();
                continue;
            }
            if let Some(item) = self.judge(&header) {
                return Ok(item);
            }
            if let Some(item) = self.take(&header, record) {
                return Ok(item);
            }
        }
    }

    fn load(&mut self, start: u64) -> Result<()> {
        let len = BLOCK.min(self.file.len().saturating_sub(start));
        self.block_start = start;
        self.position = 0;
        self.file.read(start, len, &mut self.block)
    }

    /// Goes on with the block at `start`; one that the device does not give is an item.
    fn enter(&mut self, start: u64) -> Result<Option<Item>> {
        match self.load(start) {
            Ok(()) => Ok(None),
            Err(crate::Error::Damage(damage)) => {
                let bytes = BLOCK.min(self.file.len() - start);
                // Nothing of it is looked at: zeros stand for its bytes.
                self.block = vec![0; bytes as usize];
                self.position = self.block.len();
                self.assembling = None;
                Ok(Some(Item::Damaged(damage, bytes)))
            }
            Err(error) => Err(error),
        }
    }

    fn is_last_block(&self) -> bool {
        self.block_start + BLOCK >= self.file.len()
    }

    /// The item at the file's end, before which `rest` bytes are left that are no header.
    fn end(&mut self, rest: usize) -> Item {
        // Behind the last fragment of a full block there may be as many bytes as are too few for a header.
        let rest = if self.block.len() as u64 == BLOCK { 0 } else { rest as u64 };
        self.position = self.block.len();
        let end = self.file.len();
        match self.assembling.take() {
            Some(offset) => Item::Torn { offset, bytes: end - offset },
            None if rest > 0 => Item::Torn { offset: end - rest, bytes: rest },
            None => Item::End,
        }
    }

    /// What is wrong with the fragment at the position, if anything is.
    fn judge(&mut self, header: &Header) -> Option<Item> {
        let rest = &self.block[self.position..];
        let room = rest.len() - HEADER;
        if header.len > room {
            let may_be_torn = (self.block.len() as u64) < BLOCK;
            if may_be_torn && header.whole_len(&rest[HEADER..]).is_none() {
                return Some(self.end(rest.len()));
            }
            let expected = format!("a fragment of at most {room} bytes");
            return Some(self.damaged(expected, format!("one of {}", header.len), None));
        }
        let computed = header.checksum_of(&rest[HEADER..HEADER + header.len]);
        if computed != header.checksum {
            let behind = &rest[HEADER + header.len..];
            let goes_on = Header::is_whole(behind).then_some(HEADER + header.len);
            let expected = format!("the checksum {:08x}", header.checksum);
            return Some(self.damaged(expected, format!("{computed:08x}"), goes_on));
        }
        if !(FULL..=LAST).contains(&header.kind) {
            let found = format!("type {}", header.kind);
            let len = Some(HEADER + header.len);
            return Some(self.damaged("a fragment of type 1, 2, 3 or 4".to_owned(), found, len));
        }
        let zeros = self.zeros.take()?;
        let bytes = self.offset() - zeros;
        self.assembling = None;
        let damage =
            self.file.damage(zeros, "fragments, for there are some behind", format!("{bytes} zeros"));
        Some(Item::Damaged(damage, bytes))
    }

    /// The item for damage at the position. The reading goes on after so many bytes, or in the next block.
    fn damaged(&mut self, expected: String, found: String, len: Option<usize>) -> Item {
        let damage = self.file.damage(self.offset(), expected, found);
        let len = len.unwrap_or(self.block.len() - self.position);
        let start = self.assembling.take().unwrap_or(self.offset());
        self.zeros = None;
        self.position += len;
        Item::Damaged(damage, self.offset() - start)
    }

    /// Adds the fragment at the position, which is whole, to the record. An item, if that ends it or it does not belong there.
    fn take(&mut self, header: &Header, record: &mut Vec<u8>) -> Option<Item> {
        let offset = self.offset();
        let begins = matches!(header.kind, FULL | FIRST);
        match self.assembling {
            // Early versions of LevelDB left an empty first fragment at the end of a block.
            Some(start) if begins && !record.is_empty() => {
                self.assembling = None;
                let damage =
                    self.file.damage(offset, "the next fragment of a record", "the first of another");
                return Some(Item::Damaged(damage, offset - start));
            }
            None if !begins => {
                let found = "one without those before it".to_owned();
                return Some(self.damaged(
                    "the first fragment of a record".to_owned(),
                    found,
                    Some(HEADER + header.len),
                ));
            }
            _ => {}
        }
        if begins {
            record.clear();
            self.assembling = Some(offset);
        }
        let start = self.position + HEADER;
        record.extend_from_slice(&self.block[start..start + header.len]);
        self.position = start + header.len;
        if matches!(header.kind, FULL | LAST) {
            return self.assembling.take().map(Item::Record);
        }
        None
    }
}

impl Header {
    /// Decodes the header in front of `bytes`, which has room for it.
    fn decode(bytes: &[u8]) -> Self {
        let mut input = Input::new(bytes);
        let checksum = input.fixed32().unwrap_or_default();
        let len = input.bytes(2).map_or(0, |len| usize::from(len[0]) | usize::from(len[1]) << 8);
        Self { checksum, len, kind: input.byte().unwrap_or_default() }
    }

    fn is_empty(&self) -> bool {
        self.checksum == 0 && self.len == 0 && self.kind == 0
    }

    fn checksum_of(&self, data: &[u8]) -> u32 {
        masked(crc32c(crc32c(0, &[self.kind]), data))
    }

    /// How much of `data` the checksum is of, if it is of any beginning. Tells a damaged length from a torn fragment: one that is
    /// torn passes for damaged once in 2^32 / `data.len()` times.
    fn whole_len(&self, data: &[u8]) -> Option<usize> {
        let mut crc = crc32c(0, &[self.kind]);
        if masked(crc) == self.checksum {
            return Some(0);
        }
        data.iter().enumerate().find_map(|(at, &byte)| {
            crc = crc32c(crc, &[byte]);
            (masked(crc) == self.checksum).then_some(at + 1)
        })
    }

    /// Whether a whole fragment stands in front of `bytes`.
    fn is_whole(bytes: &[u8]) -> bool {
        if bytes.len() < HEADER {
            return false;
        }
        let header = Self::decode(bytes);
        bytes.get(HEADER..HEADER + header.len).is_some_and(|data| header.checksum_of(data) == header.checksum)
    }
}
