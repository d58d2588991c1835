//! Small databases of which everything is there that a directory can hold, and the seeds that are made of their files.

use std::path::Path;
use std::sync::OnceLock;

use crate::base::codec::Codec;
use crate::base::error::Result;
use crate::base::names::FileName;
use crate::base::options::{GcPolicy, LogMode, Options};
use crate::cube::collect::GcGoal;
use crate::db::Db;
use crate::env::sim::{SimDisk, SimOptions};
use crate::env::unwatched::unwatched;
use crate::env::{Env, read_file};

/// Where databases are.
pub const DIRECTORY: &str = "/db";
/// How many keys a golden database has had.
pub const KEYS: usize = 80;

/// The files of a database by their names.
pub type Files = Vec<(String, Vec<u8>)>;

/// Options with which nothing happens by itself, in small files.
pub fn options(codec: Codec) -> Options {
    Options {
        memtable_bytes: 1 << 20,
        segment_bytes_max: 4 << 10,
        recovery_log_max: 1 << 20,
        table_bytes_max: 4 << 10,
        level_bytes_base: 1 << 20,
        block_bytes: 512,
        inline_value_max: 16,
        max_space_amplification: 1000.0,
        gc: GcPolicy::Off,
        log_mode: LogMode::Plain,
        value_codec: codec,
        block_codec: codec,
        background_threads: 1,
        block_cache_bytes: 16 << 10,
        row_cache_bytes: 16 << 10,
        relocation_cache_bytes: 4 << 10,
        open_files_max: 16,
        ..Options::default()
    }
}

/// The key of that number.
pub fn key(number: usize) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

fn value(number: usize, round: usize) -> Vec<u8> {
    let len = [9, 60, 100, 150][number % 4];
    format!("{number}@{round};").bytes().cycle().take(len).collect()
}

/// Writes what a golden database holds: tables of two levels, cold segments and what they replace, segments of the log,
/// and a tail that no table has.
fn fill(db: &Db) -> Result<()> {
    let put = |step, round| {
        (0..KEYS).step_by(step).try_for_each(|number| db.put(&key(number), &value(number, round)))
    };
    put(1, 0)?;
    db.flush()?;
    put(2, 1)?;
    db.compact_range(None, None)?;
    db.gc(GcGoal::Until(1.0))?;
    put(5, 2)?;
    db.delete(&key(3))?;
    db.flush()?;
    db.wait_idle()?;
    put(11, 3)?;
    db.delete(&key(7))?;
    db.sync()
}

/// The files of a database as a kill leaves them, or closed.
fn make(codec: Codec, closed: bool) -> Result<Files> {
    let disk = SimDisk::new(&SimOptions { block_bytes: 512, ..SimOptions::default() });
    let env = unwatched(disk.env());
    let db = Db::open_with_env(DIRECTORY, options(codec), &env)?;
    fill(&db)?;
    let left = if closed {
        db.close()?;
        disk.env()
    } else {
        disk.kill().env()
    };
    Ok(files(&left))
}

/// The files in the directory of databases of `env`.
fn files(env: &Env) -> Files {
    let directory = Path::new(DIRECTORY);
    let mut names = env.fs.list(directory).expect("the directory is there");
    names.sort();
    let read = |name: String| {
        let bytes = read_file(&*env.fs, &directory.join(&name)).expect("the simulated disk reads");
        (name, bytes)
    };
    names.into_iter().map(read).collect()
}

/// The files of a golden database, by whether they are compressed and whether it was closed.
pub fn golden(compressed: bool, closed: bool) -> &'static Files {
    static GOLDEN: [OnceLock<Files>; 4] = [const { OnceLock::new() }; 4];
    let codec = if compressed { Codec::Lz4 } else { Codec::None };
    GOLDEN[usize::from(compressed) * 2 + usize::from(closed)]
        .get_or_init(|| make(codec, closed).expect("a small database on a simulated disk"))
}

/// The first file of `files` of which `is` says so.
fn first(files: &'static Files, is: fn(FileName) -> bool) -> &'static [u8] {
    let found = files.iter().find(|(name, _)| FileName::parse(name).is_some_and(is));
    &found.expect("a golden database has files of every kind").1
}

fn is_cold(name: FileName) -> bool {
    matches!(name, FileName::Segment(id) if id.is_cold())
}

fn is_log(name: FileName) -> bool {
    matches!(name, FileName::Segment(id) if !id.is_cold())
}

fn behind(front: &[u8], bytes: &[u8]) -> Vec<u8> {
    [front, bytes].concat()
}

/// The bytes of a file up to the last that is not zero.
fn used(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)]
}

