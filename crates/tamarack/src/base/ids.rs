//! Newtypes for every number that names something, so that no two kinds of number can be mixed up.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// Names a cube: drawn at random when its directory is created, never reused, part of every checksum seed.
    CubeId(u64)
}
id! {
    /// Names a segment. Ids of the log's segments grow in log order; ids from [`SegmentId::COLD_FIRST`] on belong
    /// to cold segments, which garbage collection writes, and grow in the order of their creation.
    SegmentId(u32)
}
id! {
    /// Names a table. Ids grow in creation order and are never reused.
    TableId(u64)
}
id! {
    /// The place of one operation in the total order of commits. 0 means "before the first".
    Sequence(u64)
}

impl SegmentId {
    /// The first id of a cold segment.
    pub const COLD_FIRST: Self = Self(1 << 31);

    /// The log's segments have ids before this one.
    pub const LOG_END: Self = Self(Self::COLD_FIRST.0 - 1);

    /// Whether garbage collection wrote it; otherwise it is a segment of the log.
    pub fn is_cold(self) -> bool {
        self >= Self::COLD_FIRST
    }

    /// Whether nothing new is written to it while `tail` is the last segment of the log.
    pub fn is_done(self, tail: Self) -> bool {
        self.is_cold() || self < tail
    }
}

impl Sequence {
    /// The largest sequence number: an internal key keeps 8 of 64 bits for the kind.
    pub const MAX: Self = Self((1 << 56) - 1);
}

/// A place in the log: everything before `offset` in `segment`, and every segment with a smaller id, lies
/// before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogPosition {
    /// The segment.
    pub segment: SegmentId,
    /// Byte offset in the segment's file.
    pub offset: u64,
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.segment, self.offset)
    }
}
