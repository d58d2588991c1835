//! Runs workloads on a store, one after the other: splits the operations among threads, and takes stock when all has
//! settled.

use std::hint::black_box;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvError, channel};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};
use crate::garbage;
use crate::keys::{self, Permutation, Random, mix};
use crate::latency::{Buckets, Latency};
use crate::load::{Load, part};
use crate::memory::MemoryLimit;
use crate::peak::Peak;
use crate::plan::{Distribution, Plan};
use crate::reclaim::{self, Limits};
use crate::report::{Recovery, Report};
use crate::resources::{Resources, Spent};
use crate::store::{Cursor, Store};
use crate::timeline::Counter;
use crate::value_size::ValueSize;
use crate::values::{Ledger, State, Values};
use crate::worker::{Tally, Worker};
use crate::workload::{Choice, Workload};
use crate::ycsb::Records;
use crate::zipf::Zipf;
use crate::{cache, disk_bytes};

/// Is told how many operations were done since it was told last, now and then and by all threads.
pub type Advance<'a> = &'a (dyn Fn(u64) + Sync);

/// A store, and all that the workloads of a run share.
pub struct Bed<'a, S> {
    pub(crate) store: S,
    pub(crate) plan: &'a Plan,
    pub(crate) ledger: Ledger,
    pub(crate) values: Values,
    pub(crate) permutation: Permutation,
    /// One that has nothing to do with the other.
    pub(crate) other_permutation: Permutation,
    /// Which keys or records are drawn most by Zipf's law: in no order that they were written in.
    pub(crate) popular: Permutation,
    /// Where YCSB's records are.
    pub(crate) scatter: Permutation,
    /// How many of those there are.
    pub(crate) records: Records,
    /// Where keys are drawn by Zipf's law.
    pub(crate) zipf: Option<Zipf>,
    /// How the keys came into the store; `None` if there are none, or nobody knows.
    pub(crate) load: Option<Load>,
    /// Entries that were there before with keys that no workload knows.
    others: u64,
    path: &'a Path,
    limits: Limits,
    workloads_run: u8,
    /// Those that are reported on.
    reported: Vec<Workload>,
    /// How many bytes the values of each generation have.
    value_sizes: Vec<ValueSize>,
}

