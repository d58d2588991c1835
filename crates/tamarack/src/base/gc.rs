//! What garbage collection says of its work. Plain data; `cube::collect` fills it in.

/// What garbage collection did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GcReport {
    /// Segments that were collected.
    pub segments: u64,
    /// Bytes of their files.
    pub bytes_before: u64,
    /// Bytes of the segments that keep what was alive.
    pub bytes_after: u64,
    /// Records copied.
    pub records: u64,
    /// Segments that were not copied: what is dead in them was given back by holes in their files.
    pub punched: u64,
    /// Bytes of those holes.
    pub hole_bytes: u64,
    /// Records that tables point to and that were left behind, because newer versions hide them.
    pub hidden: u64,
}

impl GcReport {
    /// Counts `other` as well.
    pub fn add(&mut self, other: &Self) {
        self.segments += other.segments;
        self.bytes_before += other.bytes_before;
        self.bytes_after += other.bytes_after;
        self.records += other.records;
        self.punched += other.punched;
        self.hole_bytes += other.hole_bytes;
        self.hidden += other.hidden;
    }
}
