//! Reads what is whole of a segment that may be damaged, for repair.
//!
//! Owns: where a walk goes on behind bytes that are no record. It never searches values for something that looks like a
//! record: it goes on only at places that somebody vouches for. Those are, in this order: the end of a record whose
//! head is whole though its value is not; the next offset that a whole footer lists, or the end of a dead range; the
//! next mark, whose checksum is seeded with the segment's random salt and its own place, as recovery has it. Where
//! there is none, the rest of the stretch is lost. Never writes. Called by `cube::repair`.
//!
//! A segment whose header is damaged can be read, too: two records that stand where records must be, and agree on the
//! seed under which their checksums are right, give it away. That does not tell whose records they are: whoever uses
//! them compares key and sequence number.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::format::{
    Footer, HeaderFault, MARK_RECORD_BYTES, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES,
    SegmentHeader, check_head, find_mark,
};
use super::open_segments::read_footer;
use super::scan::{End, Scanner, Values};
use crate::base::checksum::{Checksum, Seed};
use crate::base::dead_ranges::DeadRanges;
use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, SegmentId};
use crate::base::names::FileName;
use crate::base::sync::Arc;
use crate::env::{Access, File, Fs, read_exact_at};

const CHUNK_BYTES: u64 = 1 << 20;
/// Places that are tried for a seed.
const HINTS_MAX: usize = 16;

/// A record of a damaged segment.
#[derive(Debug, Clone, Copy)]
pub struct Salvaged<'a> {
    /// Where it begins.
    pub offset: u32,
    /// Its header, which is whole.
    pub header: RecordHeader,
    /// Its key.
    pub key: &'a [u8],
    /// Its stored value; `None` if its bytes are damaged.
    pub stored: Option<&'a [u8]>,
}

/// A segment file that may be damaged.
#[derive(Debug)]
pub struct Wreck {
    /// Its id, by its name.
    pub id: SegmentId,
    /// Its path.
    pub path: PathBuf,
    /// The file.
    pub file: Arc<dyn File>,
    /// Its length.
    pub len: u64,
    /// Its header, or what stands there.
    pub header: std::result::Result<SegmentHeader, String>,
    /// Whether the header is whole, and that of another segment: then nothing in the file is ours.
    foreign: bool,
    /// What its checksums are seeded with, if that can be known.
    pub seed: Option<Seed>,
    /// Its footer, if that is whole.
    pub footer: Option<Footer>,
}

impl Wreck {
    /// Opens segment `id` of `cube`. `hints` are places at which tables say that records are.
    ///
    /// # Errors
    /// `Io`; `Unsupported` for a segment of a newer format.
    pub fn open(fs: &dyn Fs, directory: &Path, cube: CubeId, id: SegmentId, hints: &[u32]) -> Result<Self> {
        let path = FileName::Segment(id).path(directory);
        let file = fs.open_read(&path).map_err(|error| Error::io("open", &path, error))?;
        let len = file.len().map_err(|error| Error::io("read the length of", &path, error))?;
        // Advice: without it the kernel reads ahead less.
        drop(file.advise(Access::Sequential));
        let (header, foreign) = read_header(&*file, &path, (cube, id), len)?;
        let mut wreck = Self { id, path, file, len, header, foreign, seed: None, footer: None };
        wreck.seed = match &wreck.header {
            Ok(header) => Some(header.seed()),
            Err(_) if wreck.foreign => None,
            Err(_) => wreck.guess_seed(hints)?,
        };
        if let Ok(header) = &wreck.header {
            wreck.footer = read_footer(&*wreck.file, &wreck.path, header, len)?;
        }
        Ok(wreck)
    }

