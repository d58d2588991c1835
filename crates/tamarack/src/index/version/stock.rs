//! Segments that nobody can reach any more, kept to become new ones: what a flash translation layer does with the blocks that it
//! has erased.
//!
//! Removing a segment can take longer than writing it. Where the file system tells the device at once of every block that it
//! gets back (ext4 mounted with `discard`), 32 MiB took it 40 ms on the reference machine, and meanwhile it did next to nothing
//! else: 37 MB/s of sequential writes beside removals, 4.1 GB/s without. A log that is collected needs as many new files as it
//! gives back. So while writes keep coming, doomed segments stay in the directory as far as the bound on space allows, and
//! whoever begins a segment *recycles* one; but no more than are soon needed, and none on a disk that is nearly full. Files of
//! which parts were given back do not become segments: to fill them again takes space from the file system.
//!
//! # The protocol
//!
//! 1. *Stock.* A doomed segment (I-04, I-06) stays under its name. No version mentions it, so whoever opens the
//!    cube after a crash removes it. Where there is less space left than the stock takes, its files are removed like others.
//! 2. *Blank.* Whoever needs a segment takes it, and leaves it alone if the file has another name, for then a checkpoint has it
//!    (I-12). All of it is made to read as zeros, with its space reserved, and that is made durable.
//! 3. *Rename.* Only then it gets the name of the new segment (I-14). What a crash leaves under that name reads as zeros but
//!    for what was written to it as the new segment, like a file that was created and whose space was reserved. A crash may leave it under
//!    its old name, or under both: no version mentions the old one.
//!
//! Where any of that fails, the file is removed and its owner makes a new one, which tells what is wrong with the disk.
//! Lock rank: innermost, nothing is called while the stock is locked.

use std::io;
use std::ops::RangeInclusive;

use super::files::Files;
use crate::base::names::FileName;
use crate::base::sync::{Arc, AtomicU64, Mutex, Ordering};
use crate::env::File;

/// The sizes of files that stay if none do.
const NONE: RangeInclusive<u64> = RangeInclusive::new(1, 0);

/// The doomed segments that stay.
#[derive(Debug, Default)]
pub struct Stock {
    kept: Mutex<Kept>,
    recycled: AtomicU64,
}

#[derive(Debug)]
struct Kept {
    /// With the bytes that each takes.
    files: Vec<(FileName, u64)>,
    /// Bytes that those which stay may have together.
    bytes_max: u64,
    /// Bytes that each has; files of other sizes do not stay.
    sizes: RangeInclusive<u64>,
    /// Whether the file system cannot blank files.
    unsupported: bool,
}

impl Default for Kept {
    fn default() -> Self {
        Self { files: Vec::new(), bytes_max: u64::MAX, sizes: NONE, unsupported: false }
    }
}

impl Kept {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Takes out the largest file of at most `bytes_max`.
    fn take(&mut self, bytes_max: u64) -> Option<(FileName, u64)> {
        let fitting = self.files.iter().enumerate().filter(|(_, (_, bytes))| *bytes <= bytes_max);
        let (place, _) = fitting.max_by_key(|(_, (_, bytes))| *bytes)?;
        Some(self.files.swap_remove(place))
    }

    /// Takes out the smallest file without which there are at most `bytes_max`, or else the largest, if there are more.
    fn take_beyond(&mut self, bytes_max: u64) -> Option<FileName> {
        let excess = self.bytes().checked_sub(bytes_max).filter(|&bytes| bytes > 0)?;
        let enough = self.files.iter().enumerate().filter(|(_, (_, bytes))| *bytes >= excess);
        let place = enough.min_by_key(|(_, (_, bytes))| *bytes).map(|(place, _)| place);
        let file = place.map(|place| self.files.swap_remove(place)).or_else(|| self.take(u64::MAX));
        file.map(|(name, _)| name)
    }
}

impl Stock {
    /// Keeps the doomed file `name` of `bytes`, if it is to stay.
    pub(super) fn keep(&self, name: FileName, bytes: u64) -> bool {
        let mut kept = self.kept.lock();
        let stays = matches!(name, FileName::Segment(_))
            && kept.sizes.contains(&bytes)
            && kept.bytes() + bytes <= kept.bytes_max
            && !kept.unsupported;
        if stays {
            kept.files.push((name, bytes));
        }
        stays
    }

