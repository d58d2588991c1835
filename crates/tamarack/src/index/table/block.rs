//! Sorted blocks in memory: searching them for one entry, and walking over them.
//!
//! A [`Block`] owns the raw bytes of a data block or of an index block (whose every entry is a restart point), and
//! is shared through the block cache. A [`BlockPosition`] is a place in a block that is handed to every call, so
//! that one position with its key buffer serves all blocks of a scan. Nothing here does I/O. Every decoding step
//! checks its bounds; bytes that encode no block yield a [`Damage`], which the reader gives a file and an offset.

use std::cmp::Ordering;
use std::ops::Range;

use super::block_builder::{bucket_of, shared_bytes};
use super::format::{
    BLOCK_TAIL_BYTES, BUCKET_COLLISION, BUCKET_EMPTY, Damage, Decoded, EntryHeader, IndexEntry, decode_entry,
};
use super::key_heads::KeyHeads;
use crate::base::coding::u32_at;
use crate::base::keys::{KeyOrder, TRAILER_BYTES, split_internal_key};
use crate::base::prefetch::prefetch;

/// What a search looks for: the first entry at or after this internal key.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The user key.
    pub user_key: &'a [u8],
    /// The internal key's trailer.
    pub trailer: u64,
}

impl<'a> Target<'a> {
    /// The target of an internal key.
    pub fn new(internal_key: &'a [u8]) -> Self {
        let (user_key, trailer) = split_internal_key(internal_key).expect("seeks are given internal keys");
        Self { user_key, trailer }
    }

    /// The internal key it is made of.
    pub fn to_internal_key(self) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.user_key.len() + TRAILER_BYTES);
        key.extend_from_slice(self.user_key);
        key.extend_from_slice(&self.trailer.to_le_bytes());
        key
    }

    /// Where an entry lies relative to the target.
    fn order_of(&self, order: &KeyOrder, user_key: &[u8], trailer: u64) -> Ordering {
        order.compare_user(user_key, self.user_key).then(self.trailer.cmp(&trailer))
    }
}

/// An entry that a point lookup found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its internal key's trailer.
    pub trailer: u64,
    /// Where its payload lies in the block.
    pub payload: Range<usize>,
}

/// The raw bytes of a sorted block.
#[derive(Debug)]
pub struct Block {
    raw: Vec<u8>,
    entries_len: usize,
    restarts: usize,
    buckets: usize,
    /// Of the keys at restart points.
    heads: Option<KeyHeads>,
}

impl Block {
    /// Takes over raw bytes after checking that their tail fits them.
    pub fn new(raw: Vec<u8>) -> Decoded<Self> {
        let damage = |position, expected| Err(Damage { position, expected });
        let Some(tail) = raw.len().checked_sub(BLOCK_TAIL_BYTES) else {
            return damage(0, "the tail of a sorted block");
        };
        let buckets = usize::from(u16::from_le_bytes([raw[tail], raw[tail + 1]]));
        let restarts = u32_at(&raw, tail + 2) as usize;
        let entries_len = restarts.checked_mul(4).and_then(|bytes| tail.checked_sub(bytes + buckets));
        let Some(entries_len) = entries_len.filter(|&len| len > 0 && restarts > 0) else {
            return damage(tail, "as many restart points and buckets as the block has room for");
        };
        let block = Self { raw, entries_len, restarts, buckets, heads: None };
        let mut previous = None;
        for index in 0..restarts {
            let restart = block.restart(index);
            let ascends = previous.map_or(restart == 0, |previous| previous < restart);
            if !ascends || restart >= entries_len {
                return damage(entries_len + 4 * index, "a restart point behind the one before it");
            }
            previous = Some(restart);
        }
        Ok(block)
    }

    /// The same for a block that will be searched by its restart points.
    pub fn new_index(raw: Vec<u8>, order: &KeyOrder) -> Decoded<Self> {
        let mut block = Self::new(raw)?;
        if order.is_bytewise() {
            let key = |index| block.restart_entry(index).map(|entry| &block.raw[entry.suffix..entry.payload]);
            let keys = (0..block.restarts).map(key).collect::<Decoded<Vec<&[u8]>>>()?;
            block.heads = Some(KeyHeads::new(&keys));
        }
        Ok(block)
    }

    /// Bytes of memory it takes.
    pub fn memory_bytes(&self) -> usize {
        self.raw.len() + self.heads.as_ref().map_or(0, KeyHeads::memory_bytes) + size_of::<Self>()
    }

