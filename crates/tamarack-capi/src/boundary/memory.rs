//! Memory that clients free: always from `malloc`, for they may call `free` on it.

use std::ffi::{c_char, c_void};

use super::guard::misuse;

/// Bytes that a client is to free; perhaps `NULL`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Allocated(*mut c_char);

impl Allocated {
    /// `NULL`.
    pub const NONE: Self = Self(std::ptr::null_mut());

    /// A copy of `bytes`. Never `NULL`, not for no bytes either.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self::copy(bytes, bytes.len().max(1))
    }

    /// A copy of `text` with a zero behind it. A zero in the text would hide what follows, and is left out.
    pub fn text(text: &str) -> Self {
        let text: Vec<u8> = text.bytes().filter(|byte| *byte != 0).chain([0]).collect();
        Self::copy(&text, text.len())
    }

    #[cfg(test)]
    pub fn as_pointer(self) -> *const c_char {
        self.0
    }

    fn copy(bytes: &[u8], length: usize) -> Self {
        // SAFETY: any length may be asked for.
        let memory = unsafe { libc::malloc(length) }.cast::<u8>();
        if memory.is_null() {
            misuse(format!("out of memory: malloc of {length} bytes"));
        }
        // SAFETY: `memory` has at least as many bytes, and is new, so that they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
        Self(memory.cast())
    }

    /// Frees memory that a client passes back, or the error text that is to be replaced.
    pub fn free(self) {
        // SAFETY: the caller promises `NULL` or memory from `malloc` that nobody has freed.
        unsafe { libc::free(self.0.cast::<c_void>()) };
    }
}
