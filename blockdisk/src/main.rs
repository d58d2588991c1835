//! A block device that records what file systems write to it, and replays what a loss of power may leave of that.
//!
//! `cargo xtask blocks` builds and runs it. A file in user space, below a loop device, is the disk ([`serve`], [`disk`]): it
//! keeps each write and each flush, in order. For each seed, and each of ext4, XFS and Btrfs, a process with a database
//! lives on it and tells from which moment on which batch is durable ([`life`], [`facts`]). Then images are made of what was
//! recorded ([`crashes`]): all up to some flush, and any subset of the writes between it and the next, with some of them
//! torn. Each image is mounted, which replays the file system's journal; the database in it must open, hold what a prefix of
//! the batches comes to, none of the durable ones missing, and be fit to live on ([`replay`]).
//!
//! That needs root, loop devices, FUSE and the programs that make the file systems. What is not to be had is skipped, with a
//! line that says why. An image that the file system itself does not mount is counted apart: it is neither passed nor lost.
//!
//! ```text
//! tamarack-blockdisk [--seeds N | --minutes M] [--seed S] [--images N] [--file-system KIND]
//!                    [--keep DIRECTORY]
//! tamarack-blockdisk --image PATH
//! ```

// What is forbidden to the engine alone.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is the world in which the engine is tried"
)]

mod batches;
mod commands;
mod content;
mod crashes;
mod disk;
mod evidence;
mod facts;
mod life;
mod machine;
mod replay;
mod report;
mod serve;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use evidence::{Evidence, Kept};
use machine::{Failure, LIVE, Machine, enter_namespace, place};
use replay::Replay;
use report::Row;

const KINDS: [&str; 3] = ["ext4", "xfs", "btrfs"];
const USAGE: &str = "\
usage: tamarack-blockdisk [--seeds N | --minutes M] [--seed S] [--images N] [--file-system KIND] [--keep DIRECTORY]
       tamarack-blockdisk --image PATH";

/// What is to be done.
struct Task {
    seed: u64,
    seeds: u64,
    /// Seeds are begun until so much time has passed.
    time: Option<Duration>,
    images: usize,
    kinds: Vec<String>,
    keep: PathBuf,
    image: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let [first, rest @ ..] = arguments.as_slice()
        && first == LIVE
    {
        return live(rest);
    }
    let Some(task) = parse(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let machine = match enter_namespace().and_then(|()| Machine::new()) {
        Ok(machine) => machine,
        Err(why) => {
            println!("skipped: {why}");
            return ExitCode::SUCCESS;
        }
    };
    let good = match &task.image {
        Some(path) => try_kept(&machine, path),
        None => run(&machine, &task),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The process above the disk.
fn live(arguments: &[OsString]) -> ExitCode {
    match place(arguments) {
        Some((place, None)) => life::first(&place),
        Some((place, Some(bounds))) => life::after(&place, &bounds),
        None => {
            eprintln!("{USAGE}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn parse(arguments: &[OsString]) -> Option<Task> {
    let mut task = Task {
        seed: 1,
        seeds: 6,
        time: None,
        images: 250,
        kinds: KINDS.map(str::to_owned).to_vec(),
        keep: PathBuf::from("failures"),
        image: None,
    };
    let (pairs, []) = arguments.as_chunks() else { return None };
    for [name, value] in pairs {
        let text = value.to_str();
        match name.to_str()? {
            "--seed" => task.seed = text?.parse().ok()?,
            "--seeds" => task.seeds = text?.parse().ok()?,
            "--minutes" => {
                task.time = Some(Duration::from_secs(text?.parse::<u64>().ok()?.checked_mul(60)?));
                task.seeds = u64::MAX;
            }
            "--images" => task.images = text?.parse().ok()?,
            "--file-system" => task.kinds = vec![text.filter(|kind| KINDS.contains(kind))?.to_owned()],
            "--keep" => task.keep = value.into(),
            "--image" => task.image = Some(value.into()),
            _ => return None,
        }
    }
    Some(task)
}

/// Runs all seeds on all file systems; whether all was well.
fn run(machine: &Machine, task: &Task) -> bool {
    let evidence = Evidence(task.keep.clone());
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut good = true;
    let mut kinds = task.kinds.clone();
    let started = Instant::now();
    for seed in task.seed..task.seed.saturating_add(task.seeds) {
        if kinds.is_empty() || task.time.is_some_and(|time| started.elapsed() >= time) {
            break;
        }
        kinds.retain(|kind| {
            let row = rows.entry(kind.clone()).or_default();
            let mut replay = Replay { machine, kind, seed, row, evidence: &evidence };
            let outcome = replay.run(task.images);
            match &outcome {
                Ok(well) => {
                    good &= well;
                    println!("{kind}, seed {seed}: {} images lived on so far", row.lived());
                }
                Err(why) => println!("skipped: {kind}: {why}"),
            }
            outcome.is_ok()
        });
    }
    report::print(&rows);
    good
}

/// Tries one image that was kept; whether all was well.
fn try_kept(machine: &Machine, path: &Path) -> bool {
    let kept = match Kept::read(path) {
        Ok(kept) => kept,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return false;
        }
    };
    match machine.live(kept.content, &kept.kind, kept.seed, Some(&kept.bounds)) {
        Ok(lived) => {
            println!("{} batches were found, where {} must be", lived.found, kept.bounds);
            true
        }
        Err(Failure::NotMounted(why) | Failure::Wrong(why)) => {
            eprintln!("{why}");
            false
        }
    }
}
