//! The promises of the env traits, tested against the operating system.

use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::direct::DirectFile;
use super::page_cache::cached_pages;
use super::*;
use crate::base::large_pages::LARGE_PAGE_BYTES;
use crate::env::{
    Access, File, Fs, Loaded, LockMode, PAGE_BYTES, put_in_place, read_exact_at, read_file, write_aside,
};

fn world() -> (TempDir, Env) {
    (TempDir::new().expect("a temporary directory"), posix_env())
}

fn kind<T>(result: io::Result<T>) -> Option<io::ErrorKind> {
    result.err().map(|error| error.kind())
}

fn sorted_names(fs: &dyn Fs, path: &Path) -> io::Result<Vec<String>> {
    let mut names = fs.list(path)?;
    names.sort();
    Ok(names)
}

#[test]
fn reads_are_short_only_at_the_end_of_the_file() -> io::Result<()> {
    let (dir, env) = world();
    let file = env.fs.create_new(&dir.path().join("file"))?;
    file.write_at(b"world", 6)?;
    file.write_at(b"hello ", 0)?;
    let mut buf = [0; 16];
    assert_eq!(file.read_at(&mut buf, 0)?, 11);
    assert_eq!(&buf[..11], b"hello world");
    assert_eq!(file.read_at(&mut buf[..4], 9)?, 2);
    assert_eq!(file.read_at(&mut buf, 11)?, 0);
    assert_eq!(file.read_at(&mut buf, 1 << 40)?, 0);
    assert_eq!(kind(read_exact_at(&*file, &mut buf, 0)), Some(io::ErrorKind::UnexpectedEof));
    file.sync_data()?;
    file.advise(Access::Random)?;
    file.advise(Access::Sequential)?;
    assert_eq!(read_file(&*env.fs, &dir.path().join("file"))?, b"hello world");
    Ok(())
}

/// Makes the file at `path` durable and has the kernel forget its pages, as far as it will.
pub fn drop_from_cache(path: &Path) {
    let file = std::fs::File::open(path).expect("opened");
    file.sync_all().expect("synced");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
}

