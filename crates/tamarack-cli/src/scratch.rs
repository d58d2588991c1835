//! A directory for a database that nobody asked to keep: made fresh, removed at the end.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result, tell};

/// The directory; it is removed with everything in it when this is dropped, unless it is to be kept.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    keep: bool,
}

impl Scratch {
    /// A new directory in `parent` whose name begins with `name`.
    pub fn new(parent: &Path, name: &str, keep: bool) -> Result<Self> {
        let path = parent.join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(parent).map_err(|error| Failure::io("make", parent, error))?;
        fs::create_dir(&path).map_err(|error| Failure::io("make", &path, error))?;
        Ok(Self { path, keep })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tell(&format!("tamarack: cannot remove {}: {error}", self.path.display()));
        }
    }
}
