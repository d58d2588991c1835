//! Reading what is in memory, and nothing else, where the system can.

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