#[test]
#[expect(unsafe_code, reason = "the methods of a mapping are unsafe")]
fn past_the_cache_or_through_it_the_same_is_read() -> io::Result<()> {
    let (dir, env) = world();
    let path = dir.path().join("file");
    let file = env.fs.create_new(&path)?;
    // More than is read into memory of its own at a time; the end is no sector's.
    let len = (2 << 20) + 1234;
    let mut bytes: Vec<u8> = (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    file.write_at(&bytes, 0)?;
    let past = env.fs.open_past_cache(&path)?;
    let ranges = [
        (0, len),
        (0, 1),
        (511, 2),
        (4096, 8192),
        (5000, 1_100_000),
        (len - 1, 1),
        (len - 3000, 5000),
        (len, 9),
        (len + 9000, 9),
    ];
    let check = |bytes: &[u8], state: &str| {
        for (offset, wanted) in ranges {
            // Memory at any address, as the device would have it and not.
            for shift in [0, 1, 8, 512] {
                let mut memory = vec![0; wanted + shift + PAGE_BYTES as usize];
                let start = memory.as_ptr().align_offset(PAGE_BYTES as usize) % PAGE_BYTES as usize + shift;
                let buf = &mut memory[start.min(shift + PAGE_BYTES as usize)..][..wanted];
                let read = past.read_at(buf, offset as u64).expect("read");
                let expected = &bytes[offset.min(bytes.len())..(offset + wanted).min(bytes.len())];
                assert!(buf[..read] == *expected, "{wanted} bytes at {offset}, {state}, {shift}");
            }
        }
    };
    check(&bytes, "in memory, and not written");
    drop_from_cache(&path);
    check(&bytes, "on the device");
    let plain = std::fs::File::open(&path)?;
    let is_direct = DirectFile::open(&path).is_ok() && cached_pages(&plain, 0, 1).is_some();
    if is_direct {
        assert_eq!(cached_pages(&plain, 0, len as u64), Some(0), "none of it came into the cache");
    }
    // Most of this is in memory, and then all.
    file.read_at(&mut [0; 8192], 4096)?;
    assert_eq!(past.read_at(&mut [0; 9000], 4096)?, 9000);
    if is_direct && cached_pages(&plain, 4096, 8192) > Some(0) {
        assert_eq!(cached_pages(&plain, 4096, 9000), Some(3), "through the cache");
        assert!(past.read_cached(&mut [0; 9000], 4096)?);
        assert!(!past.read_cached(&mut [0; 9000], 1 << 20)?);
    }
    // What is changed in memory is newer than what the device has.
    let mapping = file.map(len as u64)?;
    bytes[5_500..5_600].fill(7);
    // SAFETY: the file is that long, and nobody else is there.
    unsafe { mapping.write(5_500, &[7; 100]) };
    check(&bytes, "a page of it changed in memory");
    Ok(())
}

#[test]
fn parts_are_written_one_behind_the_other() -> io::Result<()> {
    let (dir, env) = world();
    let file = env.fs.create_new(&dir.path().join("file"))?;
    let long = vec![b'l'; 100_000];
    file.write_parts_at([b"head", b"", &long], 5)?;
    file.write_parts_at([b"", b"a", b""], 1)?;
    let bytes = read_file(&*env.fs, &dir.path().join("file"))?;
    assert_eq!(bytes, [&b"\0a\0\0\0head"[..], &long].concat());
    Ok(())
}

#[test]
fn what_is_said_to_be_in_memory_is_right_and_whole() -> io::Result<()> {
    let (dir, env) = world();
    let file = env.fs.create_new(&dir.path().join("file"))?;
    file.write_at(&[7; 10_000], 0)?;
    let mut buf = [0; 5_000];
    // What was just written is there, but not every file system tells.
    let found = file.read_cached(&mut buf, 5_000)?;
    assert!(!found || buf == [7; 5_000]);
    assert!(!file.read_cached(&mut buf, 5_001)?, "a byte is beyond the end");
    assert!(!file.read_cached(&mut buf, 1 << 40)?);
    Ok(())
}

#[test]
fn files_are_private_and_never_reached_through_a_link() -> io::Result<()> {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let (dir, env) = world();
    let path = dir.path().join("file");
    drop(env.fs.create_new(&path)?);
    assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
    assert_eq!(kind(env.fs.create_new(&path)), Some(io::ErrorKind::AlreadyExists));

    let link = dir.path().join("link");
    symlink(&path, &link)?;
    assert!(env.fs.open_read(&link).is_err());
    assert!(env.fs.open_write(&link).is_err());
    std::fs::remove_file(&path)?;
    assert!(env.fs.exists(&link)?, "a dangling link is in the way of a new file");
    assert!(!env.fs.exists(&path)?);
    assert_eq!(kind(env.fs.open_read(&path)), Some(io::ErrorKind::NotFound));
    Ok(())
}

#[test]
fn a_file_opened_for_reading_takes_no_writes() -> io::Result<()> {
    let (dir, env) = world();
    let path = dir.path().join("file");
    env.fs.create_new(&path)?.write_at(b"kept", 0)?;
    assert!(env.fs.open_read(&path)?.write_at(b"lost", 0).is_err());
    env.fs.open_write(&path)?.write_at(b"K", 0)?;
    assert_eq!(read_file(&*env.fs, &path)?, b"Kept");
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_leaves_no_note_of_its_time() -> io::Result<()> {
    use std::fs::FileTimes;
    use std::os::unix::fs::MetadataExt;
    use std::time::SystemTime;
    let (dir, env) = world();
    let path = dir.path().join("file");
    let file = env.fs.create_new(&path)?;
    file.write_at(b"read", 0)?;
    let long_ago = FileTimes::new().set_accessed(SystemTime::UNIX_EPOCH + Duration::from_secs(7));
    std::fs::File::options().write(true).open(&path)?.set_times(long_ago)?;
    let read = |file: &dyn File| read_exact_at(file, &mut [0; 4], 0);
    read(&*file)?;
    read(&*env.fs.open_read(&path)?)?;
    read(&*env.fs.open_write(&path)?)?;
    read(&*env.fs.open_past_cache(&path)?)?;
    assert_eq!(std::fs::metadata(&path)?.atime(), 7);
    Ok(())
}

#[test]
fn directories_are_made_listed_and_removed() -> io::Result<()> {
    let (dir, env) = world();
    let fs = &*env.fs;
    let deep = dir.path().join("a/b");
    fs.create_dir_all(&deep)?;
    fs.create_dir_all(&deep)?;
    fs.create_new(&deep.join("1"))?;
    fs.create_new(&deep.join("2"))?;
    fs.rename(&deep.join("2"), &deep.join("3"))?;
    fs.sync_dir(&deep)?;
    assert_eq!(sorted_names(fs, &deep)?, ["1", "3"]);
    assert!(fs.remove_dir(&deep).is_err(), "not empty");
    fs.remove_file(&deep.join("1"))?;
    fs.remove_file(&deep.join("3"))?;
    fs.remove_dir(&deep)?;
    assert_eq!(kind(fs.list(&deep)), Some(io::ErrorKind::NotFound));
    assert_eq!(kind(fs.sync_dir(&deep)), Some(io::ErrorKind::NotFound));
    Ok(())
}

#[test]
fn a_file_lives_as_long_as_one_of_its_names() -> io::Result<()> {
    let (dir, env) = world();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    env.fs.create_new(&first)?.write_at(b"shared", 0)?;
    env.fs.hard_link(&first, &second)?;
    assert_eq!(kind(env.fs.hard_link(&first, &second)), Some(io::ErrorKind::AlreadyExists));
    env.fs.remove_file(&first)?;
    assert_eq!(read_file(&*env.fs, &second)?, b"shared");
    assert_eq!(kind(env.fs.hard_link(&first, &dir.path().join("third"))), Some(io::ErrorKind::NotFound));
    Ok(())
}

#[test]
fn a_replaced_file_is_whole_and_leaves_nothing_behind() -> io::Result<()> {
    let (dir, env) = world();
    let path = dir.path().join("CURRENT");
    write_aside(&*env.fs, &path, b"first")?;
    put_in_place(&*env.fs, &path)?;
    let old = env.fs.open_read(&path)?;
    // What a crash in the middle of an earlier attempt left must not matter.
    env.fs.create_new(&dir.path().join("CURRENT.tmp"))?.write_at(b"a long torn attempt", 0)?;
    write_aside(&*env.fs, &path, b"2nd")?;
    put_in_place(&*env.fs, &path)?;
    assert_eq!(read_file(&*env.fs, &path)?, b"2nd");
    let mut buf = [0; 5];
    read_exact_at(&*old, &mut buf, 0)?;
    assert_eq!(&buf, b"first", "the old file is replaced, not overwritten");
    assert_eq!(sorted_names(&*env.fs, dir.path())?, ["CURRENT"]);
    Ok(())
}

#[test]
fn allocation_extends_the_file_with_zeros_and_reserves_space() -> io::Result<()> {
    let (dir, env) = world();
    let file = env.fs.create_new(&dir.path().join("file"))?;
    file.write_at(b"x", 0)?;
    match file.allocate(0, 1 << 20) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(()),
        result => result?,
    }
    assert_eq!(file.len()?, 1 << 20);
    assert!(file.allocated_bytes()? >= 1 << 20);
    let mut buf = [9; 3];
    read_exact_at(&*file, &mut buf, 0)?;
    assert_eq!(&buf, b"x\0\0");
    file.allocate(0, 4096)?;
    assert_eq!(file.len()?, 1 << 20, "allocation never shortens");
    file.set_len(10)?;
    assert_eq!(file.len()?, 10);
    Ok(())
}

#[test]
fn holes_give_blocks_back_and_read_as_zeros() -> io::Result<()> {
    let (dir, env) = world();
    let path = dir.path().join("file");
    let file = env.fs.create_new(&path)?;
    let block = env.fs.block_bytes(dir.path())?;
    file.write_at(&vec![7; 64 * block as usize], 0)?;
    file.sync_data()?;
    let before = file.allocated_bytes()?;
    match file.punch_hole(block, 60 * block) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(()),
        result => result?,
    }
    assert_eq!(file.len()?, 64 * block);
    assert!(before - file.allocated_bytes()? >= 56 * block);
    let mut buf = vec![1; 3 * block as usize];
    read_exact_at(&*file, &mut buf, 0)?;
    let (kept, hole) = buf.split_at(block as usize);
    assert!(kept.iter().all(|&byte| byte == 7) && hole.iter().all(|&byte| byte == 0));
    assert_eq!(file.links()?, 1);
    env.fs.hard_link(&path, &dir.path().join("other"))?;
    assert_eq!(file.links()?, 2);
    Ok(())
}

