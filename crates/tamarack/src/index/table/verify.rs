//! Reads a whole table past the cache and checks everything that can be checked: every checksum, that the blocks
//! lie one behind the other without a gap, the order of the keys, that every lookup structure leads to every
//! entry, and that counts and references are those of the entries.

use std::borrow::Cow;

use super::block::{Block, BlockPosition, Target};
use super::filter::Filter;
use super::format::{BlockHandle, Damage, Decoded, IndexEntry};
use super::reader::TableReader;
use super::references::ReferenceCollector;
use super::source::ReadAhead;
use crate::base::error::{Error, Result};
use crate::base::ids::Sequence;
use crate::base::keys::hash_user_key;
use crate::base::keys::{EntryKind, trailer_kind, trailer_sequence};

/// What a check of a whole table has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VerifyReport {
    /// Bytes of the file.
    pub bytes: u64,
    /// Blocks of all sorts.
    pub blocks: u64,
    /// Entries.
    pub entries: u64,
    /// Records of the log that entries point to.
    pub references: u64,
}

/// Bytes read at a time.
const WINDOW_MAX: u64 = 256 * 1024;

/// Checks `table`.
pub fn verify(table: &TableReader) -> Result<VerifyReport> {
    let mut check = Check {
        table,
        filter: table.whole_filter()?,
        ahead: ReadAhead::new(WINDOW_MAX),
        next_offset: 0,
        blocks: 0,
        data_blocks: 0,
        last_key: Vec::new(),
        smallest: Vec::new(),
        entries: 0,
        deletes: 0,
        raw_key_bytes: 0,
        raw_payload_bytes: 0,
        sequences: (Sequence::MAX, Sequence(0)),
        references: ReferenceCollector::default(),
    };
    check.data_and_index()?;
    check.properties()?;
    let references = check.references.values();
    check.references()?;
    let footer = table.footer();
    check.follows(footer.top_index)?;
    if footer.filter != BlockHandle::default() {
        check.follows(footer.filter)?;
        // Opening has not read the filter if the order of keys cannot use it.
        table.source().read(footer.filter)?;
    }
    check.follows(footer.properties)?;
    if check.next_offset != table.source().blocks_end() {
        return Err(check.differs(
            check.next_offset,
            "the footer",
            table.source().blocks_end(),
            check.next_offset,
        ));
    }
    Ok(VerifyReport { bytes: table.file_bytes(), blocks: check.blocks, entries: check.entries, references })
}

/// A check under way: what the entries so far add up to.
struct Check<'a> {
    table: &'a TableReader,
    filter: Option<Cow<'a, Filter>>,
    ahead: ReadAhead,
    next_offset: u64,
    blocks: u64,
    data_blocks: u64,
    last_key: Vec<u8>,
    smallest: Vec<u8>,
    entries: u64,
    deletes: u64,
    raw_key_bytes: u64,
    raw_payload_bytes: u64,
    sequences: (Sequence, Sequence),
    references: ReferenceCollector,
}

