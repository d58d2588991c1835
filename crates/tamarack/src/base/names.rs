//! The names of the files in a cube's directory: one function to make each, one to read any.

use std::fmt;
use std::path::{Path, PathBuf};

use super::ids::{SegmentId, TableId};

/// The name of the file that names the manifest in force.
pub const CURRENT: &str = "CURRENT";

/// Ending of files that are being written and not yet part of the cube; they are deleted when it is opened.
pub const TEMPORARY_SUFFIX: &str = ".tmp";

/// A file of a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileName {
    /// A segment of the value log, or a cold segment.
    Segment(SegmentId),
    /// A table of the index.
    Table(TableId),
    /// A manifest.
    Manifest(u64),
    /// The file that names the manifest in force.
    Current,
    /// Left over from a write of one of the others that did not finish.
    Temporary,
}

impl FileName {
    /// Tables and manifests have numbers before this one.
    pub const NUMBERS_END: u64 = u64::MAX;

    /// What `name` means in a cube's directory; `None` if it is no name of ours. Only the exact spelling that
    /// [`Display`](fmt::Display) gives is accepted, so that two names never mean the same file. The last number of a kind is never
    /// given to a file, for none could come after it.
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(whole) = name.strip_suffix(TEMPORARY_SUFFIX) {
            return Self::parse(whole).filter(|&whole| whole != Self::Temporary).map(|_| Self::Temporary);
        }
        let parsed = if name == CURRENT {
            Self::Current
        } else if let Some(number) = name.strip_prefix("MANIFEST-") {
            Self::Manifest(number.parse().ok().filter(|&number| number < Self::NUMBERS_END)?)
        } else if let Some(number) = name.strip_suffix(".vlog") {
            Self::Segment(Some(SegmentId(number.parse().ok()?)).filter(|&id| id < SegmentId::LOG_END)?)
        } else if let Some(number) = name.strip_suffix(".cold") {
            let number: u32 = number.parse().ok()?;
            let id = number.checked_add(SegmentId::COLD_FIRST.0).filter(|&id| id < u32::MAX)?;
            Self::Segment(SegmentId(id))
        } else {
            let number: u64 = name.strip_suffix(".table")?.parse().ok()?;
            Self::Table(TableId(Some(number).filter(|&number| number < Self::NUMBERS_END)?))
        };
        (parsed.to_string() == name).then_some(parsed)
    }

    /// Whether `files` more of its kind can have higher numbers than this one.
    pub fn has_room_behind(self, files: u32) -> bool {
        let left = match self {
            Self::Segment(id) if id.is_cold() => u64::from(u32::MAX - id.0),
            Self::Segment(id) => u64::from(SegmentId::LOG_END.0 - id.0),
            Self::Table(TableId(number)) | Self::Manifest(number) => Self::NUMBERS_END - number,
            Self::Current | Self::Temporary => return true,
        };
        left > u64::from(files)
    }

    /// The file's path in `directory`. [`Temporary`](Self::Temporary) names a kind of file, not one of them.
    pub fn path(self, directory: &Path) -> PathBuf {
        debug_assert_ne!(self, Self::Temporary, "a temporary file is named after the file it becomes");
        directory.join(self.to_string())
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Segment(id) if id.is_cold() => write!(f, "{:06}.cold", id.0 - SegmentId::COLD_FIRST.0),
            Self::Segment(id) => write!(f, "{:06}.vlog", id.0),
            Self::Table(id) => write!(f, "{:06}.table", id.0),
            Self::Manifest(number) => write!(f, "MANIFEST-{number:06}"),
            Self::Current => f.write_str(CURRENT),
            Self::Temporary => write!(f, "*{TEMPORARY_SUFFIX}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for (name, text) in [
            (FileName::Segment(SegmentId(7)), "000007.vlog"),
            (FileName::Segment(SegmentId((1 << 31) - 2)), "2147483646.vlog"),
            (FileName::Segment(SegmentId(1 << 31)), "000000.cold"),
            (FileName::Segment(SegmentId(u32::MAX - 1)), "2147483646.cold"),
            (FileName::Table(TableId(12_345_678)), "12345678.table"),
            (FileName::Manifest(1), "MANIFEST-000001"),
            (FileName::Current, "CURRENT"),
        ] {
            assert_eq!(name.to_string(), text);
            assert_eq!(FileName::parse(text), Some(name));
        }
        for text in ["CURRENT.tmp", "000007.vlog.tmp", "000007.table.tmp", "MANIFEST-000001.tmp"] {
            assert_eq!(FileName::parse(text), Some(FileName::Temporary), "{text}");
        }
    }

    #[test]
    fn room_ends_with_the_numbers_of_a_kind() {
        for (text, room) in [
            ("2147483640.vlog", 6),
            ("2147483640.cold", 6),
            ("18446744073709551610.table", 4),
            ("MANIFEST-18446744073709551610", 4),
        ] {
            let name = FileName::parse(text).unwrap();
            assert!(name.has_room_behind(room), "{text}");
            assert!(!name.has_room_behind(room + 1), "{text}");
        }
        assert!(FileName::Current.has_room_behind(u32::MAX));
    }

    #[test]
    fn other_spellings_are_not_ours() {
        for text in [
            "7.vlog",
            "+00007.vlog",
            "000007.sst",
            "MANIFEST-",
            "MANIFEST-1",
            "2147483647.vlog",
            "2147483648.vlog",
            "2147483647.cold",
            "2147483648.cold",
            "18446744073709551615.table",
            "MANIFEST-18446744073709551615",
            "",
            "LOCK",
            ".tmp",
            "notes.tmp",
            "7.vlog.tmp",
            "CURRENT.tmp.tmp",
        ] {
            assert_eq!(FileName::parse(text), None, "{text}");
        }
    }
}
