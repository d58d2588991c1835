//! Runs one workload: splits its operations among threads, times each, and takes stock when all is settled.

use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tamarack::{Db, IterOptions, ReadOptions, WriteBatch, WriteOptions};

use super::disk;
use super::keys::{self, Permutation, Random, mix};
use super::reclaim::{self, Limits};
use super::report::{Latency, Recovery, Report, Written};
use super::values::{Ledger, State, Values};
use super::workload::{Action, Choice, Workload};
use super::zipf::Zipf;
use super::{Distribution, Plan};
use crate::failure::{Failure, Result};
use crate::progress::{Progress, Unit};
use crate::resources::{self, Resources, Spent};

/// A database and all that the workloads of a run share.
pub struct Bed<'a> {
    db: Db,
    path: &'a Path,
    plan: &'a Plan,
    ledger: Ledger,
    values: Values,
    permutation: Permutation,
    /// One that has nothing to do with the other.
    other_permutation: Permutation,
    limits: Limits,
    /// Where keys are drawn by Zipf's law.
    zipf: Option<Zipf>,
    workloads_run: u8,
}

/// What one thread did.
pub struct Tally {
    ops: u64,
    found: u64,
    verified: u64,
    user_bytes: u64,
    latency: Histogram<u64>,
    last: Instant,
    reported: Instant,
    unreported: u64,
}

/// One thread's part of a workload.
struct Worker<'a> {
    bed: &'a Bed<'a>,
    workload: Workload,
    generation: u8,
    /// Numbers of the operations that are this thread's.
    part: std::ops::Range<u64>,
    random: Random,
    progress: &'a Progress,
    tally: Tally,
}

impl<'a> Bed<'a> {
    /// A bed for `plan` on `db`, which is at `path` and keeps to `limits`.
    pub fn new(db: Db, path: &'a Path, plan: &'a Plan, ledger: Ledger, limits: Limits) -> Self {
        Self {
            db,
            path,
            plan,
            ledger,
            values: Values::new(plan.value_size, plan.seed),
            permutation: Permutation::new(plan.num, plan.seed),
            other_permutation: Permutation::new(plan.num, mix(plan.seed)),
            limits,
            zipf: (plan.distribution == Distribution::Zipfian).then(|| Zipf::new(plan.num)),
            workloads_run: 0,
        }
    }

    /// Closes the database.
    pub fn close(self) -> Result<()> {
        Ok(self.db.close()?)
    }

    /// Runs `workload` and waits until its consequences have settled.
    pub fn run(&mut self, workload: Workload) -> Result<Report> {
        if self.workloads_run == Ledger::GENERATION_MAX {
            return Err(Failure::Usage(format!("at most {} workloads per run", Ledger::GENERATION_MAX)));
        }
        let written = Written::by(&self.db);
        let (measured, disk_bytes_peak) = disk::peak(self.path, || {
            let before = Resources::now();
            let started = Instant::now();
            let total = self.operate(workload)?;
            let seconds = started.elapsed().as_secs_f64();
            let reclaim = (workload == Workload::Deletehalf)
                .then(|| reclaim::watch(self.path, self.live_bytes(), &self.limits));
            Result::Ok((total, seconds, reclaim, self.settle(&before)?))
        });
        let (total, seconds, reclaim, spent) = measured?;
        let written = Written::by(&self.db).since(&written);
        let report = self.report(workload, &total, seconds, &spent);
        Ok(Report { disk_bytes_peak: disk_bytes_peak.max(report.disk_bytes), written, reclaim, ..report })
    }

    /// Runs the operations of `workload`, and no more than that.
    pub fn operate(&mut self, workload: Workload) -> Result<Tally> {
        self.workloads_run += 1;
        let ops = workload.operations(self.plan);
        let progress = Progress::start(workload.name(), Unit::Items, Some(ops));
        self.run_threads(workload, ops, &progress)
    }

