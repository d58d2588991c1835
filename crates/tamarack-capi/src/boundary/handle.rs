//! Objects of ours in the hands of a client: how they are given, borrowed and taken back.
//!
//! Each lies in a box behind a tag that says what it is. The tag is looked at on every use, so that a `NULL`, an
//! object of another kind and an object that has been taken back are told from a whole one. The last is a net with
//! holes: once the allocator has given the memory to somebody else, anything may stand there.

use std::sync::atomic::{AtomicU64, Ordering};

use super::guard::misuse;

/// What a client may hold.
pub trait Kind {
    /// What messages call it.
    const NAME: &'static str;
    /// Tells it from other kinds, and from what else may stand in memory.
    const TAG: u64;
}

/// The tag of an object that was taken back, until the allocator puts something of its own there.
const GONE: u64 = 0;

/// An object in a client's hands.
#[repr(C)]
pub struct Handle<T> {
    tag: AtomicU64,
    value: T,
}

/// An object that a client passes for use. Many threads may pass the same one.
#[repr(transparent)]
pub struct Given<T>(*const Handle<T>);

/// An object that a client passes back for good; `NULL` if there is none.
#[repr(transparent)]
pub struct Returned<T>(*mut Handle<T>);

/// A new object for a client.
#[repr(transparent)]
pub struct New<T>(*mut Handle<T>);

impl<T: Kind> New<T> {
    /// Hands over `value`.
    pub fn of(value: T) -> Self {
        Self(Box::into_raw(Box::new(Handle { tag: AtomicU64::new(T::TAG), value })))
    }

    /// Hands over `NULL`.
    pub fn none() -> Self {
        Self(std::ptr::null_mut())
    }
}

impl<T: Kind> Given<T> {
    /// The object.
    pub fn get(&self) -> &T {
        self.get_if_any().unwrap_or_else(|| misuse(format!("NULL instead of {}", T::NAME)))
    }

    /// The object, or `None` for `NULL`.
    pub fn get_if_any(&self) -> Option<&T> {
        // SAFETY: the caller promises `NULL` or an object that this library gave and that it has not returned; it lives
        // until then. All access is shared: what changes in an object does so under locks of its own.
        let handle = unsafe { self.0.as_ref() }?;
        check::<T>(handle.tag.load(Ordering::Relaxed));
        Some(&handle.value)
    }
}

impl<T: Kind> Returned<T> {
    /// Takes the object back; `None` for `NULL`.
    pub fn take(self) -> Option<T> {
        // SAFETY: as for `Given`; the caller promises that nobody uses it any more.
        let handle = unsafe { self.0.as_ref() }?;
        // Of two threads that return the same object one gets it, and the other is told.
        check::<T>(handle.tag.swap(GONE, Ordering::AcqRel));
        // SAFETY: it was made by `New::of`, and the tag says that it has not been taken back before.
        let handle = unsafe { Box::from_raw(self.0) };
        Some(handle.value)
    }

    /// Takes the object back and drops it.
    pub fn destroy(self) {
        drop(self.take());
    }
}

fn check<T: Kind>(tag: u64) {
    if tag != T::TAG {
        misuse(format!("something else instead of {}, or one that was destroyed before", T::NAME));
    }
}
