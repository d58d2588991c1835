//! One open file.

use std::fs;
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::io::{pwritev, retry_on_intr};

use super::direct::DirectFile;
use super::mapping::PosixMapping;
use super::page_cache::{cached_pages, read_cached};
use super::sync_file_range::write_behind;
use super::{large_pages, or_unsupported};
use crate::base::sync::Arc;
use crate::env::{Access, File, Loaded, Mapping};

/// `st_blocks` counts in these, whatever the block size of the file system.
const STAT_BLOCK_BYTES: u64 = 512;

/// Linux reads no more than its read-ahead window for one call, and that is of this size unless somebody has changed it.
const ADVISED_BYTES_MAX: u64 = 128 * 1024;

/// An open file.
#[derive(Debug)]
pub struct PosixFile {
    file: fs::File,
    /// The same, if what is not in the page cache is to be read past it.
    direct: Option<DirectFile>,
}

impl PosixFile {
    /// Takes over an open descriptor.
    pub fn new(file: fs::File) -> Self {
        Self { file, direct: None }
    }

    /// The same, and reads what is not in the page cache through `direct`, which is the same file.
    pub fn past_cache(file: fs::File, direct: DirectFile) -> Self {
        Self { file, direct: Some(direct) }
    }

    /// Its descriptor, which is open as long as it is there.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// What to read `len` bytes at `offset` through, if that is past the page cache. What is mostly there is read from there: it is nearer,
    /// and what is dirty would have to be written before.
    pub fn direct(&self, offset: u64, len: usize) -> Option<&DirectFile> {
        let direct = self.direct.as_ref()?;
        let page = rustix::param::page_size() as u64;
        let pages = (offset + len as u64).div_ceil(page) - offset / page;
        let cached = cached_pages(&self.file, offset, len as u64)?;
        (2 * cached < pages).then_some(direct)
    }
}

/// Reads until `buf` is full or the file ends, which it does where a read ends within a piece of `piece_bytes`.
pub fn read_pieces(file: &fs::File, buf: &mut [u8], offset: u64, piece_bytes: usize) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buf.len() && filled.is_multiple_of(piece_bytes) {
        match file.read_at(&mut buf[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

impl File for PosixFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.direct(offset, buf.len()).map(|direct| direct.read_at(buf, offset)) {
            // The device asks for more than the file system has told.
            Some(Err(error)) if error.kind() == io::ErrorKind::InvalidInput => {}
            Some(outcome) => return outcome,
            None => {}
        }
        read_pieces(&self.file, buf, offset, 1)
    }

    fn read_cached(&self, buf: &mut [u8], offset: u64) -> io::Result<bool> {
        // Where that is asked for in vain, the kernel begins to read.
        Ok(self.direct(offset, buf.len()).is_none() && read_cached(&self.file, buf, offset)?)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        // Retries interrupted and partial writes; one that makes no progress is `WriteZero`.
        self.file.write_all_at(buf, offset)
    }

    fn write_parts_at(&self, parts: [&[u8]; 3], offset: u64) -> io::Result<()> {
        let mut written = retry_on_intr(|| pwritev(&self.file, &parts.map(io::IoSlice::new), offset))?;
        let mut at = offset + written as u64;
        for part in parts {
            let rest = &part[written.min(part.len())..];
            written -= part.len() - rest.len();
            self.write_at(rest, at)?;
            at += rest.len() as u64;
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * STAT_BLOCK_BYTES)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), offset, len))
            .map_err(|errno| or_unsupported(errno, &[]))
    }

    fn links(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.nlink())
    }

    #[cfg(target_os = "linux")]
    fn is_rewritten_in_place(&self) -> io::Result<bool> {
        /// btrfs, bcachefs, ZFS and f2fs, as `statfs` tells them.
        const WRITTEN_ELSEWHERE: [i64; 4] = [0x9123_683e, 0xca45_1a4e, 0x2fc1_2fc1, 0xf2f5_2010];
        Ok(!WRITTEN_ELSEWHERE.contains(&(rustix::fs::fstatfs(&self.file)?.f_type as i64)))
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        retry_on_intr(|| fallocate(&self.file, flags, offset, len))
            .map_err(|errno| or_unsupported(errno, &[]))
    }

    fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        retry_on_intr(|| fallocate(&self.file, FallocateFlags::ZERO_RANGE, offset, len))
            .map_err(|errno| or_unsupported(errno, &[]))
    }

    fn write_behind(&self, offset: u64, len: u64) -> io::Result<()> {
        write_behind(&self.file, offset, len)
    }

    fn read_ahead(&self, offset: u64, len: u64) -> io::Result<()> {
        let end = offset + len;
        let mut at = offset;
        while let Some(step) = NonZero::new((end - at).min(ADVISED_BYTES_MAX)) {
            fadvise(&self.file, at, Some(step), Advice::WillNeed)?;
            at += step.get();
        }
        Ok(())
    }

    fn load(&self, range: Range<u64>) -> io::Result<Loaded> {
        large_pages::load(&self.file, range)
    }

    fn unload(&self, range: Range<u64>) -> io::Result<()> {
        // Without a length it would be all that follows.
        NonZero::new(range.end.saturating_sub(range.start))
            .map_or(Ok(()), |len| Ok(fadvise(&self.file, range.start, Some(len), Advice::DontNeed)?))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn part_pages(&self, range: Range<u64>) -> io::Result<()> {
        large_pages::part(&self.file, range)
    }

    fn advise(&self, access: Access) -> io::Result<()> {
        let advice = match access {
            Access::Random => Advice::Random,
            Access::Sequential => Advice::Sequential,
        };
        // No length means the whole file, whatever it grows to.
        Ok(fadvise(&self.file, 0, None, advice)?)
    }

    fn map(&self, len: u64) -> io::Result<Arc<dyn Mapping>> {
        Ok(Arc::new(PosixMapping::new(&self.file, len)?))
    }
}
