//! The page cache.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use crate::mappings;

/// Takes the files under `path` out of the page cache, once they are durable: what is dirty would stay. What another process
/// has mapped stays. A store may remove files meanwhile.
pub fn evict(path: &Path) -> io::Result<()> {
    each_file(path, File::sync_data)?;
    mappings::evict(path)?;
    each_file(path, |file| Ok(fadvise(file, 0, None, Advice::DontNeed)?))
}

fn each_file(path: &Path, act: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    let is_there = |error: &io::Error| error.kind() != io::ErrorKind::NotFound;
    for entry in walkdir::WalkDir::new(path) {
        let entry = match entry.map_err(io::Error::from) {
            Ok(entry) if entry.file_type().is_file() => entry,
            Err(error) if is_there(&error) => return Err(error),
            Ok(_) | Err(_) => continue,
        };
        match File::open(entry.path()) {
            Ok(file) => act(&file)?,
            Err(error) if is_there(&error) => return Err(error),
            Err(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::ptr::null_mut;

    use rustix::mm::{MapFlags, ProtFlags, mmap};

    use super::*;
    use crate::resources::Resources;

    /// What `statfs` says of a file system in memory, out of which nothing can be evicted.
    const TMPFS: i64 = 0x0102_1994;

    #[test]
    #[expect(unsafe_code, reason = "a mapping is made")]
    fn what_is_evicted_is_read_from_the_device() {
        let directory =
            tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("the checkout can be written");
        let path = directory.path().join("file");
        let mut file = File::options()
            .create_new(true)
            .read(true)
            .write(true)
            .open(&path)
            .expect("the directory is ours");
        file.write_all(&vec![7; 1 << 20]).expect("there is room");
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: the kernel chooses where, and nobody looks at it.
        unsafe { mmap(null_mut(), 1 << 20, prot, flags, &file, 0) }.expect("a file can be mapped");
        evict(directory.path()).expect("files can be opened");
        let before = Resources::now();
        let bytes = std::fs::read(&path).expect("it is there");
        assert!(bytes == vec![7; 1 << 20]);
        let in_memory = rustix::fs::statfs(&path).is_ok_and(|system| system.f_type == TMPFS);
        match before.spent().device_read_bytes.filter(|_| !in_memory) {
            Some(read) => assert!(read >= 1 << 20, "{read} bytes were read"),
            None => println!("skipped: reads of the device are not counted here"),
        }
    }
}
