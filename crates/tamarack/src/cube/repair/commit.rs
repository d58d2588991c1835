//! The steps in which a repair takes effect, and what makes each of them safe to interrupt.
//!
//! New files are written into the directory `repairing`, and synced. Then they get their names in the cube's directory,
//! what will not be used any more gets a second name in the directory `lost`, the report is written there, and all these
//! names are synced, and what no manifest has known to be durable is made so. Then the new manifest is put in force: that is the
//! moment of the repair (or when it has its name, whole, where `CURRENT` is lost and the last manifest counts). Last, names are
//! removed: those of what is in `lost`, and `repairing`. Whenever that is cut off, either the old manifest is
//! in force and every old file has its name, or the new one is and every file that it mentions has its name. `repairing` has an
//! empty file of the new manifest's name, which tells the two apart when the manifest is lost later. In the first case, what is
//! in both `repairing` and the cube's directory, and no manifest mentions, was left by a repair that was cut off; the next
//! one puts it aside, so that it is no evidence. Opening the cube to write removes what no manifest mentions, and then `repairing`, too: files with a
//! second name there could be neither punched nor used again, nor would their space be given back.

use std::io;
use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result};
use crate::base::names::{FileName, TEMPORARY_SUFFIX};
use crate::env::{Fs, read_exact_at};

/// The directory of files that a repair has put aside.
pub const LOST: &str = "lost";
/// The directory in which a repair writes.
pub const REPAIRING: &str = "repairing";

const CHUNK_BYTES: u64 = 1 << 20;

/// Makes the directory `name` in `directory`, its name durable.
pub fn make(fs: &dyn Fs, directory: &Path, name: &str) -> Result<PathBuf> {
    let path = directory.join(name);
    if !exists(fs, &path)? {
        fs.create_dir_all(&path).map_err(|error| Error::io("create", &path, error))?;
        fs.sync_dir(directory).map_err(|error| Error::sync(directory, error))?;
    }
    Ok(path)
}

/// The names in `directory`; none if it is not there.
pub fn names(fs: &dyn Fs, directory: &Path) -> Result<Vec<String>> {
    if !exists(fs, directory)? {
        return Ok(Vec::new());
    }
    let mut names = fs.list(directory).map_err(|error| Error::io("list", directory, error))?;
    names.sort_unstable();
    Ok(names)
}

/// Gives every file in `scratch` that is `used` its name in `directory`, too, and makes the names durable.
pub fn move_in(fs: &dyn Fs, scratch: &Path, directory: &Path, used: &dyn Fn(FileName) -> bool) -> Result<()> {
    for name in names(fs, scratch)? {
        if !FileName::parse(&name).is_some_and(used) {
            continue;
        }
        link(fs, &scratch.join(&name), &directory.join(&name))?;
    }
    fs.sync_dir(directory).map_err(|error| Error::sync(directory, error))
}

/// Removes the files of a repair that is over, or was cut off, from `scratch`, and the directory.
pub fn clear(fs: &dyn Fs, directory: &Path, scratch: &Path) -> Result<()> {
    if !exists(fs, scratch)? {
        return Ok(());
    }
    for name in names(fs, scratch)? {
        let path = scratch.join(&name);
        fs.remove_file(&path).map_err(|error| Error::io("remove", &path, error))?;
    }
    fs.remove_dir(scratch).map_err(|error| Error::io("remove", scratch, error))?;
    fs.sync_dir(directory).map_err(|error| Error::sync(directory, error))
}

/// Leaves word in `scratch` that the repair has taken effect once manifest `number` is in force. The caller syncs the directory.
pub fn announce(fs: &dyn Fs, scratch: &Path, number: u64) -> Result<()> {
    let path = FileName::Manifest(number).path(scratch);
    fs.create_new(&path).map(drop).map_err(|error| Error::io("create", &path, error))
}

/// Gives each of `files` a second name in `lost`, durably; returns those names. What is there already is left alone.
pub fn put_aside(fs: &dyn Fs, directory: &Path, lost: &Path, files: &[FileName]) -> Result<Vec<String>> {
    let mut aside = Vec::new();
    for file in files {
        let from = file.path(directory);
        let name = vacant(fs, &from, lost, &file.to_string())?;
        if !exists(fs, &lost.join(&name))? {
            link(fs, &from, &lost.join(&name))?;
        }
        aside.push(name);
    }
    fs.sync_dir(lost).map_err(|error| Error::sync(lost, error))?;
    Ok(aside)
}

