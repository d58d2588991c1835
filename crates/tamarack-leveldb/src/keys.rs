//! Internal keys: a user's key and eight bytes with the sequence number of an operation and what it was.

/// The bytes behind a user's key.
pub const TRAILER: usize = 8;

/// Highest sequence number: they have 56 bits.
pub const SEQUENCE_MAX: u64 = (1 << 56) - 1;

/// What an operation was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The key was removed.
    Deletion,
    /// The key was given a value.
    Value,
}

/// Sequence number and kind in one number, which orders them: the larger, the newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trailer(u64);

impl Trailer {
    /// The trailer that is stored as `number`, or `None` if there is no such kind of operation.
    pub fn from_number(number: u64) -> Option<Self> {
        matches!(number & 0xff, 0 | 1).then_some(Self(number))
    }

    /// The trailer of an operation.
    pub fn new(sequence: u64, kind: Kind) -> Self {
        Self(sequence << 8 | u64::from(kind == Kind::Value))
    }

    /// The number that is stored.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The sequence number.
    pub fn sequence(self) -> u64 {
        self.0 >> 8
    }

    /// The kind.
    pub fn kind(self) -> Kind {
        if self.0 & 1 == 1 { Kind::Value } else { Kind::Deletion }
    }
}

/// Takes an internal key apart, or `None` if it is none.
pub fn split(internal: &[u8]) -> Option<(&[u8], Trailer)> {
    let (user, trailer) = internal.split_last_chunk::<TRAILER>()?;
    Some((user, Trailer::from_number(u64::from_le_bytes(*trailer))?))
}

/// The user's part of what is an internal key or longer than one.
pub fn user_key(internal: &[u8]) -> &[u8] {
    &internal[..internal.len().saturating_sub(TRAILER)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_apart() {
        let (user, trailer) = split(b"key\x01\x07\0\0\0\0\0\0").expect("an internal key");
        assert_eq!((user, trailer.sequence(), trailer.kind()), (&b"key"[..], 7, Kind::Value));
        assert_eq!(trailer, Trailer::new(7, Kind::Value));
        assert!(trailer > Trailer::new(7, Kind::Deletion) && trailer < Trailer::new(8, Kind::Deletion));
        assert_eq!(split(b"key\x02\x07\0\0\0\0\0\0"), None, "LevelDB has no such kind");
        assert_eq!(split(b"\x07\0\0\0\0\0\0"), None);
    }
}
