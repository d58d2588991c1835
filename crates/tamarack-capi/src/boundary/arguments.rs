//! Arguments other than objects: bytes, texts, arrays, and places for results.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::guard::misuse;
use super::memory::Allocated;
use crate::status::Status;

/// Bytes; their length is an argument of its own.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Bytes(*const c_char);

impl Bytes {
    /// The `length` bytes. `NULL` will do for none.
    pub fn slice(&self, length: usize) -> &[u8] {
        if length == 0 {
            return &[];
        }
        self.slice_if_any(length).unwrap_or_else(|| misuse(format!("NULL instead of {length} bytes")))
    }

    /// The `length` bytes, or `None` for `NULL`.
    pub fn slice_if_any(&self, length: usize) -> Option<&[u8]> {
        if self.0.is_null() {
            return None;
        }
        if isize::try_from(length).is_err() {
            misuse(format!("a length of {length} bytes"));
        }
        // SAFETY: the caller promises so many bytes, which do not change during the call.
        Some(unsafe { std::slice::from_raw_parts(self.0.cast::<u8>(), length) })
    }
}

/// A text with a zero behind it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    /// Its bytes without the zero.
    pub fn bytes(&self) -> &[u8] {
        if self.0.is_null() {
            misuse("NULL instead of a text".to_owned());
        }
        // SAFETY: the caller promises a zero, and that nothing up to it changes during the call.
        unsafe { CStr::from_ptr(self.0) }.to_bytes()
    }

    /// The path that it names.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.bytes()))
    }
}

/// Several byte strings; their number and lengths are arguments of their own.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct ManyBytes(*const Bytes);

/// The lengths of several byte strings.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Lengths(*const usize);

impl ManyBytes {
    /// The byte strings.
    pub fn slices<'a>(&'a self, lengths: &'a Lengths, number: usize) -> Vec<&'a [u8]> {
        if number == 0 {
            return Vec::new();
        }
        if self.0.is_null() || lengths.0.is_null() {
            misuse(format!("NULL instead of an array of {number}"));
        }
        // SAFETY: the caller promises so many pointers.
        let pointers = unsafe { std::slice::from_raw_parts(self.0, number) };
        // SAFETY: the caller promises so many lengths.
        let lengths = unsafe { std::slice::from_raw_parts(lengths.0, number) };
        pointers.iter().zip(lengths).map(|(bytes, length)| bytes.slice(*length)).collect()
    }
}

/// Where results go: one, or an array of them.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Results<T>(*mut T);

impl<T> Results<T> {
    /// Writes the only result.
    pub fn set(&self, value: T) {
        self.set_at(0, value);
    }

    /// Writes the result at `index`.
    pub fn set_at(&self, index: usize, value: T) {
        if self.0.is_null() {
            misuse("NULL instead of a place for a result".to_owned());
        }
        let place = self.0.wrapping_add(index);
        // SAFETY: the caller promises room for as many results as it asked for. What stood there needs no drop: it is
        // the caller's.
        unsafe { place.write(value) };
    }
}

impl Results<u8> {
    /// Copies `bytes` to the beginning of a buffer of at least as many.
    pub fn fill(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.0.is_null() {
            misuse(format!("NULL instead of a buffer of {} bytes", bytes.len()));
        }
        // SAFETY: the caller promises a buffer, of which no more is written than its length says, and which is no
        // memory of ours, so that they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0, bytes.len()) };
    }
}

/// Bytes of ours that a client may read until it changes what they belong to; their length is given apart.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Lent(*const c_char);

impl Lent {
    /// `NULL`.
    pub const NONE: Self = Self(std::ptr::null());

    /// The bytes at `bytes`. Never `NULL`, not for no bytes either.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self(bytes.as_ptr().cast())
    }
}

/// Where an error goes: `char** errptr`. The text there before, if there is one, is freed.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct ErrorPointer(*mut Allocated);

impl ErrorPointer {
    /// Tells `status`.
    pub fn set(self, status: &Status) {
        if self.0.is_null() {
            misuse(format!("NULL instead of an errptr, and there is an error: {}", status.text()));
        }
        // SAFETY: the caller promises a pointer that may be read, to `NULL` or to a text from `malloc`.
        let before = unsafe { self.0.read() };
        before.free();
        // SAFETY: the same place, which may be written.
        unsafe { self.0.write(Allocated::text(status.text())) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::guard::reported;

    #[test]
    fn a_panic_is_an_error_like_any_other() {
        let mut place = Allocated::NONE;
        let failed = |message: &str| -> Result<u32, Status> {
            if message.is_empty() { Err(Status::invalid_argument("empty")) } else { panic!("{message}") }
        };
        for (message, expected) in [
            ("at fault", "IO error: internal failure: at fault"),
            ("", "Invalid argument: empty"),
            ("again", "IO error: internal failure: again"),
        ] {
            let errors = ErrorPointer(&raw mut place);
            assert_eq!(reported("a_function", errors, 7, || failed(message)), 7);
            let text = Text(place.as_pointer());
            assert_eq!(std::str::from_utf8(text.bytes()), Ok(expected));
        }
        place.free();
    }
}
