//! Which thread runs next: one schedule for each seed, so that a seed alone replays a failure.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, FailurePersistence, Runner};

use crate::common::{Random, number_from_environment};

/// Scheduling decisions of a typical run, over which changes of priority are spread.
const STEPS_TYPICAL: usize = 18_000;
/// More than any run takes.
const STEPS_MAX: usize = 2_000_000;
const STACK_BYTES: usize = 1 << 20;

/// Runs `scenario` once for each of so many seeds, or for those that the environment names; returns how many that were.
pub fn explore(name: &str, seeds: u64, scenario: impl Fn(u64) + Send + Sync + 'static) -> u64 {
    let begin = number_from_environment("TAMARACK_SEED").unwrap_or(0);
    let seeds = number_from_environment("TAMARACK_SEEDS").unwrap_or(seeds);
    let current = Arc::new(AtomicU64::new(begin));
    let scheduler = Seeded {
        seeds: begin..begin + seeds,
        current: Arc::clone(&current),
        random: Random::new(0),
        kind: Kind::Wander { one_in: 1 },
        steps: 0,
    };
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = shuttle::MaxSteps::FailAfter(STEPS_MAX);
    config.failure_persistence = FailurePersistence::None;
    let seed = Arc::clone(&current);
    let run = move || scenario(seed.load(Ordering::Relaxed));
    let outcome = catch_unwind(AssertUnwindSafe(|| Runner::new(scheduler, config).run(run)));
    if let Err(payload) = outcome {
        let seed = current.load(Ordering::Relaxed);
        eprintln!(
            "{name} failed with seed {seed}. To replay:\nRUSTFLAGS=\"--cfg shuttle\" \
             CARGO_TARGET_DIR=target/shuttle TAMARACK_SEED={seed} TAMARACK_SEEDS=1 \
             cargo test -p tamarack --test shuttle -- --nocapture {name}"
        );
        resume_unwind(payload);
    }
    seeds
}

/// One execution for each seed.
struct Seeded {
    seeds: std::ops::Range<u64>,
    current: Arc<AtomicU64>,
    random: Random,
    kind: Kind,
    steps: usize,
}

/// How threads are chosen.
enum Kind {
    /// Any thread goes on, after one in so many steps; else the one that runs.
    Wander { one_in: usize },
    /// The thread of the highest priority runs. At a few moments the one that runs becomes the last of all (probabilistic
    /// concurrency testing, Burckhardt and others 2010).
    Priorities { by_task: Vec<u64>, changes: Vec<usize>, lowest: u64 },
}

/// Priorities of new threads lie above this, those of threads that have lost theirs below.
const PRIORITY_MIN: u64 = 1 << 32;

impl Seeded {
    fn choose_kind(&mut self) -> Kind {
        if self.random.one_in(2) {
            return Kind::Wander { one_in: self.random.pick(&[1, 3, 10, 50]) };
        }
        let depth = 1 + self.random.below(8);
        let changes = (0..depth).map(|_| self.random.below(STEPS_TYPICAL)).collect();
        Kind::Priorities { by_task: Vec::new(), changes, lowest: PRIORITY_MIN }
    }
}

impl Scheduler for Seeded {
    fn new_execution(&mut self) -> Option<Schedule> {
        let seed = self.seeds.next()?;
        self.current.store(seed, Ordering::Relaxed);
        self.random = Random::new(seed ^ 0x5c4e_d01e);
        self.kind = self.choose_kind();
        self.steps = 0;
        Some(Schedule::new(seed))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, yields: bool) -> Option<TaskId> {
        self.steps += 1;
        let ids = || runnable.iter().map(|task| task.id());
        match &mut self.kind {
            Kind::Wander { one_in } => {
                let staying = current.filter(|&id| !yields && ids().any(|other| other == id));
                match staying {
                    Some(id) if !self.random.one_in(*one_in) => Some(id),
                    _ => Some(runnable[self.random.below(runnable.len())].id()),
                }
            }
            Kind::Priorities { by_task, changes, lowest } => {
                let last = ids().map(usize::from).max()?;
                while by_task.len() <= last {
                    by_task.push(PRIORITY_MIN + self.random.number() % PRIORITY_MIN);
                }
                if let Some(current) = current.filter(|_| yields || changes.contains(&self.steps)) {
                    *lowest -= 1;
                    by_task[usize::from(current)] = *lowest;
                }
                ids().max_by_key(|&id| by_task[usize::from(id)])
            }
        }
    }

    fn next_u64(&mut self) -> u64 {
        self.random.number()
    }
}
