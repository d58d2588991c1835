//! The library of `bench-peers/badger`, and all unsafe code that it takes.
//!
//! It is loaded when a database is first opened, and stays: it brings Go's runtime along, whose threads and signal handlers
//! a process that measures another store must not have.

use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

use tamarack_bench::Change;

/// Bytes as the library takes them.
#[repr(C)]
#[derive(Clone, Copy)]
struct Bytes {
    bytes: *mut u8,
    len: usize,
}

impl Bytes {
    /// Bytes that are only read.
    fn of(bytes: &[u8]) -> Self {
        Self::at(bytes.as_ptr().cast_mut(), bytes.len())
    }

    /// Room that is only written.
    fn spare(buffer: &mut Vec<u8>) -> Self {
        let room = buffer.spare_capacity_mut();
        Self::at(room.as_mut_ptr().cast(), room.len())
    }

    /// The address of nothing is one that Go does not take.
    fn at(bytes: *mut u8, len: usize) -> Self {
        Self { bytes: if len == 0 { null_mut() } else { bytes }, len }
    }
}

/// A part of a batch as the library takes it.
#[repr(C)]
struct Part {
    key: Bytes,
    value: Bytes,
    deletes: u8,
}

impl Part {
    fn of(change: &Change<'_>) -> Self {
        match change {
            Change::Put(key, value) => Self { key: Bytes::of(key), value: Bytes::of(value), deletes: 0 },
            Change::Delete(key) => Self { key: Bytes::of(key), value: Bytes::of(&[]), deletes: 1 },
        }
    }
}

/// What the library knows a database or a walk by.
type Handle = usize;
/// What has failed, as a text of the caller's that ends in a zero; null if nothing has.
type Outcome = *mut c_char;

/// The library's functions.
struct Library {
    open: unsafe extern "C" fn(Bytes, i64, i64, u8, *mut Handle) -> Outcome,
    close: unsafe extern "C" fn(Handle) -> Outcome,
    write: unsafe extern "C" fn(Handle, *const Part, usize, u8) -> Outcome,
    read: unsafe extern "C" fn(Handle, *const Bytes, usize, Bytes, *mut i64, *mut usize) -> Outcome,
    sync: unsafe extern "C" fn(Handle) -> Outcome,
    collect: unsafe extern "C" fn(Handle) -> Outcome,
    walk: unsafe extern "C" fn(Handle, Bytes, u8) -> Handle,
    walk_next: unsafe extern "C" fn(Handle, usize, Bytes, *mut usize) -> Outcome,
    walk_end: unsafe extern "C" fn(Handle),
    #[cfg(test)]
    nothing: unsafe extern "C" fn(),
}

impl Library {
    /// The library, loaded if it is not yet.
    fn get() -> Result<&'static Self, String> {
        static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
        LIBRARY.get_or_init(|| Self::load().map_err(|error| error.to_string())).as_ref().map_err(Clone::clone)
    }

    fn load() -> Result<Self, libloading::Error> {
        // SAFETY: the build script has made it, and all that it runs when it is loaded is Go's runtime.
        let library = unsafe { libloading::Library::new(env!("BADGER_LIBRARY")) }?;
        // It has threads that never end: it cannot be unloaded.
        let library = Box::leak(Box::new(library));
        // SAFETY: the types are those of the functions in `badger.go`.
        unsafe {
            Ok(Self {
                open: *library.get(b"tamarack_badger_open")?,
                close: *library.get(b"tamarack_badger_close")?,
                write: *library.get(b"tamarack_badger_write")?,
                read: *library.get(b"tamarack_badger_read")?,
                sync: *library.get(b"tamarack_badger_sync")?,
                collect: *library.get(b"tamarack_badger_collect")?,
                walk: *library.get(b"tamarack_badger_walk")?,
                walk_next: *library.get(b"tamarack_badger_walk_next")?,
                walk_end: *library.get(b"tamarack_badger_walk_end")?,
                #[cfg(test)]
                nothing: *library.get(b"tamarack_badger_nothing")?,
            })
        }
    }
}

/// Goes into Go and back, and does nothing there.
#[cfg(test)]
pub fn cross() -> Result<(), String> {
    let library = Library::get()?;
    // SAFETY: it can be called at any time.
    unsafe { (library.nothing)() };
    Ok(())
}

unsafe extern "C" {
    fn free(pointer: *mut c_void);
}

fn checked(outcome: Outcome) -> Result<(), String> {
    let Some(text) = NonNull::new(outcome) else { return Ok(()) };
    // SAFETY: errors are strings that end in a zero.
    let described = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
    // SAFETY: they belong to the caller, and Go has got them from the C library.
    unsafe { free(outcome.cast()) };
    Err(described)
}

/// How a database is opened.
pub struct Settings {
    /// Memory for blocks that were read, if not as much as by itself.
    pub cache_bytes: Option<usize>,
    /// Values of so many bytes and more go to the value log, if not of as many as by itself.
    pub separated_min: Option<u32>,
    /// Whether it syncs each write.
    pub sync: bool,
}