    /// The bytes at `range`, which one of its entries told.
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.raw[range]
    }

    /// How many restart points it has: in an index block, how many entries.
    pub fn restarts(&self) -> usize {
        self.restarts
    }

    /// The positions of its restart points.
    pub fn restart_positions(&self) -> impl Iterator<Item = usize> {
        (0..self.restarts).map(|index| self.restart(index))
    }

    fn entries(&self) -> &[u8] {
        &self.raw[..self.entries_len]
    }

    fn restart(&self, index: usize) -> usize {
        u32_at(&self.raw, self.entries_len + 4 * index) as usize
    }

    #[inline]
    fn entry(&self, at: usize) -> Decoded<EntryHeader> {
        decode_entry(self.entries(), at).ok_or(Damage { position: at, expected: "an entry inside its block" })
    }

    /// The entry at a restart point: its user key is whole.
    fn restart_entry(&self, index: usize) -> Decoded<EntryHeader> {
        let at = self.restart(index);
        let entry = self.entry(at)?;
        if entry.shared > 0 {
            return Err(Damage { position: at, expected: "a whole key at a restart point" });
        }
        Ok(entry)
    }

    /// The first restart point at or after `target`; their number if all lie before it.
    pub fn lower_bound_restart(&self, order: &KeyOrder, target: Target<'_>) -> Decoded<usize> {
        let range = self.heads.as_ref().map_or(0..self.restarts, |heads| heads.range(target.user_key));
        self.lower_bound_restart_within(order, target, range)
    }

    /// The same, if it is known that all restart points before `from` lie before `target`. Costs the less the nearer it is.
    pub fn lower_bound_restart_from(
        &self,
        order: &KeyOrder,
        target: Target<'_>,
        from: usize,
    ) -> Decoded<usize> {
        if from == 0 || self.heads.is_some() {
            return self.lower_bound_restart(order, target);
        }
        debug_assert!(self.restart_is_before(order, target, from - 1).unwrap_or(true), "targets ascend");
        let (mut low, mut step) = (from, 1);
        while low < self.restarts {
            // Looks 1, 2, 4, ... slots further on each time.
            let probe = (low + step - 1).min(self.restarts - 1);
            if !self.restart_is_before(order, target, probe)? {
                return self.lower_bound_restart_within(order, target, low..probe);
            }
            (low, step) = (probe + 1, step * 2);
        }
        Ok(low)
    }

    /// The first restart point of `range` at or after `target`; the range's end if all lie before it.
    fn lower_bound_restart_within(
        &self,
        order: &KeyOrder,
        target: Target<'_>,
        range: Range<usize>,
    ) -> Decoded<usize> {
        let Range { start: mut low, end: mut high } = range;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.restart_is_before(order, target, middle)? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    fn restart_is_before(&self, order: &KeyOrder, target: Target<'_>, index: usize) -> Decoded<bool> {
        let entry = self.restart_entry(index)?;
        let user_key = &self.raw[entry.suffix..entry.payload];
        Ok(target.order_of(order, user_key, entry.trailer).is_lt())
    }

    /// Entry `slot` of an index block: its separator, and where it leads.
    pub fn index_entry(&self, slot: usize) -> Decoded<(Target<'_>, IndexEntry)> {
        let header = self.restart_entry(slot)?;
        let end = if slot + 1 < self.restarts { self.restart(slot + 1) } else { self.entries_len };
        let entry = IndexEntry::decode(&self.raw[header.payload..header.end]).filter(|_| header.end == end);
        let entry = entry.ok_or(Damage { position: header.payload, expected: "a block handle" })?;
        let user_key = &self.raw[header.suffix..header.payload];
        Ok((Target { user_key, trailer: header.trailer }, entry))
    }

    /// The bucket of keys of this hash, if the block has a hash index.
    #[inline]
    fn bucket(&self, hash: u64) -> Option<&u8> {
        let first = self.entries_len + 4 * self.restarts;
        (self.buckets > 0).then(|| &self.raw[first + bucket_of(hash, self.buckets)])
    }

    /// Has the processor fetch what a search for a key of this hash looks at first.
    #[inline]
    pub fn prefetch_bucket(&self, hash: u64) {
        if let Some(bucket) = self.bucket(hash) {
            prefetch(&raw const *bucket);
            prefetch(&raw const self.raw[self.entries_len]);
        }
    }

    /// Has the processor fetch what it looks at then.
    #[inline]
    pub fn prefetch_entry(&self, hash: u64) {
        if let Some(&restart) = self.bucket(hash)
            && usize::from(restart) < self.restarts
        {
            // Half of sixteen entries are on about three lines.
            let lines = (self.restart(restart.into())..self.entries_len).step_by(64);
            lines.take(3).for_each(|at| prefetch(&raw const self.raw[at]));
        }
    }

    /// The first entry at or after `target`, if it has the same user key. `hash` is that of the user key, for a block with a hash
    /// index; `None` where keys that are equal may have different ones.
    pub fn find(&self, order: &KeyOrder, target: Target<'_>, hash: Option<u64>) -> Decoded<Option<Found>> {
        let (start, hinted) = if let Some(&bucket) = hash.and_then(|hash| self.bucket(hash)) {
            match bucket {
                BUCKET_EMPTY => return Ok(None),
                BUCKET_COLLISION => (self.interval_before(order, target)?, false),
                restart if usize::from(restart) < self.restarts => (usize::from(restart), true),
                _ => {
                    return Err(Damage {
                        position: self.entries_len,
                        expected: "buckets that name restart points",
                    });
                }
            }
        } else {
            (self.interval_before(order, target)?, false)
        };
        if order.is_bytewise() {
            self.find_bytewise(target, start, hinted)
        } else {
            self.find_by(order, target, start)
        }
    }

    /// The restart interval in which the first entry at or after `target` lies, unless it opens the next one.
    fn interval_before(&self, order: &KeyOrder, target: Target<'_>) -> Decoded<usize> {
        Ok(self.lower_bound_restart(order, target)?.saturating_sub(1))
    }

    fn find_by(&self, order: &KeyOrder, target: Target<'_>, start: usize) -> Decoded<Option<Found>> {
        let mut position = BlockPosition::default();
        position.seek_from(self, order, target, start)?;
        let found = position.valid() && order.compare_user(position.user_key(), target.user_key).is_eq();
        Ok(found.then(|| Found { trailer: position.trailer, payload: position.payload.clone() }))
    }

    /// Scans for `target` without putting keys together. `matched` counts the bytes that the present entry and
    /// the target have in common; an entry that shares more than that with its predecessor is still before the
    /// target, one that shares less is behind it. With `hinted`, a key that is there begins in this interval.
    fn find_bytewise(&self, target: Target<'_>, start: usize, hinted: bool) -> Decoded<Option<Found>> {
        let mut at = self.restart(start);
        let interval_end =
            if hinted && start + 1 < self.restarts { self.restart(start + 1) } else { self.entries_len };
        let mut matched = 0;
        let mut same_user_key = false;
        while at < self.entries_len {
            if at >= interval_end && !same_user_key {
                return Ok(None);
            }
            let entry = self.entry(at)?;
            if entry.shared <= matched {
                let suffix = &self.raw[entry.suffix..entry.payload];
                let rest = &target.user_key[entry.shared..];
                let common = shared_bytes(suffix, rest);
                matched = entry.shared + common;
                same_user_key = common == suffix.len() && common == rest.len();
                if same_user_key {
                    if entry.trailer <= target.trailer {
                        return Ok(Some(Found { trailer: entry.trailer, payload: entry.payload..entry.end }));
                    }
                } else if common == rest.len() || (common < suffix.len() && suffix[common] > rest[common]) {
                    return Ok(None);
                }
            } else {
                same_user_key = false;
            }
            at = entry.end;
        }
        Ok(None)
    }
}

