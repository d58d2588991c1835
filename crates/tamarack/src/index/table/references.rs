//! The value references of a table: for every segment of the log, the exact set of records that entries of the
//! table point to. Versions sum their counts to know what is live, and garbage collection reads the sets.

use std::collections::BTreeMap;

use super::format::{
    BlockHandle, REFERENCE_BLOCK_BYTES, ReferenceDirectory, peek_reference_run, put_reference_run,
    take_reference_run,
};
use super::source::BlockSource;
use super::writer::BlockWriter;
use crate::base::codec::Codec;
use crate::base::error::Result;
use crate::base::ids::SegmentId;
use crate::base::pointer::ValuePointer;
use crate::base::segment::SegmentReference;

/// References of one segment in one run of a block: an offset takes at most five bytes.
const RUN_OFFSETS_MAX: usize = REFERENCE_BLOCK_BYTES / 5;

/// Collects references in the order of the table's entries.
#[derive(Debug, Default)]
pub struct ReferenceCollector {
    segments: BTreeMap<SegmentId, Collected>,
    /// Bytes of all records pointed to.
    bytes: u64,
    values: u64,
}

#[derive(Debug, Default)]
struct Collected {
    offsets: Vec<u32>,
    bytes: u64,
}

impl ReferenceCollector {
    /// Adds a pointer to a record of `record_bytes`.
    pub fn add(&mut self, pointer: ValuePointer, record_bytes: u64) {
        let segment = self.segments.entry(pointer.segment).or_default();
        segment.offsets.push(pointer.offset);
        segment.bytes += record_bytes;
        self.bytes += record_bytes;
        self.values += 1;
    }

    /// Bytes of all records added.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many references were added.
    pub fn values(&self) -> u64 {
        self.values
    }

    /// The sets in ascending order of segments.
    pub fn into_sets(self) -> impl Iterator<Item = (SegmentReference, Vec<u32>)> {
        self.segments.into_iter().map(|(segment, Collected { mut offsets, bytes })| {
            offsets.sort_unstable();
            (SegmentReference { segment, values: offsets.len() as u64, bytes }, offsets)
        })
    }

    /// Writes the sets and their directory. `None` if a record is referenced twice: a record is one operation on one key,
    /// and a table holds it once.
    pub fn write(
        self,
        writer: &mut BlockWriter,
        codec: Codec,
    ) -> Result<Option<(Vec<SegmentReference>, Option<BlockHandle>)>> {
        if self.values == 0 {
            return Ok(Some((Vec::new(), None)));
        }
        let mut directory = ReferenceDirectory::default();
        let mut raw = Vec::new();
        let mut first = SegmentId::default();
        for (reference, offsets) in self.into_sets() {
            if !offsets.is_sorted_by(|a, b| a < b) {
                return Ok(None);
            }
            for run in offsets.chunks(RUN_OFFSETS_MAX) {
                if raw.is_empty() {
                    first = reference.segment;
                }
                put_reference_run(&mut raw, reference.segment, run);
                if raw.len() >= REFERENCE_BLOCK_BYTES {
                    directory.blocks.push((writer.append_block(&raw, codec)?, first));
                    raw.clear();
                }
            }
            directory.segments.push(reference);
        }
        if !raw.is_empty() {
            directory.blocks.push((writer.append_block(&raw, codec)?, first));
        }
        let handle = writer.append_block(&directory.encode(), codec)?;
        Ok(Some((directory.segments, Some(handle))))
    }
}

/// Reads the sets of one table, segment by segment, block by block. After an error it ends.
#[derive(Debug)]
pub struct ReferenceReader<'a> {
    source: &'a BlockSource,
    directory: ReferenceDirectory,
    next_segment: usize,
    next_block: usize,
    block: Vec<u8>,
    block_offset: u64,
    consumed: usize,
}

impl<'a> ReferenceReader<'a> {
    /// Reads the directory at `handle`.
    pub fn new(source: &'a BlockSource, handle: BlockHandle) -> Result<Self> {
        let raw = source.read(handle)?;
        let Some(directory) = ReferenceDirectory::decode(&raw) else {
            return Err(source.corruption(handle.offset, "a reference directory", "bytes that encode none"));
        };
        Ok(Self {
            source,
            directory,
            next_segment: 0,
            next_block: 0,
            block: Vec::new(),
            block_offset: handle.offset,
            consumed: 0,
        })
    }

