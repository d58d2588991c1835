//! The stores, each behind the same trait. What one needs that is not on this machine is left out, and said when it is
//! asked for.

use std::fmt::Display;
use std::path::Path;

use clap::ValueEnum;
use tamarack_bench::{Plan, Store, Workload};

#[cfg(has_badger)]
mod badger;
mod bare;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(has_leveldb)]
mod leveldb;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(any(feature = "fjall", has_badger, has_leveldb))]
mod rest;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod tamarack;

use self::bare::Head;

/// A store, in one of its configurations. All of them hand each write to the kernel before the call returns, compress
/// nothing, and are otherwise as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Peer {
    /// Tamarack
    Tamarack,
    /// RocksDB
    Rocksdb,
    /// RocksDB with values from 128 bytes on in blob files, which are collected
    Blobdb,
    /// LevelDB
    Leveldb,
    /// fjall
    Fjall,
    /// fjall with values from 128 bytes on in blob files
    FjallBlobs,
    /// LMDB, which syncs only where every write is to be synced, or when asked to
    Lmdb,
    /// Badger, which keeps values below 1 MiB in its tables
    Badger,
    /// Badger with values from 128 bytes on in its value log
    BadgerVlog,
    /// No store: one file of values and a call for each, which is what a store of values in a log is bounded by
    Bare,
    /// The same with a key and a header before each value: what a log is bounded by from which values can be collected
    Records,
    /// As bare, but that each value is read from the device: what it gives for reads of that size at random
    Device,
}

/// Values of so many bytes and more stand apart from the index, where a peer can do that.
#[cfg(any(feature = "fjall", feature = "rocksdb", has_badger))]
const SEPARATED_BYTES_MIN: u32 = 128;

/// What a store that was not built in says first.
#[allow(dead_code, reason = "where all are built in, nobody but tests looks for it")]
pub const NOT_BUILT: &str = "built without it";

/// What is the same for all stores.
#[derive(Debug, Clone, Copy, Default)]
pub struct Setting {
    /// Bytes of memory for blocks that were read, if not what each store takes by itself.
    pub cache_bytes: Option<usize>,
    /// Reads go past the kernel's cache of files.
    pub direct: bool,
}

/// What is done with an open store, whichever it is.
pub trait Task {
    /// What comes of it.
    type Outcome;

    /// Does it with what `open` opens, one at a time.
    ///
    /// # Errors
    /// What has failed, as a text.
    fn run<S: Store>(self, open: impl Fn() -> Result<S, String>) -> Result<Self::Outcome, String>
    where
        S::Error: Display;
}

impl Peer {
    /// Whether it is a store, and not what stores are held against.
    pub fn is_store(self) -> bool {
        !matches!(self, Self::Bare | Self::Records | Self::Device)
    }

