//! The names of files in a cube's directory. Names are made of numbers only, never of anything a user gave.

use std::path::{Path, PathBuf};

use super::ids::{SegmentId, TableId};

/// A file that belongs to a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileName {
    /// A segment of the value log, `NNNNNN.vlog`.
    Segment(SegmentId),
    /// A table of the index, `NNNNNN.table`.
    Table(TableId),
    /// A manifest, `MANIFEST-NNNNNN`.
    Manifest(u64),
    /// The name of the manifest in force, `CURRENT`.
    Current,
    /// A file that was being made when the process ended, `*.tmp`.
    Temporary,
}

impl FileName {
    /// The file that `name` names, if it is one of ours.
    pub fn parse(name: &str) -> Option<Self> {
        if name == "CURRENT" {
            return Some(Self::Current);
        }
        if name.ends_with(".tmp") {
            return Some(Self::Temporary);
        }
        let number = |digits: &str| -> Option<u64> {
            let plain = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten()
        };
        let parsed = if let Some(digits) = name.strip_prefix("MANIFEST-") {
            Self::Manifest(number(digits)?)
        } else if let Some(digits) = name.strip_suffix(".vlog") {
            Self::Segment(SegmentId(u32::try_from(number(digits)?).ok()?))
        } else {
            Self::Table(TableId(number(name.strip_suffix(".table")?)?))
        };
        // One number, one name: "0000007.table" is not the file that we would open for table 7.
        (parsed.to_string() == name).then_some(parsed)
    }

    /// Its path in `directory`.
    pub fn path(&self, directory: &Path) -> PathBuf {
        directory.join(self.to_string())
    }
}

impl std::fmt::Display for FileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Segment(id) => write!(f, "{:06}.vlog", id.0),
            Self::Table(id) => write!(f, "{:06}.table", id.0),
            Self::Manifest(number) => write!(f, "MANIFEST-{number:06}"),
            Self::Current => f.write_str("CURRENT"),
            Self::Temporary => f.write_str("*.tmp"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in [
            FileName::Segment(SegmentId(7)),
            FileName::Segment(SegmentId(u32::MAX)),
            FileName::Table(TableId(12_345_678)),
            FileName::Manifest(0),
            FileName::Current,
        ] {
            assert_eq!(FileName::parse(&name.to_string()), Some(name));
        }
        assert_eq!(FileName::parse("CURRENT.tmp"), Some(FileName::Temporary));
    }

    #[test]
    fn other_names_are_not_ours() {
        for name in ["", "7.table", "0000007.table", "00000x.vlog", "000001.sst", "9999999999.vlog", "LOCK"] {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
    }
}
