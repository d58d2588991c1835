//! What one thread does of a workload, and how long each operation takes.

use std::ops::{Bound, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::failure::{Failure, Result};
use crate::keys::{self, Random};
use crate::latency;
use crate::pace::{self, Pace};
use crate::plan::{Distribution, Plan};
use crate::report::Collected;
use crate::run::{Advance, Bed};
use crate::store::{Change, Cursor, Store};
use crate::timeline::Counter;
use crate::value_size::ValueSize;
use crate::values::State;
use crate::workload::{Action, Choice, Workload};
use crate::ycsb::{Mix, Operation};

/// What threads did.
pub struct Tally {
    pub(crate) ops: u64,
    /// From the begin of the first thread to the end of the last one.
    pub(crate) seconds: f64,
    pub(crate) found: u64,
    pub(crate) verified: u64,
    pub(crate) user_bytes: u64,
    pub(crate) user_bytes_read: u64,
    pub(crate) latency: Histogram<u64>,
    /// One for each thread that was added.
    pub(crate) counters: Vec<Counter>,
    pub(crate) written_meanwhile: u64,
    /// By a thread beside them.
    pub(crate) collected: Option<Collected>,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            ops: 0,
            seconds: 0.0,
            found: 0,
            verified: 0,
            user_bytes: 0,
            user_bytes_read: 0,
            latency: latency::histogram(3),
            counters: Vec::new(),
            written_meanwhile: 0,
            collected: None,
        }
    }

    /// Notes that bytes of keys and values were read.
    fn read(&mut self, bytes: usize) {
        self.user_bytes += bytes as u64;
        self.user_bytes_read += bytes as u64;
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.ops += other.ops;
        self.found += other.found;
        self.verified += other.verified;
        self.user_bytes += other.user_bytes;
        self.user_bytes_read += other.user_bytes_read;
        self.counters.extend(other.counters);
        self.latency.add(&other.latency).expect("both histograms have the same bounds");
    }
}