    /// What is no store has this before each value in its file.
    pub fn head(self) -> Head {
        if self == Self::Records { Head::Record } else { Head::None }
    }

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tamarack => "tamarack",
            Self::Rocksdb => "rocksdb",
            Self::Blobdb => "blobdb",
            Self::Leveldb => "leveldb",
            Self::Fjall => "fjall",
            Self::FjallBlobs => "fjall-blobs",
            Self::Lmdb => "lmdb",
            Self::Badger => "badger",
            Self::BadgerVlog => "badger-vlog",
            Self::Bare => "bare",
            Self::Records => "records",
            Self::Device => "device",
        }
    }

    /// Its version.
    pub fn version(self) -> String {
        let built = match self {
            Self::Tamarack => return tamarack_bench::Tamarack::version(),
            #[cfg(has_leveldb)]
            Self::Leveldb => return leveldb::version(),
            #[cfg(not(has_leveldb))]
            Self::Leveldb => "not there",
            Self::Rocksdb | Self::Blobdb => env!("ROCKSDB_VERSION"),
            Self::Fjall | Self::FjallBlobs => env!("FJALL_VERSION"),
            Self::Lmdb => env!("LMDB_VERSION"),
            Self::Badger | Self::BadgerVlog => env!("BADGER_VERSION"),
            Self::Bare | Self::Records | Self::Device => "none",
        };
        built.to_owned()
    }

    /// What it is given beside its defaults.
    pub fn options(self) -> &'static str {
        match self {
            Self::Tamarack => "as it comes",
            Self::Rocksdb | Self::Leveldb | Self::Fjall => "no compression",
            Self::Blobdb => "no compression, blobs from 128 B, collected by 2 MiB",
            Self::FjallBlobs => "no compression, blobs from 128 B",
            Self::Lmdb => "no sync but where all is synced, read-ahead for scans alone",
            Self::Badger => "no compression, collected",
            Self::BadgerVlog => "no compression, value log from 128 B, collected",
            Self::Bare => "no store: one file of values",
            Self::Records => "no store: one file of values with their keys",
            Self::Device => "no store: one file of values, each read from the device",
        }
    }

    /// Whether it can read past the kernel's cache of files.
    fn reads_directly(self) -> bool {
        matches!(self, Self::Tamarack | Self::Rocksdb | Self::Blobdb) || !self.is_store()
    }

    /// Opens the store in `path`, as `workloads` are measured on it, and does `task` with it. It need not be there before.
    ///
    /// # Errors
    /// What the store says, that it was not built in, or that it has no such setting; and those of the task.
    pub fn with<T: Task>(
        self,
        path: &Path,
        plan: &Plan,
        workloads: &[Workload],
        setting: Setting,
        task: T,
    ) -> Result<T::Outcome, String> {
        if setting.direct && !self.reads_directly() {
            return Err(
                "it always reads through the kernel's cache: without --direct it can be measured".to_owned()
            );
        }
        #[cfg(any(feature = "lmdb", has_badger))]
        let syncs_all = workloads
            .iter()
            .filter(|workload| workload.changes())
            .all(|workload| workload.writes_per_sync(plan) == Some(1));
        #[cfg(feature = "lmdb")]
        let walks = workloads.iter().any(|workload| workload.walks());
        match self {
            Self::Tamarack => task.run(|| tamarack::open(path, setting)),
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => task.run(|| rocksdb::open(path, setting, false)),
            #[cfg(feature = "rocksdb")]
            Self::Blobdb => task.run(|| rocksdb::open(path, setting, true)),
            #[cfg(not(feature = "rocksdb"))]
            Self::Rocksdb | Self::Blobdb => Err(format!("{NOT_BUILT}: add the feature rocksdb")),
            #[cfg(has_leveldb)]
            Self::Leveldb => task.run(|| leveldb::open(path, setting)),
            #[cfg(not(has_leveldb))]
            Self::Leveldb => Err(format!(
                "{NOT_BUILT}: install the library (Debian: libleveldb-dev), then build again with the feature leveldb"
            )),
            #[cfg(feature = "fjall")]
            Self::Fjall => task.run(|| fjall::open(path, setting, false)),
            #[cfg(feature = "fjall")]
            Self::FjallBlobs => task.run(|| fjall::open(path, setting, true)),
            #[cfg(not(feature = "fjall"))]
            Self::Fjall | Self::FjallBlobs => Err(format!("{NOT_BUILT}: add the feature fjall")),
            #[cfg(feature = "lmdb")]
            Self::Lmdb => task.run(|| lmdb::open(path, syncs_all, walks)),
            #[cfg(not(feature = "lmdb"))]
            Self::Lmdb => Err(format!("{NOT_BUILT}: add the feature lmdb")),
            #[cfg(has_badger)]
            Self::Badger => task.run(|| badger::open(path, setting, syncs_all, None)),
            #[cfg(has_badger)]
            Self::BadgerVlog => {
                task.run(|| badger::open(path, setting, syncs_all, Some(SEPARATED_BYTES_MIN)))
            }
            #[cfg(not(has_badger))]
            Self::Badger | Self::BadgerVlog => Err(format!("{NOT_BUILT}: {}", env!("BADGER_MISSING"))),
            Self::Bare | Self::Records | Self::Device => {
                let setting = Setting { direct: setting.direct || self == Self::Device, ..setting };
                task.run(|| bare::open(path, plan, workloads, setting, self.head()))
            }
        }
    }
}