#[test]
fn what_is_zeroed_reads_as_zeros_and_keeps_its_blocks() -> io::Result<()> {
    let (dir, env) = world();
    let file = env.fs.create_new(&dir.path().join("file"))?;
    let block = env.fs.block_bytes(dir.path())?;
    file.write_at(&vec![7; 64 * block as usize], 0)?;
    file.sync_data()?;
    let before = file.allocated_bytes()?;
    match file.zero(1, 62 * block) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(()),
        result => result?,
    }
    assert_eq!(file.len()?, 64 * block);
    assert!(file.allocated_bytes()? >= before);
    let mut buf = vec![1; 64 * block as usize];
    read_exact_at(&*file, &mut buf, 0)?;
    let (end, len) = (1 + 62 * block as usize, buf.len());
    assert_eq!(buf.iter().position(|&byte| byte == 0), Some(1));
    assert!(buf[1..end].iter().all(|&byte| byte == 0) && buf[end..len].iter().all(|&byte| byte == 7));
    Ok(())
}

#[test]
#[expect(unsafe_code, reason = "the methods of a mapping are unsafe")]
fn mapped_writes_are_seen_by_reads_and_outlive_the_mapping() -> io::Result<()> {
    let (dir, env) = world();
    let file = env.fs.create_new(&dir.path().join("file"))?;
    let mapping = file.map(1 << 20)?;
    assert_eq!(mapping.len(), 1 << 20);
    file.set_len(1 << 16)?;
    // SAFETY: in bounds of mapping and file, and no other thread knows either.
    unsafe { mapping.write(4090, b"across two pages") };
    // SAFETY: as above; the file is not written again while the result lives.
    assert_eq!(unsafe { mapping.bytes(4097, 3) }, b"two");
    let mut buf = [0; 16];
    read_exact_at(&*file, &mut buf, 4090)?;
    assert_eq!(&buf, b"across two pages");
    file.write_at(b"TWO", 4097)?;
    // SAFETY: as above.
    assert_eq!(unsafe { mapping.bytes(4090, 10) }, b"across TWO");
    file.sync_data()?;
    drop(mapping);
    read_exact_at(&*file, &mut buf, 4090)?;
    assert_eq!(&buf, b"across TWO pages");
    assert_eq!(kind(env.fs.open_read(&dir.path().join("file"))?.map(4096)), Some(io::ErrorKind::Unsupported));
    assert_eq!(kind(file.map(0)), Some(io::ErrorKind::InvalidInput));
    Ok(())
}

