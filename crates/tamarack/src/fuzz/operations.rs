//! Operations on a database with tiny limits, each compared with a model that keeps every state there was.
//!
//! Input: two bytes of options, then operations until the bytes end: a kind, and what its kind wants. Bytes that would
//! take more than some hundreds of operations are left.

use std::collections::BTreeMap;

use super::golden;
use crate::base::batch::WriteBatch;
use crate::base::codec::Codec;
use crate::base::input::Input;
use crate::base::options::{GcPolicy, LogMode, Options, WriteOptions};
use crate::cube::check::CheckLevel;
use crate::cube::collect::GcGoal;
use crate::db::{Db, IterOptions, ReadOptions, Snapshot};
use crate::env::sim::{SimDisk, SimOptions};
use crate::env::unwatched::unwatched;

const OPERATIONS_MAX: usize = 400;
const SNAPSHOTS_MAX: usize = 4;

type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// A database, and what it must hold.
struct Life {
    disk: SimDisk,
    options: Options,
    db: Option<Db>,
    state: State,
    snapshots: Vec<(Snapshot, State)>,
    written: u64,
}

fn options(first: u8, second: u8) -> Options {
    let pick = |byte: u8, shift: u32, of: usize| usize::from(byte >> shift) % of;
    let codec = [Codec::None, Codec::Lz4, Codec::Zstd][pick(first, 0, 3)];
    Options {
        memtable_bytes: [4 << 10, 64 << 10][pick(first, 2, 2)],
        log_mode: [LogMode::Auto, LogMode::Plain][pick(first, 3, 2)],
        gc: [GcPolicy::Off, GcPolicy::CostBenefit, GcPolicy::Tail][pick(first, 4, 3)],
        inline_value_max: [0, 16, 512][pick(first, 6, 3)],
        max_space_amplification: [1.05, 1000.0][pick(second, 0, 2)],
        filter_bits_per_key: [10, 0][pick(second, 1, 2)],
        paranoid_checks: pick(second, 2, 2) == 1,
        level_bytes_base: [4 << 10, 64 << 10][pick(second, 3, 2)],
        recovery_log_max: 64 << 10,
        ..golden::options(codec)
    }
}

fn open(disk: &SimDisk, options: &Options) -> Db {
    let opened = Db::open_with_env(golden::DIRECTORY, options.clone(), &unwatched(disk.env()));
    opened.unwrap_or_else(|error| panic!("open: {error}"))
}

/// Does what the bytes say.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let options = options(input.byte(), input.byte());
    let disk = SimDisk::new(&SimOptions { block_bytes: 512, ..SimOptions::default() });
    let db = Some(open(&disk, &options));
    let mut life = Life { disk, options, db, state: State::new(), snapshots: Vec::new(), written: 0 };
    for _ in 0..OPERATIONS_MAX {
        if input.is_empty() {
            break;
        }
        life.step(&mut input);
    }
    life.compare(None);
    life.reopen(true);
    life.compare(None);
}

fn key(input: &mut Input<'_>) -> Vec<u8> {
    match input.byte() {
        0 => Vec::new(),
        byte if byte < 240 => vec![b'k'; usize::from(byte % 5)].into_iter().chain([byte % 40]).collect(),
        byte => vec![byte; 40 * usize::from(byte - 239)],
    }
}

