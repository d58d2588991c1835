//! Writes a cold segment: copies of records that garbage collection found alive, and the relocation tables that
//! lead to them.
//!
//! Invariants. A record is copied only if all of its checksums are right, and its copy is bound to its new place; the
//! value's bytes, their checksum, the codec and the sequence number stay what they were. Nothing refers to the file
//! before [`finish`](ColdWriter::finish) has made it durable; dropping the writer earlier removes it.

use std::path::PathBuf;

use super::format::{
    BatchPlace, Footer, RECORD_HEADER_BYTES, RecordHeader, RecordKind, SEGMENT_HEADER_BYTES, SegmentHeader,
    record_len,
};
use super::open_segments::OpenSegment;
use super::reader::SegmentReader;
use super::relocation::Relocations;
use super::segment::{meta_of, sync_parent};
use crate::base::checksum::{Checksum, Seed};
use crate::base::codec::Codec;
use crate::base::error::{Error, Result};
use crate::base::ids::SegmentId;
use crate::base::pointer::ValuePointer;
use crate::base::segment::SegmentMeta;
use crate::base::sync::Arc;
use crate::env::write_behind::WriteBehind;
use crate::env::{File, Fs};

/// Bytes that are collected before they are written.
const WRITE_BYTES: usize = 1024 * 1024;

/// A record to copy.
#[derive(Debug, Clone, Copy)]
pub struct Original<'a> {
    /// The segment it is in.
    pub segment: &'a OpenSegment,
    /// Where it begins.
    pub offset: u32,
    /// Its key.
    pub key: &'a [u8],
    /// Length of its stored value.
    pub stored_len: u32,
    /// All of its bytes, if they have been read already.
    pub record: Option<&'a [u8]>,
}

/// Writes one cold segment.
#[derive(Debug)]
pub struct ColdWriter<'a> {
    fs: &'a dyn Fs,
    file: Arc<dyn File>,
    path: PathBuf,
    header: SegmentHeader,
    seed: Seed,
    /// Bytes not written yet, and where they belong.
    buffer: Vec<u8>,
    buffer_at: u64,
    behind: WriteBehind,
    footer: Footer,
    /// Bytes of the file as it was taken over.
    blank_bytes: u64,
    finished: bool,
}