    /// Keeps none any more; returns those that were.
    pub(super) fn clear(&self) -> Vec<FileName> {
        let mut kept = self.kept.lock();
        kept.sizes = NONE;
        kept.files.drain(..).map(|(name, _)| name).collect()
    }

    /// Keeps none ever again, because the file system cannot blank files; returns those that were kept.
    fn give_up(&self) -> Vec<FileName> {
        self.kept.lock().unsupported = true;
        self.clear()
    }

    /// Keeps at most `bytes_max` from now on; returns those files that were kept and are not any more.
    pub(super) fn limit(&self, bytes_max: u64) -> Vec<FileName> {
        let mut kept = self.kept.lock();
        kept.bytes_max = bytes_max;
        let mut gone = Vec::new();
        while let Some(name) = kept.take_beyond(bytes_max) {
            gone.push(name);
        }
        gone
    }
}

impl Files {
    /// From now on keeps doomed segments of one of the `sizes`, in bytes, as far as [`limit_stock`](Self::limit_stock) lets it.
    pub fn keep_stock(&self, sizes: RangeInclusive<u64>) {
        self.stock.kept.lock().sizes = sizes;
    }

    /// Bytes of the files that are kept.
    pub fn stock_bytes(&self) -> u64 {
        self.stock.kept.lock().bytes()
    }

    /// How many files have become new segments.
    pub fn recycled(&self) -> u64 {
        self.stock.recycled.load(Ordering::Relaxed)
    }

    /// A file under the name `to`, which is not durable yet, that reads as zeros, with the space for all of its length, at most
    /// `bytes_max`, reserved; `None` if there is nothing to make it of. The largest there is. Blocks on the device.
    pub fn recycle(&self, to: FileName, bytes_max: u64) -> Option<(Arc<dyn File>, u64)> {
        let next = || self.stock.kept.lock().take(bytes_max);
        while let Some((name, bytes)) = next() {
            match self.blank(name, bytes, to) {
                Ok(Some(file)) => {
                    self.left(name);
                    self.stock.recycled.fetch_add(1, Ordering::Relaxed);
                    return Some((file, bytes));
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    let others = self.stock.give_up();
                    self.let_go(others);
                }
                Err(_) => {}
            }
            self.remove(name);
            self.left(name);
        }
        None
    }

    /// Makes `name`, which takes `bytes`, a blank file of the name `to`, unless it is shared or has holes.
    fn blank(&self, name: FileName, bytes: u64, to: FileName) -> io::Result<Option<Arc<dyn File>>> {
        self.forget(name);
        let (from, to) = (name.path(self.directory()), to.path(self.directory()));
        let file = self.fs().open_write(&from)?;
        if file.links()? > 1 || file.len()? != bytes || self.fs().exists(&to)? {
            return Ok(None);
        }
        file.zero(0, bytes)?;
        file.sync_data()?;
        self.fs().rename(&from, &to)?;
        Ok(Some(file))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::super::testing::RecordedFiles;
    use super::*;
    use crate::base::ids::SegmentId;
    use crate::env::fault::{Call, EIO, Fault, FaultEnv};
    use crate::env::read_file;
    use crate::env::sim::{SimDisk, SimOptions};

    const OLD: FileName = FileName::Segment(SegmentId(1));
    const NEW: FileName = FileName::Segment(SegmentId(2));
    const BYTES: u64 = 10_000;

    fn directory() -> &'static Path {
        Path::new("/")
    }

    /// A disk with a durable segment.
    fn disk() -> SimDisk {
        let disk = SimDisk::new(&SimOptions { seed: 9, block_bytes: 512, ..SimOptions::default() });
        let fs = disk.env().fs;
        let file = fs.create_new(&OLD.path(directory())).expect("created");
        file.write_at(&[7; BYTES as usize], 0).expect("written");
        file.sync_data().expect("synced");
        fs.sync_dir(directory()).expect("synced");
        disk
    }