impl Life {
    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between steps")
    }

    fn value(&mut self, input: &mut Input<'_>) -> Vec<u8> {
        self.written += 1;
        let len = match input.byte() {
            byte if byte < 200 => usize::from(byte),
            byte => usize::from(byte - 199) * 60,
        };
        format!("{:x};", self.written).into_bytes().into_iter().cycle().take(len).collect()
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 32 {
            0..=9 => self.write(1, input),
            10..=12 => self.write(input.byte() % 12, input),
            13..=16 => self.get(input),
            17 => self.compare(None),
            18 => self.compare(Some(input)),
            19 | 20 if self.snapshots.len() < SNAPSHOTS_MAX => {
                self.snapshots.push((self.db().snapshot(), self.state.clone()));
            }
            19..=21 if !self.snapshots.is_empty() => {
                drop(self.snapshots.remove(input.below(self.snapshots.len())));
            }
            22 | 23 => self.db().flush().expect("nothing fails"),
            24 => self.db().compact_range(None, None).expect("nothing fails"),
            25 => drop(self.db().gc(GcGoal::Until(1.0)).expect("nothing fails")),
            26 => self.db().sort_values().expect("nothing fails"),
            27 => self.db().sync().expect("nothing fails"),
            28 => {
                let problems = self.db().check(CheckLevel::Values).problems;
                assert!(problems.is_empty(), "{problems:?}");
            }
            29 => self.reopen(true),
            30 => self.reopen(false),
            _ => self.db().wait_idle().expect("nothing fails"),
        }
    }

    fn write(&mut self, count: u8, input: &mut Input<'_>) {
        let mut batch = WriteBatch::new();
        let flags = input.byte();
        let mut after = self.state.clone();
        for _ in 0..count {
            let key = key(input);
            if input.byte().is_multiple_of(4) {
                batch.delete(&key).expect("keys are short");
                after.remove(&key);
            } else {
                let value = self.value(input);
                batch.put(&key, &value).expect("keys and values are short");
                after.insert(key, value);
            }
        }
        let written = self.db().write(&batch, &WriteOptions { sync: flags & 7 == 0 });
        // Readers may keep so much that nothing is taken before they are gone.
        if written.is_err_and(|error| {
            assert_eq!(error.kind(), crate::base::error::ErrorKind::NoSpace, "{error}");
            true
        }) {
            return;
        }
        self.state = after;
    }

    fn get(&self, input: &mut Input<'_>) {
        let key = key(input);
        assert_eq!(self.db().get(&key).expect("nothing fails").as_ref(), self.state.get(&key));
        for (snapshot, state) in &self.snapshots {
            let settings = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
            let found = self.db().get_with(&key, &settings).expect("nothing fails");
            assert_eq!(found.as_ref(), state.get(&key), "at a snapshot");
        }
    }

    /// Compares everything, at present and at each snapshot, between bounds if `input` gives some.
    fn compare(&self, input: Option<&mut Input<'_>>) {
        let (start, end) = match input {
            Some(input) => (Some(key(input)), Some(key(input))),
            None => (None, None),
        };
        let within = |key: &[u8]| {
            start.as_deref().is_none_or(|start| key >= start) && end.as_deref().is_none_or(|end| key < end)
        };
        let present = [(None, &self.state)];
        let moments = self.snapshots.iter().map(|(snapshot, state)| (Some(snapshot.clone()), state));
        for (snapshot, state) in present.into_iter().chain(moments) {
            let expected: Vec<_> = state.iter().filter(|(key, _)| within(key)).collect();
            let options =
                IterOptions { snapshot, start: start.clone(), end: end.clone(), ..IterOptions::default() };
            let mut iter = self.db().iter(&options).expect("nothing fails");
            iter.seek_to_first().expect("nothing fails");
            for (key, value) in &expected {
                assert!(iter.valid() && iter.key() == &key[..] && iter.value().expect("reads") == &value[..]);
                iter.next().expect("nothing fails");
            }
            assert!(!iter.valid(), "more than there is");
            iter.seek_to_last().expect("nothing fails");
            for (key, value) in expected.iter().rev() {
                assert!(iter.valid() && iter.key() == &key[..] && iter.value().expect("reads") == &value[..]);
                iter.prev().expect("nothing fails");
            }
            assert!(!iter.valid(), "more than there is, backward");
        }
    }

    /// Opens it again, closed or killed.
    fn reopen(&mut self, close: bool) {
        self.snapshots.clear();
        let db = self.db.take().expect("open between steps");
        if close {
            db.close().expect("nothing fails");
        } else {
            let killed = self.disk.kill();
            drop(db);
            self.disk = killed;
        }
        self.db = Some(open(&self.disk, &self.options));
    }
}

pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let bytes = |step: usize, len: usize| -> Vec<u8> {
        (0..len).map(|at| (at * at * 7 + at * step + step) as u8).collect()
    };
    vec![
        ("writes", bytes(3, 300)),
        ("mixed", bytes(29, 900)),
        ("long", bytes(101, 2000)),
        ("inline", [&[0x80, 1][..], &bytes(57, 1200)].concat()),
    ]
}
