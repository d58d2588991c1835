//! Directories of LevelDB, whose `CURRENT` and manifests have names like ours and other bytes.
//!
//! Tells one from a damaged cube, so that nobody repairs, destroys or mourns what is whole. Where the names leave a doubt,
//! `CURRENT` and the manifests are read: one of them that is ours makes the directory ours.

use std::path::Path;

use super::format;
use crate::base::error::{Error, Result};
use crate::base::names::FileName;
use crate::env::{Fs, read_file};

/// Endings of LevelDB's logs and tables, before which there are digits alone.
const ENDINGS: [&str; 3] = [".log", ".ldb", ".sst"];

/// Refuses the directory if its files, called `names`, are those of a LevelDB database.
///
/// # Errors
/// `InvalidArgument` if they are; `Io`.
pub fn refuse(fs: &dyn Fs, directory: &Path, names: &[String]) -> Result<()> {
    if !looks_like_leveldb(names) || something_is_ours(fs, directory, names)? {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "{} holds a LevelDB database, whose files are not Tamarack's: choose another directory; `tamarack import-leveldb` \
         makes a database of ours of it",
        directory.display()
    )))
}

fn looks_like_leveldb(names: &[String]) -> bool {
    let is_data = |name: &String| {
        let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
        stem.is_some_and(|stem| !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_manifest =
        |name: &String| matches!(FileName::parse(name), Some(FileName::Current | FileName::Manifest(_)));
    names.iter().any(is_data) && names.iter().any(is_manifest)
}

/// Whether `CURRENT`, or any manifest, is one of ours.
fn something_is_ours(fs: &dyn Fs, directory: &Path, names: &[String]) -> Result<bool> {
    for name in names.iter().filter_map(|name| FileName::parse(name)) {
        let path = name.path(directory);
        let read = || read_file(fs, &path).map_err(|error| Error::io("read", &path, error));
        let ours = match name {
            FileName::Current => format::decode_current(&read()?).is_some(),
            FileName::Manifest(_) => read()?.starts_with(&format::MAGIC),
            FileName::Segment(_) | FileName::Table(_) => true,
            FileName::Temporary => false,
        };
        if ours {
            return Ok(true);
        }
    }
    Ok(false)
}
