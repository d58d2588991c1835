//! What the files of a log prove about how far it was durable.

use std::fmt;
use std::path::PathBuf;

use super::super::format::{
    Footer, HeaderFault, MARK_RECORD_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader, find_mark, guess_mark,
};
use super::super::open_segments::read_footer;
use super::Task;
use super::walk::Walked;
use crate::base::checksum::Seed;
use crate::base::error::{Error, Result};
use crate::base::ids::{LogPosition, SegmentId, Sequence};
use crate::base::names::FileName;
use crate::base::sync::Arc;
use crate::env::{File, Fs, read_exact_at};

const CHUNK_BYTES: u64 = 1 << 20;

/// A file that may be a segment of the log from the head on.
#[derive(Debug)]
pub struct Candidate {
    /// Its id, by its name.
    pub id: SegmentId,
    /// Its path.
    pub path: PathBuf,
    /// Its length.
    pub len: u64,
    /// Its header, or why it has none.
    pub header: std::result::Result<SegmentHeader, Headless>,
    /// Its footer, if it was sealed.
    pub footer: Option<Footer>,
}

impl Candidate {
    /// Opens it for reading; the log may have more files than can be open at a time.
    pub fn open(&self, fs: &dyn Fs) -> Result<Arc<dyn File>> {
        fs.open_read(&self.path).map_err(|error| Error::io("open", &self.path, error))
    }

    /// Where its records end at the latest.
    pub fn records_end(&self) -> u64 {
        self.footer.as_ref().map_or(self.len, |footer| footer.records_end)
    }

    /// The first sequence number that its records can have; 0 without a header.
    pub fn first_sequence(&self) -> Sequence {
        self.header.as_ref().map_or(Sequence(0), |header| header.first_sequence)
    }
}

/// Why a file named as a segment is not one.
#[derive(Debug)]
pub enum Headless {
    /// Shorter than a header: its creation was cut off.
    Short(u64),
    /// The header does not decode.
    Fault(HeaderFault),
    /// The header is that of another segment or cube.
    Foreign(SegmentHeader),
}

impl fmt::Display for Headless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(len) => write!(f, "a file of {len} bytes without a segment header"),
            Self::Fault(HeaderFault::Blank) => f.write_str("zeros in place of a segment header"),
            Self::Fault(HeaderFault::Version(version)) => write!(f, "a segment of format {version}"),
            Self::Fault(HeaderFault::Damaged(found)) => f.write_str(found),
            Self::Foreign(header) => {
                write!(f, "the header of segment {} of cube {:#x}", header.id, header.cube.0)
            }
        }
    }
}

/// Every segment of the log from the head on, by id.
pub fn find_candidates(task: &Task<'_>) -> Result<Vec<Candidate>> {
    let names = task.fs.list(task.directory).map_err(|error| Error::io("list", task.directory, error))?;
    let mut ids: Vec<SegmentId> = names
        .iter()
        .filter_map(|name| match FileName::parse(name) {
            Some(FileName::Segment(id)) if id >= task.head.segment && !id.is_cold() => Some(id),
            _ => None,
        })
        .collect();
    ids.sort_unstable();
    ids.into_iter().map(|id| open_candidate(task, id)).collect()
}

fn open_candidate(task: &Task<'_>, id: SegmentId) -> Result<Candidate> {
    let path = FileName::Segment(id).path(task.directory);
    let io = |operation| {
        let path = path.clone();
        move |error| Error::io(operation, &path, error)
    };
    let file = task.fs.open_read(&path).map_err(io("open"))?;
    let len = file.len().map_err(io("read the length of"))?;
    let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
    let header = if file.read_at(&mut bytes, 0).map_err(io("read"))? < bytes.len() {
        Err(Headless::Short(len))
    } else {
        match SegmentHeader::decode(&bytes) {
            Ok(header) if header.cube == task.cube && header.id == id => Ok(header),
            Ok(header) => Err(Headless::Foreign(header)),
            Err(HeaderFault::Version(version)) => {
                return Err(Error::unsupported(format!(
                    "{} has segment format {version}; this build reads format 1: use a newer build",
                    path.display()
                )));
            }
            Err(fault) => match SegmentHeader::mend(&bytes, task.cube, id) {
                // A footer that its salt makes right tells that the segment was sealed, and that this is its header.
                Some(header) if task.mend && read_footer(&*file, &path, &header, len)?.is_some() => {
                    Ok(header)
                }
                _ => Err(Headless::Fault(fault)),
            },
        }
    };
    let footer = match &header {
        Ok(header) => read_footer(&*file, &path, header, len)?,
        Err(_) => None,
    };
    Ok(Candidate { id, path, len, header, footer })
}

