//! `leveldb_t`: an open database.

use std::path::Path;

use tamarack::{Db, IterOptions, PinnedValue};

use crate::boundary::handle::Kind;
use crate::iterator::Walk;
use crate::options::OpenOptions;
use crate::reads::Reading;
use crate::status::Status;

/// An open database. Iterators hold it as well, and the directory with it.
pub struct Database {
    db: Db,
}

impl Kind for Database {
    const NAME: &'static str = "a database";
    const TAG: u64 = u64::from_le_bytes(*b"database");
}

impl Database {
    /// Opens the database in the directory `path`.
    ///
    /// # Errors
    /// Those of the options, and of [`Db::open`].
    pub fn open(options: &OpenOptions, path: &Path) -> Result<Self, Status> {
        Ok(Self { db: Db::open(path, options.to_options()?)? })
    }

    /// The engine's handle.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Ends all work and closes the directory, unless iterators hold it.
    ///
    /// # Errors
    /// Those of [`Db::close`]. Everything acknowledged is in the log nevertheless.
    pub fn close(self) -> Result<(), Status> {
        Ok(self.db.close()?)
    }

    /// The value of `key`, where it is in memory: a copy of it is made in the client's.
    ///
    /// # Errors
    /// Those of [`Db::get_pinned`]; a snapshot that was released.
    pub fn get(&self, reading: &Reading, key: &[u8]) -> Result<Option<PinnedValue>, Status> {
        Ok(self.db.get_pinned(key, &reading.to_options()?)?)
    }

    /// A walk over the keys from `start` up to but not including `end`; what is wrong it tells itself.
    pub fn walk(&self, reading: &Reading, start: Option<&[u8]>, end: Option<&[u8]>, keys_only: bool) -> Walk {
        let iter = reading.to_options().and_then(|read| {
            let options = IterOptions {
                snapshot: read.snapshot,
                start: start.map(<[u8]>::to_vec),
                end: end.map(<[u8]>::to_vec),
                keys_only,
                verify_checksums: read.verify_checksums,
                fill_cache: read.fill_cache,
                expected_entries: reading.expected_entries(),
            };
            Ok(self.db.iter(&options)?)
        });
        Walk::new(iter)
    }
}
