//! A cache of large values: they are written once, to the log, and compactions move only their keys.
//!
//! Puts values of up to a megabyte, reads them into one buffer, throws half of them out, and shows what that cost.
//! Run with `cargo run -p tamarack --example blob_cache [DIRECTORY]`.

use std::path::PathBuf;

use tamarack::{Db, Options, ReadOptions, WriteBatch, WriteOptions};

const BLOBS: usize = 64;

/// From 16 KiB to 1 MiB of bytes that tell which blob they belong to.
fn blob(number: usize) -> Vec<u8> {
    vec![number as u8; (number + 1) * 16 * 1024]
}

fn key(number: usize) -> Vec<u8> {
    format!("blob/{number:04}").into_bytes()
}

fn show(db: &Db, when: &str) {
    let stats = db.stats();
    println!(
        "{when}: {} KiB of log in {} segments, {} KiB of tables; dead values {} KiB; write amplification {:.4}",
        stats.log_bytes >> 10,
        stats.segments.len(),
        stats.table_bytes >> 10,
        stats.dead_value_bytes >> 10,
        stats.write_amplification,
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let directory = std::env::args_os().nth(1).map_or(temporary.path().join("cache"), PathBuf::from);
    // Small segments, so that a part of the cache fills one: a segment goes once nothing in it is alive.
    let db = Db::open(&directory, Options { segment_bytes_max: 4 << 20, ..Options::default() })?;
    for number in 0..BLOBS {
        db.put(&key(number), &blob(number))?;
    }
    db.flush()?;
    show(&db, "filled");

    let (mut value, options) = (Vec::new(), ReadOptions::default());
    for number in 0..BLOBS {
        assert!(db.get_into(&key(number), &mut value, &options)?, "blob {number} was just put");
        assert_eq!(value, blob(number));
    }
    let (reads, bytes) = (db.stats().value_reads, db.stats().value_read_bytes);
    println!("{BLOBS} values read with {reads} reads of the log, {} KiB", bytes >> 10);

    let mut older = WriteBatch::new();
    (0..BLOBS / 2).try_for_each(|number| older.delete(&key(number)))?;
    db.write(&older, &WriteOptions::default())?;
    show(&db, "older half deleted");
    db.compact_range(None, None)?;
    show(&db, "compacted");
    Ok(db.close()?)
}