/// A place in a block. Every call must be given the same block until a seek.
#[derive(Debug, Default)]
pub struct BlockPosition {
    /// The present entry's internal key.
    key: Vec<u8>,
    trailer: u64,
    payload: Range<usize>,
    start: usize,
    end: usize,
    valid: bool,
    /// The entries before this one that a step back has passed over, so that the next ones need not decode them again.
    passed: Vec<Passed>,
    /// Their internal keys, one after the other.
    passed_keys: Vec<u8>,
}

/// An entry that a step back has passed over.
#[derive(Debug)]
struct Passed {
    key_start: usize,
    trailer: u64,
    payload: Range<usize>,
    start: usize,
}

impl BlockPosition {
    /// Whether it stands on an entry.
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// Stands on no entry any more.
    pub fn invalidate(&mut self) {
        self.valid = false;
    }

    /// The entry's internal key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The entry's user key.
    pub fn user_key(&self) -> &[u8] {
        &self.key[..self.key.len() - TRAILER_BYTES]
    }

    /// The trailer of the entry's internal key.
    pub fn trailer(&self) -> u64 {
        self.trailer
    }

    /// Where the entry's payload lies in the block.
    pub fn payload(&self) -> Range<usize> {
        self.payload.clone()
    }

    /// Where the entry begins in the block.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Goes to the first entry.
    pub fn seek_to_first(&mut self, block: &Block) -> Decoded<()> {
        self.seek_to_restart(block, 0)
    }

