//! One zeroed piece of memory that nodes are cut from, in words of eight bytes.
//!
//! The arena knows nothing of what lies in a word. It hands out every word at most once, never takes one back,
//! and never moves: a pointer into it lives as long as the arena. Untouched pages cost no memory, because the
//! operating system supplies zeroed pages on first touch.

#![expect(unsafe_code, reason = "the arena owns raw memory")]

use std::ptr::NonNull;

use super::shadow::Shadow;
use crate::base::large_pages::{LARGE_PAGE_BYTES, prefer_large_pages};
use crate::base::sync::{AtomicU64, Ordering, PlainAtomicU64};
use crate::base::zeros::Zeros;

/// Bytes in a word: the unit of places and the alignment of nodes.
pub(super) const WORD_BYTES: usize = 8;

const _: () =
    assert!(align_of::<PlainAtomicU64>() == WORD_BYTES && size_of::<PlainAtomicU64>() == WORD_BYTES);

/// The most words an arena can have: places are 32-bit word numbers, so 32 GiB.
const WORDS_MAX: usize = u32::MAX as usize;

/// Size and alignment of a large page.
const PAGE: usize = LARGE_PAGE_BYTES as usize;
/// Arenas from this size on are aligned for large pages.
const LARGE_ARENA_BYTES_MIN: usize = 4 * PAGE;

/// Memory of a fixed capacity, handed out front to back. Any thread may allocate; no locks.
#[derive(Debug)]
pub(super) struct Arena {
    /// What `base` points into; nobody else looks at it.
    _memory: Zeros<PlainAtomicU64>,
    base: NonNull<u8>,
    words: usize,
    allocated: AtomicU64,
    shadow: Shadow,
}

// SAFETY: the arena owns its memory alone, and no part of it belongs to a particular thread.
unsafe impl Send for Arena {}

// SAFETY: through a shared arena one can only take words that nobody else has taken, by an atomic counter;
// access to the memory behind a place is the business of `Node`, which says why it is sound.
unsafe impl Sync for Arena {}

impl Arena {
    /// An arena of `words` zeroed words.
    pub(super) fn new(words: usize) -> Self {
        assert!((1..=WORDS_MAX).contains(&words), "an arena has 1 to {WORDS_MAX} words, not {words}");
        // With room to begin at a large page, for a large arena.
        let is_large = words * WORD_BYTES >= LARGE_ARENA_BYTES_MIN;
        let memory = Zeros::<PlainAtomicU64>::new(words + if is_large { PAGE / WORD_BYTES } else { 0 });
        let mut base = memory.start().cast::<u8>();
        if is_large {
            // SAFETY: the offset is less than a large page, and the allocation is that much larger than the words.
            base = unsafe { base.add(base.align_offset(PAGE)) };
            prefer_large_pages(base.as_ptr(), words * WORD_BYTES);
        }
        Self { _memory: memory, base, words, allocated: AtomicU64::new(0), shadow: Shadow::new(words) }
    }

    /// Takes `words` words that nobody else has and returns the first one's place.
    ///
    /// # Panics
    /// When the arena is full: whoever inserts must have made sure of the room.
    pub(super) fn allocate(&self, words: usize) -> u32 {
        let first = self.allocated.fetch_add(words as u64, Ordering::Relaxed);
        let fits = first.checked_add(words as u64).is_some_and(|end| end <= self.words as u64);
        assert!(
            fits,
            "room in an arena is reserved before it is used: {words} words at {first} of {}",
            self.words
        );
        u32::try_from(first).expect("an arena has at most 2^32 - 1 words")
    }

    /// Words handed out so far.
    pub(super) fn allocated_words(&self) -> usize {
        usize::try_from(self.allocated.load(Ordering::Relaxed)).expect("an arena has at most 2^32 - 1 words")
    }

    /// The address of `word`, valid for the memory of the whole arena.
    pub(super) fn address(&self, word: u32) -> *mut u8 {
        debug_assert!((word as usize) < self.words);
        self.base.as_ptr().wrapping_add(word as usize * WORD_BYTES)
    }

    /// What loom watches of this memory.
    #[inline(always)]
    pub(super) fn shadow(&self) -> &Shadow {
        &self.shadow
    }
}
