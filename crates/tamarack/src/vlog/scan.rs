//! Walks over the records of a segment, hopping over the values nobody asked for.
//!
//! Each record's header and key are checked against their checksum; a value is read and checked only when the
//! caller wants it. The walk stops at the first thing that is not a valid record and says what it met. It never
//! looks for a later record: what stands behind a bad one is not part of the log.

use std::path::Path;

use super::format::{RECORD_HEADER_BYTES, RecordHeader, RecordKind, check_head, mend_record};
use crate::base::checksum::{Checksum, Seed};
use crate::base::coding::u32_at;
use crate::base::error::{Error, Result};
use crate::env::{File, read_exact_at};

/// Bytes read ahead while records are small, and while they are large and hopped over.
const WINDOW_SMALL_RECORDS: usize = 256 * 1024;
const WINDOW_LARGE_RECORDS: usize = 4 * 1024;
/// Records from this size on are large.
const LARGE_RECORD_BYTES: u64 = 32 * 1024;

/// Whether a caller wants a record's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// No: do not read it.
    Skip,
    /// Yes: read it and check its checksum.
    Check,
}

/// One record.
#[derive(Debug, Clone, Copy)]
pub struct ScannedRecord<'a> {
    /// Where it begins.
    pub offset: u64,
    /// Its header.
    pub header: RecordHeader,
    /// Its key.
    pub key: &'a [u8],
    /// Its stored value, if it was wanted.
    pub stored: Option<&'a [u8]>,
    /// Whether one byte of it is damaged in the file. Then what is told of it is most likely, but its value is nothing to
    /// give to anybody.
    pub mended: bool,
}

/// Why a walk ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// At the limit given, exactly after a record.
    Limit,
    /// At zeros: nothing was ever written there.
    Blank {
        /// Where.
        at: u64,
    },
    /// At something that is not a valid record.
    Invalid {
        /// Where.
        at: u64,
        /// What a whole log holds there.
        expected: String,
        /// What was found.
        found: String,
    },
}

/// The walk.
#[derive(Debug)]
pub struct Scanner<'a> {
    file: &'a dyn File,
    path: &'a Path,
    seed: Seed,
    at: u64,
    limit: u64,
    /// Where records begin, as the footer of a sealed segment says.
    offsets: Option<&'a [u32]>,
    end: Option<End>,
    buffer: Vec<u8>,
    buffer_at: u64,
    window: usize,
}

impl<'a> Scanner<'a> {
    /// A walk over the records of `start..limit`; both lie in the file.
    pub fn new(file: &'a dyn File, path: &'a Path, seed: Seed, start: u64, limit: u64) -> Self {
        Self {
            file,
            path,
            seed,
            at: start,
            limit,
            offsets: None,
            end: None,
            buffer: Vec::new(),
            buffer_at: start,
            window: WINDOW_SMALL_RECORDS,
        }
    }

    /// The same in a sealed segment, whose footer says that records begin at `offsets`: one of which a single byte is
    /// damaged is mended in memory, so that it costs no other.
    #[must_use]
    pub fn mending(self, offsets: &'a [u32]) -> Self {
        Self { offsets: Some(offsets), ..self }
    }

    /// Where the next record would begin.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// Why the walk ended; only after [`next`](Self::next) has returned `None`.
    pub fn end(&self) -> &End {
        self.end.as_ref().expect("asked after the walk ended")
    }

