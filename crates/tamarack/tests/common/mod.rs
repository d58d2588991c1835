//! What the integration tests share: random numbers from a seed, a random life of a database beside its model, copies of
//! directories, the whole content of a database, and a watchdog that turns a hang into a failure.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tamarack::{Db, GcPolicy, IterOptions, Options, testing};

pub mod garbage;
pub mod history;
pub mod place;
pub mod process;
pub mod time;
pub mod world;
pub mod writer;

use time::unwatched_env;

/// Random numbers that a seed determines, and what tests make of them.
#[derive(Debug, Clone)]
pub struct Random(testing::Random);

impl Random {
    /// Numbers that belong to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(testing::Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d))
    }

    /// Numbers that belong to step `number` of `seed`, and to no other.
    pub fn of_step(seed: u64, number: u64) -> Self {
        Self::new(Self::new(seed).number() ^ Self::new(number).number())
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0.number()
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound as u64) as usize
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// `len` bytes, which compress well or not at all.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let (first, noisy) = (self.number(), self.one_in(2));
        if !noisy {
            return (0..len).map(|at| first.wrapping_add(at as u64 / 32) as u8).collect();
        }
        let mut noise = self.clone();
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&noise.number().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }
}

/// The number in the environment variable `name`.
pub fn number_from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text}: it takes a number")))
}

/// Limits so small that a few hundred operations roll segments, flush memtables and compact tables.
pub fn tiny() -> Options {
    Options {
        memtable_bytes: 4 << 10,
        segment_bytes_max: 4 << 10,
        recovery_log_max: 64 << 10,
        row_cache_bytes: 4 << 10,
        table_bytes_max: 4 << 10,
        level_bytes_base: 4 << 10,
        block_bytes: 512,
        inline_value_max: 16,
        ..Options::default()
    }
}

/// The same where nothing is collected unless somebody asks for it.
pub fn tiny_without_gc() -> Options {
    Options {
        gc: GcPolicy::Off,
        max_space_amplification: 1000.0,
        background_threads: 1,
        block_cache_bytes: 64 << 10,
        filter_bits_per_key: 4,
        ..tiny()
    }
}

/// A directory in memory where the system has one with room, else an ordinary temporary one: for tests that sync often
/// and do not look at the device.
pub fn fast_directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let has_room = rustix::fs::statvfs(memory)
        .is_ok_and(|space| space.f_bavail * space.f_frsize >= FAST_DIRECTORY_BYTES);
    let in_memory = has_room.then(|| tempfile::tempdir_in(memory).ok()).flatten();
    in_memory.unwrap_or_else(|| tempfile::tempdir().unwrap())
}

/// More than all tests together have in such directories at a time. Containers often have 64 MiB, which some fill alone.
const FAST_DIRECTORY_BYTES: u64 = 1 << 30;

/// Copies the files of `from` into `to`, which is made anew: what a kill of this moment leaves, as long as nobody writes
/// meanwhile. Beside background work it copies again where a manifest changed, which would name files that were copied before
/// they were whole.
pub fn copy_directory(from: &Path, to: &Path) {
    loop {
        let before = manifests(from);
        if to.exists() {
            std::fs::remove_dir_all(to).unwrap();
        }
        std::fs::create_dir_all(to).unwrap();
        for name in file_names(from) {
            match std::fs::copy(from.join(&name), to.join(&name)) {
                // Removed meanwhile, so no manifest names it.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                copied => drop(copied.unwrap()),
            }
        }
        if manifests(from) == before {
            return;
        }
    }
}

/// The manifests in `directory` with what is in them.
fn manifests(directory: &Path) -> Vec<(String, Option<Vec<u8>>)> {
    let names = file_names(directory).into_iter().filter(|name| name.starts_with("MANIFEST"));
    names.map(|name| (name.clone(), std::fs::read(directory.join(name)).ok())).collect()
}

/// The names of the files in `directory`, sorted.
pub fn file_names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Everything in `db`, read forward.
pub fn content(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    db.iter(&IterOptions::default()).unwrap().entries().map(|entry| entry.unwrap()).collect()
}

/// Panics unless a check of every byte finds nothing.
pub fn assert_clean(db: &Db) {
    let report = db.check(tamarack::CheckLevel::Values);
    assert!(report.is_clean(), "{:#?}", report.problems);
}

/// Opens a database of which nothing is collected, flushed or removed but by what a call has caused: its files may be
/// copied and counted at rest.
pub fn open(path: &Path, options: &Options) -> tamarack::Result<Db> {
    Db::open_with_env(path, options.clone(), &unwatched_env())
}

/// More than anything here takes on a machine that is busy with other things, for a [`Watchdog`]: it is there for hangs
/// alone.
pub const PATIENCE_SECONDS: u64 = 900;

/// Ends the process when it lives longer than allowed, so that a hang fails instead of blocking everything.
#[derive(Debug)]
pub struct Watchdog(Option<Sender<()>>);

impl Watchdog {
    /// Allows `seconds` from now until it is dropped, for what `task` says.
    pub fn new(seconds: u64, task: impl Into<String>) -> Self {
        let task = task.into();
        let (alive, ended) = channel::<()>();
        std::thread::spawn(move || {
            if ended.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout) {
                // Not with eprintln, whose words the test's own capture would keep to itself.
                let words = format!("not done after {seconds} s: {task}\n");
                drop(std::io::stderr().write_all(words.as_bytes()));
                std::process::abort();
            }
        });
        Self(Some(alive))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.take();
    }
}
