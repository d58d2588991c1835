//! Which entries survive a merge.
//!
//! The snapshots that were held when the merge began cut the sequence numbers into stripes: stripe 0 up to and
//! including the oldest snapshot, and so on, the last one above the newest. Whoever reads now or later, at one of
//! these snapshots or at a newer one, sees the newest version of a key of some stripe. So of each key the newest
//! version of each stripe is kept. A deletion is kept too, because it hides older versions; it may vanish if it
//! stands in stripe 0, where everything older among the inputs is dropped with it, and nothing older lies outside
//! of the inputs.

use crate::base::ids::Sequence;
use crate::base::keys::{EntryKind, KeyOrder, split_internal_key, trailer_kind, trailer_sequence};

/// What becomes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is written to the output.
    Keep,
    /// Nobody can read it: a newer version of its key hides it from every snapshot.
    Shadowed,
    /// It is a deletion with nothing left to hide.
    Vanished,
}

/// The stripe in which `sequence` lies. `snapshots` are sorted.
pub fn stripe(snapshots: &[Sequence], sequence: Sequence) -> usize {
    snapshots.partition_point(|&snapshot| snapshot < sequence)
}

/// Decides on one version of a key; `newer` is the stripe of the next newer version of the key among the inputs.
pub fn decide(
    newer: Option<usize>,
    stripe: usize,
    kind: EntryKind,
    nothing_older_outside: impl FnOnce() -> bool,
) -> Decision {
    if newer == Some(stripe) {
        Decision::Shadowed
    } else if kind == EntryKind::Delete && stripe == 0 && nothing_older_outside() {
        Decision::Vanished
    } else {
        Decision::Keep
    }
}

/// Decides on the entries of a merge, one after the other in key order.
#[derive(Debug)]
pub struct Decider<'a> {
    order: &'a KeyOrder,
    snapshots: &'a [Sequence],
    user_key: Vec<u8>,
    /// The stripe of the entry before, if it was a version of `user_key`.
    newer: Option<usize>,
    /// The stripe of the last entry, and that of the next newer version of its key.
    last: (usize, Option<usize>),
}

impl<'a> Decider<'a> {
    /// For a merge in `order` with the snapshots held when it began, sorted.
    pub fn new(order: &'a KeyOrder, snapshots: &'a [Sequence]) -> Self {
        debug_assert!(snapshots.is_sorted());
        Self { order, snapshots, user_key: Vec::new(), newer: None, last: (0, None) }
    }

    /// Decides on the next entry. `nothing_older_outside` is asked about its user key, and only for deletions.
    pub fn decide(
        &mut self,
        internal_key: &[u8],
        nothing_older_outside: impl FnOnce(&[u8]) -> bool,
    ) -> Decision {
        let (user_key, trailer) =
            split_internal_key(internal_key).expect("decoders refuse internal keys without a trailer");
        let kind = trailer_kind(trailer).expect("decoders refuse unknown kinds");
        if self.newer.is_some() && !self.is_current(user_key) {
            self.newer = None;
        }
        if self.newer.is_none() {
            self.user_key.clear();
            self.user_key.extend_from_slice(user_key);
        }
        let stripe = stripe(self.snapshots, trailer_sequence(trailer));
        let decision = decide(self.newer, stripe, kind, || nothing_older_outside(user_key));
        self.last = (stripe, self.newer.replace(stripe));
        decision
    }

    /// The first and the last of the snapshots that see the last entry that was decided on, if it is kept and a newer
    /// version hides it from everybody else.
    pub fn held_for(&self) -> Option<(Sequence, Sequence)> {
        let (stripe, newer) = self.last;
        // They lie from the entry to before the newer version.
        let seeing = self.snapshots.get(stripe..newer?)?;
        Some((*seeing.first()?, *seeing.last()?))
    }