    /// Reports how the database was opened, which began `before` and took `open`, once every entry has been found
    /// equal to what the writer wrote.
    pub fn report_recovery(&mut self, before: &Resources, open: Duration) -> Result<Report> {
        let spent = self.settle(before)?;
        let found = self.db.recovery();
        let recovery = Recovery {
            recovered_bytes: found.log_bytes,
            recovered_operations: found.operations,
            open_seconds: open.as_secs_f64(),
            rewritten_bytes: found.rewritten_bytes,
        };
        let num = self.plan.num;
        if found.operations != num {
            let operations = found.operations;
            return Err(Failure::Mismatch(format!("{operations} of {num} operations are in the log")));
        }
        let read = self.operate(Workload::Readseq)?;
        if (read.found, read.verified) != (num, num) {
            return Err(Failure::Mismatch(format!("{} of {num} keys survived the kill", read.verified)));
        }
        let mut total = Tally { ops: num, user_bytes: read.user_bytes, ..Tally::new() };
        (total.found, total.verified) = (read.found, read.verified);
        total.latency.saturating_record(open.as_nanos() as u64);
        let report = self.report(Workload::Recover, &total, open.as_secs_f64(), &spent);
        Ok(Report { recovery: Some(recovery), ..report })
    }

    /// Waits until everything is on the device and background work has ended.
    fn settle(&self, before: &Resources) -> Result<Spent> {
        self.db.sync()?;
        self.db.wait_idle()?;
        Ok(before.spent())
    }

    /// Bytes of keys and values that are there.
    fn live_bytes(&self) -> u64 {
        self.ledger.live() * (u64::from(self.plan.key_size) + self.plan.value_size as u64)
    }

    fn report(&self, workload: Workload, total: &Tally, seconds: f64, spent: &Spent) -> Report {
        let plan = self.plan;
        let live_bytes = self.live_bytes();
        let disk_bytes = resources::disk_bytes(self.path);
        let per = |bytes: u64, of: u64| (of > 0).then(|| bytes as f64 / of as f64);
        Report {
            workload: workload.name(),
            ops: total.ops,
            seconds,
            ops_per_second: total.ops as f64 / seconds.max(f64::MIN_POSITIVE),
            user_bytes: total.user_bytes,
            device_write_bytes: spent.device_write_bytes,
            device_read_bytes: spent.device_read_bytes,
            cpu_seconds: spent.cpu_seconds,
            latency_us: Latency::of(&total.latency),
            live_bytes,
            disk_bytes,
            disk_bytes_peak: disk_bytes,
            written: Written::by(&self.db),
            space_amplification: per(disk_bytes, live_bytes),
            write_amplification: spent
                .device_write_bytes
                .filter(|_| workload.writes())
                .and_then(|written| per(written, total.user_bytes)),
            settled_seconds: spent.seconds,
            found: total.found,
            verified: total.verified,
            num: plan.num,
            key_size: plan.key_size,
            value_size: plan.value_size,
            threads: plan.threads,
            batch_size: plan.batch_size,
            sync: plan.sync || workload.always_syncs(),
            recovery: None,
            reclaim: None,
        }
    }

    fn run_threads(&self, workload: Workload, ops: u64, progress: &Progress) -> Result<Tally> {
        let threads = self.plan.threads;
        let tallies: Vec<Result<Tally>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|thread| {
                    let seed = mix(self.plan.seed ^ u64::from(self.workloads_run) << 32 ^ thread);
                    let worker = Worker {
                        bed: self,
                        workload,
                        generation: self.workloads_run,
                        part: part(ops, thread, threads),
                        random: Random::new(seed),
                        progress,
                        tally: Tally::new(),
                    };
                    scope.spawn(move || worker.run(thread))
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
        });
        let mut total = Tally::new();
        for tally in tallies {
            total.add(&tally?);
        }
        Ok(total)
    }
}

/// The share of `count` things that belongs to one of `parts`.
fn part(count: u64, index: u64, parts: u64) -> std::ops::Range<u64> {
    let at = |index: u64| (u128::from(count) * u128::from(index) / u128::from(parts)) as u64;
    at(index)..at(index + 1)
}

