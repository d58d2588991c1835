//! How long a database takes to open after its process was killed with a gibibyte of log that is in no table.
//!
//! For values of several sizes a process of its own writes until the log is that long, with memtables so large that none is
//! flushed, and is killed. Then the database is opened with the options that are usual. Shown is what the open says of its
//! recovery, and how long it took in all.
//! Run with `cargo run --release -p tamarack --example reopen_after_kill [DIRECTORY]`; it takes 2 GB of disk. Other work on
//! the machine shows in every figure.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program that uses the engine has clocks, processes and directories of its own"
)]

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use tamarack::{Db, Options};

const LOG_BYTES: u64 = 1 << 30;
const VALUE_BYTES: [usize; 3] = [256, 1024, 16 << 10];
/// Says that the process is the one to be killed.
const WRITER: &str = "--writer";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, directory, bytes] = &arguments[..]
        && flag == WRITER
    {
        return write(Path::new(directory), bytes.parse()?);
    }
    let directory = PathBuf::from(arguments.first().map_or("reopen_after_kill.tmp", String::as_str));
    for bytes in VALUE_BYTES {
        std::fs::create_dir(&directory)?;
        let mut writer = Command::new(std::env::current_exe()?)
            .args([
                WRITER,
                directory.to_str().ok_or("a directory with a name that is no text")?,
                &bytes.to_string(),
            ])
            .stdout(Stdio::piped())
            .spawn()?;
        let said = BufReader::new(writer.stdout.take().ok_or("no output")?).lines().next();
        writer.kill()?;
        writer.wait()?;
        said.ok_or("the writer ended before it was killed")??;
        let begin = Instant::now();
        let db = Db::open(&directory, Options::default())?;
        let took = begin.elapsed();
        println!("values of {bytes:5} bytes: {:.3} s; {}", took.as_secs_f64(), db.recovery());
        drop(db);
        std::fs::remove_dir_all(&directory)?;
    }
    Ok(())
}

/// Writes until the log is long enough, says so, and waits for its end.
fn write(directory: &Path, value_bytes: usize) -> Result<(), Box<dyn Error>> {
    let options = Options { memtable_bytes: 2 << 30, recovery_log_max: 16 << 30, ..Options::default() };
    let db = Db::open(directory, options)?;
    let value = vec![7; value_bytes];
    for number in 0..LOG_BYTES / value_bytes as u64 {
        // Neither in order nor twice.
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        db.put(&key, &value)?;
    }
    println!("written");
    std::io::stdout().flush()?;
    loop {
        std::thread::park();
    }
}
