//! The call that begins to write a part of a file to the device and does not wait for it, where there is one.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "no safe crate has this call"))]

use std::fs::File;
use std::io;

/// Begins to write `offset..offset + len` of `file` to the device.
#[cfg(target_os = "linux")]
pub fn write_behind(file: &File, offset: u64, len: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let signed =
        |number: u64| i64::try_from(number).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    let (offset, len) = (signed(offset)?, signed(len)?);
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the call takes no memory.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Other systems begin by themselves.
#[cfg(not(target_os = "linux"))]
pub fn write_behind(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Ok(())
}
