//! Goes through all moments of a scenario, on two threads, and tries every state that is new.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tamarack::testing::{CrashState, CrashStates, Moment};

use super::driver::Recording;
use super::oracle::{Outcome, check};
use super::report::{Row, Tally};
use super::scenarios::Scenario;
use crate::common::history::bounds;

/// What twelve things make that arrive or not.
pub const COMBINATIONS_MAX: u64 = 1 << 12;
/// Samples of an ordinary run, where there are more combinations.
const SAMPLES: u64 = 48;
/// How often a scenario is run at most until its changes come in the order that is looked for.
const RECORDINGS_MAX: usize = 1000;
/// Threads that try states.
const THREADS: usize = 2;

/// Tries states, and none twice.
pub struct Explorer {
    seen: Mutex<HashSet<u64>>,
    samples: usize,
}

/// A part of a search: which moments have been taken, and what came of them.
struct Search<'a> {
    scenario: &'a Scenario,
    recording: &'a Recording,
    keys: Vec<Vec<u8>>,
    next: AtomicUsize,
    tally: Mutex<Tally>,
    /// Moments at which too much was in flight.
    left: Mutex<Vec<usize>>,
}

impl Explorer {
    /// One that takes so many samples where it cannot take all.
    pub fn new(samples: Option<u64>) -> Self {
        Self { seen: Mutex::default(), samples: samples.unwrap_or(SAMPLES) as usize }
    }

    /// Tries all states of a scenario.
    pub fn explore(&self, scenario: &Scenario) -> Row {
        let recording = scenario.record();
        let search = |moments: &[usize], exhaustive| {
            let search = Search {
                scenario,
                recording: &recording,
                keys: recording.history.keys(),
                next: AtomicUsize::new(0),
                tally: Mutex::default(),
                left: Mutex::default(),
            };
            std::thread::scope(|scope| {
                let work = || self.work(&search, moments, exhaustive);
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
                for thread in threads {
                    if let Err(panic) = thread.join() {
                        resume_unwind(panic);
                    }
                }
            });
            (search.tally.into_inner().unwrap(), search.left.into_inner().unwrap())
        };
        let all: Vec<usize> = (0..recording.moments.len()).collect();
        let (exhaustive, mut left) = search(&all, true);
        // Only when all that is exhaustive is known, so that it does not depend on chance what counts as a sample.
        left.sort_unstable();
        let (sampled, _) = search(&left, false);
        Row {
            name: scenario.name.clone(),
            operations: recording.operations,
            moments: all.len() as u64,
            in_flight_max: recording.moments.iter().map(Moment::in_flight).max().unwrap_or(0) as u64,
            sampled_moments: left.len() as u64,
            exhaustive,
            sampled,
        }
    }

    fn work(&self, search: &Search<'_>, moments: &[usize], exhaustive: bool) {
        let mut states = CrashStates::new(COMBINATIONS_MAX);
        loop {
            let Some(&index) = moments.get(search.next.fetch_add(1, Ordering::Relaxed)) else { return };
            let moment = &search.recording.moments[index];
            let found = if exhaustive {
                let all = states.all(moment);
                if all.is_none() {
                    search.left.lock().unwrap().push(index);
                }
                all.unwrap_or_default()
            } else {
                states.sampled(moment, index as u64, self.samples)
            };
            let mut tally = Tally::of(found.len() as u64);
            for number in self.new_among(&found, bounds(moment).0) {
                let scenario = search.scenario.name.clone();
                let name = StateName { scenario, index, exhaustive, number, trace: moment.trace() };
                tally.count(name.check(search.scenario, search.recording, &search.keys, &found[number]));
            }
            search.tally.lock().unwrap().add(&tally);
        }
    }

    /// Those of `states` that nobody has seen, if the first `least` batches must be in them.
    fn new_among(&self, states: &[CrashState], least: u64) -> Vec<usize> {
        let mut seen = self.seen.lock().unwrap();
        let digest = |state: &CrashState| state.digest() ^ least.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..states.len()).filter(|&number| seen.insert(digest(&states[number]))).collect()
    }
}

/// How a state is found again.
pub struct StateName {
    scenario: String,
    index: usize,
    exhaustive: bool,
    number: usize,
    /// A digest of the changes before it: a synced write and what it has started in the background may come in either order.
    trace: u64,
}

impl StateName {
    const VARIABLE: &str = "TAMARACK_STATE";

    /// The state that is to be tried alone.
    pub fn from_environment() -> Option<Self> {
        let text = std::env::var(Self::VARIABLE).ok()?;
        let parts: Vec<&str> = text.split(':').collect();
        let [scenario, index, kind, number, trace] = parts[..] else { panic!("{}: {text}", Self::VARIABLE) };
        Some(Self {
            scenario: scenario.to_owned(),
            index: index.parse().unwrap(),
            exhaustive: kind == "all",
            number: number.parse().unwrap(),
            trace: u64::from_str_radix(trace, 16).unwrap(),
        })
    }

    /// Tries it again.
    pub fn replay(&self, scenarios: &[Scenario]) {
        let known = scenarios.iter().find(|scenario| scenario.name == self.scenario);
        let scenario = known.unwrap_or_else(|| panic!("no scenario {}", self.scenario));
        let is_it = |recording: &Recording| {
            recording.moments.get(self.index).is_some_and(|moment| moment.trace() == self.trace)
        };
        let mut recordings = (0..RECORDINGS_MAX).map(|_| scenario.record());
        let recording = recordings.find(is_it).expect("the changes come in another order every time");
        let moment = &recording.moments[self.index];
        let mut states = CrashStates::new(COMBINATIONS_MAX);
        let found = if self.exhaustive {
            states.all(moment).expect("it was exhaustive")
        } else {
            let count = crate::common::number_from_environment("TAMARACK_SAMPLES").unwrap_or(SAMPLES);
            states.sampled(moment, self.index as u64, count as usize)
        };
        let outcome = self.check(scenario, &recording, &recording.history.keys(), &found[self.number]);
        println!("{}: {outcome:?}", self.text());
    }

    fn text(&self) -> String {
        let kind = if self.exhaustive { "all" } else { "sampled" };
        format!("{}:{}:{kind}:{}:{:x}", self.scenario, self.index, self.number, self.trace)
    }

    fn check(
        &self,
        scenario: &Scenario,
        recording: &Recording,
        keys: &[Vec<u8>],
        state: &CrashState,
    ) -> Outcome {
        let (moment, what) = (&recording.moments[self.index], self.text());
        let act = || check(moment, state, &recording.history, keys, &scenario.options, &what);
        catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
            println!(
                "before change {} of the disk, state {} of digest {:016x}; to try it again:\n\
                 {}='{what}' cargo test -p tamarack --test crash_states -- --nocapture every_state",
                moment.changes(),
                self.number,
                state.digest(),
                Self::VARIABLE,
            );
            resume_unwind(panic)
        })
    }
}
