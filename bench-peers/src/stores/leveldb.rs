//! LevelDB, by the C interface of the system's library.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ops::Bound;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::time::Duration;

use tamarack_bench::{Change, Cursor, KeyRange, Store, Written};

use super::{Setting, rest};

/// Something of the library's.
type Handle = *mut c_void;

#[link(name = "leveldb")]
unsafe extern "C" {
    fn leveldb_major_version() -> c_int;
    fn leveldb_minor_version() -> c_int;
    fn leveldb_options_create() -> Handle;
    fn leveldb_options_destroy(options: Handle);
    fn leveldb_options_set_create_if_missing(options: Handle, value: u8);
    fn leveldb_options_set_compression(options: Handle, value: c_int);
    fn leveldb_options_set_cache(options: Handle, cache: Handle);
    fn leveldb_cache_create_lru(bytes: usize) -> Handle;
    fn leveldb_cache_destroy(cache: Handle);
    fn leveldb_open(options: Handle, path: *const c_char, error: *mut *mut c_char) -> Handle;
    fn leveldb_close(db: Handle);
    fn leveldb_put(
        db: Handle,
        options: Handle,
        key: *const u8,
        key_len: usize,
        value: *const u8,
        value_len: usize,
        error: *mut *mut c_char,
    );
    fn leveldb_delete(db: Handle, options: Handle, key: *const u8, key_len: usize, error: *mut *mut c_char);
    fn leveldb_write(db: Handle, options: Handle, batch: Handle, error: *mut *mut c_char);
    fn leveldb_get(
        db: Handle,
        options: Handle,
        key: *const u8,
        key_len: usize,
        value_len: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut u8;
    fn leveldb_free(pointer: *mut c_void);
    fn leveldb_writebatch_create() -> Handle;
    fn leveldb_writebatch_destroy(batch: Handle);
    fn leveldb_writebatch_put(
        batch: Handle,
        key: *const u8,
        key_len: usize,
        value: *const u8,
        value_len: usize,
    );
    fn leveldb_writebatch_delete(batch: Handle, key: *const u8, key_len: usize);
    fn leveldb_readoptions_create() -> Handle;
    fn leveldb_readoptions_destroy(options: Handle);
    fn leveldb_writeoptions_create() -> Handle;
    fn leveldb_writeoptions_destroy(options: Handle);
    fn leveldb_writeoptions_set_sync(options: Handle, value: u8);
    fn leveldb_create_iterator(db: Handle, options: Handle) -> Handle;
    fn leveldb_iter_destroy(iter: Handle);
    fn leveldb_iter_valid(iter: Handle) -> u8;
    fn leveldb_iter_seek_to_first(iter: Handle);
    fn leveldb_iter_seek_to_last(iter: Handle);
    fn leveldb_iter_seek(iter: Handle, key: *const u8, key_len: usize);
    fn leveldb_iter_next(iter: Handle);
    fn leveldb_iter_prev(iter: Handle);
    fn leveldb_iter_key(iter: Handle, len: *mut usize) -> *const u8;
    fn leveldb_iter_value(iter: Handle, len: *mut usize) -> *const u8;
    fn leveldb_iter_get_error(iter: Handle, error: *mut *mut c_char);
}

/// An open database.
pub struct Leveldb {
    db: Handle,
    cache: Option<Handle>,
    reading: Handle,
    /// Options of writes that are not synced, and of those that are.
    writing: [Handle; 2],
}

// SAFETY: the library may be called by several threads at once; options are only read once they are made.
unsafe impl Sync for Leveldb {}

/// The version of the library, as it says.
pub fn version() -> String {
    // SAFETY: they return a number, and do nothing else.
    let (major, minor) = unsafe { (leveldb_major_version(), leveldb_minor_version()) };
    format!("{major}.{minor}")
}

/// Opens one, which need not be there.
pub fn open(path: &Path, setting: Setting) -> Result<Leveldb, String> {
    let path =
        path.to_str().and_then(|path| CString::new(path).ok()).ok_or("a path that LevelDB cannot take")?;
    // SAFETY: calls as the library's header has them; handles live until they are destroyed, here or in `drop`.
    unsafe {
        let options = leveldb_options_create();
        leveldb_options_set_create_if_missing(options, 1);
        leveldb_options_set_compression(options, 0);
        let cache = setting.cache_bytes.map(|bytes| leveldb_cache_create_lru(bytes));
        if let Some(cache) = cache {
            leveldb_options_set_cache(options, cache);
        }
        let db = checked(|error| leveldb_open(options, path.as_ptr(), error));
        leveldb_options_destroy(options);
        let writing = [leveldb_writeoptions_create(), leveldb_writeoptions_create()];
        leveldb_writeoptions_set_sync(writing[1], 1);
        Ok(Leveldb { db: db?, cache, reading: leveldb_readoptions_create(), writing })
    }
}

/// What `call` returns, unless it has set an error.
fn checked<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T, String> {
    let mut error = null_mut();
    let returned = call(&raw mut error);
    let Some(text) = NonNull::new(error) else { return Ok(returned) };
    // SAFETY: errors are strings that end in a zero.
    let described = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
    // SAFETY: they belong to the caller.
    unsafe { leveldb_free(error.cast()) };
    Err(described)
}

impl Store for Leveldb {
    type Error = String;
    type Cursor<'a> = Walk<'a>;

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), String> {
        let options = self.writing[usize::from(sync)];
        let (key, key_len) = (key.as_ptr(), key.len());
        // SAFETY: handles are alive, and slices are as long as they say.
        checked(|error| unsafe {
            leveldb_put(self.db, options, key, key_len, value.as_ptr(), value.len(), error);
        })
    }

    fn delete(&self, key: &[u8], sync: bool) -> Result<(), String> {
        let options = self.writing[usize::from(sync)];
        // SAFETY: as above.
        checked(|error| unsafe { leveldb_delete(self.db, options, key.as_ptr(), key.len(), error) })
    }

    fn write(&self, changes: &[Change<'_>], sync: bool) -> Result<(), String> {
        // SAFETY: as above; the batch is destroyed once it is written.
        unsafe {
            let batch = leveldb_writebatch_create();
            for change in changes {
                match change {
                    Change::Put(key, value) => {
                        leveldb_writebatch_put(batch, key.as_ptr(), key.len(), value.as_ptr(), value.len());
                    }
                    Change::Delete(key) => leveldb_writebatch_delete(batch, key.as_ptr(), key.len()),
                }
            }
            let outcome =
                checked(|error| leveldb_write(self.db, self.writing[usize::from(sync)], batch, error));
            leveldb_writebatch_destroy(batch);
            outcome
        }
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, String> {
        let mut len = 0;
        // SAFETY: as above; what is found belongs to the caller.
        let found = checked(|error| unsafe {
            leveldb_get(self.db, self.reading, key.as_ptr(), key.len(), &raw mut len, error)
        })?;
        value.clear();
        let Some(found) = NonNull::new(found) else { return Ok(false) };
        // SAFETY: it is as long as the call has said.
        value.extend_from_slice(unsafe { std::slice::from_raw_parts(found.as_ptr(), len) });
        // SAFETY: it is not looked at any more.
        unsafe { leveldb_free(found.as_ptr().cast()) };
        Ok(true)
    }

    fn multi_get(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, String> {
        let get = |key: &Vec<u8>| {
            let mut value = Vec::new();
            Ok(self.get(key, &mut value)?.then_some(value))
        };
        keys.iter().map(get).collect()
    }

    fn walk(&self, range: KeyRange<'_>, backward: bool) -> Result<Walk<'_>, String> {
        // SAFETY: the walk borrows the store.
        let iter = unsafe { leveldb_create_iterator(self.db, self.reading) };
        let own = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        Ok(Walk { iter, start: own(range.0), end: own(range.1), backward, begun: false, store: PhantomData })
    }

    fn settle(&self) -> Result<Duration, String> {
        // A write that is synced makes all before it durable.
        self.write(&[], true)?;
        Ok(rest::wait(|| false))
    }

    fn written(&self) -> Option<Written> {
        None
    }
}

impl Drop for Leveldb {
    fn drop(&mut self) {
        // SAFETY: nobody uses any of them after this; the cache is used by the database until that is closed.
        unsafe {
            leveldb_close(self.db);
            leveldb_readoptions_destroy(self.reading);
            for options in self.writing {
                leveldb_writeoptions_destroy(options);
            }
            if let Some(cache) = self.cache {
                leveldb_cache_destroy(cache);
            }
        }
    }
}

/// A walk through the database.
pub struct Walk<'a> {
    iter: Handle,
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    backward: bool,
    begun: bool,
    store: PhantomData<&'a Leveldb>,
}

impl Walk<'_> {
    fn go(&mut self) {
        // SAFETY: the iterator is alive; it is moved on only where it is valid, since nobody goes on behind the end.
        unsafe {
            match (std::mem::replace(&mut self.begun, true), self.backward) {
                (false, false) => match &self.start {
                    Bound::Unbounded => leveldb_iter_seek_to_first(self.iter),
                    Bound::Included(key) | Bound::Excluded(key) => {
                        leveldb_iter_seek(self.iter, key.as_ptr(), key.len());
                    }
                },
                (false, true) => match &self.end {
                    Bound::Unbounded => leveldb_iter_seek_to_last(self.iter),
                    Bound::Included(key) | Bound::Excluded(key) => {
                        leveldb_iter_seek(self.iter, key.as_ptr(), key.len());
                        if leveldb_iter_valid(self.iter) == 0 {
                            leveldb_iter_seek_to_last(self.iter);
                        }
                    }
                },
                (true, false) => leveldb_iter_next(self.iter),
                (true, true) => leveldb_iter_prev(self.iter),
            }
        }
    }

    fn valid(&self) -> bool {
        // SAFETY: the iterator is alive.
        unsafe { leveldb_iter_valid(self.iter) != 0 }
    }

    fn is_before(&self) -> bool {
        match &self.start {
            Bound::Unbounded => false,
            Bound::Included(start) => self.key() < &start[..],
            Bound::Excluded(start) => self.key() <= &start[..],
        }
    }

    fn is_behind(&self) -> bool {
        match &self.end {
            Bound::Unbounded => false,
            Bound::Included(end) => self.key() > &end[..],
            Bound::Excluded(end) => self.key() >= &end[..],
        }
    }
}

impl Cursor for Walk<'_> {
    type Error = String;

    fn advance(&mut self) -> Result<bool, String> {
        self.go();
        // A seek may end on the wrong side of the bound.
        while self.valid() && if self.backward { self.is_behind() } else { self.is_before() } {
            self.go();
        }
        // SAFETY: the iterator is alive.
        checked(|error| unsafe { leveldb_iter_get_error(self.iter, error) })?;
        Ok(self.valid() && !if self.backward { self.is_before() } else { self.is_behind() })
    }

    fn key(&self) -> &[u8] {
        let mut len = 0;
        // SAFETY: the iterator is valid, and stays where it is as long as it is borrowed.
        unsafe { std::slice::from_raw_parts(leveldb_iter_key(self.iter, &raw mut len), len) }
    }

    fn value(&mut self) -> Result<&[u8], String> {
        let mut len = 0;
        // SAFETY: as for keys.
        Ok(unsafe { std::slice::from_raw_parts(leveldb_iter_value(self.iter, &raw mut len), len) })
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody uses it after this.
        unsafe { leveldb_iter_destroy(self.iter) };
    }
}
