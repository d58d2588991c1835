//! The audit: every invariant of a whole version, derived anew.

use std::collections::BTreeMap;

use crate::base::ids::{SegmentId, Sequence};
use crate::base::limits::LEVELS;

use super::apply::{check_disjoint, check_ids, check_table};
use super::segments::SegmentEntry;
use super::{Liveness, Version};

/// More than all files of a version have together, of whatever is counted in them; sums of such numbers with those of a process, and their
/// products with the size of a header, fit into 64 bits.
const SIZES_MAX: u64 = 1 << 56;
/// So many sequence numbers nobody uses up before the database is opened again.
const SEQUENCES_LEFT_MIN: u64 = 1 << 48;

impl Version {
    /// Checks that what is said of files can be true, so that nobody need mind in sums of it. `Err` says what cannot be.
    pub fn check_sizes(&self) -> Result<(), String> {
        let mut sum = 0_u64;
        let mut add = |name: &str, counts: &[u64]| {
            for &count in counts {
                sum = sum.checked_add(count).filter(|&sum| sum <= SIZES_MAX).ok_or_else(|| {
                    format!("a count of {count} in {name}, with which there are more than {SIZES_MAX}")
                })?;
            }
            Ok::<(), String>(())
        };
        for (_, table) in self.tables() {
            let name = format!("table {}", table.id);
            add(&name, &[table.file_bytes, table.entries, table.deletes, table.inline_bytes])?;
            for reference in &table.references {
                add(&name, &[reference.values, reference.bytes])?;
            }
        }
        for SegmentEntry { meta, .. } in self.segments.sealed() {
            let name = format!("segment {}", meta.id);
            if meta.end > meta.file_bytes
                || meta.value_record_bytes > meta.end
                || meta.value_records > meta.value_record_bytes
            {
                return Err(format!("{name} has more records than its file can hold"));
            }
            add(&name, &[meta.file_bytes])?;
        }
        if self.numbers.last_sequence.0 > Sequence::MAX.0 - SEQUENCES_LEFT_MIN {
            return Err(format!(
                "sequence number {}, after which too few are left",
                self.numbers.last_sequence
            ));
        }
        Ok(())
    }

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
