//! Garbage, and a thread that collects it: what writers notice of that is Figure 13 of the WiscKey paper.
//!
//! [`Bed::make_garbage`] leaves the store as that figure has it when measuring begins: every key was written, a part of them
//! deleted at random, and the store knows what is dead. [`while_collecting`] is the thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::failure::{Failure, Result};
use crate::keys;
use crate::report::Collected;
use crate::run::Bed;
use crate::store::{Collector, Store};
use crate::workload::Workload;

/// How long the thread waits when there was nothing to collect.
const PAUSE: Duration = Duration::from_millis(1);

/// The garbage collection that `workload` asks for.
///
/// # Errors
/// `Usage` if the store does not collect when it is asked to.
pub fn collector<S: Store>(
    store: &S,
    workload: Workload,
) -> Result<&dyn Collector<Error = S::Error>, S::Error> {
    let name = workload.name();
    store.collector().ok_or_else(|| {
        Failure::Usage(format!(
            "{name} needs a store that collects garbage on request, which this one does not"
        ))
    })
}

/// Runs `work` while a thread collects all the time; returns its result, and what was collected, with the collection that was under
/// way when it ended.
pub fn while_collecting<E: Send, T>(
    collector: &dyn Collector<Error = E>,
    work: impl FnOnce() -> T,
) -> std::result::Result<(T, Collected), E> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let collecting = scope.spawn(|| {
            let mut total = Collected::default();
            loop {
                let collected = collector.collect_once()?;
                total.add(&collected);
                if done.load(Ordering::Relaxed) {
                    return Ok(total);
                }
                if collected.collected_files == 0 {
                    std::thread::sleep(PAUSE);
                }
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        let collected = collecting.join().expect("a collector does not panic")?;
        Ok((result, collected))
    })
}

impl<S: Store> Bed<'_, S> {
    /// Writes every key in random order, deletes the plan's part of them at random, and waits until the store knows what is dead and
    /// all of that is on the device. Nothing of this is measured.
    pub(crate) fn make_garbage(&mut self, workload: Workload) -> Result<(), S::Error> {
        collector(&self.store, workload)?;
        self.operate(Workload::Fillrandom, &|_| ())?;
        let mut key = vec![0; self.plan.key_size.into()];
        for operation in 0..self.plan.dead_keys() {
            let number = self.other_permutation.at(operation);
            keys::write(number, &mut key);
            self.store.delete(&key, false).map_err(Failure::Store)?;
            self.ledger.deleted(number);
        }
        collector(&self.store, workload)?.compact().map_err(Failure::Store)?;
        self.settled()
    }
}