impl<'a> ColdWriter<'a> {
    /// Creates the file.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn create(fs: &'a dyn Fs, path: PathBuf, header: SegmentHeader) -> Result<Self> {
        let file = fs.create_new(&path).map_err(|error| Error::io("create", &path, error))?;
        Ok(Self::of(fs, file, 0, path, header))
    }

    /// Takes over the blank `file` of `blank_bytes` at `path`.
    pub fn of(
        fs: &'a dyn Fs,
        file: Arc<dyn File>,
        blank_bytes: u64,
        path: PathBuf,
        header: SegmentHeader,
    ) -> Self {
        let buffer = header.encode().to_vec();
        let seed = header.seed();
        Self {
            fs,
            file,
            path,
            header,
            seed,
            buffer,
            buffer_at: 0,
            behind: WriteBehind::default(),
            footer: Footer::default(),
            blank_bytes,
            finished: false,
        }
    }

    /// Copies a record; returns where it is now.
    ///
    /// # Errors
    /// `Corruption` if the record is not the put that `original` says, down to its value; `Io`, `NoSpace`.
    pub fn copy(&mut self, reader: &SegmentReader, original: Original<'_>) -> Result<u32> {
        let Original { segment, offset, key, stored_len, record } = original;
        let pointer = ValuePointer { segment: self.header.id, offset, stored_len };
        let at = self.next_offset()?;
        let len = record_len(key.len(), u64::from(stored_len));
        let start = self.buffer.len();
        // It comes to where it will be written from at once: key and value stay as they are.
        let checked = if let Some(bytes) = record {
            self.buffer.extend_from_slice(bytes);
            reader.check_put(segment, pointer, key, bytes)
        } else {
            self.buffer.resize(start + len as usize, 0);
            reader.read_put(segment, pointer, key, &mut self.buffer[start..])
        };
        let header = match checked {
            Ok(header) => RecordHeader { place: BatchPlace::ONLY, ..header },
            Err(error) => {
                self.buffer.truncate(start);
                return Err(error);
            }
        };
        let record = &mut self.buffer[start..];
        let (head, rest) = record.split_at_mut(RECORD_HEADER_BYTES);
        head.copy_from_slice(&header.encode(self.seed, u64::from(at), &rest[..key.len()]));
        self.footer.value_records += 1;
        self.footer.value_record_bytes += len;
        self.appended(at)?;
        Ok(at)
    }

    /// Copies a whole put, whose bytes and checksums the caller has checked; returns where it is now. For repair.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn copy_checked(&mut self, header: &RecordHeader, record: &[u8]) -> Result<u32> {
        let at = self.next_offset()?;
        let header = RecordHeader { place: BatchPlace::ONLY, ..*header };
        let key = &record[RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + usize::from(header.key_len)];
        self.buffer.extend_from_slice(&header.encode(self.seed, u64::from(at), key));
        self.buffer.extend_from_slice(&record[RECORD_HEADER_BYTES..]);
        self.footer.value_records += 1;
        self.footer.value_record_bytes += header.record_len();
        self.appended(at)?;
        Ok(at)
    }

    /// Bytes of the segment so far.
    pub fn bytes(&self) -> u64 {
        self.end()
    }

    /// Widens the key range that the footer tells of.
    pub fn note_range(&mut self, smallest: &[u8], largest: &[u8]) {
        self.footer.smallest = Some(smallest.to_vec());
        self.footer.largest = Some(largest.to_vec());
    }

    /// Writes the relocation table for pointers to segment `id`, behind all copies; returns where it is.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn add_relocations(&mut self, id: SegmentId, relocations: &Relocations) -> Result<ValuePointer> {
        let value = relocations.encode();
        let key = relocation_key(id);
        let header = RecordHeader {
            kind: RecordKind::Relocations,
            place: BatchPlace::ONLY,
            codec: Codec::None,
            key_len: key.len() as u16,
            stored_len: u32::try_from(value.len())
                .expect("offsets are below 4 GiB, and a table has few of them"),
            sequence: self.header.first_sequence,
            value_checksum: Checksum::unseeded().with(&value).finish(),
        };
        let offset = self.next_offset()?;
        self.buffer.extend_from_slice(&header.encode(self.seed, u64::from(offset), &key));
        self.buffer.extend_from_slice(&key);
        self.buffer.extend_from_slice(&value);
        self.appended(offset)?;
        Ok(ValuePointer { segment: self.header.id, offset, stored_len: header.stored_len })
    }

    /// Writes the footer and makes file and name durable. Blocks on the device.
    ///
    /// # Errors
    /// `Io`, `NoSpace`; the file is removed.
    pub fn finish(mut self) -> Result<SegmentMeta> {
        self.footer.records_end = self.end();
        let footer = self.footer.encode(self.seed);
        self.buffer.extend_from_slice(&footer);
        self.write_buffer()?;
        if self.blank_bytes > self.buffer_at {
            self.file
                .set_len(self.buffer_at)
                .map_err(|error| Error::io("set the length of", &self.path, error))?;
        }
        self.file.sync_data().map_err(|error| Error::sync(&self.path, error))?;
        sync_parent(self.fs, &self.path)?;
        self.finished = true;
        Ok(meta_of(&self.header, self.buffer_at, &self.footer))
    }

    fn end(&self) -> u64 {
        self.buffer_at + self.buffer.len() as u64
    }

    /// Where the next record will be.
    fn next_offset(&self) -> Result<u32> {
        debug_assert!(self.end() >= SEGMENT_HEADER_BYTES);
        u32::try_from(self.end())
            .map_err(|_| Error::invalid_argument(format!("{} grows beyond 4 GiB", self.path.display())))
    }

    /// Counts the record that was put into the buffer, to stand at `offset`.
    fn appended(&mut self, offset: u32) -> Result<()> {
        self.footer.offsets.push(offset);
        if self.buffer.len() >= WRITE_BYTES { self.write_buffer() } else { Ok(()) }
    }

    fn write_buffer(&mut self) -> Result<()> {
        self.file
            .write_at(&self.buffer, self.buffer_at)
            .map_err(|error| Error::io("write", &self.path, error))?;
        self.buffer_at += self.buffer.len() as u64;
        self.buffer.clear();
        self.behind.written(&*self.file, self.buffer_at);
        Ok(())
    }
}

impl Drop for ColdWriter<'_> {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing refers to it; one that cannot be removed is swept up when the cube is next opened.
            drop(self.fs.remove_file(&self.path));
        }
    }
}

/// The key of the record that holds the relocation table of segment `id`.
pub fn relocation_key(id: SegmentId) -> [u8; 4] {
    id.0.to_le_bytes()
}
