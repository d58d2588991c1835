//! Builds a table's index: separators that lead to data blocks, in one block while they fit one partition, else in
//! partitions under a top level. Partitions are kept in memory until the data blocks are written.

use super::block_builder::BlockBuilder;
use super::format::{INDEX_PARTITION_BYTES, IndexEntry};
use super::writer::BlockWriter;
use crate::base::codec::Codec;
use crate::base::error::Result;

/// An index under construction.
#[derive(Debug)]
pub struct IndexBuilder {
    current: BlockBuilder,
    /// What stands before the first data block of the current partition.
    current_value_bytes_before: u64,
    last_separator: (Vec<u8>, u64),
    partitions: Vec<Partition>,
    payload: Vec<u8>,
    bytes: usize,
}

#[derive(Debug)]
struct Partition {
    raw: Vec<u8>,
    last_separator: (Vec<u8>, u64),
    value_bytes_before: u64,
}

/// A finished index, except that its top is not in the file yet.
#[derive(Debug)]
pub struct TopIndex {
    /// The raw top block.
    pub raw: Vec<u8>,
    /// Partitions below it; 0 if it leads to data blocks itself.
    pub partitions: u64,
}

impl IndexBuilder {
    /// An empty index.
    pub fn new() -> Self {
        Self {
            current: BlockBuilder::new(1),
            current_value_bytes_before: 0,
            last_separator: (Vec::new(), 0),
            partitions: Vec::new(),
            payload: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds the data block of `entry`, whose every internal key is at or before the separator.
    pub fn add(&mut self, user_key: Vec<u8>, trailer: u64, entry: IndexEntry) {
        if self.current.raw_bytes() >= INDEX_PARTITION_BYTES && !self.current.is_empty() {
            self.close_partition();
        }
        if self.current.is_empty() {
            self.current_value_bytes_before = entry.value_bytes_before;
        }
        self.payload.clear();
        entry.put(&mut self.payload);
        self.current.add(&user_key, trailer, &self.payload, None);
        self.last_separator = (user_key, trailer);
    }

    /// Raw bytes it will take in the file.
    pub fn raw_bytes(&self) -> usize {
        self.bytes + self.current.raw_bytes()
    }

    /// Writes the partitions.
    pub fn finish(mut self, writer: &mut BlockWriter, codec: Codec) -> Result<TopIndex> {
        if self.partitions.is_empty() {
            return Ok(TopIndex { raw: self.current.finish(0).to_vec(), partitions: 0 });
        }
        self.close_partition();
        let mut top = BlockBuilder::new(1);
        for partition in &self.partitions {
            let handle = writer.append_block(&partition.raw, codec)?;
            self.payload.clear();
            IndexEntry { handle, value_bytes_before: partition.value_bytes_before }.put(&mut self.payload);
            let (user_key, trailer) = &partition.last_separator;
            top.add(user_key, *trailer, &self.payload, None);
        }
        Ok(TopIndex { raw: top.finish(0).to_vec(), partitions: self.partitions.len() as u64 })
    }

    fn close_partition(&mut self) {
        let raw = self.current.finish(0).to_vec();
        self.current.clear();
        self.bytes += raw.len();
        self.partitions.push(Partition {
            raw,
            last_separator: std::mem::take(&mut self.last_separator),
            value_bytes_before: self.current_value_bytes_before,
        });
    }
}
