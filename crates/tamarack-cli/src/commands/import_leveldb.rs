//! `import-leveldb`: makes a database of what is in a LevelDB directory.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use tamarack::{Db, Options};
use tamarack_leveldb::{Database, Entries};

use crate::failure::{Failure, Outcome, Result};
use crate::leveldb::copy::Copy;
use crate::leveldb::destination::Destination;
use crate::leveldb::digest::{Content, Digest};
use crate::leveldb::report::Report;
use crate::output::Output;
use crate::progress::{Notices, Progress, Unit};

/// Make a new database of what is in a LevelDB directory
///
/// LevelDB need not be installed. The directory is not changed, and must not be open: its lock is held meanwhile. The
/// database is made in `DB.importing`, synced, read back and compared by number and checksum of its entries, and
/// then renamed to DB; so if there is a DB, it is complete. Damage ends the import with the name of the file and an
/// offset, and nothing is left behind; with --salvage, what is whole is imported, what is not is reported, and the
/// exit status is 1.
#[derive(Debug, Args)]
pub struct ImportLevelDb {
    /// Directory of the LevelDB database
    #[arg(value_name = "DIR")]
    source: PathBuf,

    /// Directory of the new database: there must be nothing in it
    #[arg(value_name = "DB")]
    target: PathBuf,

    /// Import what is whole of a damaged database. What was lost may have been newer values, or deletions: older values
    /// and deleted keys may come back
    #[arg(long)]
    salvage: bool,

    /// Leave out entries whose key is longer than 65,535 bytes; without this they are named, and nothing is imported
    #[arg(long)]
    skip_too_long: bool,

    /// Import databases with a comparator of a program's own, too. Keys are then in the order of their bytes; those that the
    /// comparator takes for equal although their bytes differ become entries of their own
    #[arg(long)]
    any_comparator: bool,

    /// Do not read the new database back
    #[arg(long)]
    no_verify: bool,

    /// Remove the `DB.importing` that an interrupted import has left, and begin anew
    #[arg(long)]
    restart: bool,
}

impl ImportLevelDb {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let started = Instant::now();
        let target = without_trailing_slash(&self.target);
        let destination = Destination::prepare(&target, &self.source, self.restart)?;
        let mut notices = Notices::new(json);
        let (entries, content) = self.import(&destination, &mut notices)?;
        if !self.no_verify {
            verify(destination.unfinished(), content)?;
        }
        destination.finish()?;
        let too_long = notices.total();
        let report = Report {
            entries: &entries,
            content,
            is_verified: !self.no_verify,
            too_long,
            reasons: notices.finish(),
            seconds: started.elapsed().as_secs_f64(),
        };
        Output::answer(|output| report.print(output, json))?;
        Ok(Outcome::positive_if(too_long == 0 && entries.losses().is_empty()))
    }

    /// Makes the database, and closes it when all is durable.
    fn import(&self, destination: &Destination, notices: &mut Notices) -> Result<(Entries, Content)> {
        let options = tamarack_leveldb::Options {
            salvage: self.salvage,
            any_comparator: self.any_comparator,
            temporary_directory: destination.parent().to_path_buf(),
            ..tamarack_leveldb::Options::default()
        };
        let source = Database::open(&self.source, options)?;
        destination.make_parent()?;
        let progress = Progress::start("import", Unit::Bytes, Some(source.total_bytes()));
        let mut bytes_shown = 0;
        let mut entries = source.entries(|bytes_read| {
            progress.advance(bytes_read.saturating_sub(bytes_shown));
            bytes_shown = bytes_shown.max(bytes_read);
        })?;
        let db = Db::open(destination.unfinished(), Options { error_if_exists: true, ..Options::default() })?;
        let skip_too_long = self.skip_too_long;
        let copy = Copy { db: &db, progress: &progress, notices, skip_too_long, bytes_shown };
        let content = copy.run(&mut entries)?;
        db.sync()?;
        db.close()?;
        Ok((entries, content))
    }
}

/// Reads the database back, as whoever opens it next will find it.
fn verify(path: &Path, written: Content) -> Result<()> {
    let options = Options { create_if_missing: false, read_only: true, ..Options::default() };
    let db = Db::open(path, options)?;
    let progress = Progress::start("verify", Unit::Items, Some(written.entries));
    let found = Digest::of(&db, &progress)?;
    drop(progress);
    db.close()?;
    if found == written {
        return Ok(());
    }
    Err(Failure::Mismatch(format!(
        "the new database gives other entries than were written to it: {} with the checksum {:016x}, where {} with {:016x} were; \
         it was removed",
        found.entries, found.checksum, written.entries, written.checksum
    )))
}

/// The path without slashes at its end, to which something can be appended.
fn without_trailing_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_with_other_entries_is_no_copy() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let db = Db::open(directory.path(), Options::default()).expect("it can be made");
        db.put(b"key", b"value").expect("it can be written");
        db.close().expect("it can be closed");
        let written = |entries: &[(&str, &str)]| {
            let mut digest = Digest::default();
            entries.iter().for_each(|(key, value)| digest.add(key.as_bytes(), value.as_bytes()));
            digest.content()
        };
        verify(directory.path(), written(&[("key", "value")])).expect("equal");
        for other in [&[("key", "Value")][..], &[("kez", "value")], &[], &[("key", "value"), ("z", "")]] {
            let failure = verify(directory.path(), written(other)).expect_err("not equal");
            assert!(matches!(failure, Failure::Mismatch(_)), "{failure}");
        }
    }
}