#[test]
#[expect(unsafe_code, reason = "the methods of a mapping are unsafe")]
fn what_a_mapping_has_left_is_there_and_can_be_written_to() -> io::Result<()> {
    let (dir, env) = world();
    let file = env.fs.create_new(&dir.path().join("file"))?;
    let mapping = file.map(1 << 20)?;
    file.set_len(1 << 20)?;
    // SAFETY: in bounds of mapping and file, and no other thread knows either.
    unsafe { mapping.write(0, &[7; 1 << 20]) };
    mapping.leave(0..0)?;
    mapping.leave(1 << 16..1 << 19)?;
    // SAFETY: as above.
    unsafe { mapping.write((1 << 18) - 1, &[8; 2]) };
    mapping.leave(0..1 << 20)?;
    let mut buf = vec![0; 1 << 20];
    read_exact_at(&*file, &mut buf, 0)?;
    let mut expected = vec![7; 1 << 20];
    expected[(1 << 18) - 1..=1 << 18].fill(8);
    assert!(buf == expected);
    // SAFETY: as above; the file is not written again while the result lives.
    assert!(unsafe { mapping.bytes(0, 1 << 20) } == expected);
    Ok(())
}

/// Wherever the range begins and ends, and whether the system has large pages or not.
#[test]
#[expect(unsafe_code, reason = "the methods of a mapping are unsafe")]
fn joined_pages_hold_what_is_written() -> io::Result<()> {
    let (dir, env) = world();
    let file = env.fs.create_new(&dir.path().join("file"))?;
    let len = 4 * LARGE_PAGE_BYTES;
    file.set_len(len)?;
    let mapping = file.map(len)?;
    let (one, two, three) = (LARGE_PAGE_BYTES, 2 * LARGE_PAGE_BYTES, 3 * LARGE_PAGE_BYTES);
    let has_large_pages = !mapping.join_pages(0, len)?.is_empty();
    for (offset, bytes, whole) in [
        (0, 1, None),
        (5, one, None),
        (0, 0, None),
        (len - 5, 100, None),
        (1 << 20, two, Some(one..two)),
        (one, one, Some(one..two)),
        (two - 1, two, Some(two..three)),
        (three, 2 * len, Some(three..len)),
    ] {
        let joined = mapping.join_pages(offset, bytes)?;
        match whole {
            Some(whole) if has_large_pages => assert_eq!(joined, whole, "of {offset} and {bytes}"),
            _ => assert!(joined.is_empty(), "{joined:?} of {offset} and {bytes}"),
        }
        mapping.prefault(offset, bytes)?;
    }
    let places = [0, LARGE_PAGE_BYTES - 2, 2 * LARGE_PAGE_BYTES - 1, len - 4];
    for place in places {
        // SAFETY: in bounds of mapping and file, and no other thread knows either.
        unsafe { mapping.write(place, b"here") };
    }
    drop(mapping);
    file.sync_data()?;
    drop_from_cache(&dir.path().join("file"));
    for place in places {
        let mut found = [0; 4];
        read_exact_at(&*file, &mut found, place)?;
        assert_eq!(&found, b"here");
    }
    Ok(())
}

