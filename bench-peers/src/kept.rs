//! Whether stores keep what a comparison takes for granted of all of them: a write that has returned survives the end of the
//! process.
//!
//! A process that does what `measure` does is killed as soon as its last write has returned. It is this test's own program.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use tamarack_bench::{Bed, Store, Workload};

use crate::measure::{LIMITS, describe};
use crate::stores::{NOT_BUILT, Peer, Setting, Task};
use crate::work::Work;

/// The signal that ends a process which cannot do anything about it.
const KILL: i32 = 9;
/// What the writer says when all of its writes have returned.
const WRITTEN: &str = "all is written";
/// Where the writer is told what to do: which store, in which directory, and the arguments of its work, a line each.
const TOLD: &str = "BENCH_PEERS_WRITER";

/// What is written: more than a memtable of any store, in single writes of two threads, and in batches.
const WORKS: [&str; 2] = [
    "fillrandom --verify --num 80000 --value-size 1024 --threads 2",
    "fillrandom --verify --num 80000 --value-size 100 --batch-size 100",
];

fn work(arguments: &str) -> Work {
    let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    Work::parse(&arguments).expect("it can be understood")
}

/// Does with a store what the task says, opened as `measure` opens it.
fn with<T: Task>(store: Peer, path: &Path, work: &Work, task: T) -> Result<T::Outcome, String> {
    store.with(path, &work.plan, &work.workloads, Setting::default(), task)
}

/// Writes everything, says so, and waits for its end.
struct Write<'a>(&'a Path, &'a Work);

impl Task for Write<'_> {
    type Outcome = ();

    fn run<S: Store>(self, open: impl Fn() -> Result<S, String>) -> Result<(), String>
    where
        S::Error: Display,
    {
        let Self(path, Work { plan, workloads, .. }) = self;
        let mut bed = Bed::new(open()?, path, plan, workloads, LIMITS);
        bed.operate(Workload::Fillrandom, &|_| ())
            .map_err(|failure| describe(Workload::Fillrandom, failure))?;
        println!("\n{WRITTEN}");
        // The other process keeps the input open: the store stays open, too.
        io::stdin().read_to_end(&mut Vec::new()).map(|_| ()).map_err(|error| error.to_string())
    }
}

/// Counts the keys that have the values which they were written with.
struct Count<'a>(&'a Path, &'a Work);

impl Task for Count<'_> {
    type Outcome = u64;

    fn run<S: Store>(self, open: impl Fn() -> Result<S, String>) -> Result<u64, String>
    where
        S::Error: Display,
    {
        let Self(path, Work { plan, workloads, .. }) = self;
        let mut bed = Bed::new(open()?, path, plan, workloads, LIMITS);
        bed.assume_filled();
        let read = bed.run(Workload::Readseq, &|_| ());
        read.map(|report| report.verified).map_err(|failure| describe(Workload::Readseq, failure))
    }
}

/// Nothing.
struct Nothing;

impl Task for Nothing {
    type Outcome = ();

    fn run<S: Store>(self, open: impl Fn() -> Result<S, String>) -> Result<(), String>
    where
        S::Error: Display,
    {
        open().map(drop)
    }
}

/// Why a store was not built in, if it was not.
fn missing(store: Peer, work: &Work) -> Option<String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    with(store, directory.path(), work, Nothing).err().filter(|reason| reason.starts_with(NOT_BUILT))
}

/// Has another process write everything to a store in `path`, and kills it.
fn write_and_kill(store: Peer, path: &Path, arguments: &str) {
    let program = std::env::current_exe().expect("this program has a file");
    let told = format!("{}\n{}\n{arguments}", store.name(), path.display());
    let mut command = Command::new(program);
    command.args(["--exact", "kept::the_writer", "--ignored", "--nocapture"]).env(TOLD, told);
    let mut writer =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("this program can be run");
    let said = BufReader::new(writer.stdout.take().expect("it is piped"));
    let is_written = said.lines().map_while(Result::ok).any(|line| line == WRITTEN);
    writer.kill().expect("it is ours");
    let status = writer.wait().expect("it is ours");
    assert!(is_written, "{}: the writer has failed: {status}", store.name());
    assert_eq!(status.signal(), Some(KILL), "{}: nothing else has ended it", store.name());
}

/// How many of the keys that were written are still there.
fn kept(store: Peer, path: &Path, work: &Work) -> Result<u64, String> {
    if store.is_store() {
        return with(store, path, work, Count(path, work));
    }
    // Nobody knows any more which value is whose: what can be there is as many bytes as all values have.
    let files = std::fs::read_dir(path).map_err(|error| error.to_string())?;
    let lens = files.map(|file| Ok(file?.metadata()?.len()));
    let bytes = lens.sum::<io::Result<u64>>().map_err(|error| error.to_string())?;
    let value_bytes = work.plan.value_size.fixed().expect("values have one size");
    Ok(bytes / (store.head().bytes(work.plan.key_size.into()) + value_bytes) as u64)
}

#[test]
fn what_was_written_survives_the_end_of_the_process() {
    let mut lost = Vec::new();
    for &store in Peer::value_variants() {
        if let Some(reason) = missing(store, &work(WORKS[0])) {
            println!("{}: skipped: {reason}", store.name());
            continue;
        }
        for arguments in WORKS {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let work = work(arguments);
            write_and_kill(store, directory.path(), arguments);
            let kept = kept(store, directory.path(), &work);
            println!("{}: {kept:?} of {} keys: {arguments}", store.name(), work.plan.num);
            if kept != Ok(work.plan.num) {
                lost.push(format!("{}: {kept:?} of {} keys: {arguments}", store.name(), work.plan.num));
            }
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

#[test]
#[ignore = "is the process that is killed, and alone does nothing; in bench-peers: cargo test --release -- what_was_written_survives"]
fn the_writer() {
    let Ok(told) = std::env::var(TOLD) else {
        println!("skipped: nobody has told it what to write");
        return;
    };
    let [store, path, arguments] = told.split('\n').collect::<Vec<_>>()[..] else { panic!("{told}") };
    let (store, path) = (Peer::from_str(store, false).expect("it is a store"), PathBuf::from(path));
    let work = work(arguments);
    with(store, &path, &work, Write(&path, &work)).expect("it writes until it is killed");
}
