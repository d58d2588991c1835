//! The engine's one error type.
//!
//! An [`Error`] has a coarse [`ErrorKind`] that tells the caller what to do, a message, and where it helps a
//! source. A corruption error cannot be built without file, offset, what was expected and what was found.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// `Result` with the engine's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request itself is wrong (an option, a key's length, a missing database). Nothing was written;
    /// correct the request.
    InvalidArgument,
    /// The operating system failed a call. The message names the call and the file. Reads may be tried again;
    /// a write that failed this way may or may not have happened until the database is opened again.
    Io,
    /// Bytes on disk are not what was written. The rest of the data stays readable, and nothing was deleted.
    /// Restore the file that is named, or close the database and save what is whole with
    /// [`Db::repair`](crate::Db::repair); [`Db::check`](crate::Db::check) lists everything that is damaged.
    Corruption,
    /// Another process, or another handle of this one, has the database open. Close it first.
    Locked,
    /// The database was opened read-only, or an earlier failed write made it so. In the second case the
    /// message says which failure, and opening the database again recovers everything acknowledged.
    ReadOnly,
    /// The database is being closed; the call came too late.
    Closed,
    /// Written by a version of the format this build does not read. Use a newer build.
    Unsupported,
    /// No space is left. Delete data or free space on the device; nothing acknowledged was lost.
    NoSpace,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidArgument => "invalid argument",
            Self::Io => "I/O error",
            Self::Corruption => "corruption",
            Self::Locked => "locked",
            Self::ReadOnly => "read-only",
            Self::Closed => "closed",
            Self::Unsupported => "unsupported",
            Self::NoSpace => "no space",
        })
    }
}

/// Where bytes on disk differ from what was written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corruption {
    /// The damaged file.
    pub file: PathBuf,
    /// Byte offset in the file at which the damaged structure begins.
    pub offset: u64,
    /// What a whole file holds there.
    pub expected: String,
    /// What this file holds there.
    pub found: String,
}

/// Why an operation failed, and what to do about it. Cheap to clone, so that one failure can be given to
/// every caller that waited for it.
///
/// ```
/// use tamarack::{Db, ErrorKind, Options};
///
/// # let directory = tempfile::tempdir()?;
/// let db = Db::open(directory.path(), Options::default())?;
/// let error = Db::open(directory.path(), Options::default()).expect_err("it is open");
/// match error.kind() {
///     ErrorKind::Locked => println!("{error}"),
///     ErrorKind::Corruption => println!("restore {:?}", error.as_corruption().map(|place| &place.file)),
///     _ => return Err(error.into()),
/// }
/// # drop(db);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug, Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    corruption: Option<Corruption>,
    source: Option<std::sync::Arc<io::Error>>,
}

impl Error {
    fn new(kind: ErrorKind, message: String) -> Self {
        Self { inner: Box::new(Inner { kind, message, corruption: None, source: None }) }
    }

    /// A request that cannot be served as it stands; the message says what would be accepted.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message.into())
    }

    /// The database is in use elsewhere.
    pub fn locked(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Locked, message.into())
    }

    /// Writing is not possible; the message says why and how to make it possible again.
    pub fn read_only(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::ReadOnly, message.into())
    }

    /// There is no space for more; the message says what would make some.
    pub fn no_space(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NoSpace, message.into())
    }

    /// The database is closing.
    pub fn closed() -> Self {
        Self::new(ErrorKind::Closed, "the database is being closed".into())
    }

    /// A format this build does not know.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message.into())
    }

    /// The operating system failed `operation` on `path`. A full device becomes [`ErrorKind::NoSpace`].
    pub fn io(operation: &str, path: &Path, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
            _ => ErrorKind::Io,
        };
        let mut error = Self::new(kind, format!("{operation} {}: {source}", path.display()));
        error.inner.source = Some(std::sync::Arc::new(source));
        error
    }

    /// A sync of `path` failed. That is never [`ErrorKind::NoSpace`], whatever the cause: what was written is in
    /// doubt, and a second try would prove nothing.
    pub fn sync(path: &Path, source: io::Error) -> Self {
        let mut error = Self::io("sync", path, source);
        error.inner.kind = ErrorKind::Io;
        error
    }

    /// Bytes on disk are damaged: in `file`, at `offset`, `expected` should stand where `found` does.
    pub fn corruption(
        file: &Path,
        offset: u64,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        let corruption =
            Corruption { file: file.to_path_buf(), offset, expected: expected.into(), found: found.into() };
        let message = format!(
            "{} at offset {}: expected {}, found {}",
            file.display(),
            offset,
            corruption.expected,
            corruption.found
        );
        let mut error = Self::new(ErrorKind::Corruption, message);
        error.inner.corruption = Some(corruption);
        error
    }

    /// The same error with `context` in front of its message.
    #[must_use]
    pub fn context(mut self, context: &str) -> Self {
        self.inner.message = format!("{context}: {}", self.inner.message);
        self
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The message without the kind.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// File, offset, expected and found, when the kind is [`ErrorKind::Corruption`].
    pub fn as_corruption(&self) -> Option<&Corruption> {
        self.inner.corruption.as_ref()
    }

    /// Whether the kind is [`ErrorKind::Corruption`].
    pub fn is_corruption(&self) -> bool {
        self.inner.kind == ErrorKind::Corruption
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.inner.kind, self.inner.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corruption_names_file_offset_expected_and_found() {
        let error = Error::corruption(Path::new("000007.vlog"), 96, "checksum 1", "checksum 2");
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert_eq!(
            error.to_string(),
            "corruption: 000007.vlog at offset 96: expected checksum 1, found checksum 2"
        );
        assert_eq!(error.as_corruption().expect("a corruption").offset, 96);
    }

    #[test]
    fn a_full_device_has_its_own_kind() {
        let error = Error::io("write", Path::new("x"), io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(error.kind(), ErrorKind::NoSpace);
    }
}