    /// Whether `user_key` is the one of the entry before.
    pub fn is_current(&self, user_key: &[u8]) -> bool {
        self.newer.is_some() && self.order.compare_user(user_key, &self.user_key).is_eq()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::super::base::comparator::Bytewise;
    use super::*;
    use crate::base::keys::put_internal_key;
    use crate::base::sync::Arc;

    type Entry = (u64, EntryKind);

    /// What a reader at `snapshot` sees of `history` (newest first): a sequence number, or nothing. `outside` is
    /// what lies below.
    fn visible(history: &[Entry], snapshot: u64, outside: Option<u64>) -> Option<u64> {
        match history.iter().find(|(sequence, _)| *sequence <= snapshot) {
            Some((_, EntryKind::Delete)) => None,
            Some((sequence, _)) => Some(*sequence),
            None => outside.filter(|&sequence| sequence <= snapshot),
        }
    }

    fn survivors(history: &[Entry], snapshots: &[Sequence], outside: Option<u64>) -> Vec<Entry> {
        let order = KeyOrder::new(Arc::new(Bytewise));
        let mut decider = Decider::new(&order, snapshots);
        let keep = |&&(sequence, kind): &&Entry| {
            let mut key = Vec::new();
            put_internal_key(&mut key, b"key", Sequence(sequence), kind);
            decider.decide(&key, |_| outside.is_none()) == Decision::Keep
        };
        history.iter().filter(keep).copied().collect()
    }

    /// Every history of up to four versions, every set of snapshots among and around them, with and without an
    /// older version outside.
    #[test]
    fn no_reader_can_tell() {
        for len in 0..=4_u32 {
            for kinds in 0..1_u32 << len {
                let kind =
                    |at: u32| if kinds >> at & 1 == 0 { EntryKind::Delete } else { EntryKind::Pointer };
                let history: Vec<Entry> =
                    (0..len).rev().map(|at| (u64::from(at) * 2 + 2, kind(at))).collect();
                for set in 0..1_u32 << 10 {
                    let snapshots: Vec<Sequence> =
                        (0..10).filter(|at| set >> at & 1 == 1).map(|at| Sequence(at + 1)).collect();
                    for outside in [None, Some(1)] {
                        check(&history, &snapshots, outside);
                    }
                }
            }
        }
    }

    fn check(history: &[Entry], snapshots: &[Sequence], outside: Option<u64>) {
        let kept = survivors(history, snapshots, outside);
        for snapshot in snapshots.iter().map(|snapshot| snapshot.0).chain(8..12) {
            assert_eq!(
                visible(&kept, snapshot, outside),
                visible(history, snapshot, outside),
                "{history:?} at {snapshot}, snapshots {snapshots:?}, kept {kept:?}"
            );
        }
        let mut stripes: Vec<_> = kept.iter().map(|&(at, _)| stripe(snapshots, Sequence(at))).collect();
        stripes.dedup();
        assert_eq!(stripes.len(), kept.len(), "one version a stripe");
        if outside.is_none() {
            let oldest = kept.last().filter(|&&(at, _)| stripe(snapshots, Sequence(at)) == 0);
            assert!(
                oldest.is_none_or(|(_, kind)| *kind != EntryKind::Delete),
                "a deletion with nothing to hide"
            );
        }
    }

    #[test]
    fn versions_of_other_keys_do_not_matter() {
        let order = KeyOrder::new(Arc::new(Bytewise));
        let mut decider = Decider::new(&order, &[]);
        let mut decide = |key: &[u8], sequence, kind| {
            let mut internal = Vec::new();
            put_internal_key(&mut internal, key, Sequence(sequence), kind);
            decider.decide(&internal, |_| true)
        };
        assert_eq!(decide(b"", 9, EntryKind::Pointer), Decision::Keep);
        assert_eq!(decide(b"a", 8, EntryKind::Delete), Decision::Vanished);
        assert_eq!(decide(b"a", 7, EntryKind::Pointer), Decision::Shadowed);
        assert_eq!(decide(b"b", 3, EntryKind::Inline), Decision::Keep);
    }
}
