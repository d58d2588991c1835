//! Reads of a file past the kernel's page cache.
//!
//! The device then writes into the memory that was handed over: no page is found, filled and copied from, and none goes to
//! make room for it. It asks for whole sectors, of the file and of memory; what is not one is read into memory of
//! our own first.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use super::file::read_pieces;

/// What is read into memory of our own at a time, at most.
const OWN_BYTES_MAX: usize = 1 << 20;

/// A file open for such reads.
#[derive(Debug)]
pub struct DirectFile {
    file: File,
    memory_alignment: usize,
    sector_bytes: usize,
}

impl DirectFile {
    /// Opens the file at `path`. Fails with [`io::ErrorKind::Unsupported`] where its file system, or the system, has no such reads.
    #[cfg(target_os = "linux")]
    pub fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{AtFlags, OFlags, StatxFlags, statx};
        use rustix::io::Errno;

        /// Both alignments where the system does not tell them: no device asks for more.
        const USUAL_ALIGNMENT: u32 = 4096;

        let file = super::fs::open_file(path, File::options().read(true), OFlags::DIRECT);
        let file = file.map_err(|error| match error.raw_os_error() {
            Some(errno) if errno == Errno::INVAL.raw_os_error() => io::ErrorKind::Unsupported.into(),
            _ => error,
        })?;
        let told = statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
        let told = told.filter(|told| told.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
        let usual = (USUAL_ALIGNMENT, USUAL_ALIGNMENT);
        let (memory, sector) = told.map_or(usual, |told| (told.stx_dio_mem_align, told.stx_dio_offset_align));
        if !memory.is_power_of_two() || !sector.is_power_of_two() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self { file, memory_alignment: memory as usize, sector_bytes: sector as usize })
    }

    #[cfg(not(target_os = "linux"))]
    pub fn open(_path: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The whole sectors that `len` bytes at `offset` lie in.
    pub fn sectors(&self, offset: u64, len: usize) -> Range<u64> {
        let sector = self.sector_bytes as u64;
        offset - offset % sector..(offset + len as u64).next_multiple_of(sector)
    }

    /// Where in `memory` the first byte is that a read may go to.
    pub fn begins(&self, memory: &[u8]) -> usize {
        memory.as_ptr().align_offset(self.memory_alignment)
    }

    /// How many bytes memory must have more than are read into it.
    pub fn slack(&self) -> usize {
        self.memory_alignment - 1
    }

    /// As [`File::read_at`](crate::env::File::read_at).
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let sectors = self.sectors(offset, buf.len());
        if sectors == (offset..offset + buf.len() as u64) && self.begins(buf) == 0 {
            return self.read_sectors(buf, offset);
        }
        let mut own = vec![0; buf.len().min(OWN_BYTES_MAX) + 2 * self.sector_bytes + self.slack()];
        let mut filled = 0;
        for part in buf.chunks_mut(OWN_BYTES_MAX) {
            let at = offset + filled as u64;
            let sectors = self.sectors(at, part.len());
            let (start, skipped) = (self.begins(&own), (at - sectors.start) as usize);
            let read = self
                .read_sectors(&mut own[start..][..(sectors.end - sectors.start) as usize], sectors.start)?;
            let read = read.saturating_sub(skipped).min(part.len());
            part[..read].copy_from_slice(&own[start + skipped..][..read]);
            filled += read;
            if read < part.len() {
                break;
            }
        }
        Ok(filled)
    }

    /// Reads whole sectors, or as many of their bytes as the file has.
    fn read_sectors(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        read_pieces(&self.file, buf, offset, self.sector_bytes)
    }
}
