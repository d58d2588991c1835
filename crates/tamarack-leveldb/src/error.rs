//! Why a LevelDB directory cannot be read: the operating system, the directory itself, or damaged bytes in it.
//!
//! A [`Damage`] cannot be made without file, offset, what was expected and what was found.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why reading ends.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system failed a call. The directory may be whole: try again when the cause is gone.
    Io {
        /// What was being done, such as `open`.
        action: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A program has the database open. Close it first.
    Locked {
        /// The database.
        directory: PathBuf,
    },
    /// The directory is not one of LevelDB's, or is one of a store that has grown out of it. The text says which.
    NotLevelDb(String),
    /// Keys are in the order of a comparator of a program's own, which nobody but that program knows.
    /// [`Options::any_comparator`](crate::Options::any_comparator) reads the entries all the same.
    Comparator {
        /// The database.
        directory: PathBuf,
        /// The comparator's name.
        name: String,
    },
    /// Bytes are not what was written. [`Options::salvage`](crate::Options::salvage) reads what is whole.
    Damage(Damage),
}

/// Where bytes are not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The damaged file.
    pub file: PathBuf,
    /// The byte at which the damaged structure (a block, a record, a whole file) begins.
    pub offset: u64,
    /// What a whole file holds there.
    pub expected: String,
    /// What this file holds there.
    pub found: String,
}

impl Damage {
    /// Damage at `offset` in `file`.
    pub fn new(file: &Path, offset: u64, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { file: file.to_path_buf(), offset, expected: expected.into(), found: found.into() }
    }
}

impl Error {
    /// The operating system failed `action` on `path`.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), source }
    }
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Self {
        Self::Damage(damage)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at offset {}: expected {}, found {}",
            self.file.display(),
            self.offset,
            self.expected,
            self.found
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, path, source } => write!(f, "cannot {action} {}: {source}", path.display()),
            Self::Locked { directory } => write!(
                f,
                "{} is open in a program that uses LevelDB: close it, or copy the directory and read the copy",
                directory.display()
            ),
            Self::NotLevelDb(text) => f.write_str(text),
            Self::Comparator { directory, name } => write!(
                f,
                "the keys in {} are in the order of the comparator `{name}`, not in the order of their bytes",
                directory.display()
            ),
            Self::Damage(damage) => damage.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
