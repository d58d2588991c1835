//! Handles of the files that versions mention. A handle removes its file when it was marked obsolete *and*
//! nobody holds it any more.
//!
//! Owns: the decision when a table or segment file is unlinked. Never opens or reads one.
//! I-06: every version (and through it every iterator, snapshot and checkpoint) holds the handles of the files
//! it can reach, so the last of them to go is what unlinks. I-04: the mark is set only after the edit that drops
//! the file is durable. Called by the index when it installs an edit, and by whoever drops the last version.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::base::error::Error;
use crate::base::ids::{SegmentId, TableId};
use crate::base::names::FileName;
use crate::base::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering};
use crate::env::Fs;

/// Hears of files that leave.
pub trait FileObserver: Send + Sync {
    /// `file` is about to be unlinked: whoever keeps it open should forget it.
    fn removing(&self, file: FileName);
    /// A file could not be removed. It is removed when the cube is next opened; nothing else depends on it.
    fn failed(&self, error: Error);
}

/// The directory in which handles remove their files, and the handles of segments by id.
pub struct Files {
    fs: Arc<dyn Fs>,
    directory: PathBuf,
    observer: Box<dyn FileObserver>,
    /// Segments get their handle when the log creates them, long before a version mentions them; both must hold
    /// the same one. Rank: innermost, nothing is called while it is held.
    segments: Mutex<HashMap<SegmentId, std::sync::Weak<FileHandle>>>,
    /// Bytes of files that no version will mention any more and that somebody still holds.
    leaving_bytes: AtomicU64,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Files {
    /// Handles for the files in `directory`.
    pub fn new(fs: Arc<dyn Fs>, directory: &Path, observer: Box<dyn FileObserver>) -> Arc<Self> {
        let segments = Mutex::new(HashMap::new());
        Arc::new(Self {
            fs,
            directory: directory.to_path_buf(),
            observer,
            segments,
            leaving_bytes: AtomicU64::new(0),
        })
    }

    /// The file system that the files live in.
    pub fn fs(&self) -> &Arc<dyn Fs> {
        &self.fs
    }

    /// The directory that the files live in.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Removes a file that no version mentions. A failure is reported and otherwise harmless: the file is
    /// removed when the cube is next opened.
    pub fn remove(&self, name: FileName) {
        self.observer.removing(name);
        let path = name.path(&self.directory);
        if let Err(error) = self.fs.remove_file(&path) {
            self.observer.failed(Error::io("remove", &path, error));
        }
    }

    /// Bytes of files that are removed once the readers that hold them are gone.
    pub fn leaving_bytes(&self) -> u64 {
        self.leaving_bytes.load(Ordering::Relaxed)
    }

    /// A handle of the table file `id`. The caller makes one per table and shares it.
    pub fn table(self: &Arc<Self>, id: TableId) -> Arc<FileHandle> {
        Arc::new(FileHandle::new(self.clone(), FileName::Table(id)))
    }

    /// The handle of the segment file `id`; everybody who asks while somebody holds it gets the same one.
    pub fn segment(self: &Arc<Self>, id: SegmentId) -> Arc<FileHandle> {
        let mut segments = self.segments.lock();
        if let Some(handle) = segments.get(&id).and_then(std::sync::Weak::upgrade) {
            return handle;
        }
        let handle = Arc::new(FileHandle::new(self.clone(), FileName::Segment(id)));
        segments.insert(id, Arc::downgrade(&handle));
        handle
    }
}

/// A file that versions mention.
#[derive(Debug)]
pub struct FileHandle {
    files: Arc<Files>,
    name: FileName,
    obsolete: AtomicBool,
    /// Bytes of the file, known since it became obsolete.
    bytes: AtomicU64,
}

impl FileHandle {
    fn new(files: Arc<Files>, name: FileName) -> Self {
        Self { files, name, obsolete: AtomicBool::new(false), bytes: AtomicU64::new(0) }
    }

    /// The file's name.
    pub fn name(&self) -> FileName {
        self.name
    }

    /// The file's path.
    pub fn path(&self) -> PathBuf {
        self.name.path(&self.files.directory)
    }

    /// Declares that the edit which drops the file, of `bytes`, is durable: the last holder's drop unlinks it.
    pub fn mark_obsolete(&self, bytes: u64) {
        if !self.obsolete.swap(true, Ordering::AcqRel) {
            self.bytes.store(bytes, Ordering::Relaxed);
            self.files.leaving_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Whether the file is to be unlinked.
    pub fn is_obsolete(&self) -> bool {
        self.obsolete.load(Ordering::Acquire)
    }
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        let obsolete = self.is_obsolete();
        if let FileName::Segment(id) = self.name {
            let mut segments = self.files.segments.lock();
            // Somebody may have asked for the handle after the last strong count went and got a new one.
            if segments.get(&id).is_some_and(|handle| handle.strong_count() == 0) {
                segments.remove(&id);
            }
        }
        // I-06: the last holder is gone, so nobody can reach the file.
        if obsolete {
            self.files.remove(self.name);
            self.files.leaving_bytes.fetch_sub(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{MemoryFs, RecordedFiles};
    use super::*;

    /// I-06.
    #[test]
    fn an_obsolete_file_goes_with_its_last_holder() {
        let fs = MemoryFs::new();
        let recorded = RecordedFiles::default();
        let files = Files::new(fs.clone(), Path::new("cube"), Box::new(recorded.clone()));
        let kept = files.table(TableId(1));
        let gone = files.table(TableId(2));
        for handle in [&kept, &gone] {
            fs.put(&handle.path(), b"table");
        }
        let reader = gone.clone();
        gone.mark_obsolete(5);
        assert_eq!(files.leaving_bytes(), 5);
        drop((kept, gone));
        assert_eq!(fs.names("cube"), ["000001.table", "000002.table"]);
        drop(reader);
        assert_eq!(fs.names("cube"), ["000001.table"]);
        assert_eq!(recorded.removed(), ["000002.table"]);
        assert_eq!(files.leaving_bytes(), 0);
    }

    #[test]
    fn a_failed_removal_is_reported() {
        let recorded = RecordedFiles::default();
        let files = Files::new(MemoryFs::new(), Path::new("cube"), Box::new(recorded.clone()));
        files.table(TableId(3)).mark_obsolete(0);
        assert_eq!(recorded.failures(), 1);
    }

    #[test]
    fn a_segment_has_one_handle_at_a_time() {
        let files = Files::new(MemoryFs::new(), Path::new("cube"), Box::new(RecordedFiles::default()));
        let first = files.segment(SegmentId(4));
        assert!(Arc::ptr_eq(&first, &files.segment(SegmentId(4))));
        drop(first);
        assert!(files.segments.lock().is_empty());
    }
}