impl Worker<'_> {
    fn run(mut self, thread: u64) -> Result<Tally> {
        self.tally.last = Instant::now();
        match self.workload.action() {
            Action::Put | Action::Delete if self.bed.plan.batch_size == 1 => self.write_singly()?,
            Action::Put | Action::Delete => self.write_batches()?,
            Action::Get => self.read()?,
            Action::Next => self.walk(thread, false)?,
            Action::Previous => self.walk(thread, true)?,
        }
        self.progress.advance(self.tally.unreported);
        Ok(self.tally)
    }

    fn choose(&mut self, operation: u64) -> u64 {
        match self.workload.choice() {
            Choice::InOrder => operation,
            Choice::Permuted => self.bed.permutation.at(operation),
            Choice::PermutedAnew => self.bed.other_permutation.at(operation),
            Choice::Drawn | Choice::DrawnMissing => match &self.bed.zipf {
                None => self.random.below(self.bed.plan.num),
                // The permutation takes the frequent ones apart.
                Some(zipf) => self.bed.permutation.at(zipf.draw(&mut self.random)),
            },
        }
    }

    fn write_options(&self) -> WriteOptions {
        WriteOptions { sync: self.bed.plan.sync || self.workload.always_syncs() }
    }

    fn write_singly(&mut self) -> Result<()> {
        let options = self.write_options();
        let deletes = self.workload.action() == Action::Delete;
        let mut key = vec![0; self.bed.plan.key_size.into()];
        for operation in self.part.clone() {
            let number = self.choose(operation);
            keys::write(number, &mut key);
            if deletes {
                self.bed.db.delete_with(&key, &options)?;
            } else {
                self.bed.db.put_with(&key, self.bed.values.value(number, self.generation), &options)?;
            }
            self.wrote(number, deletes);
            self.tally.timed(1, self.progress);
        }
        Ok(())
    }

    fn write_batches(&mut self) -> Result<()> {
        let options = self.write_options();
        let deletes = self.workload.action() == Action::Delete;
        let mut key = vec![0; self.bed.plan.key_size.into()];
        let mut batch = WriteBatch::new();
        let mut numbers = Vec::new();
        for operation in self.part.clone() {
            let number = self.choose(operation);
            keys::write(number, &mut key);
            if deletes {
                batch.delete(&key)?;
            } else {
                batch.put(&key, self.bed.values.value(number, self.generation))?;
            }
            numbers.push(number);
            if numbers.len() == self.bed.plan.batch_size as usize || operation + 1 == self.part.end {
                self.bed.db.write(&batch, &options)?;
                batch.clear();
                self.tally.timed(numbers.len() as u64, self.progress);
                for number in numbers.drain(..) {
                    self.wrote(number, deletes);
                }
            }
        }
        Ok(())
    }

    fn wrote(&mut self, number: u64, deleted: bool) {
        let plan = self.bed.plan;
        self.tally.user_bytes += u64::from(plan.key_size);
        if deleted {
            self.bed.ledger.deleted(number);
        } else {
            self.tally.user_bytes += plan.value_size as u64;
            self.bed.ledger.wrote(number, self.generation);
        }
    }

    fn read(&mut self) -> Result<()> {
        let key_size = usize::from(self.bed.plan.key_size);
        let missing = self.workload.choice() == Choice::DrawnMissing;
        let mut key = vec![b'.'; key_size + usize::from(missing)];
        let mut value = Vec::new();
        let options = ReadOptions::default();
        for operation in self.part.clone() {
            let number = self.choose(operation);
            keys::write(number, &mut key[..key_size]);
            let found = self.bed.db.get_into(&key, &mut value, &options)?;
            self.tally.timed(1, self.progress);
            if missing {
                demand(!found, &key, "a value where nothing was ever written")?;
            } else if found {
                self.check(number, &key, &value)?;
                self.tally.found += 1;
                self.tally.user_bytes += (key.len() + value.len()) as u64;
            } else {
                let expected = matches!(self.bed.ledger.state(number), State::Absent);
                demand(expected || !self.bed.plan.verify, &key, "no value, but one was written")?;
            }
        }
        Ok(())
    }

    fn walk(&mut self, thread: u64, backwards: bool) -> Result<()> {
        let plan = self.bed.plan;
        let key_size = usize::from(plan.key_size);
        let bound = |number: u64| {
            let mut key = vec![0; key_size];
            keys::write(number, &mut key);
            key
        };
        let range = part(plan.num, thread, plan.threads);
        let options = IterOptions {
            start: (range.start > 0).then(|| bound(range.start)),
            end: (range.end < plan.num).then(|| bound(range.end)),
            ..IterOptions::default()
        };
        let mut iter = self.bed.db.iter(&options)?;
        if backwards {
            iter.seek_to_last()?;
        } else {
            iter.seek_to_first()?;
        }
        let mut key = Vec::with_capacity(key_size);
        for _ in self.part.clone() {
            if !iter.valid() {
                break;
            }
            self.tally.found += 1;
            self.tally.user_bytes += iter.key().len() as u64;
            if plan.verify {
                key.clear();
                key.extend_from_slice(iter.key());
            }
            let value = iter.value()?;
            self.tally.user_bytes += value.len() as u64;
            if plan.verify
                && let Some(number) = keys::parse(&key, key_size)
            {
                self.check(number, &key, value)?;
            }
            if backwards {
                iter.prev()?;
            } else {
                iter.next()?;
            }
            self.tally.timed(1, self.progress);
        }
        Ok(())
    }

    /// Compares a value with what it must be: its length always, its bytes if that was asked for.
    fn check(&mut self, number: u64, key: &[u8], value: &[u8]) -> Result<()> {
        let plan = self.bed.plan;
        demand(value.len() == plan.value_size, key, "a value of another length than --value-size")?;
        if !plan.verify {
            return Ok(());
        }
        match self.bed.ledger.state(number) {
            State::Unknown => Ok(()),
            State::Absent => demand(false, key, "a value that was deleted or never written"),
            State::Written(generation) => {
                self.tally.verified += 1;
                let expected = self.bed.values.value(number, generation);
                demand(value == expected, key, "other bytes than were written last")
            }
        }
    }
}

