//! The index of one cube: its current version, its manifest and its tables.
//!
//! Owns: which version is current, the manifest, the open tables, the ids of new tables, and the register of
//! running compactions. `install` changes the version, `read` looks into one, `maintain` flushes and compacts.
//! Never: reads or writes the value log; of segments it knows what the versions say.
//!
//! Called by the cube. Any number of threads may read and maintain at the same time.

use std::collections::BTreeSet;
use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, SegmentId};
use crate::base::memory::Allotment;
use crate::base::names::FileName;
use crate::base::swap::{ArcSwap, ArcSwapOption};
use crate::base::sync::{Arc, Mutex};
use crate::env::{Env, Fs, remove_if_there};

use super::cache::{BlockCache, TableCache};
use super::collect::Collecting;
use super::compact::{CompactionOptions, InProgress};
use super::install::ManifestTurns;
use super::manifest::{self, FIRST_MANIFEST, ManifestWriter, Recovered, TornTail};
use super::output::Destination;
use super::table::TableOptions;
use super::version::{FileObserver, Files, Version};

/// How an index is opened.
#[derive(Debug, Clone)]
pub struct IndexOptions {
    /// The shape of tables. Its cube is replaced by the one that is opened.
    pub table: TableOptions,
    /// When and how compactions run.
    pub compaction: CompactionOptions,
    /// Length at which a manifest is replaced by a short one, in bytes.
    pub manifest_bytes_max: u64,
    /// Tables that are kept open.
    pub open_tables_max: usize,
    /// The cache of table blocks, which cubes may share.
    pub blocks: Arc<BlockCache>,
    /// The memory for filters of open tables.
    pub filters: Arc<Allotment>,
}

/// The index of one cube; see the [module](self).
#[derive(Debug)]
pub struct Index {
    pub(super) cube: CubeId,
    pub(super) options: IndexOptions,
    pub(super) files: Arc<Files>,
    pub(super) tables: Arc<TableCache>,
    pub(super) destination: Destination,
    pub(super) current: ArcSwap<Version>,
    pub(super) manifest: ManifestTurns,
    /// Compactions that run. Rank: innermost; versions are loaded but not dropped while it is held, because
    /// dropping one may unlink files.
    pub(super) in_progress: Arc<Mutex<InProgress>>,
    /// Collections that run. Rank: inside `in_progress`.
    pub(super) collecting: Arc<Mutex<Collecting>>,
    /// Segments that were moved and whose relocation tables compactions have found to be damaged. Rank: a leaf.
    pub(super) unreadable: Mutex<BTreeSet<SegmentId>>,
}

/// Lets the table cache forget a file before the cube hears of it.
struct Forgetting {
    tables: Arc<ArcSwapOption<TableCache>>,
    next: Box<dyn FileObserver>,
}

impl FileObserver for Forgetting {
    fn removing(&self, file: FileName) {
        if let (FileName::Table(id), Some(tables)) = (file, &*self.tables.load()) {
            tables.forget(id);
        }
        self.next.removing(file);
    }

    fn doomed(&self) -> bool {
        self.next.doomed()
    }

    fn failed(&self, error: Error) {
        self.next.failed(error);
    }
}

/// The files of a cube before its index is there, and where their observer will find the table cache.
struct Unopened {
    files: Arc<Files>,
    tables: Arc<ArcSwapOption<TableCache>>,
}

impl Unopened {
    fn new(env: &Env, directory: &Path, observer: Box<dyn FileObserver>) -> Self {
        let tables = Arc::new(ArcSwapOption::empty());
        let forgetting = Forgetting { tables: tables.clone(), next: observer };
        Self { files: Files::new(env.fs.clone(), directory, Box::new(forgetting)), tables }
    }

    fn into_index(
        self,
        cube: CubeId,
        mut options: IndexOptions,
        version: Version,
        manifest: Option<ManifestWriter>,
    ) -> Index {
        options.table.cube = cube;
        let (directory, blocks) = (self.files.directory().to_path_buf(), options.blocks.clone());
        let tables = Arc::new(TableCache::new(
            self.files.fs().clone(),
            move |id| FileName::Table(id).path(&directory),
            options.table.clone(),
            blocks,
            options.filters.clone(),
            options.open_tables_max,
        ));
        self.tables.store(Some(tables.clone()));
        let next_id = version.numbers().next_table_id;
        Index {
            cube,
            destination: Destination::new(self.files.clone(), options.table.clone(), next_id),
            options,
            files: self.files,
            tables,
            current: ArcSwap::from_pointee(version),
            manifest: ManifestTurns::new(manifest),
            in_progress: Arc::default(),
            collecting: Arc::default(),
            unreadable: Mutex::default(),
        }
    }
}

