//! What a database consists of: `CURRENT`, the manifest that it names, and the sum of that manifest's edits.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::edit::{self, Field, NewTable};
use crate::error::{Damage, Error, Result};
use crate::log::{Item, LogReader};
use crate::names::{self, CURRENT};
use crate::remark::Remark;

/// The comparator that orders keys by their bytes. LevelDB has no other of its own.
pub const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// Where comparators of RocksDB have their names.
const OF_ROCKSDB: &str = "rocksdb.";

/// The sum of a manifest's edits.
#[derive(Debug, Default)]
pub struct Manifest {
    /// The comparator's name.
    pub comparator: Option<String>,
    /// Logs from this number on are to be replayed.
    pub log_number: u64,
    /// And the log with this number.
    pub previous_log_number: u64,
    /// The highest sequence number in the tables.
    pub last_sequence: u64,
    /// The tables, by number.
    pub tables: BTreeMap<u64, NewTable>,
    /// The file ends in the middle of a record: a crash, as a rule.
    pub torn: Option<Remark>,
    /// The tables by level, from which those in force follow.
    levels: BTreeMap<(u32, u64), NewTable>,
    has: Fields,
}

/// Which fields an edit has set that a manifest must have.
#[derive(Debug, Default)]
struct Fields {
    log_number: bool,
    next_file_number: bool,
    last_sequence: bool,
}

/// The path of the manifest in force.
///
/// # Errors
/// [`Error::Damage`] if `CURRENT` does not say; [`Error::Io`].
pub fn current(directory: &Path) -> Result<PathBuf> {
    let path = directory.join(CURRENT);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Damage::new(&path, 0, "a file", "none").into());
        }
        Err(error) => return Err(Error::io("read", &path, error)),
    };
    let text = String::from_utf8_lossy(&bytes);
    match text.strip_suffix('\n') {
        Some(name) if names::manifest_number(name).is_some() => Ok(directory.join(name)),
        _ => {
            let found = format!("{:?}", text.chars().take(40).collect::<String>());
            Err(Damage::new(&path, 0, "the name of a manifest and the end of the line", found).into())
        }
    }
}

impl Manifest {
    /// Reads the manifest at `path`.
    ///
    /// # Errors
    /// [`Error::Damage`], also where edits have not said all that there is to know; [`Error::NotLevelDb`] if it is one of
    /// RocksDB's; [`Error::Io`].
    pub fn read(path: &Path) -> Result<Self> {
        let mut reader = LogReader::open(path)?;
        let mut manifest = Self::default();
        let mut record = Vec::new();
        loop {
            match reader.next(&mut record)? {
                Item::Record(offset) => manifest.apply(path, offset, &record)?,
                Item::Damaged(damage, _) => return Err(damage.into()),
                Item::Torn { offset, bytes } => {
                    manifest.torn = Some(Remark::TornManifest { file: path.to_path_buf(), offset, bytes });
                    break;
                }
                Item::End => break,
            }
        }
        manifest.finish(&reader)?;
        Ok(manifest)
    }

    fn apply(&mut self, path: &Path, offset: u64, record: &[u8]) -> Result<()> {
        let fields = edit::decode(record).map_err(|bad| -> Error {
            if bad.is_of_rocksdb {
                return of_rocksdb(path);
            }
            Damage::new(path, offset, "an edit", format!("one with a field {} that is none", bad.tag)).into()
        })?;
        // What an edit removes is removed before what it adds: a table may move to another level.
        for field in &fields {
            if let Field::DeletedTable { level, number } = field {
                self.levels.remove(&(*level, *number));
            }
        }
        for field in fields {
            match field {
                Field::Comparator(name) => {
                    let name = String::from_utf8_lossy(name).into_owned();
                    if name.starts_with(OF_ROCKSDB) {
                        return Err(of_rocksdb(path));
                    }
                    self.comparator = Some(name);
                }
                Field::LogNumber(number) => {
                    self.log_number = number;
                    self.has.log_number = true;
                }
                Field::PreviousLogNumber(number) => self.previous_log_number = number,
                Field::NextFileNumber(_) => self.has.next_file_number = true,
                Field::LastSequence(sequence) => {
                    self.last_sequence = sequence;
                    self.has.last_sequence = true;
                }
                Field::CompactionPointer | Field::DeletedTable { .. } => {}
                Field::NewTable(table) => drop(self.levels.insert((table.level, table.number), table)),
            }
        }
        Ok(())
    }

    fn finish(&mut self, reader: &LogReader) -> Result<()> {
        let needed = [
            (self.has.next_file_number, "the number of the next file"),
            (self.has.log_number, "the number of the log"),
            (self.has.last_sequence, "the last sequence number"),
        ];
        if let Some((_, what)) = needed.iter().find(|(is_there, _)| !is_there) {
            let found = format!("the end of the file at {}", reader.len());
            return Err(
                Damage::new(reader.path(), reader.offset(), format!("an edit with {what}"), found).into()
            );
        }
        self.tables =
            std::mem::take(&mut self.levels).into_values().map(|table| (table.number, table)).collect();
        Ok(())
    }
}

/// The error for a directory of RocksDB's, in which `file` gives it away.
pub fn of_rocksdb(file: &Path) -> Error {
    Error::NotLevelDb(format!(
        "{} is a file of RocksDB's, whose databases LevelDB cannot read, and Tamarack neither: write the entries out with a \
         program that uses RocksDB, and load them (`tamarack load` takes JSON lines, CSV and TSV)",
        file.display()
    ))
}
