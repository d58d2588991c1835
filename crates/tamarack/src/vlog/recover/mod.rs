//! Finds where the log ends after a crash, replays it, and makes its end whole and durable.
//!
//! The log is replayed from the recorded head, segment after segment: to the next one only if its predecessor is
//! exactly the place where the walk stands. The walk stops at the first record that is not whole ([`walk`]); an
//! unfinished batch before it does not count either. What the log was known to contain is collected from later
//! segment headers, footers and marks ([`evidence`]): if that reaches beyond the stop, bytes that were durable
//! are gone, and opening fails with a corruption error; otherwise what follows was never promised, and is cut off.
//!
//! Pages of a mapped file reach the device in any order, and after a failed sync the page cache may hold bytes
//! that never will. So whatever is not known to be durable is written once more, in place and with the same
//! bytes, and synced before open returns; from then on it is. Doing all this twice changes nothing.

mod evidence;
mod walk;

use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, LogPosition, SegmentId, Sequence};
use crate::base::keys::KeyOrder;
use crate::base::names::FileName;
use crate::base::pointer::ValuePointer;
use crate::base::recovery::{RecoveryReport, TornTail};
use crate::base::segment::SegmentMeta;
use crate::base::sync::Arc;
use crate::env::{Access, File, Fs, read_exact_at};
use std::path::{Path, PathBuf};

use super::format::{Footer, SEGMENT_HEADER_BYTES, SegmentHeader};
use super::segment::{meta_of, seal, sync_parent};
use evidence::Candidate;
use walk::{Walk, Walked};

/// What recovery starts from.
#[derive(Debug)]
pub struct Task<'a> {
    /// The file system.
    pub fs: &'a dyn Fs,
    /// The cube's directory.
    pub directory: &'a Path,
    /// The cube.
    pub cube: CubeId,
    /// The order of its keys.
    pub order: &'a KeyOrder,
    /// Everything before this position is in tables.
    pub head: LogPosition,
    /// The last operation that is in tables.
    pub last_sequence: Sequence,
    /// The end of the last segment that was sealed: the log was durable up to there.
    pub sealed_end: LogPosition,
    /// Values up to this length are replayed as values, longer ones as pointers.
    pub inline_value_max: usize,
    /// Read and check every value, durable or not.
    pub check_values: bool,
    /// Take what is right but for one damaged byte, in a sealed segment, as if it were whole; otherwise it is damage.
    pub mend: bool,
    /// Change nothing on disk.
    pub read_only: bool,
}

/// One operation of the log.
#[derive(Debug, Clone, Copy)]
pub struct Replayed<'a> {
    /// Its sequence number.
    pub sequence: Sequence,
    /// Its key.
    pub key: &'a [u8],
    /// What it did.
    pub effect: Effect<'a>,
}

/// What a replayed operation did to its key.
#[derive(Debug, Clone, Copy)]
pub enum Effect<'a> {
    /// Removed it.
    Delete,
    /// Set it to this value.
    Inline(&'a [u8]),
    /// Set it to the value that lies here.
    Pointer(ValuePointer),
}

/// What recovery found and left behind.
#[derive(Debug)]
pub struct Recovered {
    /// The end of the log: the predecessor of the next segment.
    pub tail: LogPosition,
    /// The last operation in the log.
    pub last_sequence: Sequence,
    /// An id that no segment has had.
    pub next_segment: SegmentId,
    /// The segments from the head on, sealed (not sealed, and only described, when read-only).
    pub segments: Vec<SegmentMeta>,
    /// For the user.
    pub report: RecoveryReport,
}