impl Index {
    /// Creates the index of a new cube in an existing directory without files of a cube. Durable when it returns.
    ///
    /// # Errors
    /// `InvalidArgument` if there is a cube already.
    pub fn create(
        env: &Env,
        directory: &Path,
        cube: CubeId,
        options: IndexOptions,
        observer: Box<dyn FileObserver>,
    ) -> Result<Self> {
        let current = FileName::Current.path(directory);
        if env.fs.exists(&current).map_err(|error| Error::io("look for", &current, error))? {
            return Err(Error::invalid_argument(format!("{} holds a database already", directory.display())));
        }
        let unopened = Unopened::new(env, directory, observer);
        let version = Version::empty(options.table.order.clone(), unopened.files.clone());
        let manifest =
            ManifestWriter::create(unopened.files.clone(), cube, FIRST_MANIFEST, &version.snapshot(cube))?;
        Ok(unopened.into_index(cube, options, version, Some(manifest)))
    }

    /// Opens the index of an existing cube, and the log behind it by `replay`. Unless `read_only`, replaces the manifest by a fresh one
    /// then, and removes tables, manifests and temporary files that do not belong to the version. The second value is the end of the
    /// manifest that was torn, if it was: an edit that was never acknowledged and does not count.
    ///
    /// A manifest that has lost its end is one of an earlier time, and nothing but its log tells: what it does not mention stays until that
    /// was replayed, for a repair may need it.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no cube in `directory`, or its comparator has another name; `Corruption` for a
    /// damaged manifest, and for a table or segment that is missing or has the wrong length; those of `replay`.
    pub fn open<T>(
        env: &Env,
        directory: &Path,
        options: IndexOptions,
        observer: Box<dyn FileObserver>,
        read_only: bool,
        replay: impl FnOnce(CubeId, &Version) -> Result<T>,
    ) -> Result<(Self, Option<TornTail>, T)> {
        let unopened = Unopened::new(env, directory, observer);
        let recovered = manifest::read(&unopened.files, &options.table.order)?;
        check_files(&*env.fs, directory, &recovered.version)?;
        let Recovered { number, cube, version, torn } = recovered;
        let replayed = replay(cube, &version)?;
        let manifest = if read_only {
            None
        } else {
            let snapshot = version.snapshot(cube);
            let manifest = ManifestWriter::create(unopened.files.clone(), cube, number + 1, &snapshot)?;
            remove_orphans(&unopened.files, &version, manifest.number())?;
            Some(manifest)
        };
        if !read_only {
            for (segment, dead) in version.segments().all_dead_ranges() {
                let entry = version.segments().get(segment).expect("I-13: what has dead ranges is sealed");
                unopened.files.adopt(&entry.handle, dead)?;
            }
        }
        Ok((unopened.into_index(cube, options, version, manifest), torn, replayed))
    }

    /// The cube.
    pub fn cube(&self) -> CubeId {
        self.cube
    }

    /// The handles of the cube's files. The log takes a segment's handle when it creates the segment.
    pub fn files(&self) -> &Arc<Files> {
        &self.files
    }

    /// The open tables.
    pub fn tables(&self) -> &Arc<TableCache> {
        &self.tables
    }
}

/// Every file that the version mentions is there and has the length that the version says.
fn check_files(fs: &dyn Fs, directory: &Path, version: &Version) -> Result<()> {
    for (_, table) in version.tables() {
        check_file(fs, directory, FileName::Table(table.id), Some(table.file_bytes))?;
    }
    for entry in version.segments().sealed() {
        check_file(fs, directory, FileName::Segment(entry.meta.id), Some(entry.meta.file_bytes))?;
    }
    for (segment, _) in version.segments().unsealed() {
        check_file(fs, directory, FileName::Segment(segment), None)?;
    }
    Ok(())
}

fn check_file(fs: &dyn Fs, directory: &Path, name: FileName, bytes: Option<u64>) -> Result<()> {
    let path = name.path(directory);
    let found = match fs.open_read(&path).and_then(|file| file.len()) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::corruption(&path, 0, "a file that the manifest mentions", "no such file"));
        }
        Err(error) => return Err(Error::io("open", &path, error)),
    };
    match bytes {
        Some(bytes) if bytes != found => {
            let at = bytes.min(found);
            Err(Error::corruption(&path, at, format!("a file of {bytes} bytes"), format!("{found} bytes")))
        }
        _ => Ok(()),
    }
}

/// Removes what earlier runs have left behind: tables that no edit mentions, manifests out of force, temporary
/// files. Segments are the log's business.
fn remove_orphans(files: &Files, version: &Version, manifest: u64) -> Result<()> {
    let (fs, directory) = (files.fs(), files.directory());
    let live: std::collections::HashSet<_> = version.tables().map(|(_, table)| table.id).collect();
    let names = fs.list(directory).map_err(|error| Error::io("list", directory, error))?;
    for name in names {
        let orphan = match FileName::parse(&name) {
            Some(FileName::Table(id)) => !live.contains(&id),
            Some(FileName::Manifest(number)) => number != manifest,
            Some(FileName::Temporary) => true,
            Some(FileName::Segment(_) | FileName::Current) | None => false,
        };
        if orphan {
            let path = directory.join(&name);
            remove_if_there(&**fs, &path).map_err(|error| Error::io("remove", &path, error))?;
        }
    }
    Ok(())
}