    /// A reader that has nothing to read: no entry points into the log.
    pub fn empty(source: &'a BlockSource) -> Self {
        Self {
            source,
            directory: ReferenceDirectory::default(),
            next_segment: 0,
            next_block: 0,
            block: Vec::new(),
            block_offset: 0,
            consumed: 0,
        }
    }

    /// What there is for each segment, in ascending order.
    pub fn summary(&self) -> &[SegmentReference] {
        &self.directory.segments
    }

    /// The reference blocks in the order of the file.
    pub fn blocks(&self) -> impl Iterator<Item = BlockHandle> {
        self.directory.blocks.iter().map(|&(handle, _)| handle)
    }

    /// The set of one segment; empty if the table does not point into it. Reads the blocks of that set alone, and
    /// may be called in any order, before the reader is iterated over.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn set_of(&mut self, segment: SegmentId) -> Result<Vec<u32>> {
        let Ok(at) = self.directory.segments.binary_search_by_key(&segment, |reference| reference.segment)
        else {
            return Ok(Vec::new());
        };
        // The set begins in the last block that begins before it, or where that block ends.
        let first = self.directory.blocks.partition_point(|&(_, first)| first < segment);
        self.next_block = first.saturating_sub(1);
        (self.block, self.consumed) = (Vec::new(), 0);
        let mut passed = Vec::new();
        while let Some(other) = self.peek_segment()?.filter(|&other| other < segment) {
            passed.clear();
            self.take_run(other, &mut passed)?;
        }
        self.read_set(self.directory.segments[at])
    }

    /// The segment of the next run, in the next block if this one is used up; `None` behind the last.
    fn peek_segment(&mut self) -> Result<Option<SegmentId>> {
        if self.consumed == self.block.len() && !self.next_block()? {
            return Ok(None);
        }
        let run = &self.block[self.consumed..];
        peek_reference_run(run).map(Some).ok_or_else(|| self.damaged("a run of a segment"))
    }

    /// Loads the next block; `false` if there is none.
    fn next_block(&mut self) -> Result<bool> {
        let Some(&(handle, _)) = self.directory.blocks.get(self.next_block) else { return Ok(false) };
        self.block = self.source.read(handle)?;
        self.block_offset = handle.offset;
        self.consumed = 0;
        self.next_block += 1;
        Ok(true)
    }

    fn take_run(&mut self, segment: SegmentId, offsets: &mut Vec<u32>) -> Result<()> {
        let mut input = &self.block[self.consumed..];
        if take_reference_run(&mut input, segment, offsets).is_none() {
            return Err(self.damaged("a run of ascending offsets"));
        }
        self.consumed = self.block.len() - input.len();
        Ok(())
    }

    fn read_set(&mut self, reference: SegmentReference) -> Result<Vec<u32>> {
        let mut offsets = Vec::new();
        while (offsets.len() as u64) < reference.values {
            if self.consumed == self.block.len() && !self.next_block()? {
                return Err(self.damaged("as many references as the directory says"));
            }
            self.take_run(reference.segment, &mut offsets)?;
        }
        if offsets.len() as u64 > reference.values {
            return Err(self.damaged("as many references as the directory says"));
        }
        Ok(offsets)
    }

    /// Whether everything has been consumed, as it must be behind the last segment.
    fn at_end(&self) -> bool {
        self.consumed == self.block.len() && self.next_block == self.directory.blocks.len()
    }

    fn damaged(&self, expected: &str) -> crate::base::error::Error {
        let found = format!("other bytes at position {} of the reference block", self.consumed);
        self.source.corruption(self.block_offset, expected, found)
    }
}

impl Iterator for ReferenceReader<'_> {
    type Item = Result<(SegmentId, Vec<u32>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let &reference = self.directory.segments.get(self.next_segment)?;
        self.next_segment += 1;
        let last = self.next_segment == self.directory.segments.len();
        let set = self.read_set(reference).and_then(|offsets| {
            if last && !self.at_end() { Err(self.damaged("the end of the references")) } else { Ok(offsets) }
        });
        if set.is_err() {
            self.next_segment = self.directory.segments.len();
        }
        Some(set.map(|offsets| (reference.segment, offsets)))
    }
}
