//! A directory for a database, and what the reader finds in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tamarack_leveldb::{Counts, Damage, Database, Error, Loss, Options, Remark};

use crate::builder::{Edit, Log, Op};

/// Entries by key.
pub type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// A temporary directory.
pub struct Home {
    directory: tempfile::TempDir,
}

/// What the reader has found.
#[derive(Debug)]
pub struct Found {
    pub content: Content,
    pub losses: Vec<Loss>,
    pub remarks: Vec<Remark>,
    pub counts: Counts,
}

impl Home {
    /// An empty one.
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    /// One with a manifest of these edits, called `MANIFEST-000002`.
    pub fn with(edits: &[Edit]) -> Self {
        let home = Self::new();
        home.manifest(edits);
        home
    }

    /// One with copies of the files in `directory`.
    pub fn copy_of(directory: &Path) -> Self {
        let home = Self::new();
        for entry in fs::read_dir(directory).expect("the directory is there") {
            let entry = entry.expect("a file");
            fs::copy(entry.path(), home.path().join(entry.file_name())).expect("it can be copied");
        }
        home
    }

    /// Writes the manifest anew.
    pub fn manifest(&self, edits: &[Edit]) {
        let records: Vec<_> = edits.iter().map(|edit| edit.0.clone()).collect();
        self.write("MANIFEST-000002", Log::of(&records));
        self.write("CURRENT", b"MANIFEST-000002\n");
        self.write("LOCK", b"");
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path().join(name), bytes).expect("it can be written");
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path().join(name)).expect("it is there");
    }

    /// The files that are not empty, with their bytes.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.path()).expect("the directory is there");
        let mut files: Vec<_> = entries
            .map(|entry| entry.expect("a file").path())
            .map(|path| {
                let bytes = fs::read(&path).expect("it can be read");
                (path, bytes)
            })
            .filter(|(_, bytes)| !bytes.is_empty())
            .collect();
        files.sort();
        files
    }

    /// Reads the database.
    pub fn read(&self) -> Result<Found, Error> {
        read(self.path(), Options::default())
    }

    /// Reads what is whole of it.
    pub fn salvage(&self) -> Found {
        read(self.path(), Options { salvage: true, ..Options::default() }).expect("damage is left out")
    }

    /// The content of the database, which must be whole.
    pub fn content(&self) -> Content {
        self.read().expect("the database is whole").content
    }

    /// The damage at which reading ends.
    pub fn damage(&self) -> Damage {
        match self.read().expect_err("the database is damaged") {
            Error::Damage(damage) => damage,
            other => panic!("no damage: {other}"),
        }
    }
}

/// Reads the database in `directory`. What it has in common with all others is checked.
pub fn read(directory: &Path, options: Options) -> Result<Found, Error> {
    let salvage = options.salvage;
    let database = Database::open(directory, options)?;
    let total = database.total_bytes();
    let mut entries = database.entries(|_| {})?;
    let mut content = Content::new();
    while entries.advance()? {
        let (key, value) = (entries.key().to_vec(), entries.value().to_vec());
        assert!(content.last_key_value().is_none_or(|(last, _)| *last < key), "keys are in order");
        content.insert(key, value);
    }
    if !salvage {
        assert_eq!(entries.bytes_read(), total, "progress ends at the end");
        assert_eq!(entries.losses(), []);
    }
    Ok(Found {
        content,
        losses: entries.losses().to_vec(),
        remarks: entries.remarks().to_vec(),
        counts: entries.counts(),
    })
}

/// What operations come to.
pub fn model<'a>(ops: impl IntoIterator<Item = &'a Op>) -> Content {
    let mut content = Content::new();
    for op in ops {
        match op {
            Op::Put(key, value) => drop(content.insert(key.clone(), value.clone())),
            Op::Delete(key) => drop(content.remove(key)),
        }
    }
    content
}

/// Entries of texts.
pub fn texts(entries: &[(&str, &str)]) -> Content {
    entries.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}
