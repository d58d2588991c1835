//! Which entries nobody can read any more, though no compaction has dropped them yet: exactly, for one entry, and
//! about how many bytes of values, for a table.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use crate::base::error::Result;
use crate::base::ids::{SegmentId, Sequence, TableId};
use crate::base::keys::{split_internal_key, trailer_sequence};
use crate::base::limits::LEVELS;
use crate::base::pointer::ValuePointer;
use crate::base::segment::Relocate;

use super::cache::TableCache;
use super::compact::stripe;
use super::open::Index;
use super::sample::{Sample, Sampler};
use super::table::reader::TablePayload;
use super::version::{HeldBytes, TableMeta, Version, overlapping};

/// Where newer versions of an entry's key can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Above {
    /// In the tables that are newer than this one, which has the entry, at this level.
    Table(u8, TableId),
    /// Anywhere.
    Everything,
}

/// I-11: whether the entry of `user_key` with `sequence` is hidden from every reader, now and later: a newer table holds a
/// newer version of the key, and each of the sorted `snapshots` sees both or neither. Later snapshots see both.
///
/// A hidden entry stays hidden: compactions keep the newest version of a key, and a deletion for as long as
/// anything older may lie below it. `snapshots` must have been listed after the version was loaded.
pub fn is_hidden(
    tables: &TableCache,
    version: &Version,
    above: Above,
    user_key: &[u8],
    sequence: Sequence,
    snapshots: &[Sequence],
) -> Result<bool> {
    let order = version.order();
    // Whoever sees this entry and no newer one reads at most here.
    let last_reader = snapshots.get(stripe(snapshots, sequence)).copied().unwrap_or(Sequence::MAX);
    let hides = |id: TableId| -> Result<bool> {
        let seen = tables.get(id)?.get(user_key, last_reader, true)?;
        Ok(seen.is_some_and(|seen| seen.sequence > sequence))
    };
    let (in_level0, levels_end) = match above {
        Above::Table(0, table) => (Some(table), 1),
        Above::Table(level, _) => (None, usize::from(level)),
        Above::Everything => (None, LEVELS),
    };
    for newer in version.level(0).iter().take_while(|newer| Some(newer.id) != in_level0) {
        if newer.sequences.1 > sequence && newer.locate(order, user_key).is_eq() && hides(newer.id)? {
            return Ok(true);
        }
    }
    for level in 1..levels_end {
        for newer in overlapping(version.level(level), order, Some(user_key), Some(user_key)) {
            if newer.sequences.1 > sequence && hides(newer.id)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether the record to which `pointer` leads has not been left behind, as far as can be told: what a damaged
/// relocation table hides, the collection that meets it will say.
fn is_there(version: &Version, pointer: ValuePointer, relocate: &dyn Relocate) -> bool {
    let segments = version.segments();
    let table = segments.relocation_table(pointer.segment);
    let present = table.map_or(Ok(Some(pointer)), |table| relocate.relocate(table, pointer));
    present.map_or(true, |present| {
        present.is_some_and(|present| !segments.is_given_back(present.segment, present.offset))
    })
}

/// Bytes that no reader can see any more, though tables hold them or point to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HiddenBytes {
    /// Of log records, those included that garbage collection has left behind: as many bytes of the tables' references lead
    /// to nothing that can be read.
    pub records: u64,
    /// Of keys and values in tables.
    pub inline: u64,
}

impl AddAssign for HiddenBytes {
    fn add_assign(&mut self, other: Self) {
        // Estimates are scaled by what the manifest says of tables, right or not.
        self.records = self.records.saturating_add(other.records);
        self.inline = self.inline.saturating_add(other.inline);
    }
}

/// About what a table hides in older ones: records that garbage collection may leave behind, by segment, and what only
/// snapshots see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Bytes of log records, still there, that no reader can see any more.
    pub hidden: BTreeMap<SegmentId, u64>,
    /// All of what no reader can see any more.
    pub total: HiddenBytes,
    /// Bytes of entries, and of records to which they point, that snapshots still see.
    pub held: HeldBytes,
}

impl Estimate {
    fn scale(&mut self, factor: f64) {
        let scale = |bytes: &mut u64| *bytes = (*bytes as f64 * factor) as u64;
        self.hidden.values_mut().chain(self.held.values_mut()).for_each(scale);
        scale(&mut self.total.records);
        scale(&mut self.total.inline);
    }
}

/// What an entry of a table has below it.
enum Below {
    /// A record that nobody can see any more.
    Hidden(ValuePointer),
    /// A key and a value of so many bytes that nobody can see any more.
    HiddenInline(u64),
    /// An entry of so many bytes that only the snapshots from the first to the last can see.
    Held((Sequence, Sequence), u64),
}

impl Index {
    /// About how much of what older tables of `version` hold and point to `table` of `level`, which is in it or will be,
    /// hides from every reader, or from all but snapshots: some of its keys are looked up in the tables below it. By segment,
    /// records that garbage collection has left behind do not count any more; `relocate` knows them.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn estimate_hidden(
        &self,
        version: &Version,
        level: u8,
        table: &TableMeta,
        snapshots: &[Sequence],
        relocate: &dyn Relocate,
    ) -> Result<Estimate> {
        // There is another version by the time at which something would be found anew.
        let mut sampler = Sampler::new(self.tables.get(table.id)?, version.numbers().next_table_id.0);
        let (mut sampled, mut estimate) = (0.0, Estimate::default());
        while let Some(Sample { internal_key, weight, is_oldest }) = sampler.next()? {
            sampled += weight;
            if !is_oldest {
                // What lies below is hidden by the older version that follows.
                continue;
            }
            let (user_key, trailer) =
                split_internal_key(&internal_key).expect("cursors refuse keys without a trailer");
            let sequence = trailer_sequence(trailer);
            let weighed = |bytes: u64| (bytes as f64 * weight) as u64;
            match self.below(version, (level, table.id), user_key, sequence, snapshots)? {
                Some(Below::Hidden(pointer)) => {
                    let bytes = weighed(self.record_bytes(user_key, pointer));
                    estimate.total.records += bytes;
                    if is_there(version, pointer, relocate) {
                        *estimate.hidden.entry(pointer.segment).or_default() += bytes;
                    }
                }
                Some(Below::HiddenInline(bytes)) => estimate.total.inline += weighed(bytes),
                Some(Below::Held(snapshots, bytes)) => {
                    *estimate.held.entry(snapshots).or_default() += weighed(bytes);
                }
                None => {}
            }
        }
        if sampled > 0.0 {
            estimate.scale(table.entries as f64 / sampled);
        }
        Ok(estimate)
    }

    fn record_bytes(&self, user_key: &[u8], pointer: ValuePointer) -> u64 {
        self.options.table.record_overhead + user_key.len() as u64 + u64::from(pointer.stored_len)
    }

    /// What the entry of `user_key` in a table hides in older ones, if there is anything.
    fn below(
        &self,
        version: &Version,
        (level, table): (u8, TableId),
        user_key: &[u8],
        sequence: Sequence,
        snapshots: &[Sequence],
    ) -> Result<Option<Below>> {
        let order = version.order();
        let newer = version.level(0).iter().position(|newer| newer.id == table).map_or(0, |place| place + 1);
        let level0 = version.level(0)[newer..].iter().take_while(|_| level == 0);
        let deeper = (usize::from(level) + 1..LEVELS).flat_map(|level| {
            overlapping(version.level(level), order, Some(user_key), Some(user_key)).iter()
        });
        for older in level0.chain(deeper).filter(|older| older.locate(order, user_key).is_eq()) {
            let Some(entry) = self.tables.get(older.id)?.get(user_key, sequence, true)? else { continue };
            let seeing = &snapshots[stripe(snapshots, entry.sequence)..stripe(snapshots, sequence)];
            let held = seeing.first().copied().zip(seeing.last().copied());
            return Ok(match (entry.payload, held) {
                (TablePayload::Pointer(pointer), None) => Some(Below::Hidden(pointer)),
                (TablePayload::Pointer(pointer), Some(snapshots)) => {
                    Some(Below::Held(snapshots, self.record_bytes(user_key, pointer)))
                }
                (TablePayload::Inline(value), held) => {
                    let bytes = (user_key.len() + value.as_ref().len()) as u64;
                    Some(held.map_or(Below::HiddenInline(bytes), |snapshots| Below::Held(snapshots, bytes)))
                }
                (TablePayload::Delete, _) => None,
            });
        }
        Ok(None)
    }
}
