//! What the device can do for a program that does nothing else: bare loops, to hold a store's figures against.
//!
//! A file is written from end to end, read from end to end, and read in pieces at random places of which none is read
//! twice, by 1 to 64 threads: that many reads are under way at a time. Reads go through the page cache, as the engine's do,
//! but nothing is in it when they begin, and each kind tells the kernel how it reads. Then come appends of 1 KiB that are
//! synced one by one: to a file that grows, into space that was reserved, and into space to which zeros were written before, page by page.
//! Last comes what the kernel can do without the device: values handed to it and not synced, and reads of 1 KiB of what
//! it has in memory.
//! Run with `cargo run --release -p tamarack-bench --example device DIRECTORY [GIB]`; the file of so many GiB, 2 unless
//! told, is removed at the end. Other work on the machine shows in every figure.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program that measures the device has files, clocks and threads of its own"
)]

use std::error::Error;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use tamarack_bench::Random;

const PAGE_BYTES: u64 = 4096;
const STEP_BYTES: usize = 1 << 20;
const APPEND_BYTES: usize = 1024;
/// Bytes of all appends of a kind.
const APPENDED_BYTES: u64 = 5 << 20;
/// Reads of each measurement at random places, at most.
const READS_MAX: usize = 200_000;
const DEPTHS: [usize; 6] = [1, 2, 4, 8, 32, 64];
/// Bytes handed to the kernel without a sync, of each size of value.
const HANDED_BYTES: u64 = 1 << 30;
/// Bytes of a value.
const VALUES: [usize; 5] = [256, 1 << 10, 4 << 10, 16 << 10, 64 << 10];
/// Reads of a value of 1 KiB in memory.
const CACHED_READS: usize = 2_000_000;
const CACHED_BYTES: u64 = 1 << 30;
/// Bytes of a read at random: a page with a value of 1 KiB in it, and larger values.
const SIZES: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("which directory? device DIRECTORY [GIB]")?;
    let gib: u64 = arguments.next().map_or(Ok(2), |gib| gib.parse())?;
    let bytes =
        gib.checked_mul(1 << 30).filter(|bytes| *bytes > 0).ok_or("between 1 GiB and what the disk has")?;
    let path = Path::new(&directory).join("device.tmp");
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    let measured = measure(&file, bytes);
    std::fs::remove_file(&path)?;
    Ok(measured?)
}

fn measure(file: &File, bytes: u64) -> io::Result<()> {
    let mut random = Random::new(bytes);
    let mut step: Vec<u8> = (0..STEP_BYTES / 8).flat_map(|_| random.number().to_le_bytes()).collect();
    let took = time(|| {
        for at in (0..bytes).step_by(STEP_BYTES) {
            file.write_all_at(&step, at)?;
        }
        file.sync_data()
    })?;
    show("written from end to end, and synced", 1, bytes, took);

    forget(file, Advice::Sequential)?;
    let took = time(|| {
        for at in (0..bytes).step_by(STEP_BYTES) {
            file.read_exact_at(&mut step, at)?;
        }
        Ok(())
    })?;
    show("read from end to end", 1, bytes, took);

    let pages = bytes / PAGE_BYTES;
    for size in SIZES {
        for depth in DEPTHS {
            forget(file, Advice::Random)?;
            let places = places(pages, size, &mut random);
            let took = time(|| read_at(file, &places, size, depth))?;
            let what = format!("read {} KiB at random, {depth} at a time", size >> 10);
            show(&what, places.len(), (places.len() * size) as u64, took);
        }
    }

    let end = bytes + APPENDED_BYTES;
    append(file, "append 1 KiB, and sync", bytes, &step)?;
    fallocate(file, FallocateFlags::empty(), end, APPENDED_BYTES)?;
    file.sync_data()?;
    append(file, "the same where space is reserved", end, &step)?;
    for at in (0..APPENDED_BYTES).step_by(PAGE_BYTES as usize) {
        file.write_all_at(&[0; PAGE_BYTES as usize], end + APPENDED_BYTES + at)?;
    }
    file.sync_data()?;
    append(file, "the same where zeros are written", end + APPENDED_BYTES, &step)?;
    without_device(file, &step, &mut random)
}

/// Appends from `start` on, and syncs each time.
fn append(file: &File, what: &str, start: u64, bytes: &[u8]) -> io::Result<()> {
    let took = time(|| {
        (0..APPENDED_BYTES).step_by(APPEND_BYTES).try_for_each(|at| {
            file.write_all_at(&bytes[..APPEND_BYTES], start + at)?;
            file.sync_data()
        })
    })?;
    show(what, APPENDED_BYTES as usize / APPEND_BYTES, APPENDED_BYTES, took);
    Ok(())
}

fn without_device(file: &File, bytes: &[u8], random: &mut Random) -> io::Result<()> {
    for size in VALUES {
        file.set_len(0)?;
        file.sync_data()?;
        let took = time(|| {
            (0..HANDED_BYTES).step_by(size).try_for_each(|at| file.write_all_at(&bytes[..size], at))
        })?;
        let count = HANDED_BYTES as usize / size;
        show(&format!("hand the kernel {size} bytes"), count, HANDED_BYTES, took);
    }

    // All of it is in memory now.
    let pages = CACHED_BYTES / PAGE_BYTES;
    let places: Vec<u64> = (0..CACHED_READS).map(|_| random.below(pages) * PAGE_BYTES).collect();
    for threads in [1, 2] {
        let took = time(|| read_at(file, &places, 1 << 10, threads))?;
        let what = format!("read 1 KiB in memory, {threads} at a time");
        show(&what, CACHED_READS, (CACHED_READS << 10) as u64, took);
    }
    Ok(())
}

/// Places in a file of so many pages from which `size` bytes can be read, in random order.
fn places(pages: u64, size: usize, random: &mut Random) -> Vec<u64> {
    let stride = size as u64 / PAGE_BYTES;
    let mut places: Vec<u64> = (0..pages / stride).map(|number| number * stride * PAGE_BYTES).collect();
    for last in (1..places.len()).rev() {
        places.swap(last, random.below(last as u64 + 1) as usize);
    }
    places.truncate(READS_MAX);
    places
}

fn read_at(file: &File, places: &[u64], size: usize, threads: usize) -> io::Result<()> {
    thread::scope(|scope| {
        let read = |share: &[u64]| {
            let mut buffer = vec![0; size];
            share.iter().try_for_each(|&at| file.read_exact_at(&mut buffer, at))
        };
        let shares = places.chunks(places.len().div_ceil(threads));
        let readers: Vec<_> = shares.map(|share| scope.spawn(move || read(share))).collect();
        readers.into_iter().try_for_each(|reader| reader.join().expect("a reader does not panic"))
    })
}

/// Takes the file out of the page cache, and tells how it will be read.
fn forget(file: &File, access: Advice) -> io::Result<()> {
    file.sync_data()?;
    fadvise(file, 0, None, Advice::DontNeed)?;
    Ok(fadvise(file, 0, None, access)?)
}

fn time(work: impl FnOnce() -> io::Result<()>) -> io::Result<Duration> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}

fn show(what: &str, count: usize, bytes: u64, took: Duration) {
    let [times, megabytes] = [count as f64, bytes as f64 / 1e6].map(|amount| amount / took.as_secs_f64());
    println!("{what:40} | {megabytes:7.0} MB/s | {times:9.0} times a second");
}
