//! Which records of the victims are alive, and under which ids tables know them.

use super::super::Cube;
use super::batch::{Batch, Survivor};
use crate::base::error::Result;
use crate::base::ids::{SegmentId, Sequence};
use crate::base::pointer::ValuePointer;
use crate::base::segment::SegmentMeta;
use crate::base::sync::Arc;
use crate::index::version::SegmentEntry;
use crate::index::{Collection, Pointing, Reference};
use crate::vlog::heads::HeadReader;
use crate::vlog::open_segments::OpenSegment;
use crate::vlog::relocation::Relocations;

/// A segment that is collected.
#[derive(Debug)]
pub struct Victim {
    /// What the manifest says of it.
    pub meta: SegmentMeta,
    /// Its file.
    pub segment: Arc<OpenSegment>,
    /// The ids of the segments that were moved into it, with their relocation tables and where these stand.
    pub moved: Vec<(SegmentId, ValuePointer, Arc<Relocations>)>,
    /// Every record that tables point to, by its place.
    pub referenced: Vec<Referenced>,
}

/// A record of a victim to which a table points.
#[derive(Debug, Clone, Copy)]
pub struct Referenced {
    /// Its offset in the victim.
    pub at: u32,
    /// What the table says.
    pub reference: Reference,
}

impl Victim {
    /// At most about so many bytes of records survive.
    pub fn survivor_bytes_max(&self) -> u64 {
        let average = self.meta.value_record_bytes / self.meta.value_records.max(1);
        average.saturating_mul(self.referenced.len() as u64).min(self.meta.value_record_bytes)
    }
}

impl Cube {
    /// Sorts what is in `batch` by key, and drops what is hidden from it (I-11); returns how many that were.
    pub(super) fn sift(
        &self,
        collection: &Collection,
        victims: &[Victim],
        snapshots: &[Sequence],
        batch: &mut Batch,
    ) -> Result<usize> {
        batch.sort(&self.keys);
        let mut survivors = std::mem::take(&mut batch.survivors);
        let pointing = |survivor: &Survivor| Pointing {
            user_key: batch.key(survivor),
            sequence: survivor.sequence,
            reference: victims[survivor.victim as usize].referenced[survivor.record as usize].reference,
        };
        let entries: Vec<_> = survivors.iter().map(pointing).collect();
        let hidden = self.index.hidden_among(collection, &entries, snapshots)?;
        drop(entries);
        let mut hidden = hidden.into_iter();
        let before = survivors.len();
        survivors.retain(|_| hidden.next() == Some(false));
        let dropped = before - survivors.len();
        batch.survivors = survivors;
        Ok(dropped)
    }

    /// What tables reference in the sealed segment `entry`, under all its ids.
    pub(super) fn victim(&self, collection: &Collection, entry: &SegmentEntry) -> Result<Victim> {
        let id = entry.meta.id;
        let mut referenced: Vec<Referenced> = (self.index.references(collection, id)?.into_iter())
            .map(|reference| Referenced { at: reference.offset, reference })
            .collect();
        let mut moved = Vec::new();
        for (former, place) in collection.version().segments().moved_to(id) {
            let relocations = self.reader.relocations(place.table, former)?;
            for reference in self.index.references(collection, former)? {
                // What was left behind when it was moved is hidden, and stays behind.
                let Some(at) = relocations.find(reference.offset) else { continue };
                referenced.push(Referenced { at, reference });
            }
            moved.push((former, place.table, relocations));
        }
        if let Some(dead) = collection.version().segments().dead_ranges(id) {
            // So is what was given back.
            referenced.retain(|record| !dead.contains(u64::from(record.at)));
        }
        referenced.sort_unstable_by_key(|record| record.at);
        Ok(Victim { meta: entry.meta, segment: self.reader.segments().get(id)?, moved, referenced })
    }

    /// Reads the heads of the records `from..`, and all of those of at most `kept_bytes_max`, of victim `number` until `batch`
    /// is full or the victim ends. Returns where to go on.
    pub(super) fn add_referenced(
        (number, victim): (usize, &Victim),
        from: usize,
        batch: &mut Batch,
        batch_bytes_max: usize,
        kept_bytes_max: u64,
    ) -> Result<usize> {
        let mut heads = HeadReader::new(&victim.segment, victim.meta.end, kept_bytes_max);
        for (place, record) in victim.referenced.iter().enumerate().skip(from) {
            if batch.memory_bytes() >= batch_bytes_max {
                return Ok(place);
            }
            batch.push(number as u32, place as u32, heads.read(u64::from(record.at))?);
        }
        Ok(victim.referenced.len())
    }
}
