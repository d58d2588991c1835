//! Reading the manifest in force back into a version.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::checksum::Seed;
use crate::base::error::{Error, Result};
use crate::base::ids::CubeId;
use crate::base::keys::KeyOrder;
use crate::base::names::FileName;
use crate::base::sync::Arc;
use crate::env::{Fs, read_file};

use super::super::version::{Files, Version, VersionEdit};
use super::format::{self, DecodeError, HEADER_BYTES, RECORD_HEADER_BYTES};
use super::leveldb;

/// What the manifest in force says.
#[derive(Debug)]
pub struct Recovered {
    /// The manifest's number.
    pub number: u64,
    /// The cube.
    pub cube: CubeId,
    /// The version that all edits together make.
    pub version: Version,
    /// An edit at the end that was never acknowledged and does not count, if there is one.
    pub torn: Option<TornTail>,
}

/// The end of a manifest that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The manifest.
    pub file: PathBuf,
    /// Byte offset at which it ends.
    pub offset: u64,
    /// Bytes that do not count.
    pub bytes: u64,
    /// What is wrong with them.
    pub reason: String,
}

impl fmt::Display for TornTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes at offset {} of {}: {}",
            self.bytes,
            self.offset,
            self.file.display(),
            self.reason
        )
    }
}

/// Reads the manifest in force in the directory of `files`. Writes nothing.
///
/// # Errors
/// `InvalidArgument` if there is no cube in the directory, or if its keys are ordered by another comparator;
/// `Unsupported` for a newer format; `Corruption` for damage.
pub fn read(files: &Arc<Files>, order: &KeyOrder) -> Result<Recovered> {
    let number = read_current(&**files.fs(), files.directory())?;
    read_number(files, order, number)
}

/// Reads manifest `number`, whether it is in force or not. Writes nothing.
///
/// # Errors
/// As for [`read`].
pub(super) fn read_number(files: &Arc<Files>, order: &KeyOrder, number: u64) -> Result<Recovered> {
    let (fs, directory) = (&**files.fs(), files.directory());
    let path = FileName::Manifest(number).path(directory);
    let bytes = read_file(fs, &path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Error::corruption(&path, 0, "the manifest that CURRENT names", "no such file")
        }
        _ => Error::io("read", &path, error),
    })?;
    let cube = check_header(&bytes, number, &path)?;
    let mut records =
        Records { path: &path, bytes: &bytes, seed: format::seed(cube, number), at: HEADER_BYTES };
    let mut version: Option<Version> = None;
    let torn = loop {
        let (offset, payload) = match records.next()? {
            Next::Record(offset, payload) => (offset, payload),
            Next::End => break None,
            Next::Torn(torn) => break Some(torn),
        };
        if payload.is_empty() {
            continue;
        }
        let edit = decode(payload, files, &path, offset)?;
        let base = match version.take() {
            Some(version) => version,
            None => {
                check_first(&edit, cube, order, &path, offset)?;
                Version::empty(order.clone(), files.clone())
            }
        };
        version = Some(base.apply(&edit).map_err(|reason| {
            Error::corruption(&path, offset as u64, "an edit that fits the version before it", reason)
        })?);
    };
    // CURRENT names a manifest only after its first edit is durable, so a missing one is damage, not a tear.
    let version = version.ok_or_else(|| {
        let found = torn.as_ref().map_or("the end of the file", |torn| &torn.reason);
        Error::corruption(&path, HEADER_BYTES as u64, "an edit that makes a whole version", found)
    })?;
    version.check_sizes().map_err(|reason| {
        Error::corruption(&path, HEADER_BYTES as u64, "sizes that files can have", reason)
    })?;
    Ok(Recovered { number, cube, version, torn })
}

pub(super) fn read_current(fs: &dyn Fs, directory: &Path) -> Result<u64> {
    let path = FileName::Current.path(directory);
    let text = match read_file(fs, &path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(missing_current(fs, directory, &path));
        }
        Err(error) => return Err(Error::io("read", &path, error)),
    };
    if let Some(number) = format::decode_current(&text) {
        return Ok(number);
    }
    let names = fs.list(directory).map_err(|error| Error::io("list", directory, error))?;
    leveldb::refuse(fs, directory, &names)?;
    let shown = String::from_utf8_lossy(&text[..text.len().min(64)]).into_owned();
    Err(Error::corruption(&path, 0, "the name of a manifest and its checksum", format!("{shown:?}")))
}

fn missing_current(fs: &dyn Fs, directory: &Path, path: &Path) -> Error {
    let names = match fs.list(directory) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Error::io("list", directory, error),
    };
    let remains = |name: &String| FileName::parse(name).is_some_and(|name| name != FileName::Temporary);
    match names.iter().find(|&name| remains(name)) {
        Some(name) => Error::corruption(
            path,
            0,
            "the name of a manifest",
            format!("no such file, though there is {name}"),
        ),
        None => {
            Error::invalid_argument(format!("{} holds no database (no CURRENT file)", directory.display()))
        }
    }
}

