//! Builds the raw bytes of a sorted block: prefix-compressed entries, restart points, and for data blocks a hash
//! index that leads a point lookup straight to its restart interval. The table builder and the index builder own
//! one each; whether the keys ascend is their business.

use super::format::{self, BLOCK_TAIL_BYTES, BUCKET_COLLISION, BUCKET_EMPTY, HASHED_RESTARTS_MAX};

/// A sorted block under construction.
#[derive(Debug)]
pub struct BlockBuilder {
    restart_interval: usize,
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    entries_since_restart: usize,
    entries: usize,
    last_user_key: Vec<u8>,
    /// Hash and restart interval of the first entry of every user key; empty if the block has no hash index.
    hashed: Vec<(u64, usize)>,
}

impl BlockBuilder {
    /// An empty block with a restart point every `restart_interval` entries.
    pub fn new(restart_interval: usize) -> Self {
        assert!(restart_interval > 0, "entries between restart points");
        Self {
            restart_interval,
            bytes: Vec::new(),
            restarts: Vec::new(),
            entries_since_restart: 0,
            entries: 0,
            last_user_key: Vec::new(),
            hashed: Vec::new(),
        }
    }

    /// Adds an entry behind all others. `hash` is that of the user key, if it is the first entry of the block
    /// with this user key and the block shall have a hash index.
    pub fn add(&mut self, user_key: &[u8], trailer: u64, payload: &[u8], hash: Option<u64>) {
        let shared = self.shared_with_last(user_key);
        if self.restart_is_due() {
            self.restarts.push(u32::try_from(self.bytes.len()).expect("blocks are far below 4 GiB"));
            self.entries_since_restart = 0;
        }
        if let Some(hash) = hash {
            self.hashed.push((hash, self.restarts.len() - 1));
        }
        format::put_entry(&mut self.bytes, shared, &user_key[shared..], trailer, payload);
        self.last_user_key.truncate(shared);
        self.last_user_key.extend_from_slice(&user_key[shared..]);
        self.entries_since_restart += 1;
        self.entries += 1;
    }

    /// Whether it holds no entry.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Raw bytes of the block if it were finished now.
    pub fn raw_bytes(&self) -> usize {
        self.bytes.len() + self.restarts.len() * 4 + bucket_count(self.hashed.len()) + BLOCK_TAIL_BYTES
    }

    /// The same with one more entry, which has a new user key if `is_hashed`.
    pub fn raw_bytes_with(&self, user_key: &[u8], trailer: u64, payload: &[u8], is_hashed: bool) -> usize {
        let shared = self.shared_with_last(user_key);
        let entry = format::entry_len(shared, user_key.len() - shared, trailer, payload.len());
        let restart = if self.restart_is_due() { 4 } else { 0 };
        // With too many keys there are none any more.
        let buckets = bucket_count(self.hashed.len() + usize::from(is_hashed));
        self.raw_bytes() - bucket_count(self.hashed.len()) + buckets + entry + restart
    }

    fn restart_is_due(&self) -> bool {
        self.entries == 0 || self.entries_since_restart == self.restart_interval
    }

    /// How many bytes of `user_key` the next entry would leave out.
    fn shared_with_last(&self, user_key: &[u8]) -> usize {
        if self.restart_is_due() { 0 } else { shared_bytes(&self.last_user_key, user_key) }
    }

    /// The raw block, with so many bytes more of a hash index than it needs, if it has one. The builder must be
    /// [cleared](Self::clear) before it is used again.
    pub fn finish(&mut self, more: usize) -> &[u8] {
        assert!(self.entries > 0, "blocks have entries");
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        let buckets =
            if self.restarts.len() <= HASHED_RESTARTS_MAX { bucket_count(self.hashed.len()) } else { 0 };
        let buckets = if buckets > 0 { (buckets + more).min(usize::from(u16::MAX)) } else { 0 };
        let first = self.bytes.len();
        self.bytes.resize(first + buckets, BUCKET_EMPTY);
        if buckets > 0 {
            for &(hash, restart) in &self.hashed {
                let bucket = &mut self.bytes[first + bucket_of(hash, buckets)];
                *bucket = match *bucket {
                    BUCKET_EMPTY => restart as u8,
                    same if usize::from(same) == restart => same,
                    _ => BUCKET_COLLISION,
                };
            }
        }
        self.bytes.extend_from_slice(&(buckets as u16).to_le_bytes());
        self.bytes.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        &self.bytes
    }

    /// Empties it and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.restarts.clear();
        self.hashed.clear();
        self.last_user_key.clear();
        self.entries_since_restart = 0;
        self.entries = 0;
    }
}

/// How many bytes two keys have in common at their front.
pub fn shared_bytes(left: &[u8], right: &[u8]) -> usize {
    let len = left.len().min(right.len());
    let mut at = 0;
    while let (Some(a), Some(b)) = (left[at..len].first_chunk::<8>(), right[at..len].first_chunk::<8>()) {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if difference != 0 {
            return at + (difference.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + left[at..len].iter().zip(&right[at..len]).take_while(|(a, b)| a == b).count()
}

/// Buckets for `keys` user keys: three quarters of them are used. 0 when they do not fit the format.
fn bucket_count(keys: usize) -> usize {
    let buckets = keys + keys.div_ceil(3);
    if buckets > usize::from(u16::MAX) { 0 } else { buckets }
}

/// The bucket of a hash. It takes other bits than the filter does.
pub fn bucket_of(hash: u64, buckets: usize) -> usize {
    ((u64::from((hash >> 16) as u32) * buckets as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shared_bytes_are_counted_right(prefix: Vec<u8>, a: Vec<u8>, b: Vec<u8>) {
            let left = [&prefix[..], &a[..]].concat();
            let right = [&prefix[..], &b[..]].concat();
            let slow = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(shared_bytes(&left, &right), slow);
        }
    }

    #[test]
    fn raw_bytes_are_known_before_the_block_is_finished() {
        let mut block = BlockBuilder::new(4);
        for number in 0..100_u32 {
            let key = format!("{number:08}").into_bytes();
            let (trailer, is_new) = (u64::from(number) << 20, number % 5 > 0);
            let predicted = block.raw_bytes_with(&key, trailer, b"payload", is_new);
            block.add(&key, trailer, b"payload", is_new.then(|| crate::base::keys::hash_user_key(&key)));
            assert_eq!(block.raw_bytes(), predicted);
        }
        let predicted = block.raw_bytes() + 77;
        assert_eq!(block.finish(77).len(), predicted);
    }

    /// More keys than there can be buckets for.
    #[test]
    fn a_block_of_very_many_keys_has_no_hash_index() {
        let mut block = BlockBuilder::new(16);
        let keys = usize::from(u16::MAX) / 4 * 3 + 10;
        for number in 0..keys {
            let key = (number as u64).to_be_bytes();
            let predicted = block.raw_bytes_with(&key, 1 << 20, b"", true);
            block.add(&key, 1 << 20, b"", Some(crate::base::keys::hash_user_key(&key)));
            assert_eq!(block.raw_bytes(), predicted);
        }
        assert_eq!(bucket_count(keys), 0);
        let predicted = block.raw_bytes();
        assert_eq!(block.finish(0).len(), predicted);
    }
}
