//! Puts, gets and walks, one after the other, for a tool that counts what the processor executes in each.
//!
//! `cargo xtask instructions` runs it under callgrind, which counts within one of the functions below, and compares with
//! limits. Run alone it does the work and prints what it has counted itself: operations.

use tamarack::{Db, IterOptions, Options, ReadOptions, Result, WriteBatch, WriteOptions};

const KEYS: u32 = 10_000;
/// Operations of a batch, and keys that are read at once.
const TOGETHER: usize = 50;

/// Keys that follow each other have nothing to do with each other.
fn key(number: u32) -> [u8; 16] {
    let mut key = *b"user000000000000";
    key[4..8].copy_from_slice(&number.wrapping_mul(2_654_435_761).to_le_bytes());
    key
}

fn value(number: u32) -> [u8; 1024] {
    [number as u8; 1024]
}

#[inline(never)]
fn put_each(db: &Db) -> Result<()> {
    (0..KEYS).try_for_each(|number| db.put(&key(number), &value(number)))
}

#[inline(never)]
fn put_in_batches(db: &Db) -> Result<()> {
    let numbers: Vec<u32> = (0..KEYS).collect();
    // One for all: whether one that grows has to be copied depends on what happens to lie behind it.
    let mut batch = WriteBatch::new();
    for numbers in numbers.chunks(TOGETHER) {
        batch.clear();
        for &number in numbers {
            batch.put(&key(number), &value(number))?;
        }
        db.write(&batch, &WriteOptions::default())?;
    }
    Ok(())
}

/// The keys are in a memtable, or in tables whose blocks are cached; and the values in the log.
#[inline(never)]
fn get_from_memtable(db: &Db) -> Result<()> {
    get_each(db)
}

#[inline(never)]
fn get_from_tables(db: &Db) -> Result<()> {
    get_each(db)
}

fn get_each(db: &Db) -> Result<()> {
    let mut value = Vec::new();
    for number in 0..KEYS {
        assert!(db.get_into(&key(number), &mut value, &ReadOptions::default())?);
    }
    Ok(())
}

#[inline(never)]
fn get_pinned_rows(db: &Db) -> Result<()> {
    for number in 0..KEYS {
        assert!(db.get_pinned(&key(number), &ReadOptions::default())?.is_some());
    }
    Ok(())
}

#[inline(never)]
fn get_together(db: &Db) -> Result<()> {
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    for keys in keys.chunks(TOGETHER) {
        for value in db.multi_get(keys, &ReadOptions::default()) {
            assert!(value?.is_some());
        }
    }
    Ok(())
}

#[inline(never)]
fn get_what_is_absent(db: &Db) -> Result<()> {
    for number in 0..KEYS {
        assert!(!db.contains(&key(KEYS + number))?);
    }
    Ok(())
}

#[inline(never)]
fn walk_over_keys(db: &Db) -> Result<()> {
    let mut iter = db.iter(&IterOptions { keys_only: true, ..IterOptions::default() })?;
    iter.seek_to_first()?;
    while iter.valid() {
        iter.next()?;
    }
    Ok(())
}

#[inline(never)]
fn walk_over_values(db: &Db) -> Result<()> {
    let mut iter = db.iter(&IterOptions::default())?;
    iter.seek_to_first()?;
    while iter.valid() {
        assert_eq!(iter.value()?.len(), 1024);
        iter.next()?;
    }
    Ok(())
}

#[inline(never)]
fn seek_each(db: &Db) -> Result<()> {
    let mut iter = db.iter(&IterOptions { keys_only: true, ..IterOptions::default() })?;
    for number in 0..KEYS {
        iter.seek(&key(number))?;
        assert!(iter.valid());
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let open = |row_cache_bytes| {
        // Nothing is to change in the background what a walk finds: values that lie together are read by its own thread.
        let options = Options { value_runs_max: 0, row_cache_bytes, ..Options::default() };
        Db::open(directory.path(), options)
    };
    let db = open(Options::default().row_cache_bytes)?;
    put_each(&db)?;
    get_from_memtable(&db)?;
    put_in_batches(&db)?;
    db.compact_range(None, None)?;
    // Whatever is asked for becomes a row.
    get_each(&db)?;
    get_pinned_rows(&db)?;
    db.close()?;
    // Rows would answer what is asked of tables.
    let db = open(0)?;
    // The first reads bring blocks into the cache.
    get_each(&db)?;
    get_from_tables(&db)?;
    get_together(&db)?;
    get_what_is_absent(&db)?;
    walk_over_keys(&db)?;
    walk_over_values(&db)?;
    seek_each(&db)?;
    println!("{KEYS} operations of each kind");
    Ok(db.close()?)
}