/// How many pages of `range` are in memory, where the system tells: not every file system does, nor gives them up when it is asked to.
fn cached_in(file: &std::fs::File, range: &Range<u64>) -> Option<u64> {
    cached_pages(file, range.start, range.end - range.start)
}

/// Whether that is to be relied on for files in `dir`.
fn tells_what_is_cached(dir: &Path) -> bool {
    let path = dir.join("probe");
    std::fs::write(&path, vec![1; 4 * PAGE_BYTES as usize]).expect("written");
    let (file, all) = (std::fs::File::open(&path).expect("opened"), 0..4 * PAGE_BYTES);
    let before = cached_in(&file, &all);
    drop_from_cache(&path);
    before == Some(4) && cached_in(&file, &all) == Some(0)
}

/// Whether one small page of the large one at `at` is given up when it is asked for: not if that is one page.
fn gives_up_one(file: &std::fs::File, at: u64) -> bool {
    let (page, one) = (std::num::NonZero::new(PAGE_BYTES), at + 5 * PAGE_BYTES);
    rustix::fs::fadvise(file, one, page, rustix::fs::Advice::DontNeed).expect("advised");
    cached_in(file, &(one..one + PAGE_BYTES)) == Some(0)
}

/// A new file with these bytes, which are durable, in large pages if that can be.
#[expect(unsafe_code, reason = "the methods of a mapping are unsafe")]
fn written_to_large_pages(env: &Env, path: &Path, bytes: &[u8]) -> io::Result<Arc<dyn File>> {
    let (file, len) = (env.fs.create_new(path)?, bytes.len() as u64);
    file.allocate(0, len)?;
    let mapping = file.map(len)?;
    mapping.join_pages(0, len)?;
    // SAFETY: in bounds of mapping and file, and no other thread knows either.
    unsafe { mapping.write(0, bytes) };
    drop(mapping);
    file.sync_data()?;
    Ok(file)
}

