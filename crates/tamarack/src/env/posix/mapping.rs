//! One shared mapping of the front of a file.
//!
//! Owns the address range from `mmap` to `munmap`; the descriptor may be closed meanwhile. Whether the range may
//! be touched, and by whom, is the promise of the caller ([`Mapping`] says which); here the bounds are asserted
//! in debug builds.
#![expect(unsafe_code, reason = "mmap hands out raw memory")]

use std::ffi::c_void;
use std::fmt;
use std::fs::File;
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::OnceLock;

use rustix::fs::fadvise;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::or_unsupported;
use super::page_cache::cached_pages;
use crate::env::{LARGE_PAGE_BYTES, Mapping, large_pages_in};

/// A shared, writable mapping; unmapped when dropped.
pub struct PosixMapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and `base` is nobody else's.
unsafe impl Send for PosixMapping {}
// SAFETY: `&self` only reaches the memory through the unsafe methods of `Mapping`, whose callers promise that no
// byte is written while another thread reads or writes it.
unsafe impl Sync for PosixMapping {}

impl PosixMapping {
    /// Maps the first `len` bytes of `file`.
    pub fn new(file: &File, len: u64) -> io::Result<Self> {
        Self::protected(file, 0..len, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Maps `range` of `file`, which begins with a page.
    fn protected(file: &File, range: Range<u64>, protection: ProtFlags) -> io::Result<Self> {
        let len = usize::try_from(range.end - range.start)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: a null hint lets the kernel choose a range that is not in use, so no live memory is replaced.
        let address = unsafe { mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, file, range.start) };
        let address = address.map_err(|errno| or_unsupported(errno, &[Errno::ACCESS, Errno::NODEV]))?;
        let base =
            NonNull::new(address.cast::<u8>()).expect("the kernel maps nothing at address zero unasked");
        Ok(Self { base, len })
    }

    /// Has the kernel part large pages of `file`, as [`part_pages`](crate::env::File::part_pages) says. There is no call for that, but
    /// one small page of a large one cannot be declared cold otherwise (Linux 6.18, `madvise_cold_or_pageout_pte_range`).
    pub fn part_pages(file: &File) -> io::Result<u64> {
        let pages = large_pages_in(&(0..file.metadata()?.len()));
        if pages.is_empty() {
            return Ok(0);
        }
        let mapping = Self::protected(file, 0..pages.end, ProtFlags::READ)?;
        let small = rustix::param::page_size() as u64;
        let mut parted = 0;
        for at in pages.step_by(LARGE_PAGE_BYTES as usize) {
            // Only what is in memory as a whole may be one page.
            if cached_pages(file, at, LARGE_PAGE_BYTES) != Some(LARGE_PAGE_BYTES / small) {
                continue;
            }
            // Only what is mapped can be advised on. To read it would end the process if the device failed by now.
            // SAFETY: this changes no byte, and the range lies inside the mapping.
            let is_mapped = unsafe { mapping.advise(at..at + small, Advice::LinuxPopulateRead) }?;
            // SAFETY: the same.
            if !(is_mapped && unsafe { mapping.advise(at..at + small, Advice::LinuxCold) }?) {
                break;
            }
            parted += 1;
        }
        Ok(parted)
    }

    /// Has the kernel read `range` of `file` into large pages, as [`load`](crate::env::File::load) says. It does so for mappings that are to
    /// have such (`do_sync_mmap_readahead`), and no more than is asked for where that is said to be at random.
    pub fn load(file: &File, range: Range<u64>) -> io::Result<bool> {
        let start = range.start / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
        let end = range.end.next_multiple_of(LARGE_PAGE_BYTES).min(file.metadata()?.len());
        if start >= end || !reads_into_large_pages() {
            return Ok(false);
        }
        let mapping = Self::protected(file, start..end, ProtFlags::READ)?;
        for advice in [Advice::LinuxHugepage, Advice::Random] {
            // SAFETY: this changes no byte, and the range is that of the mapping.
            if !unsafe { mapping.advise(0..end - start, advice) }? {
                return Ok(false);
            }
        }
        let mut is_there = true;
        for at in (start..end).step_by(LARGE_PAGE_BYTES as usize) {
            let len = LARGE_PAGE_BYTES.min(end - at);
            let cached =
                cached_pages(file, at, len).map_or(0, |pages| pages * rustix::param::page_size() as u64);
            if 2 * cached >= len {
                // Mostly there.
                is_there &= cached >= len;
                continue;
            }
            if cached > 0 {
                // A large page cannot be where a small one is.
                fadvise(file, at, NonZero::new(len), rustix::fs::Advice::DontNeed)?;
            }
            // A read that fails is an error here, and does not end the process.
            // SAFETY: as above; the range lies inside the mapping.
            is_there &= unsafe { mapping.advise(at - start..at - start + len, Advice::LinuxPopulateRead) }?;
        }
        Ok(is_there)
    }

    /// Gives advice on `range`, if there is anything in it. Returns whether the kernel knows that advice, as those before 5.14 or without
    /// large pages do not.
    ///
    /// # Safety
    /// The range must end inside the mapping, and the advice change no byte.
    unsafe fn advise(&self, range: Range<u64>, advice: Advice) -> io::Result<bool> {
        if range.is_empty() {
            return Ok(true);
        }
        let bytes = (range.end - range.start) as usize;
        // SAFETY: the range lies inside the mapping, by the caller's promise.
        let address = unsafe { self.address(range.start, bytes) };
        // SAFETY: the same.
        match unsafe { madvise(address.as_ptr().cast::<c_void>(), bytes, advice) } {
            Ok(()) => Ok(true),
            Err(Errno::INVAL) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The address of `offset`, when `len` bytes from there are inside the mapping.
    ///
    /// # Safety
    /// They must be.
    unsafe fn address(&self, offset: u64, len: usize) -> NonNull<u8> {
        debug_assert!(
            offset.checked_add(len as u64).is_some_and(|end| end <= self.len as u64),
            "{len} bytes at {offset} reach outside of a mapping of {} bytes",
            self.len
        );
        // SAFETY: the caller keeps `offset + len` within the mapping, which is one allocated range.
        unsafe { self.base.add(offset as usize) }
    }
}

/// Whether the kernel reads into large pages where a mapping is to have such: before 5.18 it would read each small page for itself.
fn reads_into_large_pages() -> bool {
    static IT_DOES: OnceLock<bool> = OnceLock::new();
    *IT_DOES.get_or_init(|| {
        let system = rustix::system::uname();
        let release = system.release().to_str().unwrap_or_default();
        is_at_least(release, [5, 18])
    })
}

/// Whether a kernel's `release`, such as `6.8.0-31-generic`, is this version or a later one.
fn is_at_least(release: &str, version: [u32; 2]) -> bool {
    let mut numbers =
        release.split(|char: char| !char.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)] >= version
}

impl Mapping for PosixMapping {
    fn len(&self) -> u64 {
        self.len as u64
    }

    fn prefault(&self, offset: u64, len: u64) -> io::Result<()> {
        let page = rustix::param::page_size() as u64;
        let start = offset / page * page;
        let end = (offset + len).min(self.len as u64);
        // SAFETY: this changes no byte, and the range ends where the mapping does at the latest.
        unsafe { self.advise(start..end, Advice::LinuxPopulateWrite) }.map(|_is_known| ())
    }

    fn join_pages(&self, offset: u64, len: u64) -> io::Result<Range<u64>> {
        let pages = large_pages_in(&(offset..(offset + len).min(self.len as u64)));
        // Else the kernel reads ahead of a fault, in large pages wherever that is.
        // SAFETY: as above.
        unsafe { self.advise(pages.clone(), Advice::Random) }?;
        // SAFETY: as above.
        let are_there = unsafe { self.advise(pages.clone(), Advice::LinuxHugepage) }?;
        Ok(if are_there { pages } else { offset..offset })
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) {
        // SAFETY: the caller promises that the range lies inside the mapping.
        let target = unsafe { self.address(offset, bytes.len()) };
        // SAFETY: the range is mapped and backed by the file, and nobody else touches it during the call, all by
        // the caller's promise; so `bytes` cannot be part of it either.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target.as_ptr(), bytes.len()) }
    }

    unsafe fn bytes(&self, offset: u64, len: usize) -> &[u8] {
        // SAFETY: the caller promises that the range lies inside the mapping.
        let source = unsafe { self.address(offset, len) };
        // SAFETY: the range is mapped, backed by the file and, by the caller's promise, not written while the
        // result lives; `self` keeps it mapped for as long.
        unsafe { slice::from_raw_parts(source.as_ptr(), len) }
    }
}

impl Drop for PosixMapping {
    fn drop(&mut self) {
        // SAFETY: exactly this range was mapped by `new`, and no reference into it outlives `self`.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), self.len) };
        debug_assert!(unmapped.is_ok(), "a range that was mapped can be unmapped: {unmapped:?}");
    }
}

impl fmt::Debug for PosixMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PosixMapping").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        for (release, is_later) in [
            ("5.18.0", true),
            ("6.8.0-31-generic", true),
            ("10.0", true),
            ("5.18-rc1", true),
            ("5.17.99", false),
            ("5.4.0-150-generic", false),
            ("4.19", false),
            ("6", true),
            ("5", false),
            ("", false),
            ("unknown", false),
        ] {
            assert_eq!(is_at_least(release, [5, 18]), is_later, "{release}");
        }
    }
}
