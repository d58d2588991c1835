//! A database in a world of its own: its calls fail on demand, its clock stands still until it is moved, and beside it
//! there is room for copies.

#![allow(clippy::disallowed_types, reason = "watchers are called from the engine's own threads")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

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

    /// Copies the database before each call that changes something, while `act` does what it does, and after all; says of
    /// each copy where the crash was that it stands for.
    pub fn copies_at_each_change(&self, act: impl FnOnce()) -> Vec<(PathBuf, String)> {
        let copies = Arc::new(Mutex::new(Vec::new()));
        let (from, steps, kept) = (self.path(), self.beside("steps"), Arc::clone(&copies));
        let next = AtomicUsize::new(0);
        self.faults.watch(move |call, path| {
            if call.is_mutating() {
                // Nothing changes while a copy is made: whoever is about to change something waits for his own.
                let mut kept = kept.lock().unwrap();
                let number = next.fetch_add(1, Ordering::Relaxed);
                let to = steps.join(number.to_string());
                copy_directory(&from, &to);
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                kept.push((to, format!("a crash before step {number}, {call:?} of {name}")));
            }
        });
        act();
        self.faults.unwatch();
        let last = self.beside("after");
        copy_directory(&self.path(), &last);
        let mut copies = std::mem::take(&mut *copies.lock().unwrap());
        copies.push((last, "a crash after all".to_owned()));
        copies
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
