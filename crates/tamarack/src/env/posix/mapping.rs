//! Shared mappings of files.
//!
//! Owns the address range from `mmap` to `munmap`; the descriptor may be closed meanwhile. Whether the range may
//! be touched, and by whom, is the promise of the caller ([`Mapping`] says which); here the bounds are asserted
//! in debug builds.
#![expect(unsafe_code, reason = "mmap hands out raw memory")]

use std::ffi::c_void;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::slice;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use super::or_unsupported;
use crate::env::{Mapping, large_pages_in};

/// An address range that is a part of a file, or memory of the process's own; unmapped when dropped.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the range belongs to the process, not to a thread, and `base` is nobody else's.
unsafe impl Send for Region {}
// SAFETY: `&self` only reaches the memory through unsafe methods, `address` and those of `Mapping`, whose callers promise that no
// byte is written while another thread reads or writes it.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `range` of `file`, which begins with a page.
    pub fn new(file: &File, range: Range<u64>, protection: ProtFlags) -> io::Result<Self> {
        let len = usize::try_from(range.end - range.start)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: a null hint lets the kernel choose a range that is not in use, so no live memory is replaced.
        let address = unsafe { mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, file, range.start) };
        let address = address.map_err(|errno| or_unsupported(errno, &[Errno::ACCESS, Errno::NODEV]))?;
        let base =
            NonNull::new(address.cast::<u8>()).expect("the kernel maps nothing at address zero unasked");
        Ok(Self { base, len })
    }

    /// Maps `len` bytes of memory of the process's own, which are zeros.
    pub fn anonymous(len: usize) -> io::Result<Self> {
        // SAFETY: as in `new`.
        let address = unsafe {
            mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?;
        let base = NonNull::new(address.cast::<u8>()).expect("as above");
        Ok(Self { base, len })
    }

    /// Gives advice on `range`, if there is anything in it. Returns whether the kernel knows that advice, as those before 5.14 or without
    /// large pages do not.
    ///
    /// # Safety
    /// The range must end inside the region, and the advice change no byte.
    pub unsafe fn advise(&self, range: Range<u64>, advice: Advice) -> io::Result<bool> {
        if range.is_empty() {
            return Ok(true);
        }
        let bytes = (range.end - range.start) as usize;
        // SAFETY: the range lies inside the region, by the caller's promise.
        let address = unsafe { self.address(range.start, bytes) };
        // SAFETY: the same.
        match unsafe { madvise(address.as_ptr().cast::<c_void>(), bytes, advice) } {
            Ok(()) => Ok(true),
            Err(Errno::INVAL) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The address of `offset`, when `len` bytes from there are inside the region.
    ///
    /// # Safety
    /// They must be.
    pub unsafe fn address(&self, offset: u64, len: usize) -> NonNull<u8> {
        debug_assert!(
            offset.checked_add(len as u64).is_some_and(|end| end <= self.len as u64),
            "{len} bytes at {offset} reach outside of a region of {} bytes",
            self.len
        );
        // SAFETY: the caller keeps `offset + len` within the region, which is one allocated range.
        unsafe { self.base.add(offset as usize) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: exactly this range was mapped when `self` was made, and no reference into it outlives `self`.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), self.len) };
        debug_assert!(unmapped.is_ok(), "a range that was mapped can be unmapped: {unmapped:?}");
    }
}

/// A shared, writable mapping; unmapped when dropped.
pub struct PosixMapping(Region);

impl PosixMapping {
    /// Maps the first `len` bytes of `file`.
    pub fn new(file: &File, len: u64) -> io::Result<Self> {
        Region::new(file, 0..len, ProtFlags::READ | ProtFlags::WRITE).map(Self)
    }
}

impl Mapping for PosixMapping {
    fn len(&self) -> u64 {
        self.0.len as u64
    }

    fn prefault(&self, offset: u64, len: u64) -> io::Result<()> {
        let page = rustix::param::page_size() as u64;
        let start = offset / page * page;
        let end = (offset + len).min(self.0.len as u64);
        // SAFETY: this changes no byte, and the range ends where the mapping does at the latest.
        unsafe { self.0.advise(start..end, Advice::LinuxPopulateWrite) }.map(|_is_known| ())
    }

    fn join_pages(&self, offset: u64, len: u64) -> io::Result<Range<u64>> {
        let pages = large_pages_in(&(offset..(offset + len).min(self.0.len as u64)));
        // Else the kernel reads ahead of a fault, in large pages wherever that is.
        // SAFETY: as above.
        unsafe { self.0.advise(pages.clone(), Advice::Random) }?;
        // SAFETY: as above.
        let are_there = unsafe { self.0.advise(pages.clone(), Advice::LinuxHugepage) }?;
        Ok(if are_there { pages } else { offset..offset })
    }

    fn leave(&self, range: Range<u64>) -> io::Result<()> {
        let page = rustix::param::page_size() as u64;
        let start = range.start.next_multiple_of(page);
        let range = start..(range.end / page * page).max(start);
        // SAFETY: of a shared mapping this gives up addresses alone: the bytes are the file's, and stay.
        unsafe { self.0.advise(range, Advice::LinuxDontNeed) }.map(|_is_known| ())
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) {
        // SAFETY: the caller promises that the range lies inside the mapping.
        let target = unsafe { self.0.address(offset, bytes.len()) };
        // SAFETY: the range is mapped and backed by the file, and nobody else touches it during the call, all by
        // the caller's promise; so `bytes` cannot be part of it either.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target.as_ptr(), bytes.len()) }
    }

    unsafe fn bytes(&self, offset: u64, len: usize) -> &[u8] {
        // SAFETY: the caller promises that the range lies inside the mapping.
        let source = unsafe { self.0.address(offset, len) };
        // SAFETY: the range is mapped, backed by the file and, by the caller's promise, not written while the
        // result lives; `self` keeps it mapped for as long.
        unsafe { slice::from_raw_parts(source.as_ptr(), len) }
    }
}

impl fmt::Debug for PosixMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PosixMapping").field("len", &self.0.len).finish_non_exhaustive()
    }
}
