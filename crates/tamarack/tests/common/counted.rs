//! The system's allocator, which tells of every change of what is allocated.

#![expect(unsafe_code, reason = "an allocator is unsafe to be one")]

use std::alloc::{GlobalAlloc, Layout, System};

/// For a `#[global_allocator]`. It is told how many bytes are allocated more and how many less, on the thread that asks
/// for it, and must not allocate.
pub struct Counted(pub fn(usize, usize));

// SAFETY: all calls go to the system's allocator as they come.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        (self.0)(layout.size(), 0);
        // SAFETY: the caller keeps to the same rules.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        (self.0)(0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        (self.0)(new_size, layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