fn check_header(bytes: &[u8], number: u64, path: &Path) -> Result<CubeId> {
    let header = format::decode_header(bytes).ok_or_else(|| {
        let expected = format!("a header of {HEADER_BYTES} bytes");
        Error::corruption(path, 0, expected, format!("a file of {} bytes", bytes.len()))
    })?;
    if header.magic != format::MAGIC {
        let found = header.magic.escape_ascii().to_string();
        return Err(Error::corruption(path, 0, "the magic of a manifest", found));
    }
    if header.checksums.0 != header.checksums.1 {
        let checksum = |value| format!("header checksum {value:#010x}");
        return Err(Error::corruption(path, 0, checksum(header.checksums.1), checksum(header.checksums.0)));
    }
    if header.version != format::FORMAT_VERSION {
        return Err(Error::unsupported(format!(
            "{} has format version {}, this build reads version {}",
            path.display(),
            header.version,
            format::FORMAT_VERSION
        )));
    }
    if header.number != number {
        let found = format!("manifest number {}", header.number);
        return Err(Error::corruption(path, 0, format!("manifest number {number}"), found));
    }
    Ok(header.cube)
}

fn decode(payload: &[u8], files: &Arc<Files>, path: &Path, offset: usize) -> Result<VersionEdit> {
    format::decode_edit(payload, files).map_err(|error| match error {
        DecodeError::Malformed(field) => Error::corruption(path, offset as u64, field, "bytes that are none"),
        DecodeError::UnknownTag(tag) => Error::unsupported(format!(
            "{} has a field {tag} in the record at offset {offset}, which this build does not know",
            path.display()
        )),
    })
}

fn check_first(edit: &VersionEdit, cube: CubeId, order: &KeyOrder, path: &Path, offset: usize) -> Result<()> {
    let (Some(named), Some(comparator)) = (edit.cube, &edit.comparator) else {
        let expected = "a first edit with cube and comparator";
        return Err(Error::corruption(path, offset as u64, expected, "one without"));
    };
    if named != cube {
        let found = format!("cube {named}");
        return Err(Error::corruption(path, offset as u64, format!("cube {cube}"), found));
    }
    let given = order.comparator().name();
    if comparator != given {
        return Err(Error::invalid_argument(format!(
            "the database was created with the comparator {comparator:?} and cannot be opened with {given:?}"
        )));
    }
    Ok(())
}

/// Walks over the records of a manifest.
struct Records<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    seed: Seed,
    at: usize,
}

enum Next<'a> {
    /// A record's offset and payload.
    Record(usize, &'a [u8]),
    End,
    Torn(TornTail),
}

impl<'a> Records<'a> {
    /// The next record. An edit that was never acknowledged is the last thing in the file, behind a mark that may not have
    /// arrived either: whatever else is wrong before something whole is damage.
    fn next(&mut self) -> Result<Next<'a>> {
        let offset = self.at;
        let rest = &self.bytes[offset..];
        if rest.is_empty() {
            return Ok(Next::End);
        }
        let Some(header) = format::decode_record_header(rest, self.seed, offset as u64) else {
            if let Some(whole) = self.proof_against_tear(offset) {
                let found = format!("none, though there is one at {whole}");
                return Err(Error::corruption(self.path, offset as u64, "a whole record header", found));
            }
            let zeros = rest.iter().all(|&byte| byte == 0);
            let reason = if zeros { "only zeros" } else { "no whole record header" };
            return Ok(Next::Torn(self.torn(reason.to_owned())));
        };
        let body = &rest[RECORD_HEADER_BYTES..];
        let len = header.payload_len as usize;
        let Some(payload) = body.get(..len) else {
            let reason = format!("a record of {len} bytes cut after {}", body.len());
            return Ok(Next::Torn(self.torn(reason)));
        };
        let found = format::payload_checksum(payload, self.seed, offset as u64);
        if found != header.payload_checksum {
            let expected = format!("payload checksum {:#010x}", header.payload_checksum);
            if body.len() > len {
                let found = format!("payload checksum {found:#010x}");
                return Err(Error::corruption(self.path, offset as u64, expected, found));
            }
            return Ok(Next::Torn(self.torn(format!("{found:#010x} instead of {expected}"))));
        }
        self.at = offset + RECORD_HEADER_BYTES + len;
        Ok(Next::Record(offset, payload))
    }

    /// A whole record header behind `offset` that proves that what stands there has been durable. An edit is written only
    /// when the one before it is durable, but with the mark of that one still on its way, and they may arrive in any
    /// order: of what stands directly before an edit in the place of a mark, only a later record proves anything.
    fn proof_against_tear(&self, offset: usize) -> Option<usize> {
        (offset + 1..self.bytes.len()).find(|&at| {
            let header = format::decode_record_header(&self.bytes[at..], self.seed, at as u64);
            header.is_some_and(|header| header.payload_len == 0 || at != offset + RECORD_HEADER_BYTES)
        })
    }

    fn torn(&self, reason: String) -> TornTail {
        let (offset, bytes) = (self.at as u64, (self.bytes.len() - self.at) as u64);
        TornTail { file: self.path.to_path_buf(), offset, bytes, reason }
    }
}
