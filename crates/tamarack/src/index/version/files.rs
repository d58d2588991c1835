//! Handles of the files that versions mention. A file is doomed when its handle was marked obsolete *and* nobody
//! holds it any more.
//!
//! Owns: the decision when a table or segment file is unlinked, and the list of those that wait for it. Never opens or
//! reads one. I-06: every version (and through it every iterator, snapshot and checkpoint) holds the handles of the
//! files it can reach, so the last of them to go is what dooms. I-04: the mark is set only after the edit that drops
//! the file is durable. Of a file of which parts go, versions before and after the edit hold handles of their own; see
//! [`holes`](super::holes). Called by the index when it installs an edit, and by whoever drops the last version.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::base::error::Error;
use crate::base::ids::{SegmentId, TableId};
use crate::base::names::FileName;
use crate::base::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering};
use crate::env::Fs;

use super::holes::Holes;
use super::stock::Stock;

/// Hears of files that leave.
pub trait FileObserver: Send + Sync {
    /// `file` is about to be unlinked: whoever keeps it open should forget it.
    fn removing(&self, file: FileName);
    /// A file was doomed. Returns whether [`Files::remove_doomed`] will be called soon; otherwise it is at once. Any lock
    /// may be held.
    fn doomed(&self) -> bool {
        false
    }
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
    /// Bytes of files, and of parts of them, that no version will mention any more and that somebody still holds.
    leaving_bytes: AtomicU64,
    /// The same by file. Rank: innermost, as above.
    leaving: Mutex<HashMap<FileName, u64>>,
    /// Those of them that nobody can reach, and whether they may stay to become new ones. Rank: innermost, as above.
    doomed: Mutex<VecDeque<(FileName, bool)>>,
    /// Those of them that become new segments.
    pub(super) stock: Stock,
    /// Held by whoever removes files and may be waited for. Rank: outermost.
    removing: Mutex<()>,
    /// Bytes of a block of the file system.
    block_bytes: u64,
    /// Parts of segments that nobody can reach.
    pub(super) holes: Holes,
}

