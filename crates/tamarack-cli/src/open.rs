//! Opening a database for a command: which options each purpose asks of the engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tamarack::{Db, EventListener, Options};

use crate::failure::{Failure, Result};

/// The database a command works on.
#[derive(Debug, Clone, Args)]
pub struct Database {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub path: PathBuf,
}

impl Database {
    /// Opens an existing database for reading only; nothing in it changes.
    pub fn open_for_reading(&self) -> Result<Db> {
        self.must_exist()?;
        Ok(Db::open(&self.path, Options { create_if_missing: false, read_only: true, ..Options::default() })?)
    }

    /// Opens an existing database for writing.
    pub fn open_existing(&self) -> Result<Db> {
        self.open_heard(None)
    }

    /// The same, with somebody who hears of its events.
    pub fn open_heard(&self, listener: Option<Arc<dyn EventListener>>) -> Result<Db> {
        self.must_exist()?;
        Ok(Db::open(&self.path, Options { create_if_missing: false, listener, ..Options::default() })?)
    }

    /// Opens a database for writing and makes it if there is none.
    pub fn open_or_create(&self) -> Result<Db> {
        Ok(Db::open(&self.path, Options::default())?)
    }

    /// Refuses to go on where there can be no database.
    pub fn must_exist(&self) -> Result<()> {
        match exists(&self.path)? {
            true => Ok(()),
            false => Err(Failure::Other(format!("there is no database at {}", self.path.display()))),
        }
    }
}

/// Whether something that may be a database is at `path`: a directory that is not empty.
pub fn exists(path: &Path) -> Result<bool> {
    match std::fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::io("open the database", path, error)),
    }
}