/// Whether files in `dir` have large pages, and it is to be relied on what is said of their pages.
fn has_large_pages(env: &Env, dir: &Path) -> bool {
    let path = dir.join("large");
    drop(written_to_large_pages(env, &path, &vec![1; LARGE_PAGE_BYTES as usize]).expect("written"));
    tells_what_is_cached(dir) && !gives_up_one(&std::fs::File::open(&path).expect("opened"), 0)
}

#[test]
fn large_pages_are_parted_and_hold_what_they_held() -> io::Result<()> {
    let (dir, env) = world();
    let path = dir.path().join("file");
    let len = 3 * LARGE_PAGE_BYTES + 5;
    let bytes: Vec<u8> = (0..len).map(|number| (number / 1000) as u8).collect();
    let file = written_to_large_pages(&env, &path, &bytes)?;
    let plain = std::fs::File::open(&path)?;
    let (tells, starts) = (tells_what_is_cached(dir.path()), [0, LARGE_PAGE_BYTES, 2 * LARGE_PAGE_BYTES]);
    let are_large = has_large_pages(&env, dir.path());
    if are_large {
        assert_eq!(starts.map(|start| gives_up_one(&plain, start)), [false; 3]);
    }
    let reader = env.fs.open_read(&path)?;
    reader.part_pages(LARGE_PAGE_BYTES - 1..2 * LARGE_PAGE_BYTES)?;
    if are_large {
        assert_eq!(starts.map(|start| gives_up_one(&plain, start)), [false, true, false], "the second alone");
    }
    reader.part_pages(0..u64::MAX)?;
    if are_large {
        assert_eq!(starts.map(|start| gives_up_one(&plain, start)), [true; 3]);
    }
    assert!(read_file(&*env.fs, &path)? == bytes);
    drop_from_cache(&path);
    reader.part_pages(0..len)?;
    if tells {
        assert_eq!(cached_in(&plain, &(0..len)), Some(0), "what is not in memory is not read for that");
    }
    file.set_len(LARGE_PAGE_BYTES - 1)?;
    reader.part_pages(0..len)
}

#[test]
fn what_is_loaded_is_in_memory_and_the_same() -> io::Result<()> {
    let (dir, env) = world();
    let path = dir.path().join("file");
    let (one, two, three) = (LARGE_PAGE_BYTES, 2 * LARGE_PAGE_BYTES, 3 * LARGE_PAGE_BYTES);
    let len = three + 5000;
    let bytes: Vec<u8> = (0..len).map(|number| (number / 1000) as u8).collect();
    env.fs.create_new(&path)?.write_at(&bytes, 0)?;
    drop_from_cache(&path);
    let (plain, file) = (std::fs::File::open(&path)?, env.fs.open_read(&path)?);
    file.advise(Access::Random)?;
    let cached = |range: Range<u64>| cached_in(&plain, &range);
    // Small pages of the second large one are there, too few to be left as they are.
    file.read_at(&mut [0; 9000], one + 5000)?;
    let loaded = file.load(one + 100..one + 101)?;
    let there = |read| Loaded { read, is_there: true };
    let are_large = has_large_pages(&env, dir.path());
    assert!(loaded.is_there || !are_large);
    if tells_what_is_cached(dir.path()) && loaded.is_there {
        assert_eq!((loaded, cached(one..two)), (there(one), Some(one / PAGE_BYTES)));
        assert_eq!(cached(0..len), Some(one / PAGE_BYTES), "one large page, and no other");
        assert!(!(are_large && gives_up_one(&plain, one)), "it is large");
        assert_eq!(file.load(two - 1..u64::MAX)?, there(len - two), "up to the end");
        assert_eq!(cached(one..len), Some((len - one).div_ceil(PAGE_BYTES)));
        assert_eq!(file.load(one..len)?, there(0), "it is there");
        drop_from_cache(&path);
        file.read_at(&mut vec![0; (one / 2) as usize], 0)?;
        let much = Loaded { read: one, is_there: false };
        assert_eq!(file.load(0..two)?, much, "much of the first is there, but not all");
    }
    assert_eq!(file.load(len + one..len + two)?, there(0), "there is nothing");
    assert_eq!(file.load(100..100)?, there(0), "nothing is asked for");
    assert!(read_file(&*env.fs, &path)? == bytes);
    Ok(())
}