pub fn codec_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let raw = b"tamarack ".repeat(40);
    let stored = |codec: Codec| {
        let stored = codec.compress(&raw).expect("compressing does not fail").expect("it is worth it");
        behind(&[codec as u8], &stored)
    };
    vec![("lz4", stored(Codec::Lz4)), ("zstd", stored(Codec::Zstd)), ("raw", behind(&[128], &raw))]
}

pub fn segment_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let front = [[1].as_slice(), &[0; 4], &80_u32.to_le_bytes(), &30_u32.to_le_bytes()].concat();
    vec![
        ("cold", behind(&front, first(golden(false, true), is_cold))),
        ("compressed", behind(&front, first(golden(true, true), is_cold))),
        ("sealed", behind(&front, first(golden(false, true), is_log))),
        ("tail", behind(&front, used(&golden(false, false).iter().rfind(is_named_log).expect("a log").1))),
    ]
}

/// Whether it is a segment of the log that was begun.
fn is_named_log((name, bytes): &&(String, Vec<u8>)) -> bool {
    FileName::parse(name).is_some_and(is_log) && !used(bytes).is_empty()
}

pub fn footer_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let payload = |file: &[u8]| {
        let trailer = &file[file.len() - 32..];
        let end = u64::from_le_bytes(*trailer.first_chunk().expect("a trailer")) as usize;
        file[end..file.len() - 32].to_vec()
    };
    let files = golden(false, true);
    vec![("cold", payload(first(files, is_cold))), ("sealed", payload(first(files, is_log)))]
}

pub fn relocation_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let table = |pairs: &[(u32, u32)]| crate::vlog::relocation::Relocations::new(pairs.to_vec()).encode();
    let many: Vec<_> = (0..40).map(|at| (80 + at * 90, 80 + at * 50)).collect();
    vec![("few", table(&[(80, 100), (300, 80), (u32::MAX, 9)])), ("many", table(&many))]
}

pub fn log_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let segments: Vec<_> = golden(false, false).iter().filter(is_named_log).collect();
    let log = |flags: u8, parts: &[&(String, Vec<u8>)]| {
        let mut out = vec![flags, 0, 0, 0, 0];
        for (_, bytes) in parts {
            out.extend_from_slice(&(used(bytes).len() as u16).to_le_bytes());
            out.extend_from_slice(used(bytes));
        }
        out
    };
    let mut from_the_tail = log(3, &segments[segments.len() - 1..]);
    from_the_tail[1] = 1;
    from_the_tail[3] = 80;
    let begun = first_log();
    vec![
        ("all", log(7, &segments)),
        ("tail", from_the_tail),
        ("new", log(3, &begun.iter().collect::<Vec<_>>())),
    ]
}

/// The segments of a log of which nothing was flushed.
fn first_log() -> Files {
    let disk = SimDisk::new(&SimOptions { block_bytes: 512, ..SimOptions::default() });
    let db = Db::open_with_env(DIRECTORY, options(Codec::None), &unwatched(disk.env()));
    let db = db.expect("a small database on a simulated disk");
    for number in 0..30 {
        let mut batch = crate::base::batch::WriteBatch::new();
        let filled = batch
            .put(&key(number), &[b'v'; 150])
            .and_then(|()| if number % 3 == 0 { batch.delete(&key(number / 2)) } else { Ok(()) })
            .and_then(|()| db.write(&batch, &crate::base::options::WriteOptions { sync: number % 8 == 0 }));
        filled.expect("a small batch");
    }
    let mut files = files(&disk.kill().env());
    files.retain(|file| is_named_log(&file));
    files
}

pub fn table_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let is_table = |name| matches!(name, FileName::Table(_));
    let last = |files: &'static Files| {
        let found = files.iter().rfind(|(name, _)| FileName::parse(name).is_some_and(is_table));
        &found.expect("a golden database has tables").1[..]
    };
    vec![
        ("large", behind(&[1], first(golden(false, true), is_table))),
        ("compressed", behind(&[1], first(golden(true, true), is_table))),
        ("small", behind(&[1], last(golden(false, true)))),
    ]
}

pub fn table_part_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = Vec::new();
    crate::index::fuzz::table_parts(&table_seeds()[0].1[1..], &mut |name, which, raw| {
        seeds.push((name, behind(&[which], raw)));
    });
    seeds
}

pub fn manifest_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let is_manifest = |name| matches!(name, FileName::Manifest(_));
    let (killed, closed) =
        (first(golden(false, false), is_manifest), first(golden(false, true), is_manifest));
    let payload = &killed[44..];
    vec![
        ("killed", behind(&[1], killed)),
        ("closed", behind(&[1], closed)),
        ("edit", behind(&[2], &payload[..payload.len().min(300)])),
        ("current", behind(&[4], first(golden(false, true), |name| name == FileName::Current))),
    ]
}
