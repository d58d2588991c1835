//! Segments that nobody can reach any more, kept to become new ones.
//!
//! Removing a segment can take longer than writing it: where the file system tells the device of every block that it gets
//! back, the device that log and collections write to is busy with that for tens of milliseconds. A log that is
//! collected needs as many new segments as it gives back. So while writes keep coming, some doomed segments stay in the directory,
//! and whoever begins a segment *recycles* one.
//!
//! # The protocol
//!
//! 1. *Stock.* A doomed segment (I-04, I-06) stays under its name. No version mentions it, so whoever opens the
//!    cube after a crash removes it.
//! 2. *Blank.* Whoever needs a segment takes it, and leaves it alone if the file has another name, for then a checkpoint has it
//!    (I-12). All of it is made to read as zeros, with its space reserved, and that is made durable.
//! 3. *Rename.* Only then it gets the name of the new segment (I-14). What a crash leaves under that name reads as zeros but
//!    for what was written to it as the new segment, like a file that was created and whose space was reserved. A crash may leave it under
//!    its old name, or under both: no version mentions the old one.
//!
//! Where any of that fails, the file is removed and its owner makes a new one, which tells what is wrong with the disk.
//! Lock rank: innermost, nothing is called while the stock is locked.

use std::collections::VecDeque;
use std::io;

use super::files::Files;
use crate::base::names::FileName;
use crate::base::sync::{Arc, AtomicU64, Mutex, Ordering};
use crate::env::File;

/// The doomed segments that stay.
#[derive(Debug, Default)]
pub struct Stock {
    kept: Mutex<Kept>,
    recycled: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    files: VecDeque<(FileName, u64)>,
    /// How many stay.
    most: usize,
    /// Those with fewer bytes do not.
    bytes_min: u64,
    /// Whether the file system cannot blank files.
    unsupported: bool,
}

impl Stock {
    /// Keeps the doomed file `name` of `bytes`, if it is to stay.
    pub(super) fn keep(&self, name: FileName, bytes: u64) -> bool {
        let mut kept = self.kept.lock();
        let stays = matches!(name, FileName::Segment(_))
            && bytes >= kept.bytes_min
            && kept.files.len() < kept.most
            && !kept.unsupported;
        if stays {
            kept.files.push_back((name, bytes));
        }
        stays
    }

    /// Keeps none any more; returns those that were.
    pub(super) fn clear(&self) -> Vec<FileName> {
        let mut kept = self.kept.lock();
        kept.most = 0;
        kept.files.drain(..).map(|(name, _)| name).collect()
    }
}

impl Files {
    /// From now on keeps up to `most` doomed segments of at least `bytes_min` each.
    pub fn keep_stock(&self, most: usize, bytes_min: u64) {
        let mut kept = self.stock.kept.lock();
        (kept.most, kept.bytes_min) = (most, bytes_min);
    }

    /// Bytes of the files that are kept.
    pub fn stock_bytes(&self) -> u64 {
        self.stock.kept.lock().files.iter().map(|(_, bytes)| bytes).sum()
    }

    /// How many files have become new segments.
    pub fn recycled(&self) -> u64 {
        self.stock.recycled.load(Ordering::Relaxed)
    }

    /// A file under the name `to`, which is not durable yet, that reads as zeros, with the space for all of its length
    /// reserved; `None` if there is nothing to make it of. Blocks on the device.
    pub fn recycle(&self, to: FileName) -> Option<Arc<dyn File>> {
        let next = || self.stock.kept.lock().files.pop_front();
        while let Some((name, _)) = next() {
            match self.blank(name, to) {
                Ok(Some(file)) => {
                    self.left(name);
                    self.stock.recycled.fetch_add(1, Ordering::Relaxed);
                    return Some(file);
                }
                Ok(None) => {}
                Err(error) => {
                    let unsupported = error.kind() == io::ErrorKind::Unsupported;
                    self.stock.kept.lock().unsupported |= unsupported;
                }
            }
            self.remove(name);
            self.left(name);
        }
        None
    }

    /// Makes `name` a blank file of the name `to`, unless it is shared.
    fn blank(&self, name: FileName, to: FileName) -> io::Result<Option<Arc<dyn File>>> {
        self.forget(name);
        let (from, to) = (name.path(self.directory()), to.path(self.directory()));
        let file = self.fs().open_write(&from)?;
        if file.links()? > 1 || self.fs().exists(&to)? {
            return Ok(None);
        }
        file.zero(0, file.len()?)?;
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
        files.keep_stock(1, BYTES);
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
            let file = files.recycle(NEW).expect("there is one");
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
        let file = files.recycle(NEW).expect("there is one");
        assert_eq!((file.len().expect("read"), files.recycled()), (BYTES, 1));
        assert!(file.allocated_bytes().expect("read") >= BYTES, "its space is reserved");
        assert_eq!(content(&disk, NEW), Some(vec![0; BYTES as usize]));
        assert_eq!(content(&disk, OLD), None);
        assert_eq!((files.stock_bytes(), files.leaving_bytes()), (0, 0));
        assert_eq!(recorded.removed(), ["000001.vlog"], "nobody keeps it open");
        assert!(files.recycle(NEW).is_none());
    }

    #[test]
    fn only_so_many_large_segments_are_kept_and_only_as_long_as_they_should() {
        let disk = disk();
        let (files, _) = stocked(disk.env().fs);
        let doom = |id: u32, bytes| {
            let handle = files.segment(SegmentId(id));
            disk.env().fs.create_new(&handle.path()).expect("created");
            handle.mark_obsolete(bytes);
            drop(handle);
            content(&disk, FileName::Segment(SegmentId(id))).is_some()
        };
        assert!(!doom(3, BYTES), "one is kept already");
        files.keep_stock(2, BYTES);
        assert!(!doom(4, BYTES - 1), "it is too small");
        assert!(doom(5, BYTES));
        assert!(files.release_stock());
        let left = [OLD, FileName::Segment(SegmentId(5))].map(|name| content(&disk, name));
        assert_eq!((left, files.leaving_bytes()), ([None, None], 0));
        assert!(!doom(6, BYTES) && !files.release_stock(), "none is kept any more");
    }

    /// I-12.
    #[test]
    fn what_somebody_else_has_is_left_alone() {
        let disk = disk();
        let (files, _) = stocked(disk.env().fs);
        let shared = Path::new("/shared.vlog");
        disk.env().fs.hard_link(&OLD.path(directory()), shared).expect("linked");
        assert!(files.recycle(NEW).is_none());
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
            assert!(files.recycle(NEW).is_none(), "{call:?}");
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
        assert!(files.recycle(NEW).is_none());
        assert!(!files.stock.keep(OLD, BYTES));
    }
}