/// Removes the names of `files` from `directory`: they are in `lost`.
pub fn take_out(fs: &dyn Fs, directory: &Path, files: &[FileName]) -> Result<()> {
    for file in files {
        let path = file.path(directory);
        crate::env::remove_if_there(fs, &path).map_err(|error| Error::io("remove", &path, error))?;
    }
    fs.sync_dir(directory).map_err(|error| Error::sync(directory, error))
}

/// Writes `text` as a report into `lost`, unless the same is there.
pub fn write_report(fs: &dyn Fs, lost: &Path, text: &str) -> Result<()> {
    for number in 1_u64.. {
        let path = lost.join(format!("REPORT-{number:06}"));
        if exists(fs, &path)? {
            let there = crate::env::read_file(fs, &path).map_err(|error| Error::io("read", &path, error))?;
            if there == text.as_bytes() {
                break;
            }
            continue;
        }
        let io = |operation| {
            let path = path.clone();
            move |error| Error::io(operation, &path, error)
        };
        let file = fs.create_new(&path).map_err(io("create"))?;
        file.write_at(text.as_bytes(), 0).map_err(io("write"))?;
        file.sync_data().map_err(|error| Error::sync(&path, error))?;
        break;
    }
    fs.sync_dir(lost).map_err(|error| Error::sync(lost, error))
}

/// Whether both files are there and have the same bytes.
pub fn same(fs: &dyn Fs, left: &Path, right: &Path) -> Result<bool> {
    if !exists(fs, left)? || !exists(fs, right)? {
        return Ok(false);
    }
    let open = |path: &Path| fs.open_read(path).map_err(|error| Error::io("open", path, error));
    let (one, other) = (open(left)?, open(right)?);
    let len = one.len().map_err(|error| Error::io("read the length of", left, error))?;
    if len != other.len().map_err(|error| Error::io("read the length of", right, error))? {
        return Ok(false);
    }
    let mut at = 0;
    while at < len {
        let mut chunks = [Vec::new(), Vec::new()];
        for (chunk, (file, path)) in chunks.iter_mut().zip([(&one, left), (&other, right)]) {
            chunk.resize(CHUNK_BYTES.min(len - at) as usize, 0);
            read_exact_at(&**file, chunk, at).map_err(|error| Error::io("read", path, error))?;
        }
        if chunks[0] != chunks[1] {
            return Ok(false);
        }
        at += CHUNK_BYTES;
    }
    Ok(true)
}

/// A name in `lost` that is vacant, or under which the very file is there already.
fn vacant(fs: &dyn Fs, from: &Path, lost: &Path, name: &str) -> Result<String> {
    let mut candidate = name.to_owned();
    for number in 1_u64.. {
        let path = lost.join(&candidate);
        if !exists(fs, &path)? || same(fs, from, &path)? {
            break;
        }
        candidate = format!("{name}.{number}");
    }
    Ok(candidate)
}

/// Gives `from` the second name `to`, or copies it where that cannot be: all of it is there under that name, or nothing.
fn link(fs: &dyn Fs, from: &Path, to: &Path) -> Result<()> {
    match fs.hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        outcome => return outcome.map_err(|error| Error::io("link", to, error)),
    }
    let source = fs.open_read(from).map_err(|error| Error::io("open", from, error))?;
    let len = source.len().map_err(|error| Error::io("read the length of", from, error))?;
    let mut temporary = to.as_os_str().to_owned();
    temporary.push(TEMPORARY_SUFFIX);
    let temporary = &PathBuf::from(temporary);
    // One that was cut off.
    crate::env::remove_if_there(fs, temporary).map_err(|error| Error::io("remove", temporary, error))?;
    let file = fs.create_new(temporary).map_err(|error| Error::io("create", temporary, error))?;
    let mut chunk = Vec::new();
    let mut at = 0;
    while at < len {
        chunk.resize(CHUNK_BYTES.min(len - at) as usize, 0);
        read_exact_at(&*source, &mut chunk, at).map_err(|error| Error::io("read", from, error))?;
        file.write_at(&chunk, at).map_err(|error| Error::io("write", temporary, error))?;
        at += chunk.len() as u64;
    }
    file.sync_data().map_err(|error| Error::sync(temporary, error))?;
    fs.rename(temporary, to).map_err(|error| Error::io("rename", temporary, error))
}

fn exists(fs: &dyn Fs, path: &Path) -> Result<bool> {
    fs.exists(path).map_err(|error| Error::io("look for", path, error))
}
