//! Reads headers and keys of chosen records of a segment, in ascending order, and all of those that are small; hops over
//! all others: what stands between them may be damaged and nobody cares.

use super::format::{RECORD_HEADER_BYTES, RecordHeader, RecordKind, check_head};
use super::open_segments::OpenSegment;
use crate::base::error::{Error, Result};
use crate::env::read_exact_at;

/// Bytes read at a time, and where records are known to be large; or a whole head, if that is longer.
const WINDOW_BYTES: usize = 256 * 1024;
const WINDOW_BYTES_LARGE_RECORDS: usize = 4 * 1024;

/// What was read of a record.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// Its header, checked.
    pub header: RecordHeader,
    /// Its key, checked.
    pub key: &'a [u8],
    /// All of the record, its value not checked, if it is small.
    pub record: Option<&'a [u8]>,
}

/// Reads one segment.
#[derive(Debug)]
pub struct HeadReader<'a> {
    segment: &'a OpenSegment,
    /// Where the segment's records end.
    end: u64,
    window_bytes: usize,
    /// Records of at most so many bytes are read whole.
    whole_bytes_max: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl<'a> HeadReader<'a> {
    /// Reads records of `segment`, which end at `end`, those of at most `whole_bytes_max` bytes whole.
    pub fn new(segment: &'a OpenSegment, end: u64, whole_bytes_max: u64) -> Self {
        let (window_bytes, window, window_at) = (WINDOW_BYTES, Vec::new(), 0);
        Self { segment, end, window_bytes, whole_bytes_max, window, window_at }
    }

    /// The same, of records that are mostly larger than what is read of one.
    pub fn of_large_records(segment: &'a OpenSegment, end: u64) -> Self {
        Self { window_bytes: WINDOW_BYTES_LARGE_RECORDS, ..Self::new(segment, end, 0) }
    }

    /// The put at `offset`.
    ///
    /// # Errors
    /// `Io`; `Corruption` if there is no put that is whole up to its key and ends inside the segment.
    pub fn read(&mut self, offset: u64) -> Result<Head<'_>> {
        let (segment, end) = (self.segment, self.end);
        let corrupt =
            |expected: &str, found: String| Error::corruption(segment.path(), offset, expected, found);
        let bytes = self.load(offset, RECORD_HEADER_BYTES)?;
        let header = RecordHeader::decode(bytes.first_chunk().expect("loaded"))
            .map_err(|found| corrupt("a record", found))?;
        if offset + header.record_len() > end {
            let found = format!("a record of {} bytes with {} left", header.record_len(), end - offset);
            return Err(corrupt("a record that ends inside the segment", found));
        }
        let head_len = RECORD_HEADER_BYTES + usize::from(header.key_len);
        let head = self.load(offset, head_len)?;
        check_head(segment.seed(), offset, head).map_err(|(stored, computed)| {
            corrupt(&format!("record checksum {stored:#010x}"), format!("{computed:#010x}"))
        })?;
        if header.kind != RecordKind::Put {
            return Err(corrupt("a put", format!("{:?}", header.kind)));
        }
        let is_small = header.record_len() <= self.whole_bytes_max;
        let len = if is_small { header.record_len() as usize } else { head_len };
        let bytes = self.load(offset, len)?;
        let key = &bytes[RECORD_HEADER_BYTES..head_len];
        Ok(Head { header, key, record: is_small.then_some(bytes) })
    }

    fn load(&mut self, offset: u64, len: usize) -> Result<&[u8]> {
        let window = self.window_at..self.window_at + self.window.len() as u64;
        if offset < window.start || offset + len as u64 > window.end {
            let left = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX);
            self.window.resize(left.min(self.window_bytes.max(len)), 0);
            self.window_at = offset;
            if self.window.len() < len {
                let found = format!("{left} bytes before the end");
                return Err(Error::corruption(self.segment.path(), offset, "a record", found));
            }
            read_exact_at(self.segment.file(), &mut self.window, offset)
                .map_err(|error| Error::io("read", self.segment.path(), error))?;
        }
        let start = (offset - self.window_at) as usize;
        Ok(&self.window[start..start + len])
    }
}
