//! Scans at one moment: a snapshot, forwards and backwards, between bounds, while the database changes.
//!
//! Run with `cargo run -p tamarack --example snapshot_scan [DIRECTORY]`.

use std::path::PathBuf;

use tamarack::{Db, IterOptions, Options, ReadOptions, Result, Snapshot, WriteBatch, WriteOptions};

const STOCK: [(&str, &str); 6] =
    [("apple", "12"), ("banana", "7"), ("cherry", "150"), ("fig", "31"), ("grape", "80"), ("lemon", "9")];

/// The keys from `b` up to but not including `h`, now or at a moment of the past.
fn from_b_to_h(snapshot: Option<&Snapshot>) -> IterOptions {
    IterOptions {
        snapshot: snapshot.cloned(),
        start: Some(b"b".to_vec()),
        end: Some(b"h".to_vec()),
        ..IterOptions::default()
    }
}

fn print_forwards(db: &Db, options: &IterOptions) -> Result<()> {
    for entry in db.iter(options)?.entries() {
        let (key, value) = entry?;
        println!("  {:<6} {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let directory = std::env::args_os().nth(1).map_or(temporary.path().join("stock"), PathBuf::from);
    let db = Db::open(&directory, Options::default())?;
    let mut batch = WriteBatch::new();
    STOCK.iter().try_for_each(|(key, value)| batch.put(key.as_bytes(), value.as_bytes()))?;
    db.write(&batch, &WriteOptions::default())?;

    let before = db.snapshot();
    db.put(b"date", b"64")?;
    db.delete(b"fig")?;
    db.compact_range(None, None)?;
    println!("now:");
    print_forwards(&db, &from_b_to_h(None))?;
    println!("at the snapshot, after a compaction:");
    print_forwards(&db, &from_b_to_h(Some(&before)))?;

    println!("at the snapshot, backwards from the last key before g:");
    let mut iter = db.iter(&IterOptions { end: Some(b"g".to_vec()), ..from_b_to_h(Some(&before)) })?;
    iter.seek_to_last()?;
    while iter.valid() {
        print!("  {:<6}", String::from_utf8_lossy(iter.key()));
        println!(" {}", String::from_utf8_lossy(iter.value()?));
        iter.prev()?;
    }
    let then = ReadOptions { snapshot: Some(before), ..ReadOptions::default() };
    let (old, new) = (db.get_with(b"fig", &then)?, db.get(b"fig")?);
    println!("is there a fig? then: {}, now: {}", old.is_some(), new.is_some());
    Ok(db.close()?)
}
