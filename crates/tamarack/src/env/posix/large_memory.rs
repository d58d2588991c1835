//! Memory in large pages, lent in pieces. A device that reads into small pages is told of each of them, and is slower for it by a third and
//! more.
#![expect(unsafe_code, reason = "memory is mapped, and handed out as bytes")]

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::slice;

use rustix::mm::Advice;

use super::mapping::Region;
use crate::base::large_pages::LARGE_PAGE_BYTES;

/// As much memory as a large page has, whose parts are lent. Where there are no large pages, it is in small ones.
#[derive(Debug)]
pub struct LargeMemory {
    region: Region,
    /// Where in the region the large page begins.
    begins: usize,
    lent: Lent,
}

impl LargeMemory {
    /// One that is taken from the system when it is used.
    pub fn new() -> io::Result<Self> {
        let page = LARGE_PAGE_BYTES as usize;
        // Room to begin where a page does.
        let region = Region::anonymous(2 * page)?;
        // SAFETY: the region is not empty.
        let begins = unsafe { region.address(0, 1) }.as_ptr().align_offset(page).min(page);
        let large = begins as u64..(begins + page) as u64;
        // SAFETY: the range ends inside the region, and this changes no byte.
        unsafe { region.advise(large, Advice::LinuxHugepage) }?;
        Ok(Self { region, begins, lent: Lent::new(page) })
    }

    /// Lends `len` bytes, if as many are left: where they are.
    pub fn lend(&mut self, len: usize) -> Option<Range<usize>> {
        self.lent.lend(len)
    }

    /// Whether `len` bytes could be lent, or never could.
    pub fn has_room(&self, len: usize) -> bool {
        len > self.lent.capacity || self.lent.place(len).is_some()
    }

    /// The bytes at `range`, which were lent.
    pub fn bytes(&mut self, range: &Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.lent.capacity, "no part of it: {range:?}");
        // SAFETY: `begins` leaves as much as the capacity in the region, and the range ends there at the latest.
        let address = unsafe { self.region.address((self.begins + range.start) as u64, range.len()) };
        // SAFETY: the bytes are mapped for reading and writing, are zeros or what was written since, and are reached by `self` alone.
        unsafe { slice::from_raw_parts_mut(address.as_ptr(), range.len()) }
    }

    /// Takes back what was lent at `range`.
    pub fn give_back(&mut self, range: &Range<usize>) {
        self.lent.give_back(range);
    }
}

/// Which bytes are lent: one part behind the other, and from the front again. Parts come back in any order; one is lent again when all that were lent
/// before it are back.
#[derive(Debug)]
struct Lent {
    capacity: usize,
    /// In the order in which they were lent, each with whether it is back.
    parts: VecDeque<(Range<usize>, bool)>,
}

impl Lent {
    fn new(capacity: usize) -> Self {
        Self { capacity, parts: VecDeque::new() }
    }

    fn lend(&mut self, len: usize) -> Option<Range<usize>> {
        let range = self.place(len)?;
        self.parts.push_back((range.clone(), false));
        Some(range)
    }

    /// What would be lent of `len` bytes.
    fn place(&self, len: usize) -> Option<Range<usize>> {
        let (oldest, next) = match (self.parts.front(), self.parts.back()) {
            (Some((oldest, _)), Some((newest, _))) => (oldest.start, newest.end),
            _ => (self.capacity, 0),
        };
        let (from_here, from_front) = if oldest < next { (self.capacity, oldest) } else { (oldest, 0) };
        if len <= from_here - next { Some(next..next + len) } else { (len <= from_front).then_some(0..len) }
    }

    fn give_back(&mut self, range: &Range<usize>) {
        let part = self.parts.iter_mut().find(|(part, is_back)| part == range && !is_back);
        part.expect("it was lent").1 = true;
        while self.parts.front().is_some_and(|(_, is_back)| *is_back) {
            self.parts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_are_lent_in_a_circle() {
        let mut lent = Lent::new(100);
        let (one, two, three) = (lent.lend(40), lent.lend(40), lent.lend(20));
        assert_eq!([&one, &two, &three], [&Some(0..40), &Some(40..80), &Some(80..100)]);
        assert_eq!(lent.lend(1), None);
        lent.give_back(&(40..80));
        assert_eq!(lent.lend(1), None, "the first is not back");
        lent.give_back(&(0..40));
        assert_eq!((lent.lend(50), lent.lend(40), lent.lend(30)), (Some(0..50), None, Some(50..80)));
        lent.give_back(&(80..100));
        lent.give_back(&(0..50));
        lent.give_back(&(50..80));
        assert_eq!((lent.lend(101), lent.lend(100)), (None, Some(0..100)), "all of it again");
    }

    proptest! {
        #[test]
        fn no_byte_is_lent_twice(steps in prop::collection::vec((1_usize..60, any::<prop::sample::Index>(), any::<bool>()), 1..200)) {
            let mut lent = Lent::new(128);
            let mut out: Vec<Range<usize>> = Vec::new();
            for (len, which, returns) in steps {
                if returns && !out.is_empty() {
                    lent.give_back(&out.swap_remove(which.index(out.len())));
                } else if let Some(part) = lent.place(len) {
                    prop_assert_eq!(lent.lend(len), Some(part.clone()));
                    prop_assert!(part.len() == len && part.end <= 128);
                    prop_assert!(out.iter().all(|other| other.end <= part.start || part.end <= other.start));
                    out.push(part);
                } else {
                    prop_assert!(!out.is_empty(), "all of it is there, and {} bytes are refused", len);
                }
            }
        }
    }

    #[test]
    fn its_bytes_are_memory() {
        let mut memory = LargeMemory::new().expect("mapped");
        let (first, second) = (memory.lend(3 << 19).expect("lent"), memory.lend(1 << 19).expect("lent"));
        assert_eq!(memory.lend(1), None);
        assert!(memory.bytes(&first).iter().all(|&byte| byte == 0));
        assert_eq!(memory.bytes(&first).as_ptr().align_offset(LARGE_PAGE_BYTES as usize), 0);
        memory.bytes(&second).fill(7);
        assert!(memory.bytes(&first).iter().all(|&byte| byte == 0));
        assert!(memory.bytes(&second).iter().all(|&byte| byte == 7));
    }
}
