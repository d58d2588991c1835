//! A whole hostile directory: a golden database some bytes, files or names of which were changed, with checksums repaired
//! where that lets the change get further.
//!
//! Input: a byte of flags (compressed, closed, read-only, paranoid, checksums repaired), then edits until the bytes end,
//! sixteen at most. An edit is a kind, a file, a place in it, and what its kind wants.

use std::path::{Path, PathBuf};

use super::golden::{DIRECTORY, Files, KEYS, golden, key, options};
use crate::base::batch::WriteBatch;
use crate::base::codec::Codec;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::ids::CubeId;
use crate::base::input::Input;
use crate::base::names::FileName;
use crate::base::options::{Options, WriteOptions};
use crate::cube::check::CheckLevel;
use crate::cube::collect::GcGoal;
use crate::db::{Db, IterOptions, ReadOptions};
use crate::env::Env;
use crate::env::unwatched::unwatched;
use crate::{index, vlog};

const EDITS_MAX: usize = 16;
/// More entries than any of these directories has.
const ENTRIES_MAX: usize = 1 << 16;

const COMPRESSED: u8 = 1;
const CLOSED: u8 = 2;
const READ_ONLY: u8 = 4;
const PARANOID: u8 = 8;
const REPAIRED: u8 = 16;

/// Opens such a directory and uses it in every way.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let flags = input.byte();
    let mut files = golden(flags & COMPRESSED != 0, flags & CLOSED != 0).clone();
    for _ in 0..EDITS_MAX {
        if input.is_empty() {
            break;
        }
        edit(&mut files, &mut input);
    }
    if flags & REPAIRED != 0 {
        repair(&mut files);
    }
    let env = unwatched(super::world());
    put(&env, &files).expect("the simulated disk takes files");
    let codec = if flags & COMPRESSED != 0 { Codec::Lz4 } else { Codec::None };
    let options = Options {
        read_only: flags & READ_ONLY != 0,
        paranoid_checks: flags & PARANOID != 0,
        create_if_missing: false,
        ..options(codec)
    };
    for _ in 0..2 {
        match Db::open_with_env(DIRECTORY, options.clone(), &env) {
            Ok(db) => use_in_every_way(db, &options),
            Err(error) => return accept(&error),
        }
    }
}

/// Changes one thing.
fn edit(files: &mut Files, input: &mut Input<'_>) {
    let (kind, count) = (input.byte() % 12, files.len());
    let (which, other) = (input.below(count), input.byte());
    let place = input.short();
    let donor = files[usize::from(other) % count].1.clone();
    let bytes = &mut files[which].1;
    let at = usize::from(place) % (bytes.len() + 1);
    match kind {
        0 => bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << (other % 8)),
        1 => overwrite(bytes, at, input.bytes()),
        2 => overwrite(bytes, at, &input.number().to_le_bytes()[..1 + usize::from(other) % 8]),
        3 => {
            const EDGES: [u64; 6] = [0, 1, 0x7f, u32::MAX as u64, i64::MAX as u64, u64::MAX];
            let edge = EDGES[usize::from(other) % EDGES.len()].to_le_bytes();
            overwrite(bytes, at, &edge[..1 << (input.byte() % 4)]);
        }
        4 => bytes.truncate(at),
        5 => bytes.resize(bytes.len() + usize::from(place), other),
        6 => drop(bytes.splice(at..at, input.bytes().iter().copied())),
        7 => drop(bytes.drain(at..(at + usize::from(other)).min(bytes.len()))),
        8 => {
            let from = input.below(donor.len() + 1);
            overwrite(bytes, at, &donor[from..(from + usize::from(input.byte())).min(donor.len())]);
        }
        9 => *bytes = donor,
        10 => drop(files.remove(which)),
        _ => {
            let bytes = files.swap_remove(which).1;
            let number = u64::from(place);
            let name = match other % 4 {
                0 => format!("{number:06}.vlog"),
                1 => format!("{number:06}.cold"),
                2 => format!("{number:06}.table"),
                _ => format!("MANIFEST-{number:06}"),
            };
            files.retain(|(there, _)| *there != name);
            files.push((name, bytes));
        }
    }
    if files.is_empty() {
        files.push(("CURRENT".to_owned(), Vec::new()));
    }
}

fn overwrite(bytes: &mut [u8], at: usize, by: &[u8]) {
    for (byte, new) in bytes[at..].iter_mut().zip(by) {
        *byte = *new;
    }
}

