//! What is worth knowing about a directory that is whole.

use std::fmt;
use std::path::PathBuf;

/// One remark. None of them is damage.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remark {
    /// The last log ends in the middle of a record, which is how a crash leaves it. LevelDB drops that record, too.
    TornLog {
        /// The log.
        file: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// How much of it there is.
        bytes: u64,
    },
    /// The manifest ends in the middle of a record, which is how a crash leaves it. LevelDB drops that record, too.
    TornManifest {
        /// The manifest.
        file: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// How much of it there is.
        bytes: u64,
    },
    /// Tables that are not part of the database: what compactions that were over, or cut off, have left.
    UnusedTables(u64),
    /// There is no file `LOCK`, so no program that opens the database meanwhile is kept out.
    NoLock(PathBuf),
    /// Sequence numbers are missing between two records of the logs. A write that failed leaves such a gap; so does a lost log.
    Gap {
        /// The log with the record behind the gap.
        file: PathBuf,
        /// Where that record begins.
        offset: u64,
        /// How many numbers are missing.
        numbers: u64,
    },
    /// The entries were taken in the order of their bytes, and the database has another.
    OtherOrder(String),
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornLog { file, offset, bytes } | Self::TornManifest { file, offset, bytes } => write!(
                f,
                "{} ends at offset {offset} with {bytes} bytes of a record that was being written when the program ended; \
                 LevelDB drops them, too",
                file.display()
            ),
            Self::UnusedTables(number) => {
                let tables =
                    if *number == 1 { "1 table is".to_owned() } else { format!("{number} tables are") };
                write!(f, "{tables} not part of the database by its manifest: what a compaction has left")
            }
            Self::NoLock(directory) => write!(
                f,
                "{} has no file LOCK, so that a program which opens the database meanwhile is not kept out",
                directory.display()
            ),
            Self::Gap { file, offset, numbers } => write!(
                f,
                "{} operations are missing before {} at offset {offset}: a write that failed, or a log that is gone",
                numbers,
                file.display()
            ),
            Self::OtherOrder(name) => write!(
                f,
                "the comparator `{name}` is not known here: keys which it takes for equal, but whose bytes differ, are entries of \
                 their own, and may have values that were overwritten or deleted"
            ),
        }
    }
}
