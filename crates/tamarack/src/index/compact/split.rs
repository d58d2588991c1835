//! Cutting a compaction into parts that run side by side.

use super::plan::CompactionPlan;

/// A part of a plan's keys: from `start` on, up to but not including `end`; `None` is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its first user key.
    pub start: Option<Vec<u8>>,
    /// The user key at which the next part starts.
    pub end: Option<Vec<u8>>,
}

/// Cuts `plan` into at most `parts_max` parts of similar size, none much smaller than a table of full size. Cuts lie
/// where an input table begins, so a part shares few tables with its neighbours.
pub fn split(plan: &CompactionPlan, parts_max: usize, table_bytes_max: u64) -> Vec<Part> {
    let order = plan.version.order();
    let bytes = plan.input_bytes();
    let parts = (bytes / table_bytes_max.max(1)).clamp(1, parts_max.max(1) as u64);
    let mut tables: Vec<(&[u8], u64)> =
        plan.inputs().map(|table| (table.smallest_user_key(), table.file_bytes)).collect();
    tables.sort_by(|left, right| order.compare_user(left.0, right.0));

    let mut cuts: Vec<&[u8]> = Vec::new();
    let mut before = 0_u64;
    for (smallest, table_bytes) in tables {
        // A table that begins past the n-th share of the bytes begins part n, unless it begins at the last cut.
        let share = bytes / parts * (cuts.len() as u64 + 1);
        let last = cuts.last().copied().unwrap_or(&plan.range.smallest);
        if (cuts.len() as u64) < parts - 1 && before >= share && order.compare_user(last, smallest).is_lt() {
            cuts.push(smallest);
        }
        before = before.saturating_add(table_bytes);
    }
    let starts = std::iter::once(None).chain(cuts.iter().copied().map(Some));
    let ends = cuts.iter().copied().map(Some).chain(std::iter::once(None));
    let owned = |key: Option<&[u8]>| key.map(<[u8]>::to_vec);
    starts.zip(ends).map(|(start, end)| Part { start: owned(start), end: owned(end) }).collect()
}
