//! Reads what is whole of a table that may be damaged, for repair: every data block whose checksum is right and to which
//! a whole index leads, and the references, which tell what the other entries pointed to.
//!
//! Never writes, and never takes an entry from a block that does not pass its checksum. Where a block is lost, the
//! separators around it bound the keys that were in it.

use std::path::PathBuf;

use super::TableOptions;
use super::block::{Block, BlockPosition, Target};
use super::format::{BlockHandle, Footer, Properties, decode_pointer, payload_fits};
use super::references::ReferenceReader;
use super::source::BlockSource;
use crate::base::error::{Error, Result};
use crate::base::ids::{SegmentId, TableId};
use crate::base::keys::{EntryKind, trailer_kind};
use crate::base::sync::Arc;
use crate::env::File;

/// A stretch of user keys, bounds included; `None` is open.
pub type KeySpan = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Is shown the internal key and the payload of an entry.
pub type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

/// What a damaged table still says.
#[derive(Debug, Default)]
pub struct Remains {
    /// What is wrong with it.
    pub damage: Vec<Error>,
    /// Stretches of keys of which blocks are lost.
    pub lost: Vec<KeySpan>,
    /// Its properties, if they are whole.
    pub properties: Option<Properties>,
    /// The records that its entries point to, by segment, if the references are whole.
    pub references: Option<Vec<(SegmentId, Vec<u32>)>>,
}

/// Shows every entry that can be read, in order, with its payload as cursors present it.
///
/// # Errors
/// `Io`, `Unsupported`; whatever `visit` fails with. Damage is no error.
pub fn salvage(
    file: Arc<dyn File>,
    path: PathBuf,
    id: TableId,
    options: &TableOptions,
    visit: Visit<'_>,
) -> Result<Remains> {
    let mut remains = Remains::default();
    let opened = BlockSource::open(file, path, options.seed(id));
    let Some((source, footer)) = noted(&mut remains.damage, opened)? else {
        remains.lost.push((None, None));
        return Ok(remains);
    };
    let mut walk = Walk { source: &source, footer, options, remains, visit, before: None };
    walk.describe()?;
    if walk.footer.filter != BlockHandle::default() {
        let filter = walk.source.read(walk.footer.filter);
        noted(&mut walk.remains.damage, filter)?;
    }
    let top = walk.block(walk.footer.top_index)?;
    match top {
        None => walk.remains.lost.push((None, None)),
        Some(top) if walk.footer.index_levels == 1 => walk.leaf(&top)?,
        Some(top) => {
            for slot in 0..top.restarts() {
                let Ok((separator, entry)) = top.index_entry(slot) else { continue };
                match walk.block(entry.handle)? {
                    Some(partition) => walk.leaf(&partition)?,
                    None => walk.lose(separator),
                }
                walk.before = Some(separator.user_key.to_vec());
            }
        }
    }
    Ok(walk.remains)
}

struct Walk<'a> {
    source: &'a BlockSource,
    footer: Footer,
    options: &'a TableOptions,
    remains: Remains,
    visit: Visit<'a>,
    /// The user key of the last separator.
    before: Option<Vec<u8>>,
}

impl Walk<'_> {
    fn describe(&mut self) -> Result<()> {
        let raw = self.source.read(self.footer.properties);
        let properties = noted(&mut self.remains.damage, raw)?.and_then(|raw| Properties::decode(&raw));
        let name = self.options.order.comparator().name();
        if let Some(other) = properties.as_ref().filter(|found| found.comparator != name.as_bytes()) {
            return Err(Error::invalid_argument(format!(
                "{} is ordered by {}, not by {name}",
                self.source.path().display(),
                String::from_utf8_lossy(&other.comparator)
            )));
        }
        self.remains.properties = properties;
        if self.footer.references == BlockHandle::default() {
            self.remains.references = Some(Vec::new());
            return Ok(());
        }
        let sets = ReferenceReader::new(self.source, self.footer.references)
            .and_then(Iterator::collect::<Result<Vec<_>>>);
        self.remains.references = noted(&mut self.remains.damage, sets)?;
        Ok(())
    }

    fn block(&mut self, handle: BlockHandle) -> Result<Option<Block>> {
        let block = self
            .source
            .read(handle)
            .and_then(|raw| Block::new(raw).map_err(|damage| self.source.damaged(handle.offset, damage)));
        noted(&mut self.remains.damage, block)
    }

    fn lose(&mut self, separator: Target<'_>) {
        self.remains.lost.push((self.before.clone(), Some(separator.user_key.to_vec())));
    }

    fn leaf(&mut self, leaf: &Block) -> Result<()> {
        for slot in 0..leaf.restarts() {
            let Ok((separator, entry)) = leaf.index_entry(slot) else { continue };
            match self.block(entry.handle)? {
                Some(block) if self.entries(entry.handle, &block)? => {}
                _ => self.lose(separator),
            }
            self.before = Some(separator.user_key.to_vec());
        }
        Ok(())
    }

    /// Shows the entries of a whole block; whether all of them are what a table holds.
    fn entries(&mut self, handle: BlockHandle, block: &Block) -> Result<bool> {
        let mut position = BlockPosition::default();
        let mut outcome = position.seek_to_first(block);
        while outcome.is_ok() && position.valid() {
            let payload = block.bytes(position.payload());
            let kind = trailer_kind(position.trailer()).filter(|&kind| payload_fits(kind, payload));
            let Some(kind) = kind else { return Ok(false) };
            let pointer = decode_pointer(payload).filter(|_| kind == EntryKind::Pointer);
            match pointer {
                Some(pointer) => (self.visit)(position.key(), &pointer.to_bytes())?,
                None => (self.visit)(position.key(), payload)?,
            }
            outcome = position.next(block);
        }
        let whole = outcome.map_err(|damage| self.source.damaged(handle.offset, damage));
        Ok(noted(&mut self.remains.damage, whole)?.is_some())
    }
}

/// The value, or `None` after its damage was noted; any other error stays one.
fn noted<T>(damage: &mut Vec<Error>, outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.as_corruption().is_some() => {
            damage.push(error);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
