//! Value pointers: where a value lies in the log.

use super::ids::SegmentId;

/// Where a value lies: the logical segment, the byte offset of its record there, and the length of its stored
/// form. With the key, which the reader of a pointer always has, that is one exact read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValuePointer {
    /// The logical segment.
    pub segment: SegmentId,
    /// Byte offset of the record (its header, not the value) in the logical segment.
    pub offset: u32,
    /// Length of the value as stored (compressed, if the record's codec says so), in bytes.
    pub stored_len: u32,
}

/// Bytes of a [`ValuePointer`] in memory-resident entries.
pub const POINTER_BYTES: usize = 12;

impl ValuePointer {
    /// The fixed form used by memtables.
    pub fn to_bytes(self) -> [u8; POINTER_BYTES] {
        let mut bytes = [0; POINTER_BYTES];
        bytes[..4].copy_from_slice(&self.segment.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..].copy_from_slice(&self.stored_len.to_le_bytes());
        bytes
    }

    /// Reads [`Self::to_bytes`]; `None` when `bytes` has another length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; POINTER_BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Some(Self { segment: SegmentId(word(0)), offset: word(4), stored_len: word(8) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_form_round_trips() {
        let pointer = ValuePointer { segment: SegmentId(7), offset: 4096, stored_len: u32::MAX };
        assert_eq!(ValuePointer::from_bytes(&pointer.to_bytes()), Some(pointer));
        assert_eq!(ValuePointer::from_bytes(&[0; 11]), None);
    }
}
