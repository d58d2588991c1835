//! What is known of where values lie: the pieces between which the choice is made.

use std::collections::HashMap;

use super::super::super::Cube;
use super::runs::Piece;
use crate::base::error::Result;
use crate::base::ids::SegmentId;
use crate::base::sync::{Arc, Mutex};
use crate::index::version::{SegmentEntry, Version};
use crate::vlog::shape::Shape;

/// Bytes of memory for what is noted beside the key of a record, about: both are there twice while they are sorted.
const NOTED_BYTES: u64 = 128;

/// Where values are as large as this on average, walking over them costs little more than reading them in order: they
/// are left where they are.
pub const SCATTERED_BYTES_MAX: u64 = 32 << 10;

/// The shapes of sealed segments, which never change, as far as they have been looked at: some two KiB of memory for
/// each. Lock rank: a leaf.
#[derive(Debug, Default)]
pub struct Shapes {
    /// `None` of those whose shape cannot be told.
    known: Mutex<HashMap<SegmentId, Option<Arc<Shape>>>>,
}

impl Shapes {
    fn get(&self, id: SegmentId) -> Option<Option<Arc<Shape>>> {
        self.known.lock().get(&id).cloned()
    }

    fn insert(&self, id: SegmentId, shape: Option<Arc<Shape>>) {
        self.known.lock().insert(id, shape);
    }

    fn retain(&self, version: &Version) {
        self.known.lock().retain(|&id, _| version.segments().get(id).is_some());
    }
}

impl Cube {
    /// The segments of `version` whose values may be sorted. Blocks on the device, for those that were not looked at before.
    ///
    /// # Errors
    /// `Io`; `Closed` if it was cancelled.
    pub(super) fn survey(&self, version: &Version) -> Result<Vec<Piece>> {
        self.collector.shapes.retain(version);
        let quarantined = self.collector.quarantined();
        let mut found = Vec::new();
        for content in self.contents(version) {
            let meta = &content.entry.meta;
            let scattered = meta.value_record_bytes / meta.value_records.max(1) <= SCATTERED_BYTES_MAX;
            if content.live == 0
                || !scattered
                || !version.is_collectable(meta.id)
                || quarantined.contains(&meta.id)
                || self.index.is_collecting(meta.id)
            {
                continue;
            }
            if let Some(shape) = self.shape(version, content.entry)? {
                let share = u128::from(content.live) * u128::from(meta.value_records);
                let records = share.div_ceil(u128::from(meta.value_record_bytes.max(1))) as u64;
                let noted = records.min(meta.value_records) * (NOTED_BYTES + 2 * shape.key_bytes());
                found.push((meta.id, content.live, noted, shape));
            }
        }
        let mut keys: Vec<&[u8]> = Vec::new();
        for (.., shape) in &found {
            keys.extend([&shape.smallest[..], &shape.largest[..]]);
            keys.extend(shape.samples.iter().map(Vec::as_slice));
        }
        keys.sort_unstable_by(|left, right| self.keys.compare_user(left, right));
        let rank = |key: &[u8]| {
            let rank = keys.partition_point(|known| self.keys.compare_user(known, key).is_lt());
            u32::try_from(rank).unwrap_or(u32::MAX)
        };
        let piece = |(id, bytes, noted_bytes, shape): &(SegmentId, u64, u64, Arc<Shape>)| Piece {
            id: *id,
            bytes: *bytes,
            noted_bytes: *noted_bytes,
            runs: shape.runs(&self.keys),
            first: rank(&shape.smallest),
            last: rank(&shape.largest),
        };
        Ok(found.iter().map(piece).collect())
    }

    /// The shape of a sealed segment, if it can be told. One that is damaged is left alone from then on.
    fn shape(&self, version: &Version, entry: &SegmentEntry) -> Result<Option<Arc<Shape>>> {
        let id = entry.meta.id;
        if let Some(known) = self.collector.shapes.get(id) {
            return Ok(known);
        }
        self.check_not_cancelled()?;
        let given_back = |offset| version.segments().is_given_back(id, offset);
        let read =
            self.reader.segments().get(id).and_then(|segment| Shape::read(&segment, self.id, id, given_back));
        let shape = match read {
            Err(error) if self.is_damage_to(&error, id) => {
                self.quarantine(self.collector.running.next_job(), &error, id);
                None
            }
            read => read?.map(Arc::new),
        };
        self.collector.shapes.insert(id, shape.clone());
        Ok(shape)
    }
}