    /// Files that keep one segment, and have it.
    fn stocked(fs: Arc<dyn crate::env::Fs>) -> (Arc<Files>, RecordedFiles) {
        let recorded = RecordedFiles::default();
        let files = Files::new(fs, directory(), Box::new(recorded.clone()));
        files.keep_stock(BYTES..=BYTES);
        let handle = files.segment(SegmentId(1));
        handle.mark_obsolete(BYTES);
        drop(handle);
        (files, recorded)
    }

    fn content(disk: &SimDisk, name: FileName) -> Option<Vec<u8>> {
        let (fs, path) = (disk.env().fs, name.path(directory()));
        fs.exists(&path).expect("looked").then(|| read_file(&*fs, &path).expect("read"))
    }

    /// I-14.
    #[test]
    fn under_its_new_name_no_crash_leaves_a_byte_of_before() {
        let mut found = [false; 2];
        for change in 0.. {
            let disk = disk();
            disk.kill_at(disk.changes() + change);
            let (files, _) = stocked(disk.env().fs);
            let (file, _) = files.recycle(NEW, u64::MAX).expect("there is one");
            file.write_at(&[9; 3000], 0).expect("written");
            let Some(killed) = disk.take_killed() else { break };
            for seed in 0..50 {
                let crashed = killed.crash(seed);
                let new = content(&crashed, NEW);
                assert!(new.is_some() || content(&crashed, OLD).is_some());
                found[usize::from(new.is_some())] = true;
                let strange = new.into_iter().flatten().find(|byte| ![0, 9].contains(byte));
                assert_eq!(strange, None, "change {change}, seed {seed}");
            }
        }
        assert_eq!(found, [true; 2]);
    }

    #[test]
    fn a_segment_is_kept_and_becomes_another_at_once() {
        let disk = disk();
        let (files, recorded) = stocked(disk.env().fs);
        assert_eq!((files.stock_bytes(), files.leaving_bytes()), (BYTES, BYTES), "it takes space");
        let (file, bytes) = files.recycle(NEW, u64::MAX).expect("there is one");
        assert_eq!((file.len().expect("read"), bytes, files.recycled()), (BYTES, BYTES, 1));
        assert!(file.allocated_bytes().expect("read") >= BYTES, "its space is reserved");
        assert_eq!(content(&disk, NEW), Some(vec![0; BYTES as usize]));
        assert_eq!(content(&disk, OLD), None);
        assert_eq!((files.stock_bytes(), files.leaving_bytes()), (0, 0));
        assert_eq!(recorded.removed(), ["000001.vlog"], "nobody keeps it open");
        assert!(files.recycle(NEW, u64::MAX).is_none());
    }

    /// Dooms a new segment of so many bytes. Returns whether it stays.
    fn doom(disk: &SimDisk, files: &Arc<Files>, id: u32, bytes: u64) -> bool {
        let handle = files.segment(SegmentId(id));
        disk.env().fs.create_new(&handle.path()).expect("created").set_len(bytes).expect("as long");
        handle.mark_obsolete(bytes);
        drop(handle);
        content(disk, FileName::Segment(SegmentId(id))).is_some()
    }

    #[test]
    fn segments_of_the_sizes_asked_for_stay_as_long_as_they_should() {
        let disk = disk();
        let (files, _) = stocked(disk.env().fs);
        assert!(!doom(&disk, &files, 3, BYTES - 1) && !doom(&disk, &files, 4, BYTES + 1));
        assert!(doom(&disk, &files, 5, BYTES));
        assert!(files.release_stock());
        let left = [OLD, FileName::Segment(SegmentId(5))].map(|name| content(&disk, name));
        assert_eq!((left, files.leaving_bytes()), ([None, None], 0));
        assert!(!doom(&disk, &files, 6, BYTES) && !files.release_stock(), "none is kept any more");
    }

    /// The same with segments of 300, 200 and 100 bytes.
    fn stocked_with_small_ones() -> (SimDisk, Arc<Files>) {
        let disk = disk();
        let (files, _) = stocked(disk.env().fs);
        files.keep_stock(1..=BYTES);
        assert!([(3, 300), (4, 200), (5, 100)].into_iter().all(|(id, bytes)| doom(&disk, &files, id, bytes)));
        (disk, files)
    }