#[test]
fn a_directory_is_locked_against_the_same_process() -> io::Result<()> {
    let (dir, env) = world();
    let lock = |mode| env.fs.lock_dir(dir.path(), mode);
    let alone = lock(LockMode::Exclusive)?;
    assert_eq!(kind(lock(LockMode::Exclusive)), Some(io::ErrorKind::WouldBlock));
    assert_eq!(kind(lock(LockMode::Shared)), Some(io::ErrorKind::WouldBlock));
    drop(alone);
    let readers = [lock(LockMode::Shared)?, lock(LockMode::Shared)?];
    assert_eq!(kind(lock(LockMode::Exclusive)), Some(io::ErrorKind::WouldBlock));
    drop(readers);
    drop(lock(LockMode::Exclusive)?);
    assert!(env.fs.list(dir.path())?.is_empty(), "there is no lock file");
    assert_eq!(
        kind(env.fs.lock_dir(&dir.path().join("none"), LockMode::Shared)),
        Some(io::ErrorKind::NotFound)
    );
    Ok(())
}

/// Names the directory that a child process of the next test shall lock.
const LOCK_IN_CHILD: &str = "TAMARACK_TEST_LOCK_DIR";
const CHILD_LOCKED: i32 = 75;
const CHILD_REFUSED: i32 = 76;

#[test]
fn a_directory_is_locked_against_other_processes() -> io::Result<()> {
    if let Some(path) = std::env::var_os(LOCK_IN_CHILD) {
        let taken = posix_env().fs.lock_dir(Path::new(&path), LockMode::Exclusive);
        std::process::exit(match kind(taken) {
            None => CHILD_LOCKED,
            Some(io::ErrorKind::WouldBlock) => CHILD_REFUSED,
            Some(_) => 1,
        });
    }
    let (dir, env) = world();
    let (_, module) = module_path!().split_once("::").expect("the crate's name comes first");
    let test = format!("{module}::a_directory_is_locked_against_other_processes");
    let child = || -> io::Result<Option<i32>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--exact", &test]).env(LOCK_IN_CHILD, dir.path());
        Ok(command.output()?.status.code())
    };
    let lock = env.fs.lock_dir(dir.path(), LockMode::Exclusive)?;
    assert_eq!(child()?, Some(CHILD_REFUSED));
    drop(lock);
    assert_eq!(child()?, Some(CHILD_LOCKED));
    drop(env.fs.lock_dir(dir.path(), LockMode::Exclusive)?);
    Ok(())
}

#[test]
fn clock_randomness_and_threads_work() -> io::Result<()> {
    let env = posix_env();
    let before = env.clock.monotonic();
    env.clock.sleep(Duration::from_millis(2));
    assert!(env.clock.monotonic() - before >= Duration::from_millis(2));
    assert!(env.clock.wall() > Duration::from_secs(1_700_000_000), "later than 2023");
    assert_ne!(env.rng.random_u64()?, env.rng.random_u64()?);
    assert!(env.spawn.parallelism() >= 1);

    let name = Arc::new(crate::base::sync::Mutex::new(None));
    let told = Arc::clone(&name);
    let body = move || *told.lock() = std::thread::current().name().map(str::to_owned);
    assert_eq!(env.spawn.spawn("worker-0", Box::new(body))?.join(), Ok(()));
    assert_eq!(name.lock().as_deref(), Some("worker-0"));
    let ends_badly = env.spawn.spawn("worker-1", Box::new(|| panic!("so {}", 7)))?;
    assert_eq!(ends_badly.join(), Err("so 7".to_owned()));
    Ok(())
}