/// Makes checksums right. The cube is the manifest's.
fn repair(files: &mut Files) {
    let parse = |name: &str| FileName::parse(name);
    let manifest = files.iter().find(|(name, _)| matches!(parse(name), Some(FileName::Manifest(_))));
    let cube = manifest.and_then(|(_, bytes)| bytes.get(12..20)?.try_into().ok().map(u64::from_le_bytes));
    for (name, bytes) in files {
        match parse(name) {
            Some(FileName::Segment(_)) => vlog::fuzz::repair_segment(bytes),
            Some(FileName::Table(id)) => {
                index::fuzz::repair_table(bytes, CubeId(cube.unwrap_or_default()), id);
            }
            Some(FileName::Manifest(_)) => index::fuzz::repair_manifest(bytes),
            Some(FileName::Current) => index::fuzz::repair_current(bytes),
            Some(FileName::Temporary) | None => {}
        }
    }
}

/// Writes `files` into the directory of `env`.
fn put(env: &Env, files: &Files) -> Result<()> {
    let directory = Path::new(DIRECTORY);
    let io = |path: &Path, error| Error::io("write", path, error);
    env.fs.create_dir_all(directory).map_err(|error| io(directory, error))?;
    for (name, bytes) in files {
        let path: PathBuf = directory.join(name);
        let file = env.fs.create_new(&path).map_err(|error| io(&path, error))?;
        file.write_at(bytes, 0).map_err(|error| io(&path, error))?;
    }
    Ok(())
}

/// What bytes in a directory may lead to, now or, where a background job met them, later.
fn accept(error: &Error) {
    use ErrorKind::{Corruption, InvalidArgument, NoSpace, ReadOnly, Unsupported};
    let kind = error.kind();
    assert!(
        matches!(kind, Corruption | InvalidArgument | NoSpace | ReadOnly | Unsupported),
        "{kind}: {error}"
    );
    assert!(!error.message().contains("panic"), "{error}");
}

fn unless_error<T>(outcome: Result<T>) -> Option<T> {
    outcome.map_err(|error| accept(&error)).ok()
}

fn use_in_every_way(db: Db, options: &Options) {
    read(&db);
    if !options.read_only {
        let mut batch = WriteBatch::new();
        for number in 0..3 {
            batch.put(&key(number * 7), &[b'n'; 100]).expect("keys and values are short");
            batch.delete(&key(number * 5)).expect("keys are short");
        }
        unless_error(db.write(&batch, &WriteOptions::synced()));
        unless_error(db.flush());
        unless_error(db.gc(GcGoal::Until(1.0)));
        unless_error(db.compact_range(None, None));
        unless_error(db.wait_idle());
        read(&db);
    }
    unless_error(db.close());
}

fn read(db: &Db) {
    let keys: Vec<_> = (0..KEYS + 1).map(key).collect();
    for verify_checksums in [true, false] {
        let settings = ReadOptions { verify_checksums, ..ReadOptions::default() };
        keys.iter().for_each(|key| drop(unless_error(db.get_with(key, &settings))));
        db.multi_get(&keys, &settings).into_iter().for_each(|found| drop(unless_error(found)));
    }
    for backward in [false, true] {
        let Some(mut iter) = unless_error(db.iter(&IterOptions::default())) else { continue };
        let mut moved = unless_error(if backward { iter.seek_to_last() } else { iter.seek_to_first() });
        let mut entries = 0;
        while moved.is_some() && iter.valid() {
            entries += 1;
            assert!(entries <= ENTRIES_MAX, "a walk that does not end");
            unless_error(iter.value().map(<[u8]>::len));
            moved = unless_error(if backward { iter.prev() } else { iter.next() });
        }
    }
    db.check(CheckLevel::Values).problems.iter().for_each(accept);
    db.stats();
    unless_error(db.approximate_size(None, None));
}

pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let edit = |flags: u8, edits: &[&[u8]]| [&[flags], &edits.concat()[..]].concat();
    vec![
        ("whole", vec![0]),
        ("whole_closed", vec![CLOSED | COMPRESSED]),
        ("whole_read_only", vec![READ_ONLY | PARANOID]),
        ("bits", edit(REPAIRED, &[&[0, 1, 0, 3, 90, 0], &[0, 2, 0, 5, 70, 1]])),
        ("edges", edit(REPAIRED | CLOSED, &[&[3, 3, 0, 3, 60, 0, 2], &[3, 0, 0, 5, 50, 0, 3]])),
        ("cut", edit(REPAIRED, &[&[4, 4, 0, 0, 90, 0]])),
        ("longer", edit(0, &[&[5, 3, 0, 0, 90, 0], &[6, 1, 0, 0, 90, 0, 3, 7, 7, 7]])),
        ("swapped", edit(REPAIRED, &[&[9, 3, 0, 4, 0, 0]])),
        ("gone", edit(READ_ONLY, &[&[10, 5, 0, 0, 0, 0]])),
        ("renamed", edit(REPAIRED, &[&[11, 2, 0, 2, 99, 0]])),
    ]
}