impl Check<'_> {
    /// Every block begins where the one before it ends.
    fn follows(&mut self, handle: BlockHandle) -> Result<()> {
        if handle.offset != self.next_offset {
            return Err(self.differs(handle.offset, "the place of a block", self.next_offset, handle.offset));
        }
        self.next_offset = handle.end();
        self.blocks += 1;
        Ok(())
    }

    fn differs(&self, offset: u64, what: &str, expected: impl ToString, found: impl ToString) -> Error {
        let (expected, found) = (expected.to_string(), found.to_string());
        self.table.source().corruption(offset, format!("{what}: {expected}"), found)
    }

    fn data_and_index(&mut self) -> Result<()> {
        let table = self.table;
        let top_offset = table.footer().top_index.offset;
        if !table.is_partitioned() {
            self.leaf(table.top(), top_offset)?;
            return self.data_end();
        }
        let mut partitions = Vec::new();
        for slot in 0..table.top().restarts() {
            let (separator, entry) =
                table.top().index_entry(slot).map_err(|damage| table.source().damaged(top_offset, damage))?;
            let partition = table.read_block(entry.handle)?;
            let before = self.references.bytes();
            if entry.value_bytes_before != before {
                return Err(self.differs(top_offset, "value bytes before", before, entry.value_bytes_before));
            }
            self.leaf(&partition, entry.handle.offset)?;
            self.at_or_before(separator, entry.handle.offset)?;
            partitions.push(entry.handle);
        }
        self.data_end()?;
        partitions.into_iter().try_for_each(|handle| self.follows(handle))
    }

    fn data_end(&mut self) -> Result<()> {
        let expected = self.table.properties().data_bytes;
        if self.next_offset == expected {
            return Ok(());
        }
        Err(self.differs(self.next_offset, "the end of the data blocks", expected, self.next_offset))
    }

    /// An index block that leads to data blocks.
    fn leaf(&mut self, leaf: &Block, offset: u64) -> Result<()> {
        let damaged = |damage| self.table.source().damaged(offset, damage);
        let entries: Vec<_> = (0..leaf.restarts())
            .map(|slot| leaf.index_entry(slot))
            .collect::<Decoded<_>>()
            .map_err(damaged)?;
        for (separator, entry) in entries {
            let before = self.references.bytes();
            if entry.value_bytes_before != before {
                return Err(self.differs(offset, "value bytes before", before, entry.value_bytes_before));
            }
            if self.entries > 0
                && self.table.order().compare(&self.last_key, &separator.to_internal_key()).is_ge()
            {
                return Err(self.differs(offset, "order", "ascending separators", "a smaller one"));
            }
            self.data_block(entry)?;
            self.at_or_before(separator, entry.handle.offset)?;
        }
        Ok(())
    }

    fn at_or_before(&self, separator: Target<'_>, offset: u64) -> Result<()> {
        if self.table.order().compare(&self.last_key, &separator.to_internal_key()).is_le() {
            return Ok(());
        }
        Err(self.differs(offset, "order", "keys at or before their block's separator", "a greater one"))
    }

    fn data_block(&mut self, entry: IndexEntry) -> Result<()> {
        let (table, handle) = (self.table, entry.handle);
        self.follows(handle)?;
        self.data_blocks += 1;
        let raw = table.source().read_ahead(handle, table.properties().data_bytes, &mut self.ahead)?;
        let damaged = |damage| table.source().damaged(handle.offset, damage);
        let block = Block::new(raw).map_err(damaged)?;
        let mut restarts = block.restart_positions().peekable();
        let mut position = BlockPosition::default();
        position.seek_to_first(&block).map_err(damaged)?;
        while position.valid() {
            restarts.next_if_eq(&position.start());
            self.entry(handle.offset, &block, &position)?;
            position.next(&block).map_err(damaged)?;
        }
        match restarts.next() {
            None => Ok(()),
            Some(position) => Err(damaged(Damage { position, expected: "an entry at every restart point" })),
        }
    }

    fn entry(&mut self, offset: u64, block: &Block, position: &BlockPosition) -> Result<()> {
        let (table, key, trailer) = (self.table, position.key(), position.trailer());
        let user_key = position.user_key();
        if self.entries > 0 && table.order().compare(&self.last_key, key).is_ge() {
            return Err(self.differs(offset, "order", "ascending keys", "a key that is not greater"));
        }
        table.check_payload(offset, trailer, block, position.payload())?;
        let hash = hash_user_key(user_key);
        if self.filter.as_ref().is_some_and(|filter| !filter.may_contain(hash)) {
            let filter = table.footer().filter.offset;
            return Err(self.differs(
                filter,
                "filter",
                "a filter that lets every key pass",
                "one that does not",
            ));
        }
        let found = block.find(table.order(), Target { user_key, trailer }, Some(hash));
        let found = found.map_err(|damage| table.source().damaged(offset, damage))?;
        if found.is_none_or(|found| found.payload != position.payload()) {
            return Err(self.differs(
                offset,
                "lookup",
                "a block that finds its entries",
                "one that does not",
            ));
        }
        match trailer_kind(trailer).expect("entries are decoded with a kind") {
            EntryKind::Delete => self.deletes += 1,
            EntryKind::Inline => {}
            EntryKind::Pointer => {
                let pointer = table.pointer(offset, block, position.payload())?;
                let overhead = table.properties().record_overhead;
                self.references
                    .add(pointer, overhead + user_key.len() as u64 + u64::from(pointer.stored_len));
            }
        }
        let sequence = trailer_sequence(trailer);
        self.sequences = (self.sequences.0.min(sequence), self.sequences.1.max(sequence));
        if self.entries == 0 {
            self.smallest.extend_from_slice(key);
        }
        self.entries += 1;
        self.raw_key_bytes += key.len() as u64;
        self.raw_payload_bytes += position.payload().len() as u64;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }

    fn properties(&self) -> Result<()> {
        let (offset, stored) = (self.table.footer().properties.offset, self.table.properties());
        let partitions = if self.table.is_partitioned() { self.table.top().restarts() as u64 } else { 0 };
        for (what, counted, stored) in [
            ("entries", self.entries, stored.entries),
            ("deletes", self.deletes, stored.deletes),
            ("pointers", self.references.values(), stored.pointers),
            ("raw key bytes", self.raw_key_bytes, stored.raw_key_bytes),
            ("raw payload bytes", self.raw_payload_bytes, stored.raw_payload_bytes),
            ("value bytes", self.references.bytes(), stored.value_bytes),
            ("data blocks", self.data_blocks, stored.data_blocks),
            ("index partitions", partitions, stored.index_partitions),
            ("smallest sequence number", self.sequences.0.0, stored.sequences.0.0),
            ("largest sequence number", self.sequences.1.0, stored.sequences.1.0),
        ] {
            if counted != stored {
                return Err(self.differs(offset, what, counted, stored));
            }
        }
        let keys = [
            ("smallest key", &self.smallest, &stored.smallest),
            ("largest key", &self.last_key, &stored.largest),
        ];
        for (what, found, stored) in keys {
            if found != stored {
                return Err(self.differs(offset, what, format!("{found:02x?}"), format!("{stored:02x?}")));
            }
        }
        Ok(())
    }

    fn references(&mut self) -> Result<()> {
        let offset = self.table.footer().references.offset;
        let mut stored = self.table.references()?;
        let (blocks, summary) = (stored.blocks().collect::<Vec<_>>(), stored.summary().to_vec());
        let counted: Vec<_> = std::mem::take(&mut self.references).into_sets().collect();
        if !counted.iter().map(|(reference, _)| reference).eq(&summary) {
            return Err(self.differs(offset, "references", "those of the entries", "others"));
        }
        for (reference, offsets) in counted {
            let set = stored.next().transpose()?;
            if set != Some((reference.segment, offsets)) {
                let what = format!("references to segment {}", reference.segment);
                return Err(self.differs(offset, &what, "those of the entries", "others"));
            }
        }
        drop(stored);
        blocks.into_iter().try_for_each(|handle| self.follows(handle))?;
        let directory = self.table.footer().references;
        if directory == BlockHandle::default() { Ok(()) } else { self.follows(directory) }
    }
}