/// The furthest position that headers and footers say was durable.
pub fn durable_position(candidates: &[Candidate]) -> LogPosition {
    candidates
        .iter()
        .flat_map(|candidate| {
            let sealed = candidate
                .footer
                .as_ref()
                .map(|footer| LogPosition { segment: candidate.id, offset: footer.records_end });
            candidate.header.as_ref().ok().map(|header| header.durable).into_iter().chain(sealed)
        })
        .max()
        .unwrap_or_default()
}

/// The furthest position that marks behind the end of the walk say was durable.
pub fn durable_beyond(
    fs: &dyn Fs,
    candidates: &[Candidate],
    walked: &[Walked],
    stop: LogPosition,
) -> Result<LogPosition> {
    let mut furthest = LogPosition::default();
    for candidate in candidates.iter().filter(|candidate| candidate.id >= stop.segment) {
        // Without its header nobody knows a segment's seed; what still looks like a mark then counts as one.
        let seed = candidate.header.as_ref().ok().map(SegmentHeader::seed);
        let from = walked
            .iter()
            .find(|walked| walked.id == candidate.id)
            .map_or(SEGMENT_HEADER_BYTES, |walked| walked.end);
        furthest = furthest.max(search_marks(fs, candidate, seed, from)?);
    }
    Ok(furthest)
}

/// The furthest position in any mark from `from` on, whatever lies between.
fn search_marks(fs: &dyn Fs, candidate: &Candidate, seed: Option<Seed>, from: u64) -> Result<LogPosition> {
    let mut furthest = LogPosition::default();
    for_each_chunk(fs, candidate, from, MARK_RECORD_BYTES as u64 - 1, &mut |at, chunk| {
        if chunk.iter().all(|&byte| byte == 0) {
            return;
        }
        for start in 0..chunk.len().saturating_sub(MARK_RECORD_BYTES - 1) {
            let found = match seed {
                Some(seed) => find_mark(seed, at + start as u64, &chunk[start..]),
                None => guess_mark(&chunk[start..]).filter(|position| position.segment <= candidate.id),
            };
            if let Some(position) = found {
                furthest = furthest.max(position);
            }
        }
    })?;
    Ok(furthest)
}

/// How many bytes from `from` on, up to the last that is not zero, a file has.
pub fn bytes_not_zero(fs: &dyn Fs, candidate: &Candidate, from: u64) -> Result<u64> {
    if candidate.footer.as_ref().is_some_and(|footer| footer.records_end == from) {
        return Ok(0);
    }
    let mut last = from;
    for_each_chunk(fs, candidate, from, 0, &mut |at, chunk| {
        if let Some(index) = chunk.iter().rposition(|&byte| byte != 0) {
            last = at + index as u64 + 1;
        }
    })?;
    Ok(last - from)
}

/// Gives the bytes from `from` on in chunks, each with the `overlap` bytes that follow it.
fn for_each_chunk(
    fs: &dyn Fs,
    candidate: &Candidate,
    from: u64,
    overlap: u64,
    visit: &mut dyn FnMut(u64, &[u8]),
) -> Result<()> {
    if from >= candidate.len {
        return Ok(());
    }
    let (file, mut chunk, mut at) = (candidate.open(fs)?, Vec::new(), from);
    while at < candidate.len {
        chunk.resize((CHUNK_BYTES + overlap).min(candidate.len - at) as usize, 0);
        read_exact_at(&*file, &mut chunk, at).map_err(|error| Error::io("read", &candidate.path, error))?;
        visit(at, &chunk);
        at += CHUNK_BYTES;
    }
    Ok(())
}
