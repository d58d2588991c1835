//! The stores, each behind the same trait. What one needs that is not on this machine is left out, and said when it is
//! asked for.

use std::fmt::Display;
use std::path::Path;

use clap::ValueEnum;
use tamarack_bench::{Advance, Bed, Limits, Plan, Report, Store, Workload};

#[cfg(has_badger)]
mod badger;
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
    /// LMDB, which syncs only when asked to
    Lmdb,
    /// Badger, which keeps values below 1 MiB in its tables
    Badger,
    /// Badger with values from 128 bytes on in its value log
    BadgerVlog,
}

/// Values of so many bytes and more stand apart from the index, where a peer can do that.
#[cfg(any(feature = "fjall", feature = "rocksdb", has_badger))]
const SEPARATED_BYTES_MIN: u32 = 128;

/// What is the same for all stores.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Bytes of memory for blocks that were read, if not what each store takes by itself.
    pub cache_bytes: Option<usize>,
}

impl Peer {
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
        };
        built.to_owned()
    }

    /// What it is given beside its defaults.
    pub fn options(self) -> &'static str {
        match self {
            Self::Tamarack => "as it comes",
            Self::Rocksdb | Self::Leveldb | Self::Fjall => "no compression",
            Self::Blobdb => "no compression, blobs from 128 B, collected",
            Self::FjallBlobs => "no compression, blobs from 128 B",
            Self::Lmdb => "no sync but on request, no read-ahead",
            Self::Badger => "no compression, collected",
            Self::BadgerVlog => "no compression, value log from 128 B, collected",
        }
    }

    /// Runs `workloads` on a new store in `path`, and gives each report to `tell`.
    ///
    /// # Errors
    /// What the store says, or that it was not built in.
    pub fn measure(
        self,
        path: &Path,
        plan: &Plan,
        workloads: &[Workload],
        setting: Setting,
        tell: &mut dyn FnMut(&Report),
    ) -> Result<(), String> {
        #[cfg(has_badger)]
        let syncs_all = plan.writes_per_sync() == Some(1);
        match self {
            Self::Tamarack => run(tamarack::open(path, setting)?, path, plan, workloads, tell),
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => run(rocksdb::open(path, setting, false)?, path, plan, workloads, tell),
            #[cfg(feature = "rocksdb")]
            Self::Blobdb => run(rocksdb::open(path, setting, true)?, path, plan, workloads, tell),
            #[cfg(not(feature = "rocksdb"))]
            Self::Rocksdb | Self::Blobdb => Err("built without it: add the feature rocksdb".into()),
            #[cfg(has_leveldb)]
            Self::Leveldb => run(leveldb::open(path, setting)?, path, plan, workloads, tell),
            #[cfg(not(has_leveldb))]
            Self::Leveldb => {
                Err("built without it: install the library (Debian: libleveldb-dev), then build again with the feature leveldb"
                    .into())
            }
            #[cfg(feature = "fjall")]
            Self::Fjall => run(fjall::open(path, setting, false)?, path, plan, workloads, tell),
            #[cfg(feature = "fjall")]
            Self::FjallBlobs => run(fjall::open(path, setting, true)?, path, plan, workloads, tell),
            #[cfg(not(feature = "fjall"))]
            Self::Fjall | Self::FjallBlobs => Err("built without it: add the feature fjall".into()),
            #[cfg(feature = "lmdb")]
            Self::Lmdb => run(lmdb::open(path)?, path, plan, workloads, tell),
            #[cfg(not(feature = "lmdb"))]
            Self::Lmdb => Err("built without it: add the feature lmdb".into()),
            #[cfg(has_badger)]
            Self::Badger => run(badger::open(path, setting, syncs_all, None)?, path, plan, workloads, tell),
            #[cfg(has_badger)]
            Self::BadgerVlog => {
                let store = badger::open(path, setting, syncs_all, Some(SEPARATED_BYTES_MIN))?;
                run(store, path, plan, workloads, tell)
            }
            #[cfg(not(has_badger))]
            Self::Badger | Self::BadgerVlog => Err(format!("built without it: {}", env!("BADGER_MISSING"))),
        }
    }
}

fn run<S: Store>(
    store: S,
    path: &Path,
    plan: &Plan,
    workloads: &[Workload],
    tell: &mut dyn FnMut(&Report),
) -> Result<(), String>
where
    S::Error: Display,
{
    let limits = Limits { ratio: 1.3, slack: 512 << 20 };
    let mut bed = Bed::new(store, path, plan, workloads, limits);
    let advance: Advance<'_> = &|_| ();
    for workload in workloads {
        let report = bed.run(*workload, advance).map_err(|failure| describe(*workload, failure))?;
        tell(&report);
    }
    Ok(())
}

fn describe<E: Display>(workload: Workload, failure: tamarack_bench::Failure<E>) -> String {
    use tamarack_bench::Failure::{Io, Mismatch, Store, Usage};
    let name = workload.name();
    match failure {
        Usage(text) => format!("{name}: {text}"),
        Mismatch(text) => format!("{name}: wrong data: {text}"),
        Store(error) => format!("{name}: {error}"),
        Io(error) => format!("{name}: {error}"),
    }
}
