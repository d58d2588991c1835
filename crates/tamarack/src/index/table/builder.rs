//! Writes one table from entries in ascending order. Flushes and compactions call it; it never decides what goes
//! into a table, nor names or renames files. A builder that is dropped leaves an unfinished file behind, which its
//! caller removes.

use std::cmp::Ordering;
use std::mem;
use std::path::PathBuf;

use super::block_builder::BlockBuilder;
use super::block_end::Extent;
use super::filter::Filter;
use super::format::{self, BlockHandle, Footer, IndexEntry, Properties};
use super::index_builder::IndexBuilder;
use super::references::ReferenceCollector;
use super::writer::BlockWriter;
use super::{BLOCK_BYTES_MAX, TableOptions};
use crate::base::codec::Codec;
use crate::base::error::{Error, Result};
use crate::base::ids::{Sequence, TableId};
use crate::base::keys::hash_user_key;
use crate::base::keys::{self, EntryKind, split_internal_key, trailer_kind, trailer_sequence};
use crate::base::pointer::ValuePointer;
use crate::base::segment::SegmentReference;
use crate::base::sync::Arc;
use crate::env::File;

/// What the manifest wants to know about a finished table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSummary {
    /// The table.
    pub id: TableId,
    /// Length of its file.
    pub file_bytes: u64,
    /// Entries of all kinds.
    pub entries: u64,
    /// Entries that are deletions.
    pub deletes: u64,
    /// Bytes of keys and values of its inline entries.
    pub inline_bytes: u64,
    /// The first internal key.
    pub smallest: Vec<u8>,
    /// The last internal key.
    pub largest: Vec<u8>,
    /// Smallest and largest sequence number.
    pub sequences: (Sequence, Sequence),
    /// What it keeps alive in each segment of the log, in ascending order.
    pub references: Vec<SegmentReference>,
}

/// A table under construction.
#[derive(Debug)]
pub struct TableBuilder {
    id: TableId,
    /// Where the entries come from.
    source: PathBuf,
    options: TableOptions,
    writer: BlockWriter,
    block: BlockBuilder,
    index: IndexBuilder,
    references: ReferenceCollector,
    /// Hashes of all user keys, for the filter.
    hashes: Vec<u64>,
    /// The last data block, until the key behind it is known and a separator can be chosen.
    unindexed: Option<IndexEntry>,
    /// What entries in finished data blocks point to.
    block_value_bytes_before: u64,
    last_key: Vec<u8>,
    smallest: Vec<u8>,
    sequences: (Sequence, Sequence),
    entries: u64,
    deletes: u64,
    inline_bytes: u64,
    raw_key_bytes: u64,
    raw_payload_bytes: u64,
    data_blocks: u64,
    encoded_pointer: Vec<u8>,
}

impl TableBuilder {
    /// A builder of table `id` into `file`, which is empty and lies at `path`. The file `source` is named when entries are
    /// not what tables hold: it is the first of those that they come from.
    pub fn new(
        file: Arc<dyn File>,
        path: PathBuf,
        source: PathBuf,
        id: TableId,
        options: &TableOptions,
    ) -> Self {
        assert!((1..=BLOCK_BYTES_MAX).contains(&options.block_bytes), "block_bytes is within its range");
        Self {
            id,
            source,
            options: options.clone(),
            writer: BlockWriter::new(file, path, options.seed(id)),
            block: BlockBuilder::new(options.restart_interval),
            index: IndexBuilder::new(),
            references: ReferenceCollector::default(),
            hashes: Vec::new(),
            unindexed: None,
            block_value_bytes_before: 0,
            last_key: Vec::new(),
            smallest: Vec::new(),
            sequences: (Sequence::MAX, Sequence(0)),
            entries: 0,
            deletes: 0,
            inline_bytes: 0,
            raw_key_bytes: 0,
            raw_payload_bytes: 0,
            data_blocks: 0,
            encoded_pointer: Vec::new(),
        }
    }

