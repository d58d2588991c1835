//! Copies what is whole of damaged segments into cold segments, as garbage collection does, with relocation tables under
//! the old ids: tables stay as they are, and the damaged file can be put aside.

use std::collections::BTreeMap;

use super::report::RepairReport;
use super::segments::{Home, Segments};
use super::tables::key_of;
use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, LogPosition, SegmentId, Sequence};
use crate::base::keys::KeyOrder;
use crate::base::names::FileName;
use crate::base::segment::{SegmentMeta, SegmentMove};
use crate::env::Env;
use crate::vlog::cold::ColdWriter;
use crate::vlog::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::vlog::relocation::Relocations;

/// Another segment is begun behind so many bytes, whatever segments may have: the next to be copied may have twice as many, and relocation
/// tables begin in the first 4 GiB.
const BYTES_MAX: u64 = 1 << 30;

/// Where copies go.
#[derive(Debug)]
pub struct Evacuation<'a> {
    /// The world.
    pub env: &'a Env,
    /// The directory of new files.
    pub scratch: std::path::PathBuf,
    /// The cube.
    pub cube: CubeId,
    /// The order of keys.
    pub order: KeyOrder,
    /// An id that no cold segment has had.
    pub next_id: SegmentId,
    /// Bytes after which another cold segment is begun.
    pub segment_bytes_max: u64,
    /// The new segments, and where records were moved.
    pub segments: Vec<SegmentMeta>,
    /// Where records were moved.
    pub moves: Vec<SegmentMove>,
}

impl Evacuation<'_> {
    /// Copies the records of all homes that are not settled, as far as `offsets` still needs them. Without `write`, only
    /// counts them.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn run(
        &mut self,
        homes: &BTreeMap<SegmentId, Home>,
        segments: &mut Segments<'_>,
        offsets: &dyn Fn(SegmentId) -> Result<Vec<u32>>,
        write: bool,
        report: &mut RepairReport,
    ) -> Result<()> {
        let troubled: Vec<_> = homes.iter().filter(|(_, home)| !home.settled).collect();
        let mut next = troubled.into_iter().peekable();
        while next.peek().is_some() {
            let fs = self.env.fs.clone();
            let mut writer =
                if write { Some(ColdWriter::create(&*fs, self.path(), self.header()?)?) } else { None };
            let mut tables = Vec::new();
            let (mut smallest, mut largest): (Option<Vec<u8>>, Option<Vec<u8>>) = (None, None);
            let bytes_max = self.segment_bytes_max.min(BYTES_MAX);
            while writer.as_ref().is_none_or(|writer| writer.bytes() < bytes_max) {
                let Some((&id, home)) = next.next() else { break };
                let needed = offsets(id)?;
                let mut places = home.places.clone();
                places.retain(|(offset, _)| needed.binary_search(offset).is_ok());
                places.sort_unstable_by_key(|&(_, place)| place);
                let mut pairs = Vec::with_capacity(places.len());
                for (offset, place) in places {
                    let Some((header, record)) = segments.record(place)? else { continue };
                    report.copied_records += 1;
                    report.copied_bytes += header.record_len();
                    let key = key_of(&header, &record);
                    if smallest.as_ref().is_none_or(|least| self.order.compare_user(key, least).is_lt()) {
                        smallest = Some(key.to_vec());
                    }
                    if largest.as_ref().is_none_or(|most| self.order.compare_user(key, most).is_gt()) {
                        largest = Some(key.to_vec());
                    }
                    if let Some(writer) = &mut writer {
                        pairs.push((offset, writer.copy_checked(&header, &record)?));
                    }
                }
                if !pairs.is_empty() || !needed.is_empty() {
                    tables.push((id, Relocations::new(pairs)));
                }
            }
            let Some(mut writer) = writer else { continue };
            if tables.is_empty() {
                continue;
            }
            if let (Some(smallest), Some(largest)) = (smallest, largest) {
                writer.note_range(&smallest, &largest);
            }
            for (id, relocations) in &tables {
                let table = writer.add_relocations(*id, relocations)?;
                self.moves.push(SegmentMove { id: *id, table });
            }
            self.segments.push(writer.finish()?);
            self.next_id = SegmentId(self.next_id.0 + 1);
        }
        Ok(())
    }

    /// Makes an empty segment of the log in which it can begin.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn begin_log(&self, id: SegmentId, last: Sequence) -> Result<LogPosition> {
        let header = SegmentHeader { id, first_sequence: Sequence(last.0 + 1), ..self.header()? };
        let path = FileName::Segment(id).path(&self.scratch);
        let file = self.env.fs.create_new(&path).map_err(|error| Error::io("create", &path, error))?;
        file.write_at(&header.encode(), 0).map_err(|error| Error::io("write", &path, error))?;
        file.sync_data().map_err(|error| Error::sync(&path, error))?;
        Ok(LogPosition { segment: id, offset: SEGMENT_HEADER_BYTES })
    }

    fn path(&self) -> std::path::PathBuf {
        FileName::Segment(self.next_id).path(&self.scratch)
    }

    fn header(&self) -> Result<SegmentHeader> {
        let salt = self.env.rng.random_u64();
        Ok(SegmentHeader {
            cube: self.cube,
            id: self.next_id,
            salt: salt.map_err(|error| Error::io("draw a salt for", &self.scratch, error))?,
            predecessor: LogPosition::default(),
            first_sequence: Sequence(0),
            durable: LogPosition::default(),
        })
    }
}
