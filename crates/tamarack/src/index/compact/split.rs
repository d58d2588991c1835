//! Cutting a compaction into parts that run side by side. Pure.

use super::plan::KeyRange;
use crate::base::keys::KeyOrder;

/// A part of a plan's keys: from `start` on, up to but not including `end`; `None` is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its first user key.
    pub start: Option<Vec<u8>>,
    /// The user key at which the next part starts.
    pub end: Option<Vec<u8>>,
}

/// Where an input can be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The user key.
    pub user_key: Vec<u8>,
    /// About how many bytes of the input lie before it, and behind the mark before it.
    pub bytes: u64,
}

/// Cuts inputs whose user keys are in `range` into at most `parts_max` parts of similar size, none much smaller than `part_bytes_min`, where
/// there are `marks` in them.
pub fn split(
    order: &KeyOrder,
    range: &KeyRange,
    mut marks: Vec<Mark>,
    parts_max: usize,
    part_bytes_min: u64,
) -> Vec<Part> {
    let bytes: u64 = marks.iter().map(|mark| mark.bytes).sum();
    let parts = (bytes / part_bytes_min.max(1)).clamp(1, parts_max.max(1) as u64);
    marks.sort_by(|left, right| order.compare_user(&left.user_key, &right.user_key));

    let mut cuts: Vec<Vec<u8>> = Vec::new();
    let mut before = 0_u64;
    for Mark { user_key, bytes: passed } in marks {
        before += passed;
        let share = bytes / parts * (cuts.len() as u64 + 1);
        let is_behind = |key: &[u8]| order.compare_user(&user_key, key).is_gt();
        if (cuts.len() as u64) < parts - 1
            && before >= share
            && is_behind(cuts.last().unwrap_or(&range.smallest))
            && !is_behind(&range.largest)
        {
            cuts.push(user_key);
        }
    }
    let starts = std::iter::once(None).chain(cuts.iter().cloned().map(Some));
    let ends = cuts.iter().cloned().map(Some).chain(std::iter::once(None));
    starts.zip(ends).map(|(start, end)| Part { start, end }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::comparator::Bytewise;
    use crate::base::sync::Arc;

    /// A table of `bytes`, with a mark at each of these keys.
    fn table(keys: &[u8], bytes: u64) -> Vec<Mark> {
        keys.iter().map(|&key| Mark { user_key: vec![key], bytes: bytes / keys.len() as u64 }).collect()
    }

    /// The first key of each part but the first.
    fn cuts(tables: &[Vec<Mark>], parts_max: usize, part_bytes_min: u64) -> Vec<u8> {
        let order = KeyOrder::new(Arc::new(Bytewise));
        let range = KeyRange { smallest: vec![0], largest: vec![100] };
        let parts = split(&order, &range, tables.concat(), parts_max, part_bytes_min);
        assert!(parts[0].start.is_none() && parts[parts.len() - 1].end.is_none(), "no key is left out");
        assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].end.is_some()));
        parts[1..].iter().map(|part| part.start.as_ref().expect("it has one")[0]).collect()
    }

    #[test]
    fn tables_of_the_same_keys_are_cut_alike() {
        let all: Vec<u8> = (1..=100).collect();
        let tables = [table(&all, 1000), table(&all, 1000)];
        assert_eq!(cuts(&tables, 4, 500), [25, 50, 75]);
        assert_eq!(cuts(&tables, 4, 700), [50], "no part is much smaller than it may be");
        assert_eq!(cuts(&tables, 1, 1), []);
        assert_eq!(cuts(&tables, 0, 0), []);
    }

    #[test]
    fn parts_are_alike_by_bytes_wherever_these_lie() {
        let (low, high): (Vec<u8>, Vec<u8>) = ((1..=10).collect(), (91..=100).collect());
        assert_eq!(cuts(&[table(&low, 3000), table(&high, 1000)], 4, 1), [4, 7, 10]);
        assert_eq!(cuts(&[table(&low, 1000), table(&high, 3000)], 2, 1), [94]);
    }

    #[test]
    fn where_no_mark_is_no_cut_is_made() {
        assert_eq!(cuts(&[table(&[100], 1000), table(&[100], 1000)], 2, 1), [100], "the last key is alone");
        assert_eq!(cuts(&[table(&[50], 1000), table(&[50], 1000)], 4, 1), [50], "a mark serves once");
        assert_eq!(
            cuts(&[table(&[0, 101], 1000)], 2, 1),
            [],
            "nothing is before the first key, nor behind the last"
        );
        assert_eq!(cuts(&[], 2, 1), []);
    }
}
