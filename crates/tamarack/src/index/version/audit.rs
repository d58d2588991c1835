//! The audit: every invariant of a whole version, derived anew.

use std::collections::BTreeMap;

use crate::base::ids::SegmentId;
use crate::base::limits::LEVELS;

use super::apply::{check_disjoint, check_ids, check_table};
use super::{Liveness, Version};

impl Version {
    /// Checks every invariant from scratch, the incremental liveness sums against the tables' references among
    /// them. `Err` says what is broken.
    pub fn audit(&self) -> Result<(), String> {
        check_ids(&self.levels)?;
        if !self.levels[0].is_sorted_by(|left, right| left.id > right.id) {
            return Err("L0 is not sorted by id".to_owned());
        }
        for level in 1..LEVELS {
            check_disjoint(&self.order, level, &self.levels[level])?;
        }
        let mut derived: BTreeMap<SegmentId, Liveness> = BTreeMap::new();
        for (_, table) in self.tables() {
            check_table(&self.order, table)?;
            if table.id >= self.numbers.next_table_id {
                return Err(format!("table {} is not below the next id", table.id));
            }
            if table.sequences.1 > self.numbers.last_sequence {
                return Err(format!("table {} is newer than the last sequence number", table.id));
            }
            let bytes: u64 = table.references.iter().map(|reference| reference.bytes).sum();
            if bytes != table.referenced_value_bytes {
                return Err(format!("table {} does not sum up its references", table.id));
            }
            for reference in &table.references {
                let live = derived.entry(reference.segment).or_default();
                live.values += reference.values;
                live.bytes += reference.bytes;
            }
        }
        derived.retain(|_, live| !live.is_none());
        self.segments.check_homes()?;
        self.segments.check_references(self.numbers.log_head.segment)?;
        self.segments.agrees_with(&derived)
    }
}
