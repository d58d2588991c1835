//! A message queue: messages are added in batches, taken in order, and deleted once they are dealt with.
//!
//! Keys are `queue/` and a number with leading zeros: the order of bytes is the order of arrival. Every write is
//! synced: a message once accepted survives a power failure, and one that was finished does not come back.
//! Run with `cargo run -p tamarack --example message_queue [DIRECTORY]`.

use std::path::PathBuf;

use tamarack::{Db, IterOptions, Options, Result, WriteBatch, WriteOptions};

/// All keys of the queue begin with `queue/`; `0` is the byte after `/`.
fn queue(keys_only: bool) -> IterOptions {
    let (start, end) = (Some(b"queue/".to_vec()), Some(b"queue0".to_vec()));
    IterOptions { start, end, keys_only, ..Default::default() }
}

/// The number behind that of the last message.
fn next_number(db: &Db) -> Result<u64> {
    let mut iter = db.iter(&queue(true))?;
    iter.seek_to_last()?;
    let digits = if iter.valid() { iter.key()[6..].to_vec() } else { return Ok(0) };
    Ok(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')) + 1)
}

/// Adds all messages or none.
fn add(db: &Db, messages: &[String]) -> Result<()> {
    let mut batch = WriteBatch::new();
    for (number, message) in (next_number(db)?..).zip(messages) {
        batch.put(format!("queue/{number:020}").as_bytes(), message.as_bytes())?;
    }
    db.write(&batch, &WriteOptions::synced())
}

/// Deals with the oldest messages. A crash before the deletion means that they are dealt with again.
fn consume(db: &Db, count: usize) -> Result<()> {
    let mut done = WriteBatch::new();
    for entry in db.iter(&queue(false))?.entries().take(count) {
        let (key, message) = entry?;
        println!("  {}  {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&message));
        done.delete(&key)?;
    }
    db.write(&done, &WriteOptions::synced())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let directory = std::env::args_os().nth(1).map_or(temporary.path().join("queue"), PathBuf::from);
    let db = Db::open(&directory, Options::default())?;
    add(&db, &[1, 2, 3].map(|hour| format!("Monday, {hour} o'clock")))?;
    add(&db, &[1, 2, 3].map(|hour| format!("Tuesday, {hour} o'clock")))?;
    println!("taken first:");
    consume(&db, 4)?;
    db.close()?;
    let db = Db::open(&directory, Options::default())?;
    println!("still there after closing and opening ({}):", db.recovery());
    consume(&db, 1)?;
    let left = db.iter(&queue(true))?.entries().count();
    println!("syncs since then: {}; messages left: {left}", db.stats().syncs);
    Ok(())
}