fn demand(truth: bool, key: &[u8], found: &str) -> Result<()> {
    if truth {
        return Ok(());
    }
    Err(Failure::Mismatch(format!("verification failed: key {} has {found}", String::from_utf8_lossy(key))))
}

impl Tally {
    /// How often progress is told: seldom enough not to show in the measurement.
    const REPORT_INTERVAL: Duration = Duration::from_millis(100);

    fn new() -> Self {
        let latency = Histogram::new_with_bounds(1, 3_600_000_000_000, 3)
            .expect("one nanosecond to one hour with three digits is a valid range");
        let now = Instant::now();
        Self {
            ops: 0,
            found: 0,
            verified: 0,
            user_bytes: 0,
            latency,
            last: now,
            reported: now,
            unreported: 0,
        }
    }

    /// Counts operations that ended now and began when the ones before them ended: one look at the clock each.
    fn timed(&mut self, ops: u64, progress: &Progress) {
        let now = Instant::now();
        self.latency.saturating_record((now - self.last).as_nanos() as u64);
        self.last = now;
        self.ops += ops;
        self.unreported += ops;
        if now - self.reported >= Self::REPORT_INTERVAL {
            progress.advance(std::mem::take(&mut self.unreported));
            self.reported = now;
        }
    }

    fn add(&mut self, other: &Self) {
        self.ops += other.ops;
        self.found += other.found;
        self.verified += other.verified;
        self.user_bytes += other.user_bytes;
        self.latency.add(&other.latency).expect("both histograms have the same bounds");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        for (count, parts) in [(10, 3), (2, 5), (0, 4), (u64::MAX, 7)] {
            let mut next = 0;
            for index in 0..parts {
                let range = part(count, index, parts);
                assert_eq!(range.start, next);
                next = range.end;
            }
            assert_eq!(next, count);
        }
    }
}
