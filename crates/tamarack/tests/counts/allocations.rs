//! Counts what the present thread allocates, and how much of that it holds.

#![expect(unsafe_code, reason = "an allocator is unsafe to be one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator.
struct Counted;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes allocated less bytes freed, and the most that was.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

#[global_allocator]
static MEMORY: Counted = Counted;

// A thread that is about to end allocates without being counted.

fn count() {
    ALLOCATIONS.try_with(|count| count.set(count.get() + 1)).ok();
}

fn hold(more: usize, less: usize) {
    let change = |held: &Cell<(i64, i64)>| {
        let (now, most) = held.get();
        let now = now + more as i64 - less as i64;
        held.set((now, most.max(now)));
    };
    HELD.try_with(change).ok();
}

// SAFETY: all calls go to the system's allocator as they come.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        hold(layout.size(), 0);
        // SAFETY: the caller keeps to the same rules.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        hold(0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        hold(new_size, layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// How many allocations `work` makes on this thread.
pub fn during(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// How many bytes of memory this thread holds at most while it does `work`, beyond what it holds now.
pub fn most_held_during(work: impl FnOnce()) -> u64 {
    let (before, _) = HELD.get();
    HELD.set((before, before));
    work();
    let (_, most) = HELD.get();
    (most - before) as u64
}