    /// Goes to the last entry.
    pub fn seek_to_last(&mut self, block: &Block) -> Decoded<()> {
        self.seek_to_restart(block, block.restarts - 1)?;
        while self.end < block.entries_len {
            self.next(block)?;
        }
        Ok(())
    }

    /// Goes to the first entry at or after `target`; behind the last entry if there is none.
    pub fn seek(&mut self, block: &Block, order: &KeyOrder, target: Target<'_>) -> Decoded<()> {
        self.seek_from(block, order, target, block.interval_before(order, target)?)
    }

    fn seek_from(
        &mut self,
        block: &Block,
        order: &KeyOrder,
        target: Target<'_>,
        restart: usize,
    ) -> Decoded<()> {
        self.seek_to_restart(block, restart)?;
        while self.valid && target.order_of(order, self.user_key(), self.trailer).is_lt() {
            self.next(block)?;
        }
        Ok(())
    }

    /// Goes to the next entry; behind the last one it is not valid.
    #[inline]
    pub fn next(&mut self, block: &Block) -> Decoded<()> {
        if self.end == block.entries_len {
            self.valid = false;
            return Ok(());
        }
        self.step(block)
    }

    /// Goes to the previous entry; in front of the first one it is not valid.
    pub fn prev(&mut self, block: &Block) -> Decoded<()> {
        let behind = self.start;
        if behind == 0 {
            self.valid = false;
            return Ok(());
        }
        // An entry ends where its payload does.
        match self.passed.pop() {
            Some(before) if before.payload.end == behind => {
                self.go_back(before);
                return Ok(());
            }
            _ => self.forget_passed(),
        }
        let (mut low, mut high) = (0, block.restarts);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if block.restart(middle) < behind { low = middle } else { high = middle }
        }
        self.seek_to_restart(block, low)?;
        while self.end < behind {
            self.pass();
            self.step(block)?;
        }
        if self.end != behind {
            self.valid = false;
            return Err(Damage { position: behind, expected: "an entry where the one before it ends" });
        }
        Ok(())
    }

    /// Keeps the present entry for a later step back.
    fn pass(&mut self) {
        let key_start = self.passed_keys.len();
        self.passed_keys.extend_from_slice(&self.key);
        let (payload, start) = (self.payload.clone(), self.start);
        self.passed.push(Passed { key_start, trailer: self.trailer, payload, start });
    }

    fn go_back(&mut self, before: Passed) {
        self.key.clear();
        self.key.extend_from_slice(&self.passed_keys[before.key_start..]);
        self.passed_keys.truncate(before.key_start);
        self.trailer = before.trailer;
        self.end = before.payload.end;
        self.payload = before.payload;
        self.start = before.start;
        self.valid = true;
    }

    fn forget_passed(&mut self) {
        self.passed.clear();
        self.passed_keys.clear();
    }

    fn seek_to_restart(&mut self, block: &Block, index: usize) -> Decoded<()> {
        self.forget_passed();
        self.key.clear();
        self.end = block.restart(index);
        self.step(block)
    }

    /// Decodes the entry at `end`, which is inside the block.
    #[inline]
    fn step(&mut self, block: &Block) -> Decoded<()> {
        self.valid = false;
        let at = self.end;
        let entry = block.entry(at)?;
        if entry.shared > self.key.len().saturating_sub(TRAILER_BYTES) {
            return Err(Damage { position: at, expected: "no more shared bytes than the previous key has" });
        }
        self.key.truncate(entry.shared);
        self.key.extend_from_slice(&block.raw[entry.suffix..entry.payload]);
        self.key.extend_from_slice(&entry.trailer.to_le_bytes());
        self.trailer = entry.trailer;
        self.payload = entry.payload..entry.end;
        self.start = at;
        self.end = entry.end;
        self.valid = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::block_builder::BlockBuilder;
    use super::*;
    use crate::base::comparator::Bytewise;
    use crate::base::ids::Sequence;
    use crate::base::keys::hash_user_key;
    use crate::base::keys::{EntryKind, trailer};
    use crate::base::sync::Arc;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn order() -> KeyOrder {
        KeyOrder::new(Arc::new(Bytewise))
    }

    type Model = BTreeMap<(Vec<u8>, std::cmp::Reverse<u64>), Vec<u8>>;

    fn build(model: &Model, hashed: bool, interval: usize, more: usize) -> Block {
        let mut builder = BlockBuilder::new(interval);
        let mut last = None;
        for ((user_key, sequence), payload) in model {
            let hash = (hashed && last != Some(user_key)).then(|| hash_user_key(user_key));
            builder.add(user_key, trailer(Sequence(sequence.0), EntryKind::Inline), payload, hash);
            last = Some(user_key);
        }
        Block::new(builder.finish(more).to_vec()).expect("well-formed")
    }

    fn model() -> impl Strategy<Value = Model> {
        let key = proptest::collection::vec(0_u8..4, 0..6);
        let entry =
            ((key, (0_u64..5).prop_map(std::cmp::Reverse)), proptest::collection::vec(any::<u8>(), 0..4));
        proptest::collection::btree_map(
            entry.clone().prop_map(|(key, _)| key),
            entry.prop_map(|(_, value)| value),
            1..80,
        )
    }

    proptest! {
        #[test]
        fn lookups_and_walks_agree_with_a_map(
            model in model(), hashed: bool, index: bool, interval in 1_usize..20, more in 0_usize..600
        ) {
            let order = order();
            let block = build(&model, hashed, interval, more);
            let block = if index { Block::new_index(block.raw, &order).expect("well-formed") } else { block };
            for user_key in model.keys().map(|(key, _)| key.clone()).chain([vec![], vec![9], vec![1, 9]]) {
                for sequence in 0..6 {
                    let target = Target { user_key: &user_key, trailer: trailer(Sequence(sequence), EntryKind::SEEK) };
                    let expected = model.range((user_key.clone(), std::cmp::Reverse(sequence))..).next();
                    let found = block.find(&order, target, Some(hash_user_key(&user_key))).expect("whole");
                    let same_key = expected.filter(|((key, _), _)| *key == user_key);
                    prop_assert_eq!(found.map(|found| block.bytes(found.payload)), same_key.map(|(_, value)| &value[..]));
                    let bound = block.lower_bound_restart(&order, target).expect("whole");
                    for from in 0..=bound {
                        let same = block.lower_bound_restart_from(&order, target, from).expect("whole");
                        prop_assert_eq!(same, bound);
                    }
                    let mut position = BlockPosition::default();
                    position.seek(&block, &order, target).expect("whole");
                    prop_assert_eq!(position.valid(), expected.is_some());
                    if let Some(((key, sequence), _)) = expected {
                        prop_assert_eq!(position.user_key(), &key[..]);
                        prop_assert_eq!(position.trailer() >> 8, sequence.0);
                    }
                }
            }
            let mut position = BlockPosition::default();
            position.seek_to_last(&block).expect("whole");
            for (key, value) in model.iter().rev() {
                prop_assert_eq!((position.user_key(), block.bytes(position.payload())), (&key.0[..], &value[..]));
                position.prev(&block).expect("whole");
            }
            prop_assert!(!position.valid());
        }

        #[test]
        fn no_bytes_make_a_block_panic(mut bytes: Vec<u8>, buckets in 0_u16..4, restarts in 0_u32..4) {
            bytes.extend_from_slice(&buckets.to_le_bytes());
            bytes.extend_from_slice(&restarts.to_le_bytes());
            let _index = Block::new_index(bytes.clone(), &order());
            let Ok(block) = Block::new(bytes) else { return Ok(()) };
            let target = Target { user_key: b"k", trailer: 2 };
            let _found = block.find(&order(), target, Some(7));
            let _slot = block.index_entry(0);
            let _asked_for = (block.prefetch_bucket(7), block.prefetch_entry(7));
            let mut position = BlockPosition::default();
            if position.seek_to_first(&block).is_ok() {
                while position.valid() && position.next(&block).is_ok() {}
            }
            if position.seek_to_last(&block).is_ok() {
                while position.valid() && position.prev(&block).is_ok() {}
            }
        }
    }
}
