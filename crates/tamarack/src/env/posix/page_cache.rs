//! What of a file is in the kernel's page cache: reading that, and nothing else, and asking how much it is, where the system can.

use std::fs::File;
use std::io;

/// Fills `buf` from `offset` on if all of that is in the kernel's page cache.
#[cfg(target_os = "linux")]
pub fn read_cached(file: &File, buf: &mut [u8], offset: u64) -> io::Result<bool> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    let len = buf.len();
    match preadv2(file, &mut [io::IoSliceMut::new(buf)], offset, ReadWriteFlags::NOWAIT) {
        Ok(read) => Ok(read == len),
        // The device would be waited for; interrupted; a file system or kernel without it.
        Err(Errno::AGAIN | Errno::INTR | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub fn read_cached(_file: &File, _buf: &mut [u8], _offset: u64) -> io::Result<bool> {
    Ok(false)
}

/// How many pages of the `len` bytes at `offset` are in the kernel's page cache; `None` where the system does not tell: Linux before
/// 6.5, or where a process may not ask.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[expect(unsafe_code, reason = "no crate has this call")]
pub fn cached_pages(file: &File, offset: u64, len: u64) -> Option<u64> {
    use std::os::fd::AsRawFd;

    /// The number of the call, on these architectures.
    const CACHESTAT: libc::c_long = 451;

    /// As the kernel has it.
    #[repr(C)]
    struct Stretch {
        offset: u64,
        len: u64,
    }

    /// The same.
    #[repr(C)]
    #[derive(Default)]
    struct Pages {
        cached: u64,
        dirty: u64,
        written_back: u64,
        evicted: u64,
        recently_evicted: u64,
    }

    let (stretch, mut pages) = (Stretch { offset, len }, Pages::default());
    // SAFETY: the descriptor is open as long as `file` is borrowed; the kernel reads the one structure and writes the other, which are as
    // it has them.
    let result =
        unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const stretch, &raw mut pages, 0_u32) };
    (result == 0).then_some(pages.cached)
}

/// Others do not tell.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub fn cached_pages(_file: &File, _offset: u64, _len: u64) -> Option<u64> {
    None
}
