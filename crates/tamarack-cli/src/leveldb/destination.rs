//! Where a new database is made so that nobody takes an unfinished one for it: beside its place, under another name, and
//! moved there at the end.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tamarack::Db;

use crate::failure::{Failure, Result, tell};
use crate::open;

/// What the name of an unfinished database ends with.
const UNFINISHED: &str = ".importing";

/// The place of a new database. What is unfinished is removed when this is dropped.
#[derive(Debug)]
pub struct Destination {
    target: PathBuf,
    parent: PathBuf,
    unfinished: PathBuf,
    is_done: bool,
}

impl Destination {
    /// Prepares for a new database at `target` that is made of what is in `source`; `restart` removes what an
    /// interrupted import has left.
    pub fn prepare(target: &Path, source: &Path, restart: bool) -> Result<Self> {
        let name = target.file_name();
        let name = name.ok_or_else(|| Failure::Usage(format!("{} names no database", target.display())))?;
        let parent = match target.parent() {
            Some(parent) if parent != Path::new("") => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        if open::exists(target)? {
            return Err(Failure::Usage(format!(
                "{} is not empty, and an import makes a new database: choose another place (to add entries to a database, \
                 `tamarack dump` the new one and `tamarack load` them)",
                target.display()
            )));
        }
        let source = fs::canonicalize(source).map_err(|error| Failure::io("open", source, error))?;
        if lies_in(&parent, &source)? {
            let text = format!("{} lies in the directory that is imported", target.display());
            return Err(Failure::Usage(format!("{text}, which must not change: choose another place")));
        }
        refuse_mount(target)?;
        let mut unfinished = name.to_os_string();
        unfinished.push(UNFINISHED);
        let unfinished = parent.join(unfinished);
        let mut this = Self { target: target.to_path_buf(), unfinished, parent, is_done: true };
        this.clear(restart)?;
        this.is_done = false;
        Ok(this)
    }

    /// Makes sure that there is nothing at the place of the unfinished database.
    fn clear(&self, restart: bool) -> Result<()> {
        if !open::exists(&self.unfinished)? {
            return Ok(());
        }
        if !restart {
            return Err(Failure::Other(format!(
                "{} is what an interrupted import has left: --restart removes it and begins anew",
                self.unfinished.display()
            )));
        }
        Db::destroy(&self.unfinished)?;
        match open::exists(&self.unfinished)? {
            false => Ok(()),
            true => Err(Failure::Other(format!(
                "{} holds files that are not a database's: look at them, and remove it",
                self.unfinished.display()
            ))),
        }
    }

    /// Where the database is made.
    pub fn unfinished(&self) -> &Path {
        &self.unfinished
    }

    /// The directory in which the database will be.
    pub fn parent(&self) -> &Path {
        &self.parent
    }

    /// Makes that directory if there is none.
    pub fn make_parent(&self) -> Result<()> {
        fs::create_dir_all(&self.parent).map_err(|error| Failure::io("make", &self.parent, error))
    }

    /// Moves the database, which is closed, to its place.
    pub fn finish(mut self) -> Result<()> {
        self.is_done = true;
        if let Err(error) = fs::rename(&self.unfinished, &self.target) {
            return Err(Failure::Other(format!(
                "all was imported, but {} cannot be renamed to {}: {error}; rename it when the cause is gone",
                self.unfinished.display(),
                self.target.display()
            )));
        }
        let synced = File::open(&self.parent).and_then(|parent| parent.sync_all());
        synced.map_err(|error| Failure::io("sync", &self.parent, error))
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if !self.is_done
            && let Err(error) = Db::destroy(&self.unfinished)
        {
            tell(&format!("tamarack: cannot remove {}: {error}", self.unfinished.display()));
        }
    }
}

/// Whether `path`, of which not all has to exist, is `directory` or lies in it.
fn lies_in(path: &Path, directory: &Path) -> Result<bool> {
    for ancestor in path.ancestors() {
        let ancestor = if ancestor == Path::new("") { Path::new(".") } else { ancestor };
        match fs::canonicalize(ancestor) {
            Ok(real) => return Ok(real.starts_with(directory)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::io("open", ancestor, error)),
        }
    }
    Ok(false)
}

/// Refuses a place that nothing can be moved to: an empty directory on which a file system is mounted.
fn refuse_mount(target: &Path) -> Result<()> {
    let metadata = |path: &Path| match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::io("open", path, error)),
    };
    match (metadata(target)?, metadata(&target.join(".."))?) {
        (Some(here), Some(above)) if here.dev() != above.dev() => Err(Failure::Usage(format!(
            "a file system is mounted at {}: choose a directory in it",
            target.display()
        ))),
        _ => Ok(()),
    }
}
