//! Appending edits, and replacing a manifest by a shorter one.

use std::path::PathBuf;

use crate::base::checksum::Seed;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::ids::CubeId;
use crate::base::names::FileName;
use crate::base::sync::Arc;
use crate::env::{File, aside, put_in_place, remove_if_there, write_aside};

use super::super::version::{Files, VersionEdit};
use super::format;

/// The manifest in force, open for appending. Used by one thread at a time.
#[derive(Debug)]
pub struct ManifestWriter {
    files: Arc<Files>,
    cube: CubeId,
    number: u64,
    file: Arc<dyn File>,
    seed: Seed,
    /// Where its snapshot ended.
    begun: u64,
    end: u64,
    failure: Option<Error>,
}

impl ManifestWriter {
    /// Writes manifest `number` with the one edit `snapshot` and puts it in force: file, directory and `CURRENT`
    /// are durable when this returns. A file of that name can only be the rest of an attempt that failed.
    pub fn create(files: Arc<Files>, cube: CubeId, number: u64, snapshot: &VersionEdit) -> Result<Self> {
        let manifest = Self::prepare(files, cube, number, snapshot)?;
        manifest.put_in_force()?;
        Ok(manifest)
    }

    /// Writes manifest `number`, and a `CURRENT` that names it, beside what is in force. That stays so, also after an error.
    fn prepare(files: Arc<Files>, cube: CubeId, number: u64, snapshot: &VersionEdit) -> Result<Self> {
        let (fs, directory) = (files.fs().clone(), files.directory().to_path_buf());
        if number == FileName::NUMBERS_END {
            let reason = "there are no more numbers for manifests: load the database into a new one";
            return Err(Error::unsupported(reason));
        }
        let path = FileName::Manifest(number).path(&directory);
        let seed = format::seed(cube, number);
        let mut bytes = format::encode_header(cube, number);
        let offset = bytes.len() as u64;
        format::put_record(&mut bytes, seed, offset, &format::encode_edit(snapshot));
        // The mark says that the snapshot is durable: true before anybody reads it, because CURRENT names the
        // file only after the sync.
        let offset = bytes.len() as u64;
        format::put_record(&mut bytes, seed, offset, &[]);

        // It has its name once it is whole: should `CURRENT` be lost, the last manifest is believed.
        let new = aside(&path);
        remove_if_there(&*fs, &new).map_err(|error| Error::io("remove", &new, error))?;
        let file = fs.create_new(&new).map_err(|error| Error::io("create", &new, error))?;
        file.write_at(&bytes, 0).map_err(|error| Error::io("write", &new, error))?;
        file.sync_data().map_err(|error| Error::sync(&new, error))?;
        fs.rename(&new, &path).map_err(|error| Error::io("rename", &new, error))?;
        fs.sync_dir(&directory).map_err(|error| Error::sync(&directory, error))?;
        let current = FileName::Current.path(&directory);
        write_aside(&*fs, &current, format::encode_current(number).as_bytes())
            .map_err(|error| Error::io("write what replaces", &current, error))?;
        let end = bytes.len() as u64;
        Ok(Self { files, cube, number, file, seed, begun: end, end, failure: None })
    }

    fn put_in_force(&self) -> Result<()> {
        let current = FileName::Current.path(self.files.directory());
        put_in_place(&**self.files.fs(), &current).map_err(|error| Error::io("replace", &current, error))
    }

    /// Appends `edit` and makes it durable. After a failure nobody knows whether the edit will be found when the
    /// cube is next opened, so this and every later call fails; but a disk that is full may be tried again.
    pub fn append(&mut self, edit: &VersionEdit) -> Result<()> {
        self.check_writable()?;
        let mut bytes = Vec::new();
        format::put_record(&mut bytes, self.seed, self.end, &format::encode_edit(edit));
        if let Err(error) = self.write_durably(&bytes) {
            if !self.cut_off(&error) {
                self.failure = Some(error.clone());
            }
            return Err(error);
        }
        self.end += bytes.len() as u64;
        self.mark();
        Ok(())
    }

    /// Whether it is known to end where it did before the call that has just failed, whatever comes. After a failed sync it is not, and
    /// every later call fails. Blocks on the device.
    pub fn is_as_before(&mut self) -> bool {
        if self.failure.is_none()
            && let Err(error) = self.file.sync_data()
        {
            let path = FileName::Manifest(self.number).path(self.files.directory());
            self.failure = Some(Error::sync(&path, error));
        }
        self.failure.is_none()
    }

    /// Puts a new manifest with the one edit `snapshot` in force and removes this one. Returns whether it has: if there
    /// is no space for a new one this one goes on. Fails like [`append`](Self::append): after a failure nobody knows
    /// which of the two is in force.
    pub fn rotate(&mut self, snapshot: &VersionEdit) -> Result<bool> {
        self.check_writable()?;
        let old = FileName::Manifest(self.number);
        let outcome = match Self::prepare(self.files.clone(), self.cube, self.number + 1, snapshot) {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                self.discard_next();
                return Ok(false);
            }
            Err(error) => Err(error),
            Ok(next) => next.put_in_force().map(|()| next),
        };
        match outcome {
            Ok(next) => *self = next,
            Err(error) => {
                self.failure = Some(error.clone());
                return Err(error);
            }
        }
        self.files.remove(old);
        Ok(true)
    }

    /// Removes what there is of a next manifest, for its space. The next attempt and the next open do so, too.
    fn discard_next(&self) {
        let directory = self.files.directory();
        let manifest = FileName::Manifest(self.number + 1).path(directory);
        for path in [aside(&manifest), manifest, aside(&FileName::Current.path(directory))] {
            drop(self.files.fs().remove_file(&path));
        }
    }

    /// Bytes of the manifest.
    #[cfg(test)]
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// Whether it is longer than `bytes_max`, and at least half of it would go if it were replaced.
    pub fn is_too_long(&self, bytes_max: u64) -> bool {
        self.end >= bytes_max.max(2 * self.begun)
    }

    /// The manifest's number.
    pub fn number(&self) -> u64 {
        self.number
    }

    fn path(&self) -> PathBuf {
        FileName::Manifest(self.number).path(self.files.directory())
    }

    fn check_writable(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some(failure) => Err(Error::read_only(format!(
                "an earlier write to the manifest failed ({failure}); open the database again, which recovers \
                 every acknowledged write"
            ))),
        }
    }

    fn write_durably(&self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(bytes, self.end).map_err(|error| Error::io("write", &self.path(), error))?;
        self.file.sync_data().map_err(|error| Error::sync(&self.path(), error))
    }

    /// Notes behind the last edit that it is durable, so that a reader can tell damage to it from an edit that
    /// was never acknowledged. The mark itself need not be durable: without it the reader merely knows less.
    fn mark(&mut self) {
        let mut bytes = Vec::new();
        format::put_record(&mut bytes, self.seed, self.end, &[]);
        match self.file.write_at(&bytes, self.end) {
            Ok(()) => self.end += bytes.len() as u64,
            // The edit stands, so this is no failure of it; but what stands behind it is unknown.
            Err(error) => {
                let error = Error::io("write", &self.path(), error);
                if !self.cut_off(&error) {
                    self.failure = Some(error);
                }
            }
        }
    }

    /// Whether a write failed for want of space alone and what it left behind the last record is cut off again.
    fn cut_off(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::NoSpace && self.file.set_len(self.end).is_ok()
    }
}