/// Replays the log into `apply`, in order, whole batches only, and leaves a log whose every byte is durable.
///
/// # Errors
/// `Corruption` when something that was durable is damaged or missing; `Io`, `NoSpace`; whatever `apply` fails
/// with. Nothing is deleted or changed before the whole replay has succeeded.
pub fn recover(task: &Task<'_>, apply: &mut dyn FnMut(Replayed<'_>) -> Result<()>) -> Result<Recovered> {
    let candidates = evidence::find_candidates(task)?;
    let mut durable = evidence::durable_position(&candidates).max(task.head).max(task.sealed_end);
    let mut walk = Walk::new(task, &candidates, durable);
    let walked = walk.run(apply)?;
    let stop = walk.position();
    durable = durable.max(evidence::durable_beyond(task.fs, &candidates, &walked, stop)?);
    if durable > stop {
        return Err(lost_durable_bytes(task, &candidates, &walk, durable));
    }
    let mut report = walk.report(&walked);
    report.torn_tail = torn_tail(task.fs, &candidates, &walked, stop)?;
    let last_sequence = walk.last_sequence();
    // What has no header is removed, whatever its name is.
    let begun = candidates.iter().filter(|candidate| candidate.header.is_ok()).map(|candidate| candidate.id);
    let last = begun.max().unwrap_or_default().max(task.head.segment);
    let next_segment = SegmentId(last.0.saturating_add(1));
    let (segments, tail) = if task.read_only {
        (describe(&candidates, &walked), stop)
    } else {
        mend(task, &candidates, &walked, durable, &mut report)?
    };
    Ok(Recovered { tail, last_sequence, next_segment, segments, report })
}

/// The error for a log that ends before a position it is known to have reached.
fn lost_durable_bytes(
    task: &Task<'_>,
    candidates: &[Candidate],
    walk: &Walk<'_>,
    durable: LogPosition,
) -> Error {
    let stop = walk.position();
    let expected = format!("the log, which was durable up to {durable}");
    let path = FileName::Segment(stop.segment).path(task.directory);
    let between = |id: SegmentId| id > stop.segment && id <= durable.segment;
    let next = candidates.iter().filter(|candidate| between(candidate.id)).find(|c| c.header.is_err());
    match (walk.fault(), next) {
        (Some(found), _) => Error::corruption(&path, stop.offset, expected, found),
        (None, Some(broken)) => {
            let found = broken.header.as_ref().err().map(ToString::to_string).unwrap_or_default();
            Error::corruption(&broken.path, 0, expected, found)
        }
        (None, None) => match missing_segment(candidates, stop, durable) {
            Some(id) => {
                Error::corruption(&FileName::Segment(id).path(task.directory), 0, expected, "no file")
            }
            None => Error::corruption(&path, stop.offset, expected, "its end"),
        },
    }
}

/// The first segment behind `stop` that was there once, because another was begun behind it or it was durable.
fn missing_segment(candidates: &[Candidate], stop: LogPosition, durable: LogPosition) -> Option<SegmentId> {
    let headers = candidates.iter().filter_map(|candidate| candidate.header.as_ref().ok());
    let known = headers.map(|header| header.predecessor.segment).chain([durable.segment]);
    known.filter(|&id| id > stop.segment && candidates.iter().all(|candidate| candidate.id != id)).min()
}

/// Whether anything stands behind the end of the log.
fn torn_tail(
    fs: &dyn Fs,
    candidates: &[Candidate],
    walked: &[Walked],
    stop: LogPosition,
) -> Result<Option<TornTail>> {
    let mut ignored_bytes = 0;
    for candidate in candidates {
        let from = walked.iter().find(|walked| walked.id == candidate.id).map_or(0, |walked| walked.end);
        ignored_bytes += evidence::bytes_not_zero(fs, candidate, from)?;
    }
    let torn = TornTail { segment: stop.segment.0, offset: stop.offset, ignored_bytes };
    Ok((ignored_bytes > 0).then_some(torn))
}

/// What the manifest would keep of the walked segments, without touching them. Whose file ends with its records has no footer, and
/// what is said of its values is only of those that were walked over.
fn describe(candidates: &[Candidate], walked: &[Walked]) -> Vec<SegmentMeta> {
    let meta = |walked: &Walked| {
        let candidate = &candidates[walked.candidate];
        if let (Ok(header), Some(footer)) = (&candidate.header, &candidate.footer) {
            return meta_of(header, candidate.len, footer);
        }
        SegmentMeta {
            id: walked.id,
            written: candidate.first_sequence(),
            end: walked.end,
            file_bytes: walked.end,
            value_records: walked.value_records,
            value_record_bytes: walked.value_record_bytes,
        }
    };
    walked.iter().map(meta).collect()
}

