//! A checksum over entries in their order, equal for equal entries wherever they are stored.

use tamarack::{Db, IterOptions};
use xxhash_rust::xxh3::Xxh3;

use crate::failure::Result;
use crate::progress::Progress;

/// What entries come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Content {
    /// Their number.
    pub entries: u64,
    /// Bytes of their keys.
    pub key_bytes: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
    /// XXH3 with 64 bits over, for each entry, the key's length in four bytes, the key, the value's in eight, and the value.
    pub checksum: u64,
}

/// Takes up entries one by one.
#[derive(Default)]
pub struct Digest {
    content: Content,
    hash: Xxh3,
}

impl Digest {
    /// Takes up the next entry.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.content.entries += 1;
        self.content.key_bytes += key.len() as u64;
        self.content.value_bytes += value.len() as u64;
        self.hash.update(&(key.len() as u32).to_le_bytes());
        self.hash.update(key);
        self.hash.update(&(value.len() as u64).to_le_bytes());
        self.hash.update(value);
    }

    /// What the entries so far come to.
    pub fn content(&self) -> Content {
        Content { checksum: self.hash.digest(), ..self.content }
    }

    /// What all entries of a database come to.
    pub fn of(db: &Db, progress: &Progress) -> Result<Content> {
        let mut digest = Self::default();
        let mut iter = db.iter(&IterOptions::default())?;
        iter.seek_to_first()?;
        let mut key = Vec::new();
        while iter.valid() {
            key.clear();
            key.extend_from_slice(iter.key());
            digest.add(&key, iter.value()?);
            progress.advance(1);
            iter.next()?;
        }
        Ok(digest.content())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(entries: &[(&str, &str)]) -> u64 {
        let mut digest = Digest::default();
        entries.iter().for_each(|(key, value)| digest.add(key.as_bytes(), value.as_bytes()));
        digest.content().checksum
    }

    #[test]
    fn where_keys_end_and_their_order_matter() {
        let all = [
            checksum(&[]),
            checksum(&[("", "")]),
            checksum(&[("ab", "c"), ("d", "")]),
            checksum(&[("a", "bc"), ("d", "")]),
            checksum(&[("d", ""), ("ab", "c")]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{at}");
        }
        assert_eq!(all[2], checksum(&[("ab", "c"), ("d", "")]));
    }
}
