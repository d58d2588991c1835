//! The manifest of a checkpoint: what makes copies of a version's files an index of their own.

use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::names::FileName;
use crate::base::segment::SegmentMeta;

use super::manifest::{FIRST_MANIFEST, ManifestWriter};
use super::open::Index;
use super::version::{FileObserver, Files, Version};

/// Nothing is removed through the files of a checkpoint that is being made.
struct Nobody;

impl FileObserver for Nobody {
    fn removing(&self, _file: FileName) {}
    fn failed(&self, _error: Error) {}
}

impl Index {
    /// Puts a manifest of `version` in force in `directory`, which has a file for everything the version mentions;
    /// from then on the directory is a cube. Of the log from its head on it has the sealed segments `log`, and of one that is not
    /// sealed it says nothing: recovery finds it. Durable when it returns.
    ///
    /// # Errors
    /// `Io`, `NoSpace`. Whether the manifest is in force is unknown then.
    pub fn write_checkpoint(&self, version: &Version, log: Vec<SegmentMeta>, directory: &Path) -> Result<()> {
        let mut snapshot = version.snapshot(self.cube);
        // Only of those anything was ever given back, so their dead ranges stay with them.
        snapshot.add_segments.retain(|meta| version.is_collectable(meta.id));
        snapshot.add_segments.extend(log);
        let files = Files::new(self.files.fs().clone(), directory, Box::new(Nobody));
        // A first manifest without CURRENT would be taken for a creation that was cut off, and for a new cube.
        ManifestWriter::create(files, self.cube, FIRST_MANIFEST + 1, &snapshot).map(drop)
    }
}