    /// Adds an entry behind all others: a well-formed internal key, and a payload as cursors present it. Panics if the
    /// payload is none of the key's kind.
    ///
    /// # Errors
    /// `Corruption` if the key is not greater than the last one: an input was not in order. `Io`, `NoSpace`.
    pub fn add(&mut self, internal_key: &[u8], payload: &[u8]) -> Result<()> {
        let (user_key, trailer) = split_internal_key(internal_key).expect("tables hold internal keys");
        let kind = trailer_kind(trailer).expect("internal keys have a kind");
        let new_user_key = self.entries == 0 || self.check_order(user_key, trailer)?;
        let pointer = (kind == EntryKind::Pointer)
            .then(|| ValuePointer::from_bytes(payload).expect("pointer payloads are value pointers"));
        let mut encoded = mem::take(&mut self.encoded_pointer);
        let payload = match pointer {
            Some(pointer) => {
                encoded.clear();
                format::put_pointer(&mut encoded, pointer);
                &encoded
            }
            None => payload,
        };
        if let Some(left) = self.left_before(user_key, trailer, payload, new_user_key) {
            self.finish_block(left)?;
        }
        if let Some(entry) = self.unindexed.take() {
            let (separator, separator_trailer) = self.separator(user_key, new_user_key);
            self.index.add(separator, separator_trailer, entry);
        }
        let hash = if self.options.hashes_keys() && (new_user_key || self.block.is_empty()) {
            let hash = hash_user_key(user_key);
            if new_user_key && self.options.filter_bits_per_key > 0 {
                self.hashes.push(hash);
            }
            Some(hash)
        } else {
            None
        };
        match kind {
            EntryKind::Inline => self.inline_bytes += (user_key.len() + payload.len()) as u64,
            EntryKind::Delete => {
                assert!(payload.is_empty(), "deletions have no payload");
                self.deletes += 1;
            }
            EntryKind::Pointer => {}
        }
        if let Some(pointer) = pointer {
            let record_bytes =
                self.options.record_overhead + user_key.len() as u64 + u64::from(pointer.stored_len);
            self.references.add(pointer, record_bytes);
        }
        self.raw_key_bytes += internal_key.len() as u64;
        self.raw_payload_bytes += payload.len() as u64;
        self.block.add(user_key, trailer, payload, hash);
        self.encoded_pointer = encoded;
        if self.entries == 0 {
            self.smallest.extend_from_slice(internal_key);
        }
        self.entries += 1;
        let sequence = trailer_sequence(trailer);
        self.sequences = (self.sequences.0.min(sequence), self.sequences.1.max(sequence));
        self.last_key.clear();
        self.last_key.extend_from_slice(internal_key);
        if self.block.raw_bytes() >= self.options.block_bytes { self.finish_block(0) } else { Ok(()) }
    }

    /// About how long the file would be if it were finished now.
    pub fn estimated_file_bytes(&self) -> u64 {
        let filter_bytes = self.hashes.len() as u64 * u64::from(self.options.filter_bits_per_key) / 8;
        let reference_bytes = self.references.values() * 2;
        let pending = (self.block.raw_bytes() + self.index.raw_bytes()) as u64;
        self.writer.offset() + pending + filter_bytes + reference_bytes
    }

