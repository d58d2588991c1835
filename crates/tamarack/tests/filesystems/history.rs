//! A process that writes numbered batches, and what must be there of them after a crash. What a batch does follows from
//! its number, so the state that must be found follows from how many are there.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use tamarack::{Db, GcGoal, GcPolicy, LogMode, Options, WriteBatch, WriteOptions};

use crate::common::{Random, assert_clean, content, tiny};

const DIRECTORY: &str = "TAMARACK_WRITER_DIRECTORY";
const SEED: &str = "TAMARACK_WRITER_SEED";
const HOARD: &str = "TAMARACK_WRITER_HOARDS";
const LAST: &[u8] = b"last";

pub fn options(seed: u64) -> Options {
    let mut random = Random::new(seed);
    Options {
        log_mode: random.pick(&[LogMode::Auto, LogMode::Auto, LogMode::Plain]),
        memtable_bytes: random.pick(&[4 << 10, 16 << 10, 256 << 10]),
        segment_bytes_max: random.pick(&[4 << 10, 64 << 10]),
        max_space_amplification: random.pick(&[1.05, 1.3]),
        gc: random.pick(&[GcPolicy::CostBenefit, GcPolicy::Tail]),
        recovery_log_max: 256 << 10,
        ..tiny()
    }
}

/// What batch `number` does: keys, and values or deletions.
fn operations(number: u64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut random = Random::new(number);
    let count = if random.one_in(2) { 1 } else { 1 + random.below(8) };
    (0..count)
        .map(|_| {
            let key = format!("key{:03}", random.below(150)).into_bytes();
            let len = if random.one_in(20) { random.below(9000) } else { random.below(400) };
            (key, (!random.one_in(4)).then(|| random.bytes(len)))
        })
        .collect()
}

fn last(db: &Db) -> u64 {
    db.get(LAST).unwrap().map_or(0, |number| u64::from_le_bytes(number.try_into().unwrap()))
}

/// What the writing process does, if this is one.
pub fn write_if_asked() {
    let (Ok(directory), Ok(seed)) = (std::env::var(DIRECTORY), std::env::var(SEED)) else { return };
    // Whoever has started it holds the other end; it must not outlive that one.
    std::thread::spawn(|| {
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
        std::process::exit(0);
    });
    let mut random = Random::new(seed.parse().unwrap());
    let db = Db::open(directory, options(seed.parse().unwrap())).unwrap();
    let mut number = last(&db);
    // When open returns, what it has found is durable.
    eprintln!("durable {number}");
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        number += 1;
        let mut batch = WriteBatch::new();
        for (key, value) in operations(number) {
            match value {
                Some(value) => batch.put(&key, &value).unwrap(),
                None => batch.delete(&key).unwrap(),
            }
        }
        batch.put(LAST, &number.to_le_bytes()).unwrap();
        let sync = random.one_in(6);
        if let Err(error) = db.write(&batch, &WriteOptions { sync }) {
            // Where the disk is gone; reads of what is in memory go on.
            eprintln!("refused {number}");
            panic!("{error}");
        }
        eprintln!("{} {number}", if sync { "durable" } else { "written" });
        if random.one_in(60) {
            drop(db.gc(GcGoal::Once));
        } else if random.one_in(100) {
            drop(db.flush());
        }
        if std::env::var(HOARD).is_ok() {
            hoard.push(vec![1; 256 << 10]);
        }
    }
}

/// How many batches must be there, and how many can be.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bounds {
    pub durable: u64,
    pub written: u64,
    pub issued: u64,
}

impl Bounds {
    fn note(&mut self, word: &str, number: u64) {
        if word != "refused" {
            self.written = number;
        }
        if word == "durable" {
            self.durable = self.durable.max(number);
        }
        self.issued = self.issued.max(number + 1);
    }
}

/// The writing process.
pub struct Writer {
    child: Child,
    lines: BufReader<ChildStderr>,
    unknown: String,
}

impl Writer {
    /// Starts it, by `command`, which runs this program's test of that purpose.
    pub fn start(mut command: Command, directory: &Path, seed: u64, hoards: bool) -> Self {
        command.env(DIRECTORY, directory).env(SEED, seed.to_string());
        if hoards {
            command.env(HOARD, "1");
        }
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        Self { child, lines, unknown: String::new() }
    }

    /// Listens to `count` words, or to all; false when it says no more.
    pub fn listen(&mut self, count: usize, bounds: &mut Bounds) -> bool {
        let mut line = String::new();
        for _ in 0..count {
            line.clear();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return false;
            }
            let word = line.trim_end().split_once(' ');
            match word.and_then(|(word, number)| Some((word, number.parse().ok()?))) {
                Some((word @ ("durable" | "written" | "refused"), number)) => bounds.note(word, number),
                _ => self.unknown.push_str(&line),
            }
        }
        true
    }

    /// Waits for its end; what else it said.
    pub fn end(mut self, bounds: &mut Bounds) -> (ExitStatus, String) {
        self.listen(usize::MAX, bounds);
        (self.child.wait().unwrap(), self.unknown)
    }

    /// Kills it.
    pub fn kill(mut self, bounds: &mut Bounds) -> String {
        self.child.kill().unwrap();
        self.end(bounds).1
    }
}

/// The state after so many batches.
#[derive(Default)]
pub struct History {
    pub number: u64,
    state: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl History {
    /// Panics unless the database in `directory` holds the effects of the first batches, of at least `least` and at most
    /// `most`; it is whole, and takes a write.
    pub fn verify(&mut self, directory: &Path, seed: u64, (least, most): (u64, u64), what: &str) {
        let db = Db::open(directory, options(seed)).unwrap_or_else(|error| panic!("{what}: {error}"));
        let number = last(&db);
        assert!((least..=most).contains(&number), "{what}: {number} batches where {least} to {most} must be");
        assert!(number >= self.number, "{what}: {} batches were there, now {number}", self.number);
        while self.number < number {
            self.number += 1;
            for (key, value) in operations(self.number) {
                match value {
                    Some(value) => self.state.insert(key, value),
                    None => self.state.remove(&key),
                };
            }
        }
        let mut found = content(&db);
        found.remove(LAST);
        assert!(found == self.state, "{what}: the state is not that of the first {number} batches");
        for (key, value) in &self.state {
            assert!(db.get(key).unwrap().as_ref() == Some(value), "{what}: get of {}", key.escape_ascii());
        }
        assert_clean(&db);
        db.put_with(b"zz", b"", &WriteOptions::synced()).unwrap();
        db.delete_with(b"zz", &WriteOptions::synced()).unwrap();
    }
}
