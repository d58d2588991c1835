//! The names of LevelDB's files (`db/filename.cc`), and what a directory holds of each kind.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Names the manifest that is in force.
pub const CURRENT: &str = "CURRENT";

/// The file that an open database holds a lock on.
pub const LOCK: &str = "LOCK";

/// LevelDB's files in a directory, by number.
#[derive(Debug, Default)]
pub struct Listing {
    /// Logs.
    pub logs: BTreeMap<u64, PathBuf>,
    /// Tables, each with the name it has: `.ldb`, or `.sst` if LevelDB was older than 1.14.
    pub tables: BTreeMap<u64, PathBuf>,
    /// Manifests.
    pub manifests: BTreeMap<u64, PathBuf>,
    /// Whether there is a file `CURRENT`.
    pub has_current: bool,
    /// A file that RocksDB has and LevelDB has not.
    pub of_rocksdb: Option<String>,
}

impl Listing {
    /// Lists `directory`.
    ///
    /// # Errors
    /// [`Error::Io`], also where there is no directory.
    pub fn read(directory: &Path) -> Result<Self> {
        let failed = |error| Error::io("read the directory", directory, error);
        let mut listing = Self::default();
        for entry in fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            // Names that are not text are not LevelDB's.
            if let Some(name) = name.to_str() {
                listing.add(name, entry.path());
            }
        }
        Ok(listing)
    }

    fn add(&mut self, name: &str, path: PathBuf) {
        if let Some(number) = manifest_number(name) {
            self.manifests.insert(number, path);
        } else if name == CURRENT {
            self.has_current = true;
        } else if name == "IDENTITY" || name.strip_prefix("OPTIONS-").and_then(digits).is_some() {
            self.of_rocksdb = Some(name.to_owned());
        } else if let Some((number, ending)) = name.split_once('.')
            && let Some(number) = digits(number)
        {
            match ending {
                "log" => drop(self.logs.insert(number, path)),
                "ldb" => drop(self.tables.insert(number, path)),
                "sst" => drop(self.tables.entry(number).or_insert(path)),
                _ => {}
            }
        }
    }

    /// Whether nothing of LevelDB is there.
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty() && self.tables.is_empty() && self.manifests.is_empty() && !self.has_current
    }
}

/// The number of the manifest called `name`, if that is the name of one.
pub fn manifest_number(name: &str) -> Option<u64> {
    name.strip_prefix("MANIFEST-").and_then(digits)
}

/// The path of a log that is not there.
pub fn log(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:06}.log"))
}

/// The path of a table that is not there under any name.
pub fn table(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:06}.ldb"))
}

fn digits(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(names: &[&str]) -> Listing {
        let mut listing = Listing::default();
        names.iter().for_each(|name| listing.add(name, Path::new("db").join(name)));
        listing
    }

    #[test]
    fn every_file_is_known_by_its_name() {
        let all = listing(&[
            "000003.log",
            "7.ldb",
            "000007.sst",
            "000008.sst",
            "MANIFEST-000002",
            "CURRENT",
            "LOCK",
            "LOG",
            "LOG.old",
            "000009.dbtmp",
            "x.log",
            ".log",
            "+1.log",
            "000001.ldb.old",
            "MANIFEST-",
            "lost",
        ]);
        assert_eq!(all.logs, BTreeMap::from([(3, "db/000003.log".into())]));
        let tables = BTreeMap::from([(7, "db/7.ldb".into()), (8, "db/000008.sst".into())]);
        assert_eq!(all.tables, tables);
        assert_eq!(all.manifests, BTreeMap::from([(2, "db/MANIFEST-000002".into())]));
        assert!(all.has_current && all.of_rocksdb.is_none() && !all.is_empty());
        assert!(listing(&["LOCK", "LOG", "notes.txt"]).is_empty());
    }

    #[test]
    fn rocksdb_is_told_by_its_files() {
        assert_eq!(listing(&["OPTIONS-000008"]).of_rocksdb.as_deref(), Some("OPTIONS-000008"));
        assert_eq!(listing(&["OPTIONS-mine"]).of_rocksdb, None);
    }

    #[test]
    fn an_ldb_file_goes_before_an_sst_file_in_whatever_order_they_are_listed() {
        for names in [["000007.sst", "000007.ldb"], ["000007.ldb", "000007.sst"]] {
            assert_eq!(listing(&names).tables[&7], Path::new("db/000007.ldb"));
        }
    }
}
