//! Files that this process has mapped: what it has looked at through a mapping stays in the page cache, whoever asks for it to
//! be evicted, unless the mapping is told to let go of it.

#![expect(unsafe_code, reason = "advice is given about memory at an address")]

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;

use rustix::io::Errno;
use rustix::mm::{Advice, madvise};

/// Has the kernel take what is mapped of the files under `path` out of memory, once it is durable: what is dirty is written
/// before.
pub fn evict(path: &Path) -> io::Result<()> {
    let path = path.canonicalize()?;
    for range in fs::read_to_string("/proc/self/maps")?.lines().filter_map(|line| mapping(line, &path)) {
        // SAFETY: no byte of memory changes by this advice, whatever is mapped there by now.
        let outcome = unsafe { madvise(range.start as *mut _, range.len(), Advice::LinuxPageOut) };
        // A thread of the store's may have unmapped it meanwhile.
        if outcome != Err(Errno::NOMEM) {
            outcome?;
        }
    }
    Ok(())
}

/// The addresses that a line of `/proc/self/maps` is about, if a file under `path` is mapped there.
fn mapping(line: &str, path: &Path) -> Option<Range<usize>> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let file = fields.nth(4)?.trim_start();
    let address = |digits| usize::from_str_radix(digits, 16).ok();
    Path::new(file).starts_with(path).then_some(address(start)?..address(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_those_of_files_in_the_directory() {
        let of = |line| mapping(line, Path::new("/a b/store"));
        let line = "7f00-7fa0 rw-s 00001000 fe:00 12                        /a b/store/1.log";
        assert_eq!(of(line), Some(0x7f00..0x7fa0));
        assert_eq!(of("7f00-7fa0 rw-s 00001000 fe:00 12      /a b/store2/1.log"), None);
        assert_eq!(of("7f00-7fa0 rw-p 00000000 00:00 0 "), None);
        assert_eq!(of("7f00-7fa0 rw-p 00000000 00:00 0       [heap]"), None);
    }
}
