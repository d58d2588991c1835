//! The beginnings of an index block's keys, side by side: a search in them touches a few cache lines, where one among the
//! entries themselves touches two for each step.

use std::ops::Range;

use super::block_builder::shared_bytes;

/// The first eight bytes of each key behind what all of them begin with, as numbers. Only for keys in bytewise order.
#[derive(Debug)]
pub struct KeyHeads {
    /// What all keys begin with.
    stem: Vec<u8>,
    heads: Vec<u64>,
}

impl KeyHeads {
    /// Those of `keys`, which ascend.
    pub fn new(keys: &[&[u8]]) -> Self {
        let first = keys.first().copied().unwrap_or_default();
        let shared = keys.iter().map(|key| shared_bytes(first, key)).min().unwrap_or_default();
        Self { stem: first[..shared].to_vec(), heads: keys.iter().map(|key| head(&key[shared..])).collect() }
    }

    /// Bytes of memory it takes.
    pub fn memory_bytes(&self) -> usize {
        self.stem.len() + size_of_val(&self.heads[..])
    }

    /// Where `user_key` belongs: keys before the range are less, those behind it greater.
    pub fn range(&self, user_key: &[u8]) -> Range<usize> {
        let Some(rest) = user_key.strip_prefix(&self.stem[..]) else {
            let all_are_less = self.stem[..] < *user_key;
            let at = if all_are_less { self.heads.len() } else { 0 };
            return at..at;
        };
        let sought = head(rest);
        let start = self.heads.partition_point(|&head| head < sought);
        start..start + self.heads[start..].partition_point(|&head| head == sought)
    }
}

/// The first eight bytes, filled up with zeros: of two keys in order, the heads are in order or equal.
fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(8);
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_le_bytes(bytes).swap_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_range_has_every_key_that_may_be_the_one(
            stem in proptest::collection::vec(0_u8..3, 0..3),
            keys in proptest::collection::btree_set(proptest::collection::vec(0_u8..3, 0..12), 0..40),
            sought in proptest::collection::vec(0_u8..3, 0..14),
        ) {
            let keys: Vec<Vec<u8>> = keys.into_iter().map(|key| [&stem[..], &key].concat()).collect();
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            let heads = KeyHeads::new(&keys);
            for sought in [sought.clone(), [&stem[..], &sought].concat()] {
                let range = heads.range(&sought);
                prop_assert!(keys[..range.start].iter().all(|key| **key < sought[..]));
                prop_assert!(keys[range.end..].iter().all(|key| **key > sought[..]));
                let same = |key: &&[u8]| {
                    key.len() >= stem.len() && sought.starts_with(&stem) && head(&key[stem.len()..]) == head(&sought[stem.len()..])
                };
                prop_assert!(range.len() <= keys.iter().filter(|key| same(key)).count());
            }
        }
    }
}