    #[test]
    fn the_largest_that_fits_is_taken() {
        let (_disk, files) = stocked_with_small_ones();
        let recycle = |id, bytes_max| {
            files.recycle(FileName::Segment(SegmentId(id)), bytes_max).map(|(_, bytes)| bytes)
        };
        assert_eq!([recycle(7, 299), recycle(8, 99), recycle(9, u64::MAX)], [Some(200), None, Some(BYTES)]);
        assert_eq!(files.stock_bytes(), 400);
    }

    #[test]
    fn what_has_more_than_the_limit_is_removed_and_stays_out() {
        let (disk, files) = stocked_with_small_ones();
        assert!(!files.limit_stock(BYTES + 600), "that is what there is");
        // The smallest that suffices; the largest where none does, then again the smallest that suffices.
        for (bytes_max, left) in [(BYTES + 450, BYTES + 400), (450, 400), (299, 100)] {
            assert!(files.limit_stock(bytes_max));
            assert_eq!((files.stock_bytes(), files.leaving_bytes()), (left, left), "at most {bytes_max}");
        }
        assert!(!doom(&disk, &files, 6, 200), "the limit holds for others, too");
        assert!(doom(&disk, &files, 7, 199));
        assert!(files.limit_stock(0) && !files.limit_stock(0));
    }

    /// To fill holes takes space that nobody set aside.
    #[test]
    fn files_with_holes_are_removed() {
        let disk = disk();
        let (files, _) = stocked(disk.env().fs);
        files.keep_stock(1..=BYTES);
        let path = FileName::Segment(SegmentId(3)).path(directory());
        let handle = files.segment(SegmentId(3));
        disk.env().fs.create_new(&path).expect("created").set_len(9000).expect("as long");
        handle.mark_obsolete(8000);
        drop(handle);
        assert_eq!(files.stock_bytes(), BYTES + 8000);
        assert!(files.recycle(NEW, 8000).is_none());
        assert_eq!((content(&disk, FileName::Segment(SegmentId(3))), files.stock_bytes()), (None, BYTES));
    }

    /// I-12.
    #[test]
    fn what_somebody_else_has_is_left_alone() {
        let disk = disk();
        let (files, _) = stocked(disk.env().fs);
        let shared = Path::new("/shared.vlog");
        disk.env().fs.hard_link(&OLD.path(directory()), shared).expect("linked");
        assert!(files.recycle(NEW, u64::MAX).is_none());
        assert_eq!(read_file(&*disk.env().fs, shared).expect("read"), [7; BYTES as usize]);
        assert_eq!((content(&disk, OLD), content(&disk, NEW), files.leaving_bytes()), (None, None, 0));
    }

    #[test]
    fn whatever_fails_the_file_is_removed_and_another_may_be_made() {
        for call in [Call::OpenWrite, Call::Length, Call::Zero, Call::SyncData, Call::Rename] {
            let disk = disk();
            let (env, faults) = FaultEnv::new(disk.env());
            let (files, _) = stocked(env.fs);
            faults.inject(Fault::on(call).errno(EIO));
            assert!(files.recycle(NEW, u64::MAX).is_none(), "{call:?}");
            assert_eq!(faults.triggered(), 1, "{call:?}");
            assert_eq!((content(&disk, OLD), content(&disk, NEW)), (None, None), "{call:?}");
            assert_eq!((files.leaving_bytes(), files.recycled()), (0, 0), "{call:?}");
        }
    }

    #[test]
    fn where_files_cannot_be_blanked_none_is_kept() {
        let disk = disk();
        let (env, faults) = FaultEnv::new(disk.env());
        let (files, _) = stocked(env.fs);
        faults.inject(Fault::on(Call::Zero).kind(io::ErrorKind::Unsupported));
        assert!(files.recycle(NEW, u64::MAX).is_none());
        assert!(!files.stock.keep(OLD, BYTES));
    }
}