impl<'a, S: Store> Bed<'a, S> {
    /// A bed on `store`, whose files are in `path` and which keeps to `limits`, for `workloads`. Whether there are keys
    /// already [`find_existing`](Self::find_existing) finds out.
    pub fn new(store: S, path: &'a Path, plan: &'a Plan, workloads: &[Workload], limits: Limits) -> Self {
        let skewed = workloads.iter().any(|workload| workload.distribution(plan) != Distribution::Uniform);
        let largest = workloads.iter().map(|workload| workload.value_size(plan).largest()).max().unwrap_or(0);
        Self {
            store,
            path,
            plan,
            ledger: Ledger::new(plan.keys_max(workloads)),
            values: Values::new(largest.max(plan.value_size.largest()), plan.seed),
            permutation: Permutation::new(plan.num, plan.seed),
            other_permutation: Permutation::new(plan.num, mix(plan.seed)),
            scatter: Permutation::new(plan.num.saturating_mul(2), mix(mix(plan.seed))),
            popular: Permutation::new(plan.num, mix(mix(mix(plan.seed)))),
            others: 0,
            records: Records::new(plan.num),
            limits,
            zipf: skewed.then(|| Zipf::new(plan.num)),
            load: None,
            workloads_run: 0,
            reported: Vec::new(),
            value_sizes: vec![plan.value_size],
        }
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Has the store opened anew by `reopen` where workloads are to find it cold: what it keeps in memory is gone then.
    ///
    /// # Errors
    /// Those of `reopen`.
    pub fn cooled<E>(
        mut self,
        reopen: impl FnOnce(S) -> std::result::Result<S, E>,
    ) -> std::result::Result<Self, E> {
        if self.plan.cold {
            self.store = reopen(self.store)?;
        }
        Ok(self)
    }

    /// Gives the store back.
    pub fn into_store(self) -> S {
        self.store
    }

    /// Takes note of the keys that the store has. Reads no value.
    ///
    /// # Errors
    /// Those of the store.
    pub fn find_existing(&mut self) -> Result<(), S::Error> {
        use std::ops::Bound::Unbounded;
        let mut cursor = self.store.walk((Unbounded, Unbounded), false).map_err(Failure::Store)?;
        while cursor.advance().map_err(Failure::Store)? {
            let number = keys::parse(cursor.key(), self.plan.key_size.into());
            self.others += u64::from(!number.is_some_and(|number| self.ledger.found(number)));
        }
        drop(cursor);
        let is_there = |record: &u64| self.ledger.state(self.scatter.at(*record)) != State::Absent;
        let inserted = (self.plan.num..self.ledger.keys()).take_while(is_there).count();
        self.records = Records::new(self.plan.num + inserted as u64);
        Ok(())
    }

    /// Takes for granted that every key was written by the first workload of another process with the same plan.
    pub fn assume_filled(&mut self) {
        self.workloads_run += 1;
        self.value_sizes.push(self.plan.value_size);
        self.filled(Workload::Recover);
        (0..self.plan.num).for_each(|number| self.ledger.wrote(number, self.workloads_run));
    }

    /// Takes note of a fill. One of only some of the keys does not change in which order the others came.
    fn filled(&mut self, workload: Workload) {
        let (operations, threads) = (workload.operations(self.plan), self.plan.threads);
        if operations == self.plan.num || self.load.is_none() {
            self.load = Some(Load { workload, operations, threads });
        }
    }

    /// The key of an operation of a workload that takes them in a fixed order; `None` if it draws them.
    pub(crate) fn key_of(&self, workload: Workload, operation: u64) -> Option<u64> {
        match workload.choice() {
            Choice::InOrder => Some(operation),
            Choice::Permuted => Some(self.permutation.at(operation)),
            Choice::PermutedAnew => Some(self.other_permutation.at(operation)),
            Choice::PermutedBeyond => Some(self.plan.num + self.permutation.at(operation)),
            Choice::Record => Some(self.scatter.at(operation)),
            Choice::Drawn | Choice::DrawnMissing => None,
        }
    }

    /// Bytes of the value of a key of which that is known; `None` if sizes vary, and this run has not written it.
    pub(crate) fn len_of(&self, number: u64, state: State) -> Option<usize> {
        match state {
            State::Written(generation) => {
                let size = &self.value_sizes[usize::from(generation)];
                Some(self.values.len(number, generation, size))
            }
            State::Absent | State::Unknown => self.plan.value_size.fixed(),
        }
    }

    /// Runs `workload`, and waits until its consequences have settled.
    ///
    /// # Errors
    /// Those of the store; `Mismatch` if it gives back something else than was written; `Io` if files could not be taken out of
    /// the page cache; `Usage` if the store cannot do what the workload asks for.
    pub fn run(&mut self, workload: Workload, advance: Advance<'_>) -> Result<Report, S::Error> {
        if workload.works_on_records() && !self.has_records() {
            let name = workload.name();
            return Err(Failure::Usage(format!(
                "{name} needs all records of ycsbload, none deleted: begin with that, or have it done before with the same --num and --seed"
            )));
        }
        if workload.is_beside_garbage() {
            self.make_garbage(workload)?;
        }
        if self.plan.cold {
            // What an opening has begun is not measured.
            self.settled()?;
            cache::evict(self.path).map_err(Failure::Io)?;
        }
        if self.plan.warm && workload.reads() {
            self.read_all()?;
        }
        self.reported.push(workload);
        let written = self.store.written();
        let (measured, peak) = Peak::during(self.path, || {
            let before = Resources::now();
            let total = self.operate(workload, advance)?;
            let reclaim = (workload == Workload::Deletehalf)
                .then(|| reclaim::watch(self.path, self.live_bytes(), &self.limits));
            if workload.writes() {
                std::thread::sleep(Duration::from_secs(self.plan.idle_seconds));
            }
            Result::Ok((total, reclaim, self.settle(&before)?))
        });
        let (total, reclaim, spent) = measured?;
        let written = self.store.written().zip(written).map(|(after, before)| after.since(&before));
        let report = self.report(workload, total, &spent);
        Ok(Report {
            disk_bytes_peak: peak.disk_bytes.max(report.disk_bytes),
            memory_bytes_peak: peak.anonymous_bytes,
            written,
            reclaim,
            ..report
        })
    }

    /// Whether all of YCSB's records are there.
    fn has_records(&self) -> bool {
        (0..self.plan.num).all(|record| self.ledger.state(self.scatter.at(record)) != State::Absent)
    }

    /// Reads every entry once, and waits until what the store does about that has ended.
    fn read_all(&self) -> Result<(), S::Error> {
        use std::ops::Bound::Unbounded;
        let mut cursor = self.store.walk((Unbounded, Unbounded), false).map_err(Failure::Store)?;
        while cursor.advance().map_err(Failure::Store)? {
            black_box(cursor.value().map_err(Failure::Store)?);
        }
        drop(cursor);
        self.settled()
    }

    /// Waits until the store has settled.
    pub(crate) fn settled(&self) -> Result<(), S::Error> {
        self.store.settle().map(drop).map_err(Failure::Store)
    }

    /// Runs the operations of `workload`, and no more than that.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn operate(&mut self, workload: Workload, advance: Advance<'_>) -> Result<Tally, S::Error> {
        if self.workloads_run == Ledger::GENERATION_MAX {
            return Err(Failure::Usage(format!("at most {} workloads per run", Ledger::GENERATION_MAX)));
        }
        if workload.draws_latest_keys(self.plan) && self.load.is_none() {
            let name = workload.name();
            return Err(Failure::Usage(format!(
                "{name} needs a fill in the same run: nobody knows which of these keys are the latest"
            )));
        }
        self.workloads_run += 1;
        self.value_sizes.push(workload.value_size(self.plan));
        let total = match workload {
            Workload::Readwhilewriting => self.run_beside_a_writer(workload, advance)?,
            Workload::Fillwhilecollecting => {
                let collector = garbage::collector(&self.store, workload)?;
                let run = || self.run_threads(workload, advance);
                let (total, collected) = garbage::while_collecting(collector, run).map_err(Failure::Store)?;
                Tally { collected: Some(collected), ..total? }
            }
            _ => self.run_threads(workload, advance)?,
        };
        if workload.is_fill() {
            self.filled(workload);
        }
        Ok(total)
    }