    /// Writes what is left, and makes the file's data durable; its name is the caller's business. Panics if the
    /// table is empty.
    ///
    /// # Errors
    /// `Corruption` if two entries point to the same record. `Io`, `NoSpace`.
    pub fn finish(mut self) -> Result<TableSummary> {
        assert!(self.entries > 0, "a table has entries");
        if !self.block.is_empty() {
            self.finish_block(0)?;
        }
        let entry = self.unindexed.take().expect("the last data block has just been written");
        let (user_key, trailer) = split_internal_key(&self.last_key).expect("tables hold internal keys");
        self.index.add(user_key.to_vec(), trailer, entry);
        let codec = self.options.codec;
        let (data_bytes, value_bytes) = (self.writer.offset(), self.references.bytes());
        let pointers = self.references.values();
        let top = self.index.finish(&mut self.writer, codec)?;
        let twice = || {
            let found = "two entries that point to it, here or in a table near";
            Error::corruption(&self.source, 0, "a record for each pointer", found)
        };
        let (references, reference_handle) =
            self.references.write(&mut self.writer, codec)?.ok_or_else(twice)?;
        let top_index = self.writer.append_block(&top.raw, codec)?;
        let filter = if self.hashes.is_empty() {
            BlockHandle::default()
        } else {
            let filter = Filter::build(&self.hashes, self.options.filter_bits_per_key);
            self.writer.append_block(&filter.encode(), Codec::None)?
        };
        let properties = Properties {
            entries: self.entries,
            deletes: self.deletes,
            pointers,
            raw_key_bytes: self.raw_key_bytes,
            raw_payload_bytes: self.raw_payload_bytes,
            value_bytes,
            data_blocks: self.data_blocks,
            data_bytes,
            index_partitions: top.partitions,
            sequences: self.sequences,
            smallest: self.smallest.clone(),
            largest: self.last_key.clone(),
            comparator: self.options.order.comparator().name().as_bytes().to_vec(),
            codec,
            block_bytes: self.options.block_bytes as u64,
            restart_interval: self.options.restart_interval as u64,
            filter_bits_per_key: self.options.filter_bits_per_key,
            record_overhead: self.options.record_overhead,
        };
        let footer = Footer {
            top_index,
            filter,
            references: reference_handle.unwrap_or_default(),
            properties: self.writer.append_block(&properties.encode(), Codec::None)?,
            index_levels: if top.partitions == 0 { 1 } else { 2 },
        };
        Ok(TableSummary {
            id: self.id,
            file_bytes: self.writer.finish(&footer)?,
            entries: self.entries,
            deletes: self.deletes,
            inline_bytes: self.inline_bytes,
            smallest: self.smallest,
            largest: self.last_key,
            sequences: self.sequences,
            references,
        })
    }

    /// Whether the user key is greater than the last one. An error if the entry is not greater than the last.
    fn check_order(&self, user_key: &[u8], trailer: u64) -> Result<bool> {
        let (last_user_key, last_trailer) =
            split_internal_key(&self.last_key).expect("tables hold internal keys");
        let refuse =
            |expected| Err(Error::corruption(&self.source, 0, expected, "others, here or in a table near"));
        match self.options.order.compare_user(last_user_key, user_key) {
            Ordering::Less => Ok(true),
            Ordering::Equal if last_trailer > trailer => Ok(false),
            Ordering::Equal => refuse("versions of a key, newest first"),
            Ordering::Greater => refuse("keys in ascending order"),
        }
    }

    /// An internal key at or after the last one and before every version of `user_key`, or, if the last key is a
    /// version of it, the last key itself.
    fn separator(&self, user_key: &[u8], new_user_key: bool) -> (Vec<u8>, u64) {
        let (last_user_key, last_trailer) =
            split_internal_key(&self.last_key).expect("tables hold internal keys");
        let mut separator = last_user_key.to_vec();
        if !new_user_key {
            return (separator, last_trailer);
        }
        self.options.order.comparator().shorten_between(&mut separator, user_key);
        debug_assert!(self.options.order.compare_user(last_user_key, &separator).is_le());
        debug_assert!(self.options.order.compare_user(&separator, user_key).is_lt());
        (separator, keys::trailer(Sequence(0), EntryKind::Delete))
    }

    /// Whether the present data block is finished before an entry is added; if so, how many bytes are left for it.
    fn left_before(
        &self,
        user_key: &[u8],
        trailer: u64,
        payload: &[u8],
        new_user_key: bool,
    ) -> Option<usize> {
        // How long compressed blocks will be is not known, and without a hash index nothing can be left to it.
        if self.block.is_empty() || self.options.codec != Codec::None || !self.options.hashes_keys() {
            return None;
        }
        let start = self.writer.offset();
        let end_of = |raw_bytes: usize| start + (raw_bytes + format::BLOCK_TRAILER_BYTES) as u64;
        let end = end_of(self.block.raw_bytes());
        let end_with = end_of(self.block.raw_bytes_with(user_key, trailer, payload, new_user_key));
        let block_bytes = self.options.block_bytes as u64;
        Extent { start, end, block_bytes }.closes_before(end_with).map(|left| left as usize)
    }

    /// Writes the present data block, with so many bytes more than it needs.
    fn finish_block(&mut self, more: usize) -> Result<()> {
        let handle = self.writer.append_block(self.block.finish(more), self.options.codec)?;
        self.block.clear();
        self.data_blocks += 1;
        self.unindexed = Some(IndexEntry { handle, value_bytes_before: self.block_value_bytes_before });
        self.block_value_bytes_before = self.references.bytes();
        Ok(())
    }
}