/// Makes the walked segments whole and durable and removes what is not part of the log. Touches no segment before the
/// head (I-12): other databases may have those files, too.
fn mend(
    task: &Task<'_>,
    candidates: &[Candidate],
    walked: &[Walked],
    durable: LogPosition,
    report: &mut RecoveryReport,
) -> Result<(Vec<SegmentMeta>, LogPosition)> {
    let mut segments = Vec::new();
    let mut tail = task.head;
    let mut removed: Vec<&PathBuf> = Vec::new();
    for candidate in candidates {
        let Some(part) = walked.iter().find(|walked| walked.id == candidate.id) else {
            removed.push(&candidate.path);
            continue;
        };
        if is_unused(task, walked, part) {
            removed.push(&candidate.path);
            continue;
        }
        tail = LogPosition { segment: candidate.id, offset: part.end };
        let header = candidate.header.as_ref().expect("walked segments have a header");
        if let Some(footer) = candidate.footer.as_ref().filter(|footer| footer.records_end == part.end) {
            if candidate.id > task.sealed_end.segment {
                seal_again(task, candidate, header, footer)?;
            }
            segments.push(meta_of(header, candidate.len, footer));
            continue;
        }
        let file: Arc<dyn File> =
            task.fs.open_write(&candidate.path).map_err(|error| Error::io("open", &candidate.path, error))?;
        report.rewritten_bytes += rewrite(&*file, candidate, header, part.end, durable)?;
        file.set_len(part.end).map_err(|error| Error::io("cut", &candidate.path, error))?;
        segments.push(seal(&*file, &candidate.path, header, part.end, task.order)?);
        sync_parent(task.fs, &candidate.path)?;
    }
    for path in &removed {
        task.fs.remove_file(path).map_err(|error| Error::io("remove", path, error))?;
    }
    if !removed.is_empty() {
        let directory = task.directory;
        task.fs.sync_dir(directory).map_err(|error| Error::sync(directory, error))?;
    }
    Ok((segments, tail))
}

/// Writes the footer of a segment once more, and makes file and name durable. For one that the manifest does not know: who
/// sealed it may have ended before the footer was synced, or that sync has failed, and then the system may take footer
/// and length for durable although they are not. Its records were synced before there was one.
fn seal_again(task: &Task<'_>, candidate: &Candidate, header: &SegmentHeader, footer: &Footer) -> Result<()> {
    let path = &candidate.path;
    let file = task.fs.open_write(path).map_err(|error| Error::io("open", path, error))?;
    // So that the length is changed, too.
    file.set_len(footer.records_end).map_err(|error| Error::io("cut", path, error))?;
    file.write_at(&footer.encode(header.seed()), footer.records_end)
        .map_err(|error| Error::io("write the footer of", path, error))?;
    file.sync_data().map_err(|error| Error::sync(path, error))?;
    sync_parent(task.fs, path)
}

/// Whether nobody misses the segment: there is no record in it, it is the last, and the manifest knows nothing of it. A
/// later segment says that it follows this one; the head of the log may be in it; and it may have been sealed.
fn is_unused(task: &Task<'_>, walked: &[Walked], part: &Walked) -> bool {
    let last = walked.last().is_some_and(|last| last.id == part.id);
    let known = task.head.segment.max(task.sealed_end.segment);
    part.end == SEGMENT_HEADER_BYTES && last && part.id > known
}

/// Writes what is not known to be durable below `end` again, in place; returns how many bytes that were.
fn rewrite(
    file: &dyn File,
    candidate: &Candidate,
    header: &SegmentHeader,
    end: u64,
    durable: LogPosition,
) -> Result<u64> {
    const CHUNK_BYTES: u64 = 1 << 20;
    let mut at = match durable.segment.cmp(&header.id) {
        std::cmp::Ordering::Greater => end,
        std::cmp::Ordering::Equal => durable.offset.min(end),
        std::cmp::Ordering::Less => 0,
    };
    file.advise(Access::Sequential).map_err(|error| Error::io("advise on", &candidate.path, error))?;
    let rewritten = end - at;
    let mut chunk = Vec::new();
    while at < end {
        chunk.resize(CHUNK_BYTES.min(end - at) as usize, 0);
        read_exact_at(file, &mut chunk, at).map_err(|error| Error::io("read", &candidate.path, error))?;
        file.write_at(&chunk, at).map_err(|error| Error::io("write", &candidate.path, error))?;
        at += chunk.len() as u64;
    }
    Ok(rewritten)
}

#[cfg(test)]
mod tests;