    /// Runs all threads of `workload`, and one that overwrites until they are done.
    fn run_beside_a_writer(&self, workload: Workload, advance: Advance<'_>) -> Result<Tally, S::Error> {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let worker = self.worker(Workload::Overwrite, 0..u64::MAX, u64::MAX, &|_| ());
            let (begun, has_begun) = channel();
            let writer = scope.spawn(|| worker.write_until(begun, &done));
            // Nothing is sent: the sender is dropped by whoever has written, or failed to.
            let _dropped: std::result::Result<(), RecvError> = has_begun.recv();
            let total = self.run_threads(workload, advance);
            done.store(true, Ordering::Relaxed);
            let written = writer.join().expect("a worker does not panic");
            Ok(Tally { written_meanwhile: written?.ops, ..total? })
        })
    }

    fn run_threads(&self, workload: Workload, advance: Advance<'_>) -> Result<Tally, S::Error> {
        let (ops, threads) = (workload.operations(self.plan), self.plan.threads);
        // Of a part of the keys there may be more entries than of another.
        let walks_all = workload.walks() && self.plan.ops.is_none();
        let keys = if workload.walks() && self.ledger.has_from(self.plan.num) {
            self.ledger.keys()
        } else {
            self.plan.num
        };
        let started = Instant::now();
        let tallies: Vec<Result<Tally, S::Error>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|thread| {
                    let operations = if walks_all { 0..u64::MAX } else { part(ops, thread, threads) };
                    let worker = self.worker(workload, operations, thread, advance);
                    let walked = part(keys, thread, threads);
                    let end = if thread + 1 == threads { u64::MAX } else { walked.end };
                    scope.spawn(move || worker.run(walked.start..end))
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
        });
        let mut total = Tally::new();
        total.seconds = started.elapsed().as_secs_f64();
        for tally in tallies {
            total.add(tally?);
        }
        Ok(total)
    }

    fn worker<'b>(
        &'b self,
        workload: Workload,
        part: Range<u64>,
        thread: u64,
        advance: Advance<'b>,
    ) -> Worker<'b, S> {
        let seed = mix(self.plan.seed ^ u64::from(self.workloads_run) << 32 ^ thread);
        Worker::new(self, workload, self.workloads_run, thread, part, Random::new(seed), advance)
    }

    /// Reports how the store was opened, which began `before`, and took `open` and at most `peak`, once every entry has been found equal to
    /// what the writer wrote.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn report_recovery(
        &mut self,
        before: &Resources,
        open: Duration,
        peak: Peak,
        recovery: Recovery,
    ) -> Result<Report, S::Error> {
        let spent = self.settle(before)?;
        let num = self.plan.num;
        if recovery.recovered_operations != num {
            let operations = recovery.recovered_operations;
            return Err(Failure::Mismatch(format!("{operations} of {num} operations are in the log")));
        }
        let read = self.operate(Workload::Readseq, &|_| ())?;
        if (read.found, read.verified) != (num, num) {
            return Err(Failure::Mismatch(format!("{} of {num} keys survived the kill", read.verified)));
        }
        let mut total = Tally::new();
        (total.ops, total.user_bytes, total.user_bytes_read) = (num, read.user_bytes, read.user_bytes_read);
        (total.found, total.verified) = (read.found, read.verified);
        total.latency.saturating_record(open.as_nanos() as u64);
        total.seconds = open.as_secs_f64();
        let report = self.report(Workload::Recover, total, &spent);
        Ok(Report {
            disk_bytes_peak: peak.disk_bytes.max(report.disk_bytes),
            memory_bytes_peak: peak.anonymous_bytes,
            written: self.store.written(),
            recovery: Some(recovery),
            // What was read afterwards is not what opening has read for.
            read_amplification: None,
            ..report
        })
    }

    /// Waits until everything is on the device and background work has ended.
    fn settle(&self, before: &Resources) -> Result<Spent, S::Error> {
        let idle = self.store.settle().map_err(Failure::Store)?;
        let spent = before.spent();
        Ok(Spent { seconds: spent.seconds - idle.as_secs_f64(), ..spent })
    }

    /// Bytes of keys and values that are there; a value whose size cannot be known counts as many as are to be expected.
    fn live_bytes(&self) -> u64 {
        let mean = self.plan.value_size.mean() as u64;
        let value = |(number, state)| self.len_of(number, state).map_or(mean, |len| len as u64);
        let key = u64::from(self.plan.key_size);
        let known: u64 = self.ledger.live().map(|entry| key + value(entry)).sum();
        known + self.others * (key + mean)
    }

    fn report(&self, workload: Workload, total: Tally, spent: &Spent) -> Report {
        let (plan, seconds) = (self.plan, total.seconds);
        let value_size = workload.value_size(plan);
        let live_bytes = self.live_bytes();
        let disk_bytes = disk_bytes(self.path);
        let per = |bytes: u64, of: u64| (of > 0).then(|| bytes as f64 / of as f64);
        Report {
            workload: workload.name().to_owned(),
            pass: self.reported.iter().filter(|earlier| **earlier == workload).count().max(1) as u32,
            ops: total.ops,
            seconds,
            ops_per_second: total.ops as f64 / seconds.max(f64::MIN_POSITIVE),
            user_bytes: total.user_bytes,
            user_bytes_read: total.user_bytes_read,
            device_write_bytes: spent.device_write_bytes,
            device_read_bytes: spent.device_read_bytes,
            cpu_seconds: spent.cpu_seconds,
            cpu_utilization: spent.cpu_seconds / spent.seconds.max(f64::MIN_POSITIVE),
            latency_us: Latency::of(&total.latency),
            latency_histogram: Buckets::of(&total.latency),
            throughput: Counter::sum(total.counters),
            live_bytes,
            disk_bytes,
            disk_bytes_peak: disk_bytes,
            memory_bytes_peak: None,
            written: None,
            space_amplification: per(disk_bytes, live_bytes),
            write_amplification: spent
                .device_write_bytes
                .and_then(|written| per(written, total.user_bytes - total.user_bytes_read)),
            read_amplification: spent.device_read_bytes.and_then(|read| per(read, total.user_bytes_read)),
            settled_seconds: spent.seconds,
            found: total.found,
            verified: total.verified,
            written_meanwhile: (workload == Workload::Readwhilewriting).then_some(total.written_meanwhile),
            num: plan.num,
            key_size: plan.key_size,
            value_size: value_size.mean().round() as usize,
            value_sizes: value_size.fixed().is_none().then(|| value_size.to_string()),
            threads: plan.threads,
            rate: plan.rate,
            batch_size: plan.batch_size,
            keys_per_read: plan.keys_per_read,
            entries_per_seek: plan.entries_per_seek,
            loaded_by: self.load.filter(|_| !workload.is_fill()).map(|load| load.workload.name().to_owned()),
            distribution: workload.distribution(plan),
            cold: plan.cold,
            warm: plan.warm && workload.reads(),
            memory_limit_bytes: MemoryLimit::current(),
            sync: workload.writes_per_sync(plan) == Some(1),
            sync_every: workload.writes_per_sync(plan).filter(|writes| *writes > 1),
            dead_percent: workload.is_beside_garbage().then_some(plan.dead_percent),
            collected: total.collected,
            recovery: None,
            reclaim: None,
        }
    }
}