    /// The next record, its value checked if `wanted` says so; `None` at the end.
    ///
    /// # Errors
    /// `Io` when the file cannot be read. Invalid bytes are no error but an [`End`].
    pub fn next(&mut self, wanted: Values) -> Result<Option<ScannedRecord<'_>>> {
        self.next_with(|_| wanted)
    }

    /// Like [`next`](Self::next); whether the value is wanted may depend on the header.
    pub fn next_with(
        &mut self,
        wanted: impl Fn(&RecordHeader) -> Values,
    ) -> Result<Option<ScannedRecord<'_>>> {
        if self.end.is_some() {
            return Ok(None);
        }
        let (mut stepped, mut mended) = (self.step(&wanted)?, false);
        if matches!(stepped, Err(End::Invalid { .. } | End::Blank { .. })) && self.mend()? {
            (stepped, mended) = (self.step(&wanted)?, true);
        }
        match stepped {
            Ok((offset, header, with_value)) => {
                let head_len = RECORD_HEADER_BYTES + usize::from(header.key_len);
                let start = (offset - self.buffer_at) as usize;
                let bytes = &self.buffer[start..];
                Ok(Some(ScannedRecord {
                    offset,
                    header,
                    key: &bytes[RECORD_HEADER_BYTES..head_len],
                    stored: with_value.then(|| &bytes[head_len..head_len + header.stored_len as usize]),
                    mended,
                }))
            }
            Err(end) => {
                self.end = Some(end);
                Ok(None)
            }
        }
    }

    /// Makes the record at `self.at` right in the buffer, if its length is known and one byte of it is damaged.
    fn mend(&mut self) -> Result<bool> {
        let Some(offsets) = self.offsets else { return Ok(false) };
        let Ok(index) = offsets.binary_search_by_key(&self.at, |&offset| u64::from(offset)) else {
            return Ok(false);
        };
        let end = offsets.get(index + 1).map_or(self.limit, |&next| u64::from(next));
        let (seed, at, len) = (self.seed, self.at, (end - self.at) as usize);
        if len < RECORD_HEADER_BYTES || self.load(len as u64)?.is_none() {
            return Ok(false);
        }
        let start = (at - self.buffer_at) as usize;
        let record = &mut self.buffer[start..start + len];
        // Either length may be the byte, but not both: with the other, the record's own length tells it.
        let key_len = usize::from(u16::from_le_bytes([record[12], record[13]]));
        let stored_len = u32_at(record, 8) as usize;
        let lens = [Some(RECORD_HEADER_BYTES + key_len), len.checked_sub(stored_len)];
        let mended = lens.into_iter().flatten().any(|head_len| {
            let mut whole = record.to_vec();
            let right = (RECORD_HEADER_BYTES..=len).contains(&head_len)
                && mend_record(seed, at, &mut whole, head_len)
                && RecordHeader::decode(whole.first_chunk().expect("longer than a header"))
                    .is_ok_and(|header| header.record_len() == len as u64);
            if right {
                record.copy_from_slice(&whole);
            }
            right
        });
        Ok(mended)
    }

    /// Checks the record at `self.at`, moves behind it, and leaves its bytes in the buffer.
    fn step(
        &mut self,
        wanted: impl Fn(&RecordHeader) -> Values,
    ) -> Result<std::result::Result<(u64, RecordHeader, bool), End>> {
        let at = self.at;
        if at == self.limit {
            return Ok(Err(End::Limit));
        }
        let invalid = |expected: &str, found: String| {
            Ok(Err(End::Invalid { at, expected: expected.to_owned(), found }))
        };
        if at > u64::from(u32::MAX) {
            return invalid("a record that begins in the first 4 GiB", format!("more behind these, at {at}"));
        }
        let left = self.limit - at;
        if left < RECORD_HEADER_BYTES as u64 {
            let rest = self.load(left)?.expect("it ends at the limit");
            if rest.iter().all(|&byte| byte == 0) {
                return Ok(Err(End::Blank { at }));
            }
            return invalid("a record", format!("{left} bytes, less than a record's header"));
        }
        let head = self.load(RECORD_HEADER_BYTES as u64)?.expect("there is room for it");
        if head.iter().all(|&byte| byte == 0) {
            return Ok(Err(End::Blank { at }));
        }
        let header = match RecordHeader::decode(head[..RECORD_HEADER_BYTES].try_into().expect("loaded")) {
            Ok(header) => header,
            Err(found) => return invalid("a record", found),
        };
        let head_len = RECORD_HEADER_BYTES as u64 + u64::from(header.key_len);
        let record_len = header.record_len();
        if record_len > self.limit - at {
            let found = format!("a record of {record_len} bytes with {} left", self.limit - at);
            return invalid("a record that ends inside the segment", found);
        }
        let seed = self.seed;
        let head = self.load(head_len)?.expect("the record ends before the limit");
        if let Err((stored, computed)) = check_head(seed, at, head) {
            return invalid(&format!("record checksum {stored:#010x}"), format!("{computed:#010x}"));
        }
        let with_value = header.kind == RecordKind::Mark || wanted(&header) == Values::Check;
        if with_value {
            let record = self.load(record_len)?.expect("the record ends before the limit");
            let computed = Checksum::unseeded().with(&record[head_len as usize..]).finish();
            if computed != header.value_checksum {
                let expected = format!("value checksum {:#010x}", header.value_checksum);
                return invalid(&expected, format!("{computed:#010x}"));
            }
        }
        self.at = at + record_len;
        self.window =
            if record_len >= LARGE_RECORD_BYTES { WINDOW_LARGE_RECORDS } else { WINDOW_SMALL_RECORDS };
        Ok(Ok((at, header, with_value)))
    }

    /// The `len` bytes at `self.at`; `None` if they reach past the limit.
    fn load(&mut self, len: u64) -> Result<Option<&[u8]>> {
        let end = self.at + len;
        if end > self.limit {
            return Ok(None);
        }
        let have = self.buffer_at..self.buffer_at + self.buffer.len() as u64;
        if self.at < have.start || end > have.end {
            let want = len.max(self.window as u64).min(self.limit - self.at) as usize;
            self.buffer.resize(want, 0);
            self.buffer_at = self.at;
            read_exact_at(self.file, &mut self.buffer, self.at)
                .map_err(|error| Error::io("read", self.path, error))?;
        }
        let start = (self.at - self.buffer_at) as usize;
        Ok(Some(&self.buffer[start..start + len as usize]))
    }
}

#[cfg(all(test, not(shuttle), not(loom), not(miri)))]
mod tests {
    use super::*;
    use crate::base::checksum::FileKind;
    use crate::base::ids::{CubeId, Sequence};
    use crate::env::posix::posix_env;
    use crate::vlog::format::BatchPlace;

    /// Bytes that somebody has made up, with right checksums: no pointer could lead to the second record.
    #[test]
    fn no_record_begins_behind_the_first_4_gib() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("segment");
        let file = posix_env().fs.create_new(&path).expect("it can be made");
        let seed = Seed::new(CubeId(1), FileKind::Segment, 1, 1);
        let first = 80;
        for offset in [first, first + RECORD_HEADER_BYTES as u64 + 1 + u64::from(u32::MAX)] {
            let header = RecordHeader {
                kind: RecordKind::Put,
                place: BatchPlace::ONLY,
                codec: crate::base::codec::Codec::None,
                key_len: 1,
                stored_len: u32::MAX,
                sequence: Sequence(1),
                value_checksum: 0,
            };
            let head = [&header.encode(seed, offset, b"k")[..], b"k"].concat();
            file.write_at(&head, offset).expect("it can be written");
        }
        let len = 3 << 32;
        file.set_len(len).expect("a file with a hole");
        let mut scanner = Scanner::new(&*file, &path, seed, first, len);
        assert!(
            scanner.next(Values::Skip).expect("it can be read").is_some_and(|record| record.offset == first)
        );
        assert!(scanner.next(Values::Skip).expect("it can be read").is_none());
        assert!(matches!(scanner.end(), End::Invalid { at, .. } if *at > 1 << 32), "{:?}", scanner.end());
    }
}