/// An open database. Several threads may use it at once.
pub struct Database {
    library: &'static Library,
    handle: Handle,
}

impl Database {
    pub fn open(path: &Path, settings: &Settings) -> Result<Self, String> {
        let library = Library::get()?;
        let path = Bytes::of(path.as_os_str().as_encoded_bytes());
        let cache_bytes = settings.cache_bytes.map_or(-1, |bytes| bytes as i64);
        let separated_min = settings.separated_min.map_or(-1, i64::from);
        let mut handle = 0;
        // SAFETY: the path is there as long as the call lasts, and so is the place for the handle.
        checked(unsafe {
            (library.open)(path, cache_bytes, separated_min, settings.sync.into(), &raw mut handle)
        })?;
        Ok(Self { library, handle })
    }

    pub fn write(&self, changes: &[Change<'_>], sync: bool) -> Result<(), String> {
        match changes {
            [change] => self.write_parts(&[Part::of(change)], sync),
            _ => self.write_parts(&changes.iter().map(Part::of).collect::<Vec<_>>(), sync),
        }
    }

    fn write_parts(&self, parts: &[Part], sync: bool) -> Result<(), String> {
        // SAFETY: the database is open, and what the parts point to is there as long as the call lasts.
        checked(unsafe { (self.library.write)(self.handle, parts.as_ptr(), parts.len(), sync.into()) })
    }

    /// Puts the values of keys behind what is in `values`, as far as there is room, and their lengths into `lens`, -1 for a
    /// key without one. Returns of how many keys; if not of all, the length of the next value is there as well.
    pub fn read(&self, keys: &[&[u8]], values: &mut Vec<u8>, lens: &mut [i64]) -> Result<usize, String> {
        match keys {
            [key] => self.read_bytes(&[Bytes::of(key)], values, lens),
            _ => self.read_bytes(&keys.iter().map(|key| Bytes::of(key)).collect::<Vec<_>>(), values, lens),
        }
    }

    fn read_bytes(&self, keys: &[Bytes], values: &mut Vec<u8>, lens: &mut [i64]) -> Result<usize, String> {
        assert_eq!(keys.len(), lens.len(), "each key has a place for the length of its value");
        let mut answered = 0;
        // SAFETY: the database is open; keys, lengths and the room for values are as long as they say.
        checked(unsafe {
            let room = Bytes::spare(values);
            let lens = lens.as_mut_ptr();
            (self.library.read)(self.handle, keys.as_ptr(), keys.len(), room, lens, &raw mut answered)
        })?;
        let read: usize = lens[..answered].iter().map(|len| usize::try_from(*len).unwrap_or(0)).sum();
        assert!(read <= values.capacity() - values.len(), "values are cut to the room");
        // SAFETY: so many bytes have been written behind those that were there.
        unsafe { values.set_len(values.len() + read) };
        Ok(answered)
    }

    /// Makes all that was written durable.
    pub fn sync(&self) -> Result<(), String> {
        // SAFETY: the database is open.
        checked(unsafe { (self.library.sync)(self.handle) })
    }

    /// Collects the value log until nothing more of it is worth it.
    pub fn collect(&self) -> Result<(), String> {
        // SAFETY: the database is open.
        checked(unsafe { (self.library.collect)(self.handle) })
    }

    /// Begins a walk at a key, or at the first one of its direction.
    pub fn walk(&self, from: Option<&[u8]>, backward: bool) -> Walk<'_> {
        let from = Bytes::of(from.unwrap_or_default());
        // SAFETY: the database is open, and the key is there as long as the call lasts.
        let handle = unsafe { (self.library.walk)(self.handle, from, backward.into()) };
        Walk { library: self.library, handle, database: PhantomData }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: nobody uses the handle after this, and walks, which borrow the database, have ended.
        if let Err(error) = checked(unsafe { (self.library.close)(self.handle) }) {
            eprintln!("closing Badger: {error}");
        }
    }
}

/// A walk through a database.
pub struct Walk<'a> {
    library: &'static Library,
    handle: Handle,
    database: PhantomData<&'a Database>,
}

impl Walk<'_> {
    /// Puts the next entries, at most so many, in place of what is in `entries`, as far as there is room: each has the
    /// lengths of key and value in four bytes, and both. Without any it is the end. If not even one fits, nothing is
    /// written, and how much room it needs is returned.
    pub fn next(&mut self, entries_max: usize, entries: &mut Vec<u8>) -> Result<Option<usize>, String> {
        entries.clear();
        let mut used = 0;
        // SAFETY: the walk has not ended, and the room is as long as it says.
        checked(unsafe {
            (self.library.walk_next)(self.handle, entries_max, Bytes::spare(entries), &raw mut used)
        })?;
        if used > entries.capacity() {
            return Ok(Some(used));
        }
        // SAFETY: so many bytes have been written.
        unsafe { entries.set_len(used) };
        Ok(None)
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody uses the handle after this.
        unsafe { (self.library.walk_end)(self.handle) };
    }
}
