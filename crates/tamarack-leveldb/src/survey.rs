//! Which keys a table has of which no manifest says: those in its first and in its last block that can be read.

use std::path::PathBuf;

use crate::block::Block;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::file::SourceFile;
use crate::keys;
use crate::loss::Covers;
use crate::table::{self, DataBlock};
use crate::table_run::TableFile;
use crate::walk;

/// Looks at the table at `path`; none if nothing in it can be read, which is then counted as a loss.
///
/// # Errors
/// [`Error::NotLevelDb`] if it is one of RocksDB's; [`Error::Damage`] unless it is left out; [`Error::Io`].
pub fn survey(path: PathBuf, context: &mut Context) -> Result<Option<TableFile>> {
    let all = || Covers::Keys { from: None, up_to: None };
    let Some(file) = context.tolerate(SourceFile::open(&path), 0, all)? else { return Ok(None) };
    let bytes = file.len();
    let (blocks, damage) = match table::index(&file, bytes) {
        Ok(blocks) => (blocks, None),
        Err(Error::Damage(damage)) => (walk::walk(&file)?.blocks, Some(damage)),
        Err(error) => return Err(error),
    };
    let first = find(&file, blocks.iter(), |ends| ends.0)?;
    let last = find(&file, blocks.iter().rev(), |ends| ends.1)?;
    let (Some(smallest), Some(largest)) = (first, last) else {
        // A table that was never finished may be empty, and nothing was in one without blocks.
        let found = "none that can be read";
        let damage = damage.unwrap_or_else(|| file.damage(0, "a data block", found));
        context.lose(damage, bytes, all())?;
        return Ok(None);
    };
    Ok(Some(TableFile { path, bytes, smallest, largest, ends: None }))
}

/// What `choose` takes of the first and last key of the first of `blocks` that can be read.
fn find<'a>(
    file: &SourceFile,
    blocks: impl Iterator<Item = &'a DataBlock>,
    choose: impl Fn((Vec<u8>, Vec<u8>)) -> Vec<u8>,
) -> Result<Option<Vec<u8>>> {
    for block in blocks {
        let mut raw = Vec::new();
        match table::read_block(file, block.handle, &mut Vec::new(), &mut raw) {
            Ok(()) => {
                if let Some(ends) = ends(raw) {
                    return Ok(Some(choose(ends)));
                }
            }
            Err(Error::Damage(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The first and the last user's key of a block, as far as it is one.
fn ends(raw: Vec<u8>) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut block = Block::new(raw).ok()?;
    let mut ends = None;
    while block.advance().unwrap_or(false) {
        let key = keys::user_key(block.key()).to_vec();
        ends = match ends {
            None => Some((key.clone(), key)),
            Some((first, _)) => Some((first, key)),
        };
    }
    ends
}
