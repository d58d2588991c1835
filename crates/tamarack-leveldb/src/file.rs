//! One file of the directory, open for reading. Bytes that cannot be had are damage with an offset: those behind the file's end,
//! and those that the device does not give.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::{Damage, Error, Result};

/// What Linux says of a sector that cannot be read.
const UNREADABLE: i32 = rustix::io::Errno::IO.raw_os_error();

/// An open file.
#[derive(Debug)]
pub struct SourceFile {
    file: File,
    path: PathBuf,
    len: u64,
}

impl SourceFile {
    /// Opens `path`.
    ///
    /// # Errors
    /// [`Error::Damage`] if it is not there, for only files that must be there are opened; [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let opened = File::open(path).and_then(|file| {
            let metadata = file.metadata()?;
            Ok((file, metadata))
        });
        match opened {
            Ok((_, metadata)) if !metadata.is_file() => {
                Err(Damage::new(path, 0, "a file", "something else").into())
            }
            Ok((file, metadata)) => Ok(Self { file, path: path.to_path_buf(), len: metadata.len() }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(Damage::new(path, 0, "a file", "none").into())
            }
            Err(error) => Err(Error::io("open", path, error)),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes when it was opened.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Reads `len` bytes at `offset` into `bytes`, whose content goes.
    ///
    /// # Errors
    /// [`Error::Damage`] if they are not there; [`Error::Io`].
    pub fn read(&self, offset: u64, len: u64, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.clear();
        let fits = offset.checked_add(len).is_some_and(|end| end <= self.len);
        let (true, Ok(size)) = (fits, usize::try_from(len)) else {
            return Err(self.damage(offset, format!("{len} bytes"), self.end()).into());
        };
        bytes.resize(size, 0);
        self.file.read_exact_at(bytes, offset).map_err(|error| self.unread(offset, len, error))
    }

    /// Damage at `offset`.
    pub fn damage(&self, offset: u64, expected: impl Into<String>, found: impl Into<String>) -> Damage {
        Damage::new(&self.path, offset, expected, found)
    }

    fn end(&self) -> String {
        format!("the end of the file at {}", self.len)
    }

    fn unread(&self, offset: u64, len: u64, error: io::Error) -> Error {
        let lost = error.raw_os_error() == Some(UNREADABLE) || error.kind() == ErrorKind::UnexpectedEof;
        if lost {
            let found = format!("that they cannot be read ({error})");
            return self.damage(offset, format!("{len} bytes"), found).into();
        }
        Error::io("read", &self.path, error)
    }
}
