//! A block of a table without its compression (`doc/table_format.md`): entries in order, each without what its key has in common
//! with the one before, and behind them the restart points, which a reader from front to back does not need.

use std::ops::Range;

use crate::coding::Input;

/// Walks over the entries of a block.
#[derive(Debug, Default)]
pub struct Block {
    bytes: Vec<u8>,
    /// Where the entries end.
    end: usize,
    position: usize,
    key: Vec<u8>,
    value: Range<usize>,
}

impl Block {
    /// Stands before the first entry of `bytes`.
    ///
    /// # Errors
    /// What was found in place of a block.
    pub fn new(bytes: Vec<u8>) -> Result<Self, String> {
        let Some((_, count)) = bytes.split_last_chunk::<4>() else {
            return Err(format!("a block of {} bytes", bytes.len()));
        };
        let count = u32::from_le_bytes(*count) as usize;
        let restarts = count.checked_add(1).and_then(|numbers| numbers.checked_mul(4));
        let end = restarts.and_then(|restarts| bytes.len().checked_sub(restarts));
        let end = end.ok_or_else(|| format!("{count} restart points in a block of {} bytes", bytes.len()))?;
        Ok(Self { bytes, end, position: 0, key: Vec::new(), value: 0..0 })
    }

    /// Goes to the next entry; `false` behind the last one.
    ///
    /// # Errors
    /// What was found in place of an entry. The block ends there.
    pub fn advance(&mut self) -> Result<bool, String> {
        if self.position == self.end {
            return Ok(false);
        }
        let at = self.position;
        let taken = self.take();
        if taken.is_none() {
            self.position = self.end;
            return Err(format!("an entry at byte {at} of the block that is not whole"));
        }
        Ok(true)
    }

    fn take(&mut self) -> Option<()> {
        let entries = &self.bytes[..self.end];
        let mut input = Input::new(&entries[self.position..]);
        let shared = input.varint32()? as usize;
        let unshared = input.varint32()? as usize;
        let value_len = input.varint32()? as usize;
        let suffix = input.bytes(unshared)?;
        if shared > self.key.len() {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(suffix);
        input.bytes(value_len)?;
        self.position = self.end - input.rest().len();
        self.value = self.position - value_len..self.position;
        Some(())
    }

    /// The entry's key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The entry's value.
    pub fn value(&self) -> &[u8] {
        &self.bytes[self.value.clone()]
    }

    /// The memory of the block, for the next one.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `apple` = 1, `applet` = 22, `b` = nothing; restart points at 0 and 18.
    const BLOCK: &[u8] = b"\x00\x05\x01apple1\x05\x01\x02t22\x00\x01\x00b\0\0\0\0\x0f\0\0\0\x02\0\0\0";

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    fn entries(bytes: &[u8]) -> Result<Pairs, String> {
        let mut block = Block::new(bytes.to_vec())?;
        let mut entries = Vec::new();
        while block.advance()? {
            entries.push((block.key().to_vec(), block.value().to_vec()));
        }
        Ok(entries)
    }

    #[test]
    fn keys_are_put_together() {
        let expected = [(&b"apple"[..], &b"1"[..]), (b"applet", b"22"), (b"b", b"")];
        let expected = expected.map(|(key, value)| (key.to_vec(), value.to_vec()));
        assert_eq!(entries(BLOCK), Ok(expected.to_vec()));
        assert_eq!(entries(b"\0\0\0\0\x01\0\0\0"), Ok(Vec::new()), "an empty block");
        assert_eq!(entries(b"\0\0\0\0"), Ok(Vec::new()), "one without restart points");
    }

    #[test]
    fn what_is_no_block_is_told() {
        for (bytes, found) in [
            (&b"\x01\0\0"[..], "a block of 3 bytes"),
            (b"\0\0\0\0\x02\0\0\0", "2 restart points"),
            (b"\0\0\0\0\xff\xff\xff\xff", "4294967295 restart points"),
            (b"\x01\x01\x00a\0\0\0\0\x01\0\0\0", "an entry at byte 0"),
            (b"\x00\x01\x09a\0\0\0\0\x01\0\0\0", "an entry at byte 0"),
            (b"\x00\x01\x00a\x00\0\0\0\0\x01\0\0\0", "an entry at byte 4"),
        ] {
            let error = entries(bytes).expect_err("no block");
            assert!(error.contains(found), "{error}");
        }
    }

    #[test]
    fn behind_a_bad_entry_the_block_ends() {
        let mut block = Block::new(b"\x01\x01\x00a\0\0\0\0\x01\0\0\0".to_vec()).expect("restart points");
        assert!(block.advance().is_err());
        assert_eq!(block.advance(), Ok(false));
    }
}
