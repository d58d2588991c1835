//! A database in a world of its own: its calls fail on demand, its clock stands still until it is moved, and beside it
//! there is room for copies.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tamarack::testing::{Env, Fault, FaultEnv, Faults};
use tamarack::{Db, Options};

use super::time::Time;
use super::{copy_directory, fast_directory};

/// A directory in such a world.
pub struct Place {
    root: tempfile::TempDir,
    env: Env,
    pub faults: Arc<Faults>,
    pub time: Time,
    pub options: Options,
}

impl Place {
    /// An empty one.
    pub fn new(options: Options) -> Self {
        let (env, time) = Time::new();
        let (env, faults) = FaultEnv::new(env);
        Self { root: fast_directory(), env, faults, time, options }
    }

    /// One with a copy of the database in `path`.
    pub fn with_copy(path: &Path, options: Options) -> Self {
        let place = Self::new(options);
        copy_directory(path, &place.path());
        place
    }

    /// The directory around everything.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The database's directory.
    pub fn path(&self) -> PathBuf {
        self.beside("db")
    }

    /// Another directory in the same place.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Opens the database.
    pub fn open(&self) -> Db {
        self.try_open(&self.options).unwrap()
    }

    /// Opens the database with other options, or expecting an error.
    pub fn try_open(&self, options: &Options) -> tamarack::Result<Db> {
        Db::open_with_env(self.path(), options.clone(), &self.env)
    }

    /// Drops `db` in a world in which every call fails that would change something.
    pub fn crash(&self, db: Db) {
        let before = self.faults.triggered();
        self.faults.inject(Fault::on_mutating().for_ever());
        drop(db);
        assert!(self.faults.triggered() > before, "there was something left to do");
        self.faults.heal();
    }
}