/// One thread's part of a workload.
pub struct Worker<'a, S> {
    bed: &'a Bed<'a, S>,
    workload: Workload,
    generation: u8,
    /// Of the values that it writes.
    value_size: ValueSize,
    writes_per_sync: Option<u64>,
    writes: u64,
    thread: u64,
    /// Numbers of the operations that are this thread's.
    part: Range<u64>,
    random: Random,
    advance: Advance<'a>,
    tally: Tally,
    counter: Counter,
    /// When its operations are due, if they do not follow each other.
    pace: Option<Pace>,
    /// When the operation began, or was due, that is being made; or the last one ended.
    last: Instant,
    /// When no other begins.
    end: Option<Instant>,
    reported: Instant,
    unreported: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a, S: Store> Worker<'a, S> {
    /// How often progress is told: seldom enough not to show in the measurement.
    const REPORT_INTERVAL: Duration = Duration::from_millis(100);

    pub fn new(
        bed: &'a Bed<'a, S>,
        workload: Workload,
        generation: u8,
        thread: u64,
        part: Range<u64>,
        random: Random,
        advance: Advance<'a>,
    ) -> Self {
        let now = Instant::now();
        Self {
            bed,
            workload,
            generation,
            value_size: workload.value_size(bed.plan),
            writes_per_sync: workload.writes_per_sync(bed.plan),
            writes: 0,
            thread,
            part,
            random,
            advance,
            tally: Tally::new(),
            counter: Counter::new(now),
            pace: None,
            last: now,
            end: None,
            reported: now,
            unreported: 0,
            key: vec![0; bed.plan.key_size.into()],
            value: Vec::new(),
        }
    }

    /// Does all of it. A walk has the keys with the numbers in `range`, and all behind if that has no end.
    pub fn run(mut self, range: Range<u64>) -> Result<Tally, S::Error> {
        self.last = Instant::now();
        self.counter = Counter::new(self.last);
        let Plan { rate, threads, .. } = *self.bed.plan;
        self.pace = rate.map(|rate| Pace::new(self.last, rate, self.thread, threads));
        self.end =
            self.workload.seconds(self.bed.plan).map(|seconds| self.last + Duration::from_secs(seconds));
        match self.workload.action() {
            Action::Put | Action::Delete if self.bed.plan.batch_size == 1 => self.write_singly()?,
            Action::Put | Action::Delete => self.write_batches()?,
            Action::Get => self.read()?,
            Action::MultiGet => self.read_many()?,
            Action::Seek => self.seek()?,
            Action::Forward => self.walk(&range, false)?,
            Action::Backward => self.walk(&range, true)?,
            Action::Mixed(mix) => self.mix(&mix)?,
        }
        (self.advance)(self.unreported);
        self.tally.counters.push(self.counter);
        Ok(self.tally)
    }

    /// Writes drawn keys until `done`, and drops `begun` as soon as it does.
    pub fn write_until(mut self, begun: Sender<()>, done: &AtomicBool) -> Result<Tally, S::Error> {
        let mut begun = Some(begun);
        while !done.load(Ordering::Relaxed) {
            let number = self.choose(0);
            self.put(number)?;
            self.tally.ops += 1;
            drop(begun.take());
        }
        Ok(self.tally)
    }

    /// Counts operations that ended now and began when the ones before them ended, one look at the clock each; or when they were due.
    fn timed(&mut self, ops: u64) {
        let now = Instant::now();
        self.tally.latency.saturating_record((now - self.last).as_nanos() as u64);
        self.last = now;
        self.counter.count(now, ops);
        self.tally.ops += ops;
        self.unreported += ops;
        if now - self.reported >= Self::REPORT_INTERVAL {
            (self.advance)(std::mem::take(&mut self.unreported));
            self.reported = now;
        }
    }

    /// The number of the next operation, once it is due, unless all are done or the time is up.
    fn next_operation(&mut self) -> Option<u64> {
        let due = self.pace.as_mut().map(Pace::advance);
        // One that was due in time is not left out because others were slow.
        let begin = due.unwrap_or(self.last);
        if self.end.is_some_and(|end| begin >= end) {
            return None;
        }
        let operation = self.part.next()?;
        if let Some(due) = due {
            pace::wait_until(due);
            self.last = due;
        }
        Some(operation)
    }

    /// Whether no other operation follows, as far as that can be known.
    fn is_last(&self, operation: u64) -> bool {
        operation + 1 == self.part.end
    }

    fn choose(&mut self, operation: u64) -> u64 {
        let fixed = self.bed.key_of(self.workload, operation);
        fixed.unwrap_or_else(|| self.draw_key())
    }

    fn draw_key(&mut self) -> u64 {
        let (bed, num) = (self.bed, self.bed.plan.num);
        match self.workload.distribution(bed.plan) {
            Distribution::Uniform => self.random.below(num),
            Distribution::Zipfian => bed.popular.at(self.draw_rank(num)),
            Distribution::Latest => {
                let load =
                    bed.load.expect("a workload that draws the latest keys begins only where there are such");
                let operation = load.operation_of_age(self.draw_rank(load.operations));
                bed.key_of(load.workload, operation).expect("fills take keys in a fixed order")
            }
        }
    }

    /// A rank below `count`, which is at most that of the keys, by Zipf's law.
    fn draw_rank(&mut self, count: u64) -> u64 {
        let zipf = self.bed.zipf.as_ref().expect("there is one where a workload needs it");
        loop {
            let rank = zipf.draw(&mut self.random);
            if rank < count {
                return rank;
            }
        }
    }

    /// Whether the next write is synced, which is counted by this.
    fn syncs_next(&mut self) -> bool {
        self.writes += 1;
        self.writes_per_sync.is_some_and(|writes| self.writes.is_multiple_of(writes))
    }

    fn new_len(&self, number: u64) -> usize {
        self.bed.values.len(number, self.generation, &self.value_size)
    }

    fn new_value(&self, number: u64) -> &'a [u8] {
        self.bed.values.value(number, self.generation, self.new_len(number))
    }

    fn put(&mut self, number: u64) -> Result<(), S::Error> {
        keys::write(number, &mut self.key);
        let value = self.new_value(number);
        let sync = self.syncs_next();
        self.bed.store.put(&self.key, value, sync).map_err(Failure::Store)?;
        self.wrote(number, value.len());
        Ok(())
    }

    fn write_singly(&mut self) -> Result<(), S::Error> {
        let deletes = self.workload.action() == Action::Delete;
        while let Some(operation) = self.next_operation() {
            let number = self.choose(operation);
            let sync = self.syncs_next();
            keys::write(number, &mut self.key);
            if deletes {
                self.bed.store.delete(&self.key, sync).map_err(Failure::Store)?;
                self.deleted(number);
            } else {
                let value = self.new_value(number);
                self.bed.store.put(&self.key, value, sync).map_err(Failure::Store)?;
                self.wrote(number, value.len());
            }
            self.timed(1);
        }
        Ok(())
    }

    fn write_batches(&mut self) -> Result<(), S::Error> {
        let deletes = self.workload.action() == Action::Delete;
        let (count, key_size) = (self.bed.plan.batch_size as usize, usize::from(self.bed.plan.key_size));
        let mut names = vec![0; count * key_size];
        let mut numbers = Vec::with_capacity(count);
        while let Some(operation) = self.next_operation() {
            let number = self.choose(operation);
            keys::write(number, &mut names[numbers.len() * key_size..][..key_size]);
            numbers.push(number);
            if numbers.len() < count && !self.is_last(operation) {
                continue;
            }
            let sync = self.syncs_next();
            let change = |(&number, key)| {
                if deletes { Change::Delete(key) } else { Change::Put(key, self.new_value(number)) }
            };
            let changes: Vec<Change<'_>> = numbers.iter().zip(names.chunks(key_size)).map(change).collect();
            self.bed.store.write(&changes, sync).map_err(Failure::Store)?;
            self.timed(numbers.len() as u64);
            for number in numbers.drain(..) {
                if deletes {
                    self.deleted(number);
                } else {
                    self.wrote(number, self.new_len(number));
                }
            }
        }
        Ok(())
    }

    fn wrote(&mut self, number: u64, value_bytes: usize) {
        self.tally.user_bytes += u64::from(self.bed.plan.key_size) + value_bytes as u64;
        self.bed.ledger.wrote(number, self.generation);
    }

    fn deleted(&mut self, number: u64) {
        self.tally.user_bytes += u64::from(self.bed.plan.key_size);
        self.bed.ledger.deleted(number);
    }

    fn read(&mut self) -> Result<(), S::Error> {
        let missing = self.workload.choice() == Choice::DrawnMissing;
        while let Some(operation) = self.next_operation() {
            let number = self.choose(operation);
            if missing {
                self.read_missing(number)?;
            } else {
                self.get(number)?;
            }
            self.timed(1);
        }
        Ok(())
    }

    fn get(&mut self, number: u64) -> Result<(), S::Error> {
        keys::write(number, &mut self.key);
        let mut value = std::mem::take(&mut self.value);
        let found = self.bed.store.get(&self.key, &mut value).map_err(Failure::Store)?;
        self.see(number, found.then_some(&value[..]))?;
        self.value = value;
        Ok(())
    }

    fn read_missing(&mut self, number: u64) -> Result<(), S::Error> {
        keys::write(number, &mut self.key);
        let mut key = self.key.clone();
        key.push(b'.');
        let found = self.bed.store.get(&key, &mut self.value).map_err(Failure::Store)?;
        demand(!found, &key, "a value where nothing was ever written")
    }

    fn read_many(&mut self) -> Result<(), S::Error> {
        let count = self.bed.plan.keys_per_read as usize;
        let (mut names, mut numbers) = (Vec::with_capacity(count), Vec::with_capacity(count));
        while let Some(operation) = self.next_operation() {
            let number = self.choose(operation);
            keys::write(number, &mut self.key);
            names.push(self.key.clone());
            numbers.push(number);
            if numbers.len() < count && !self.is_last(operation) {
                continue;
            }
            let values = self.bed.store.multi_get(&names).map_err(Failure::Store)?;
            self.timed(numbers.len() as u64);
            for (number, value) in numbers.drain(..).zip(values) {
                keys::write(number, &mut self.key);
                self.see(number, value.as_deref())?;
            }
            names.clear();
        }
        Ok(())
    }

    /// Takes note of what a read has found under the key in hand.
    fn see(&mut self, number: u64, value: Option<&[u8]>) -> Result<(), S::Error> {
        let Some(value) = value else {
            let expected = self.bed.ledger.state(number) == State::Absent;
            return demand(expected || !self.bed.plan.verify, &self.key, "no value, but one was written");
        };
        self.tally.found += 1;
        self.tally.read(self.key.len() + value.len());
        self.compare(number, value)
    }

    fn seek(&mut self) -> Result<(), S::Error> {
        let entries = self.bed.plan.entries_per_seek.into();
        while let Some(operation) = self.next_operation() {
            let number = self.choose(operation);
            self.scan(number, entries)?;
            self.timed(1);
        }
        Ok(())
    }

    /// Reads so many entries from a key on.
    fn scan(&mut self, number: u64, entries: u64) -> Result<(), S::Error> {
        keys::write(number, &mut self.key);
        let mut cursor = self.bed.store.scan(&self.key, entries).map_err(Failure::Store)?;
        self.see_entries(&mut cursor, entries)
    }

    /// Walks the keys with the numbers in `range`.
    fn walk(&mut self, range: &Range<u64>, backward: bool) -> Result<(), S::Error> {
        let key_size = usize::from(self.bed.plan.key_size);
        let name = |number: u64| {
            let mut key = vec![0; key_size];
            keys::write(number, &mut key);
            key
        };
        let is_last = range.end == u64::MAX;
        let (start, end) = (name(range.start), if is_last { Vec::new() } else { name(range.end) });
        let first = if range.start == 0 { Bound::Unbounded } else { Bound::Included(&start[..]) };
        let last = if is_last { Bound::Unbounded } else { Bound::Excluded(&end[..]) };
        let mut cursor = self.bed.store.walk((first, last), backward).map_err(Failure::Store)?;
        while self.next_operation().is_some() {
            if !self.see_entry(&mut cursor)? {
                break;
            }
            self.timed(1);
        }
        Ok(())
    }

    fn see_entries(&mut self, cursor: &mut S::Cursor<'_>, entries: u64) -> Result<(), S::Error> {
        for _ in 0..entries {
            if !self.see_entry(cursor)? {
                break;
            }
        }
        Ok(())
    }

    /// Goes to the next entry, and reads it; returns whether there is one.
    fn see_entry(&mut self, cursor: &mut S::Cursor<'_>) -> Result<bool, S::Error> {
        if !cursor.advance().map_err(Failure::Store)? {
            return Ok(false);
        }
        self.tally.found += 1;
        self.tally.read(cursor.key().len());
        let number = keys::parse(cursor.key(), self.bed.plan.key_size.into());
        let value = cursor.value().map_err(Failure::Store)?;
        self.tally.read(value.len());
        if let Some(number) = number.filter(|_| self.bed.plan.verify) {
            keys::write(number, &mut self.key);
            self.compare(number, value)?;
        }
        Ok(true)
    }

    /// Compares a value with what it must be: its length always, its bytes if that was asked for.
    fn compare(&mut self, number: u64, value: &[u8]) -> Result<(), S::Error> {
        let bed = self.bed;
        let state = bed.ledger.state(number);
        // Somebody may be writing it.
        let settled = self.workload.reads_what_is_settled(bed.plan);
        let fits = bed.len_of(number, state).is_none_or(|len| value.len() == len);
        let unfit = match state {
            State::Written(_) => "a value of another length than was written",
            State::Absent | State::Unknown => {
                "a value of another length than --value-size says: give that with which it was loaded, or a range of all"
            }
        };
        demand(fits || !settled, &self.key, unfit)?;
        if !bed.plan.verify || !settled {
            return Ok(());
        }
        match state {
            State::Unknown => Ok(()),
            State::Absent => demand(false, &self.key, "a value that was deleted or never written"),
            State::Written(generation) => {
                self.tally.verified += 1;
                let expected = bed.values.value(number, generation, value.len());
                demand(value == expected, &self.key, "other bytes than were written last")
            }
        }
    }

    /// What YCSB mixes.
    fn mix(&mut self, mix: &Mix) -> Result<(), S::Error> {
        while self.next_operation().is_some() {
            match mix.draw(&mut self.random) {
                Operation::Insert => {
                    if !self.insert()? {
                        return Ok(());
                    }
                }
                Operation::Read => {
                    let number = self.draw_record();
                    self.get(number)?;
                }
                Operation::Update => {
                    let number = self.draw_record();
                    self.put(number)?;
                }
                Operation::Scan(records) => {
                    let number = self.draw_record();
                    self.scan(number, records)?;
                }
                Operation::Modify => {
                    let number = self.draw_record();
                    self.get(number)?;
                    self.put(number)?;
                }
            }
            self.timed(1);
        }
        Ok(())
    }

    fn draw_record(&mut self) -> u64 {
        let (bed, num) = (self.bed, self.bed.plan.num);
        let record = match self.workload.distribution(bed.plan) {
            Distribution::Uniform => self.random.below(bed.records.count()),
            Distribution::Zipfian => bed.popular.at(self.draw_rank(num)),
            Distribution::Latest => bed.records.count() - 1 - self.draw_rank(num),
        };
        bed.scatter.at(record)
    }

    /// Inserts the next record; returns whether there is one: where a workload goes on for some time, it ends with them.
    fn insert(&mut self) -> Result<bool, S::Error> {
        let record = self.bed.records.take();
        if record >= self.bed.ledger.keys() {
            if self.end.is_some() {
                return Ok(false);
            }
            return Err(Failure::Usage(
                "more inserts than there were records: raise --num or lower --ops".into(),
            ));
        }
        self.put(self.bed.scatter.at(record))?;
        self.bed.records.add(record);
        Ok(true)
    }
}

fn demand<E>(truth: bool, key: &[u8], found: &str) -> Result<(), E> {
    if truth {
        return Ok(());
    }
    Err(Failure::Mismatch(format!("verification failed: key {} has {found}", String::from_utf8_lossy(key))))
}