    /// Whether the header is whole, and that of another segment.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// The record at `offset`, if it is whole.
    ///
    /// # Errors
    /// `Io`.
    pub fn record(&self, offset: u32) -> Result<Option<(RecordHeader, Vec<u8>)>> {
        let Some(seed) = self.seed else { return Ok(None) };
        let Some((header, head)) = self.head(u64::from(offset))? else { return Ok(None) };
        if check_head(seed, u64::from(offset), &head).is_err() {
            return Ok(None);
        }
        let mut record = vec![0; header.record_len() as usize];
        self.read(&mut record, u64::from(offset))?;
        let value = Checksum::unseeded().with(&record[head.len()..]).finish();
        Ok((value == header.value_checksum).then_some((header, record)))
    }

    /// Shows every record that can be found in the `stretches`, which begin where records do, and returns what is wrong
    /// with the bytes between them. Without a footer, zeros end the log.
    ///
    /// # Errors
    /// `Io`; whatever `visit` fails with.
    pub fn walk(
        &self,
        stretches: &[Range<u64>],
        visit: &mut dyn FnMut(Salvaged<'_>) -> Result<()>,
    ) -> Result<Vec<Error>> {
        let mut damage = Vec::new();
        let Some(seed) = self.seed else {
            let found = self.header.as_ref().err().cloned().unwrap_or_default();
            return Ok(vec![Error::corruption(&self.path, 0, "a segment header", found)]);
        };
        if let Err(found) = &self.header {
            damage.push(Error::corruption(&self.path, 0, "a segment header", found.clone()));
        }
        for stretch in stretches {
            let limit = stretch.end.min(self.len);
            let mut at = stretch.start;
            while at < limit {
                let mut scanner = Scanner::new(&*self.file, &self.path, seed, at, limit);
                while let Some(record) = scanner.next(Values::Check)? {
                    visit(Salvaged {
                        offset: u32::try_from(record.offset).unwrap_or(u32::MAX),
                        header: record.header,
                        key: record.key,
                        stored: record.stored,
                    })?;
                }
                let (stop, expected, found) = match scanner.end().clone() {
                    End::Limit => break,
                    End::Blank { at } => (at, "a record".to_owned(), "zeros".to_owned()),
                    End::Invalid { at, expected, found } => (at, expected, found),
                };
                let blank = found == "zeros";
                let next = self.resume(seed, stop, limit, visit)?;
                if !blank || next.is_some() || self.footer.is_some() {
                    damage.push(Error::corruption(&self.path, stop, expected, found));
                }
                at = next.unwrap_or(limit);
            }
            if stretch.end > self.len {
                let found = format!("a file of {} bytes", self.len);
                damage.push(Error::corruption(&self.path, self.len, "the rest of the segment", found));
            }
        }
        Ok(damage)
    }

    /// The stretches in which records are: up to the footer, or up to `end` if the manifest knows it, without `dead` ones.
    pub fn stretches(&self, end: Option<u64>, dead: Option<&DeadRanges>) -> Vec<Range<u64>> {
        let end = end.or_else(|| self.footer.as_ref().map(|footer| footer.records_end)).unwrap_or(self.len);
        let start = SEGMENT_HEADER_BYTES;
        dead.cloned().unwrap_or_default().between(start..end.max(start))
    }

    /// Where the walk goes on behind the bad record at `at`.
    fn resume(
        &self,
        seed: Seed,
        at: u64,
        limit: u64,
        visit: &mut dyn FnMut(Salvaged<'_>) -> Result<()>,
    ) -> Result<Option<u64>> {
        if let Some((header, head)) = self.head(at)?
            && at + header.record_len() <= limit
            && check_head(seed, at, &head).is_ok()
        {
            visit(Salvaged {
                offset: u32::try_from(at).unwrap_or(u32::MAX),
                header,
                key: &head[RECORD_HEADER_BYTES..],
                stored: None,
            })?;
            return Ok(Some(at + header.record_len()));
        }
        if let Some(footer) = &self.footer {
            let next = footer.offsets.partition_point(|&offset| u64::from(offset) <= at);
            return Ok(footer
                .offsets
                .get(next)
                .map(|&offset| u64::from(offset))
                .filter(|&next| next < limit));
        }
        self.next_mark(seed, at + 1, limit)
    }

    /// The first mark from `from` on.
    fn next_mark(&self, seed: Seed, from: u64, limit: u64) -> Result<Option<u64>> {
        let mut chunk = Vec::new();
        let mut at = from;
        while at < limit {
            let overlap = MARK_RECORD_BYTES as u64 - 1;
            chunk.resize((CHUNK_BYTES + overlap).min(limit - at) as usize, 0);
            self.read(&mut chunk, at)?;
            let starts = 0..chunk.len().saturating_sub(MARK_RECORD_BYTES - 1);
            let found = starts.into_iter().find(|&start| {
                chunk[start + 14] != 0 && find_mark(seed, at + start as u64, &chunk[start..]).is_some()
            });
            if let Some(start) = found {
                return Ok(Some(at + start as u64));
            }
            at += CHUNK_BYTES;
        }
        Ok(None)
    }

    /// Header and key of what may be a record at `at`, unchecked.
    fn head(&self, at: u64) -> Result<Option<(RecordHeader, Vec<u8>)>> {
        if at < SEGMENT_HEADER_BYTES || at + RECORD_HEADER_BYTES as u64 > self.len {
            return Ok(None);
        }
        let mut head = vec![0; RECORD_HEADER_BYTES];
        self.read(&mut head, at)?;
        let decoded = head.first_chunk().map(RecordHeader::decode);
        let Some(Ok(header)) = decoded else { return Ok(None) };
        if at + header.record_len() > self.len {
            return Ok(None);
        }
        head.resize(RECORD_HEADER_BYTES + usize::from(header.key_len), 0);
        self.read(&mut head, at)?;
        Ok(Some((header, head)))
    }

    /// The seed that two of the records at `hints`, or at the front, agree on.
    fn guess_seed(&self, hints: &[u32]) -> Result<Option<Seed>> {
        let mut places: Vec<u64> = hints.iter().take(HINTS_MAX).map(|&offset| u64::from(offset)).collect();
        let mut front = SEGMENT_HEADER_BYTES;
        for _ in 0..HINTS_MAX {
            places.push(front);
            let Some((header, _)) = self.head(front)? else { break };
            front += header.record_len();
        }
        places.sort_unstable();
        places.dedup();
        let mut seen = Vec::new();
        for at in places {
            let Some((_, head)) = self.head(at)? else { continue };
            let checksum = crate::base::coding::u32_at(&head, 0);
            let seed = Seed::that_gives(checksum, at, &head[4..]);
            if seen.contains(&seed) {
                return Ok(Some(seed));
            }
            seen.push(seed);
        }
        Ok(None)
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> Result<()> {
        read_exact_at(&*self.file, bytes, at).map_err(|error| Error::io("read", &self.path, error))
    }
}

/// The header of the segment that `file` should be, or what stands there instead.
fn read_header(
    file: &dyn File,
    path: &Path,
    (cube, id): (CubeId, SegmentId),
    len: u64,
) -> Result<(std::result::Result<SegmentHeader, String>, bool)> {
    let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
    if len < SEGMENT_HEADER_BYTES {
        return Ok((Err(format!("a file of {len} bytes")), false));
    }
    read_exact_at(file, &mut bytes, 0).map_err(|error| Error::io("read", path, error))?;
    Ok(match SegmentHeader::decode(&bytes) {
        Ok(header) if header.cube == cube && header.id == id => (Ok(header), false),
        Ok(header) => (Err(format!("segment {} of cube {:#x}", header.id, header.cube.0)), true),
        Err(HeaderFault::Blank) => (Err("zeros".into()), false),
        Err(HeaderFault::Version(version)) => {
            return Err(Error::unsupported(format!(
                "{} has segment format {version}; this build reads format 1: use a newer build",
                path.display()
            )));
        }
        Err(HeaderFault::Damaged(found)) => (Err(found), false),
    })
}
