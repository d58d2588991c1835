//! Memory of zeros that is taken from the system as it is first touched, and goes back at once.
//!
//! Large tables are touched here and there, and memory that nobody touches should cost none. An allocator that maps large pieces for
//! itself does as much for the first ones. But glibc's maps fewer of them the larger those were that were freed before: a piece that it uses
//! again is written over with zeros, and so touched as a whole, and what is freed stays. So large pieces are mapped here.

#![expect(unsafe_code, reason = "it owns raw memory")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::OnceLock;

use zerocopy::FromZeros;

/// Pieces of so many bytes and more are mapped: pages are few beside them.
const MAPPED_BYTES_MIN: usize = 128 << 10;
/// No page is smaller, and a mapping begins with one.
const PAGE_BYTES_MIN: usize = 4 << 10;

/// Who is told of what is mapped.
static WATCH: OnceLock<fn(usize, usize)> = OnceLock::new();

/// From now on, or if that was said before, has `watch` told of how many bytes are mapped more and how many less, on the thread that
/// asks for it. For tests that count memory, of which the allocator does not learn.
pub fn watch_mapped(watch: fn(usize, usize)) {
    WATCH.get_or_init(|| watch);
}

/// A fixed number of values that were zeros at first.
pub struct Zeros<T> {
    values: NonNull<[T]>,
}

// SAFETY: it owns its values alone, like a boxed slice.
unsafe impl<T: Send> Send for Zeros<T> {}

// SAFETY: `&self` gives shared access to the values and to nothing else; `start` says what its users must promise.
unsafe impl<T: Sync> Sync for Zeros<T> {}

impl<T: FromZeros> Zeros<T> {
    /// So many of them.
    ///
    /// # Panics
    /// If memory cannot have so many. Where the system refuses them, the process ends, as without any other memory.
    pub fn new(len: usize) -> Self {
        const { assert!(!std::mem::needs_drop::<T>(), "nobody drops them") };
        const { assert!(align_of::<T>() <= PAGE_BYTES_MIN, "a page is a place for the first of them") };
        let layout = Layout::array::<T>(len).expect("a number that memory may have");
        let start = if layout.size() == 0 { NonNull::dangling() } else { zeroed(layout).cast() };
        Self { values: NonNull::slice_from_raw_parts(start, len) }
    }
}

impl<T> Zeros<T> {
    /// Where the first one is. Whoever writes there makes sure that nobody else has a reference to what is written.
    pub fn start(&self) -> NonNull<T> {
        self.values.cast()
    }
}

impl<T> Deref for Zeros<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: so many values lie there, aligned as they must be: zeros are one of `T`, and so is whatever was written since.
        unsafe { self.values.as_ref() }
    }
}

impl<T> fmt::Debug for Zeros<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zeros").field("len", &self.values.len()).finish_non_exhaustive()
    }
}

impl<T> Drop for Zeros<T> {
    fn drop(&mut self) {
        let layout = Layout::array::<T>(self.values.len()).expect("it was made");
        if layout.size() > 0 {
            // SAFETY: `new` took it with this layout, and no reference to the values outlives `self`.
            unsafe { give_back(self.start().cast(), layout) };
        }
    }
}

/// Whether memory of that layout is mapped. Miri knows no mappings.
fn is_mapped(layout: Layout) -> bool {
    cfg!(not(miri)) && layout.size() >= MAPPED_BYTES_MIN
}

/// Memory of a layout that has a size.
fn zeroed(layout: Layout) -> NonNull<u8> {
    let address = if is_mapped(layout) {
        tell(layout.size(), 0);
        mapping::map(layout.size())
    } else {
        // SAFETY: the layout has a size.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    };
    address.unwrap_or_else(|| handle_alloc_error(layout))
}

/// Gives it back.
///
/// # Safety
/// It is of [`zeroed`], by the same layout, and nobody uses it any more.
unsafe fn give_back(address: NonNull<u8>, layout: Layout) {
    if is_mapped(layout) {
        tell(0, layout.size());
        // SAFETY: the caller's promise.
        unsafe { mapping::unmap(address, layout.size()) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { dealloc(address.as_ptr(), layout) };
    }
}

fn tell(more: usize, less: usize) {
    if let Some(watch) = WATCH.get() {
        watch(more, less);
    }
}

/// The system's calls.
mod mapping {
    use std::ptr::{self, NonNull};

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    /// So many bytes, from the beginning of a page on, if they are to be had.
    #[expect(
        clippy::disallowed_methods,
        reason = "memory is the one thing that layers below `env` take from the system"
    )]
    pub fn map(bytes: usize) -> Option<NonNull<u8>> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without a hint the system chooses a range that is not in use.
        let address = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE) };
        address.ok().and_then(|address| NonNull::new(address.cast()))
    }

    /// Gives them back.
    ///
    /// # Safety
    /// They are what [`map`] returned, and nobody uses them any more.
    pub unsafe fn unmap(address: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise.
        let unmapped = unsafe { munmap(address.as_ptr().cast(), bytes) };
        debug_assert!(unmapped.is_ok(), "what was mapped can be unmapped: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn they_are_zeros_and_keep_what_is_written() {
        let lens = if cfg!(miri) { vec![0, 1, 100] } else { vec![0, 1, 100, MAPPED_BYTES_MIN / 8, 1 << 20] };
        for len in lens {
            let zeros = Zeros::<AtomicU64>::new(len);
            assert!(zeros.len() == len && zeros.iter().all(|word| word.load(Ordering::Relaxed) == 0));
            zeros.iter().zip(1..).for_each(|(word, number)| word.store(number, Ordering::Relaxed));
            assert!(zeros.iter().zip(1..).all(|(word, number)| word.load(Ordering::Relaxed) == number));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "Miri knows no pages")]
    fn what_nobody_touches_takes_no_memory_whatever_was_freed_before() {
        // By the table of the process's pages, of which the highest bits say that one is there, or swapped out.
        let Ok(table) = std::fs::File::open("/proc/self/pagemap") else {
            return println!("skipped: this system does not tell which pages are there");
        };
        let resident = |zeros: &Zeros<u64>| {
            use std::os::unix::fs::FileExt;
            let page = rustix::param::page_size();
            let first = zeros.start().as_ptr() as usize / page;
            let mut entries = vec![0; size_of_val(&**zeros) / page * 8];
            table.read_exact_at(&mut entries, first as u64 * 8).expect("each page has an entry");
            let (entries, _) = entries.as_chunks();
            entries.iter().filter(|&&entry| u64::from_ne_bytes(entry) >> 62 != 0).count() * page
        };
        let words = (24 << 20) / 8;
        for _ in 0..3 {
            // The allocator learns from this that such pieces are not worth a mapping.
            drop(std::hint::black_box(vec![7_u8; words * 8]));
            let zeros = Zeros::<u64>::new(words);
            let untouched = resident(&zeros);
            // A large page that begins or ends beside it may be there for what a neighbour touches.
            assert!(
                untouched < 12 << 20,
                "{untouched} bytes of 24 MiB are there, and nobody has touched any"
            );
            assert!(zeros.iter().all(|&word| word == 0));
        }
    }
}
