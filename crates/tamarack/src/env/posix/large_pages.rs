//! Large pages of what the kernel has of a file: having them read, and having them parted. It has a call for neither, but does both for
//! mappings with certain advice. Nobody touches these mappings: what is wrong with the device is an error of a call then.
#![expect(unsafe_code, reason = "advice is given on memory")]

use std::fs::File;
use std::io;
use std::num::NonZero;
use std::ops::Range;

use rustix::fs::fadvise;
use rustix::mm::{Advice, ProtFlags};

use super::mapping::Region;
use super::page_cache::cached_pages;
use crate::base::large_pages::LARGE_PAGE_BYTES;
use crate::env::{Loaded, PAGE_BYTES, large_pages_in};

/// Of a large page this part may be there in small pages to be given up for it, and read again.
const FEW_PART: u64 = 4;

/// Reads `range` of `file`, as [`load`](crate::env::File::load) says. For a page of a mapping that is to have large ones the kernel reads the
/// large page around it, and no more where reads are said to be at random (`do_sync_mmap_readahead`, Linux 5.18 and later). It is made
/// sure that it does: where it would not, each small page would be a read of its own.
pub fn load(file: &File, range: Range<u64>) -> io::Result<Loaded> {
    let mut loaded = Loaded { read: 0, is_there: true };
    let len = file.metadata()?.len();
    let start = range.start / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
    let end = range.end.min(len).next_multiple_of(LARGE_PAGE_BYTES).min(len);
    if range.is_empty() || start >= end {
        return Ok(loaded);
    }
    let cached = |piece: &Range<u64>| {
        cached_pages(file, piece.start, piece.end - piece.start).map(|pages| pages * PAGE_BYTES)
    };
    match cached(&(start..end)) {
        Some(bytes) if bytes >= end - start => return Ok(loaded),
        Some(_) if is_usual(file)? => {}
        _ => return Ok(Loaded::default()),
    }
    let region = Region::new(file, start..end, ProtFlags::READ)?;
    for advice in [Advice::LinuxHugepage, Advice::Random] {
        // SAFETY: this changes no byte, and the range is that of the region.
        if !unsafe { region.advise(0..end - start, advice) }? {
            return Ok(Loaded::default());
        }
    }
    for at in (start..end).step_by(LARGE_PAGE_BYTES as usize) {
        let piece = at..end.min(at + LARGE_PAGE_BYTES);
        let len = piece.end - piece.start;
        let there = cached(&piece).unwrap_or(0);
        if there > len / FEW_PART {
            loaded.is_there &= there >= len;
            continue;
        }
        if there > 0 {
            // A large page cannot be where a small one is. If it stays, that is seen below.
            fadvise(file, at, NonZero::new(len), rustix::fs::Advice::DontNeed).ok();
        }
        let first = at - start..at - start + len.min(PAGE_BYTES);
        // SAFETY: this changes no byte, and the range lies inside the region.
        let is_done = unsafe { region.advise(first, Advice::LinuxPopulateRead) }.unwrap_or(false);
        if !is_done || cached(&piece).is_none_or(|bytes| bytes < len) {
            return Ok(Loaded { is_there: false, ..loaded });
        }
        loaded.read += len;
    }
    Ok(loaded)
}

/// Parts the large pages in `range` of `file`, as [`part_pages`](crate::env::File::part_pages) says: one small page of a large one cannot be
/// declared cold otherwise (`madvise_cold_or_pageout_pte_range`, Linux 6.18).
pub fn part(file: &File, range: Range<u64>) -> io::Result<()> {
    let pages = large_pages_in(&(range.start..range.end.min(file.metadata()?.len())));
    if pages.is_empty() {
        return Ok(());
    }
    let region = Region::new(file, pages.clone(), ProtFlags::READ)?;
    // SAFETY: this changes no byte, and the range is that of the region.
    unsafe { region.advise(0..pages.end - pages.start, Advice::Random) }?;
    for at in pages.clone().step_by(LARGE_PAGE_BYTES as usize) {
        // Only what is in memory as a whole may be one page.
        if cached_pages(file, at, LARGE_PAGE_BYTES) != Some(LARGE_PAGE_BYTES / page_bytes()) {
            continue;
        }
        let one = at - pages.start..at - pages.start + page_bytes();
        // Only what is mapped can be advised on.
        for advice in [Advice::LinuxPopulateRead, Advice::LinuxCold] {
            // SAFETY: as above; the range lies inside the region.
            if !unsafe { region.advise(one.clone(), advice) }? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Whether pages are of the usual size, by which the kernel measures large ones, and what is not in memory is on a device: to tmpfs, holes
/// that are looked at are given memory.
fn is_usual(file: &File) -> io::Result<bool> {
    const TMPFS: i64 = 0x0102_1994;
    Ok(page_bytes() == PAGE_BYTES && rustix::fs::fstatfs(file)?.f_type as i64 != TMPFS)
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}