/// Where the file system does not tell. Punching more or less than whole blocks frees less, and does no harm.
const BLOCK_BYTES_USUAL: u64 = 4096;

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Files {
    /// Handles for the files in `directory`.
    pub fn new(fs: Arc<dyn Fs>, directory: &Path, observer: Box<dyn FileObserver>) -> Arc<Self> {
        let segments = Mutex::new(HashMap::new());
        let block_bytes = fs.block_bytes(directory).unwrap_or(BLOCK_BYTES_USUAL).max(1);
        Arc::new(Self {
            fs,
            directory: directory.to_path_buf(),
            observer,
            segments,
            leaving_bytes: AtomicU64::new(0),
            leaving: Mutex::default(),
            doomed: Mutex::default(),
            stock: Stock::default(),
            removing: Mutex::default(),
            block_bytes,
            holes: Holes::default(),
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
        self.forget(name);
        let path = name.path(&self.directory);
        if let Err(error) = self.fs.remove_file(&path) {
            self.observer.failed(Error::io("remove", &path, error));
        }
    }

    /// Whether files wait to be removed.
    pub fn has_doomed(&self) -> bool {
        !self.doomed.lock().is_empty()
    }

    /// Removes files as [`remove_doomed`](Self::remove_doomed) does; those that others who call this are removing are gone, too,
    /// when it returns. The caller holds no lock. Blocks on the device.
    pub fn finish_removal(&self) {
        let _alone = self.removing.lock();
        self.remove_doomed();
    }

    /// Removes the files that nobody can reach any more, but for those that are kept to become new ones. Blocks on the
    /// device.
    pub fn remove_doomed(&self) {
        let next = || self.doomed.lock().pop_front();
        while let Some((name, may_stay)) = next() {
            let bytes = self.leaving.lock().get(&name).copied().unwrap_or(0);
            if !may_stay || !self.stock.keep(name, bytes) {
                self.remove(name);
                self.left(name);
            }
        }
    }

    /// Keeps no file any more; those that were kept are removed like others. Returns whether there were any.
    pub fn release_stock(&self) -> bool {
        self.let_go(self.stock.clear())
    }

    /// From now on those files that are kept have at most `bytes_max` together; what has more is removed like others. Returns
    /// whether there was any.
    pub fn limit_stock(&self, bytes_max: u64) -> bool {
        self.let_go(self.stock.limit(bytes_max))
    }

    /// Has files removed that were kept. Returns whether there are any.
    pub(super) fn let_go(&self, names: Vec<FileName>) -> bool {
        let any = !names.is_empty();
        // Whoever asked for the space finds it free, whatever may stay by then.
        self.doomed.lock().extend(names.into_iter().map(|name| (name, false)));
        if any && !self.observer.doomed() {
            self.remove_doomed();
        }
        any
    }

    /// Has whoever keeps the file `name` open let go of it.
    pub(super) fn forget(&self, name: FileName) {
        self.observer.removing(name);
    }

    /// The file `name` takes no space any more.
    pub(super) fn left(&self, name: FileName) {
        if let Some(bytes) = self.leaving.lock().remove(&name) {
            self.leaving_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// I-06: the last holder of `name` is gone.
    fn doom(&self, name: FileName) {
        self.doomed.lock().push_back((name, true));
        if !self.observer.doomed() {
            self.remove_doomed();
        }
    }

    /// Tells the observer of a failure that costs space alone.
    pub(super) fn failed(&self, error: Error) {
        self.observer.failed(error);
    }

    /// Bytes of a block of the file system.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Bytes of files, or of parts of them, that are removed once the readers that hold them are gone.
    pub fn leaving_bytes(&self) -> u64 {
        self.leaving_bytes.load(Ordering::Relaxed)
    }

    /// Those files and their bytes.
    pub fn leaving(&self) -> HashMap<FileName, u64> {
        self.leaving.lock().clone()
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

    /// Another handle of the segment file `id`, for the versions after an edit that gives parts of it back. It takes the
    /// place of the present one when that is [superseded](FileHandle::supersede); until then nobody else knows it.
    pub(super) fn next_segment_handle(self: &Arc<Self>, id: SegmentId) -> Arc<FileHandle> {
        Arc::new(FileHandle::new(self.clone(), FileName::Segment(id)))
    }

    /// The newest handle of the segment file `id`, if anybody holds it.
    pub(super) fn known_segment(&self, id: SegmentId) -> Option<Arc<FileHandle>> {
        self.segments.lock().get(&id).and_then(std::sync::Weak::upgrade)
    }

    /// Whoever asks for segment `id` gets `handle` from now on.
    pub(super) fn register(&self, id: SegmentId, handle: &Arc<FileHandle>) {
        self.segments.lock().insert(id, Arc::downgrade(handle));
    }
}

/// A file that versions mention.
#[derive(Debug)]
pub struct FileHandle {
    files: Arc<Files>,
    name: FileName,
    obsolete: AtomicBool,
    superseded: Mutex<Option<Superseded>>,
}

/// What follows a handle: versions that do not reach some parts of its file.
#[derive(Debug)]
struct Superseded {
    /// Held, so that the file stays as long as somebody reaches all of it.
    next: Arc<FileHandle>,
    /// What the versions that hold the next one do not reach.
    ranges: Vec<Range<u64>>,
    /// Bytes of the whole blocks in them.
    bytes: u64,
}

impl FileHandle {
    fn new(files: Arc<Files>, name: FileName) -> Self {
        Self { files, name, obsolete: AtomicBool::new(false), superseded: Mutex::new(None) }
    }

    /// The file's name.
    pub fn name(&self) -> FileName {
        self.name
    }

    /// The file's path.
    pub fn path(&self) -> PathBuf {
        self.name.path(&self.files.directory)
    }

    /// Declares that the edit which drops the file, of `bytes`, is durable: the last holder's drop dooms it.
    pub fn mark_obsolete(&self, bytes: u64) {
        if !self.obsolete.swap(true, Ordering::AcqRel) {
            let unpunched = match self.name {
                FileName::Segment(id) => self.files.holes.forget(id),
                _ => 0,
            };
            let bytes = bytes + unpunched;
            self.files.leaving_bytes.fetch_add(bytes, Ordering::Relaxed);
            self.files.leaving.lock().insert(self.name, bytes);
        }
    }

    /// Declares that an edit is durable after which versions hold `next`, a handle of the same file, and do not reach
    /// `ranges`, in which there are `bytes` of whole blocks. When the last holder of this handle drops it, the ranges
    /// may be given back (I-06).
    pub(in super::super) fn supersede(&self, next: &Arc<Self>, ranges: Vec<Range<u64>>, bytes: u64) {
        if let FileName::Segment(id) = self.name {
            self.files.register(id, next);
        }
        self.files.leaving_bytes.fetch_add(bytes, Ordering::Relaxed);
        *self.superseded.lock() = Some(Superseded { next: next.clone(), ranges, bytes });
    }

    /// Whether the file is to be unlinked.
    pub fn is_obsolete(&self) -> bool {
        self.obsolete.load(Ordering::Acquire)
    }
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        let obsolete = self.is_obsolete();
        let superseded = self.superseded.lock().take();
        if let FileName::Segment(id) = self.name {
            // I-06: the last who could reach them is gone.
            if let Some(Superseded { next, ranges, bytes }) = &superseded {
                if !next.is_obsolete() {
                    self.files.holes.release(id, ranges.clone(), *bytes);
                }
                self.files.leaving_bytes.fetch_sub(*bytes, Ordering::Relaxed);
            }
            let mut segments = self.files.segments.lock();
            // Somebody may have asked for the handle after the last strong count went and got a new one.
            if segments.get(&id).is_some_and(|handle| handle.strong_count() == 0) {
                segments.remove(&id);
            }
        }
        if obsolete {
            self.files.doom(self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::super::super::testing::{MemoryFs, RecordedFiles};
    use super::*;
    use crate::env::fault::{Call, FaultEnv};
    use crate::env::sim::{SimDisk, SimOptions};

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
        assert_eq!(files.leaving(), HashMap::from([(FileName::Table(TableId(2)), 5)]));
        drop((kept, gone));
        assert_eq!(fs.names("cube"), ["000001.table", "000002.table"]);
        drop(reader);
        assert_eq!(fs.names("cube"), ["000001.table"]);
        assert_eq!(recorded.removed(), ["000002.table"]);
        assert_eq!(files.leaving_bytes(), 0);
        assert!(files.leaving().is_empty());
    }

    /// I-06, for a part of a file, and with that I-12.
    #[test]
    fn a_part_of_a_file_goes_with_the_last_who_reaches_it() {
        let fs = MemoryFs::new();
        let recorded = RecordedFiles::default();
        let files = Files::new(fs.clone(), Path::new("cube"), Box::new(recorded.clone()));
        let id = SegmentId(4);
        let first = files.segment(id);
        fs.put(&first.path(), &[7; 40_000]);
        let zeros = || {
            fs.get(&FileName::Segment(id).path(Path::new("cube"))).iter().filter(|&&byte| byte == 0).count()
        };
        let second = files.next_segment_handle(id);
        first.supersede(&second, vec![Range { start: 100, end: 10_000 }], 4096);
        let third = files.next_segment_handle(id);
        second.supersede(&third, vec![Range { start: 20_000, end: 30_000 }], 8192);
        assert!(Arc::ptr_eq(&third, &files.segment(id)), "who comes now reaches nothing of it");
        drop(second);
        assert_eq!((files.punch(true), files.leaving_bytes()), (0, 3 * 4096), "the first reaches everything");
        drop(first);
        assert_eq!((files.leaving_bytes(), files.unpunched()), (0, vec![(id, 4096), (id, 8192)]));
        let sharing = files.begin_sharing();
        assert_eq!(files.punch(true), 0, "a checkpoint is being made");
        assert_eq!(files.unpunchable(), [], "it will be done soon");
        drop(sharing);
        fs.fail("punch", 0);
        assert_eq!((files.punch(true), zeros(), recorded.failures()), (8192, 8192, 1), "one of them fails");
        assert_eq!((files.punch(true), files.unpunched()), (0, vec![(id, 4096)]), "and is not tried again");
        assert_eq!(files.unpunchable(), [(id, 4096)]);
        third.mark_obsolete(40_000 - 3 * 4096);
        assert_eq!((files.leaving_bytes(), files.unpunched()), (40_000 - 8192, vec![]));
        drop(third);
        assert_eq!((files.leaving_bytes(), recorded.removed()), (0, vec!["000004.vlog".to_owned()]));
    }

    /// Has others remove files.
    struct Later(RecordedFiles);

    impl FileObserver for Later {
        fn removing(&self, file: FileName) {
            self.0.removing(file);
        }

        fn doomed(&self) -> bool {
            true
        }

        fn failed(&self, error: Error) {
            self.0.failed(error);
        }
    }

    #[test]
    fn doomed_files_wait_for_whoever_removes_them() {
        let fs = MemoryFs::new();
        let recorded = RecordedFiles::default();
        let files = Files::new(fs.clone(), Path::new("cube"), Box::new(Later(recorded.clone())));
        let [first, second] = [1, 2].map(|id| files.table(TableId(id)));
        for handle in [&first, &second] {
            fs.put(&handle.path(), b"table");
            handle.mark_obsolete(5);
        }
        drop(first);
        files.remove_doomed();
        assert_eq!(recorded.removed(), ["000001.table"], "somebody holds the other");
        drop(second);
        assert_eq!(fs.names("cube"), ["000002.table"]);
        assert!(files.has_doomed());
        assert_eq!((files.leaving_bytes(), files.leaving().len()), (5, 1), "it takes space until then");
        files.remove_doomed();
        assert!(!files.has_doomed() && fs.names("cube").is_empty());
        assert_eq!((files.leaving_bytes(), files.leaving().len()), (0, 0));
    }

    #[test]
    fn who_finishes_a_removal_waits_for_what_others_remove() {
        let (env, faults) = FaultEnv::new(SimDisk::new(&SimOptions::default()).env());
        let files = Files::new(env.fs.clone(), Path::new("/"), Box::new(Later(RecordedFiles::default())));
        let handle = files.table(TableId(1));
        env.fs.create_new(&handle.path()).expect("created");
        handle.mark_obsolete(5);
        drop(handle);
        let (begins, begun) = mpsc::channel();
        let (goes_on, go_on) = mpsc::channel();
        let go_on = Mutex::new(go_on);
        faults.watch(move |call, _| {
            if call == Call::RemoveFile {
                begins.send(()).expect("somebody waits for it");
                go_on.lock().recv().expect("somebody lets it go on");
            }
        });
        thread::scope(|scope| {
            scope.spawn(|| files.finish_removal());
            begun.recv().expect("it begins");
            let waits = scope.spawn(|| {
                files.finish_removal();
                files.leaving_bytes()
            });
            // Long enough for one that does not wait.
            for _ in 0..1_000 {
                thread::yield_now();
            }
            let waited = !waits.is_finished();
            goes_on.send(()).expect("it waits");
            assert!(waited);
            assert_eq!(waits.join().expect("it returns"), 0);
        });
    }

    #[test]
    fn what_was_let_go_is_not_kept_again() {
        let env = SimDisk::new(&SimOptions::default()).env();
        let files = Files::new(env.fs.clone(), Path::new("/"), Box::new(Later(RecordedFiles::default())));
        for (id, limited) in [(1, false), (2, true)] {
            let handle = files.segment(SegmentId(id));
            env.fs.create_new(&handle.path()).expect("created");
            handle.mark_obsolete(5);
            drop(handle);
            files.keep_stock(5..=5);
            files.limit_stock(u64::MAX);
            files.finish_removal();
            assert_eq!((files.stock_bytes(), files.leaving_bytes()), (5, 5), "it is kept");
            assert!(if limited { files.limit_stock(0) } else { files.release_stock() });
            // Somebody begins a segment, and finds room, before the one who needs it comes to the removal.
            files.keep_stock(5..=5);
            files.limit_stock(u64::MAX);
            files.finish_removal();
            assert_eq!((files.stock_bytes(), files.leaving_bytes()), (0, 0), "limited: {limited}");
        }
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
