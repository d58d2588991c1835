//! What builds with `--cfg loom` get: loom tries every schedule, and in each every value that a load may find.
//!
//! Loom leaves out schedules that differ in nothing: it remembers the last access to each atomic, and tries another order
//! where a store follows another thread's load. Where the storing thread has loaded first, that load is the last access,
//! and the other thread's is forgotten. So each atomic here has a *turn* beside it, an atomic that every access increments
//! first: of two increments loom always tries both orders. Being relaxed, the turn orders nothing else.

pub use loom::sync::atomic::{Ordering, fence};
pub use std::sync::Arc;

pub use super::locks::{Condvar, Mutex, MutexGuard, RwLock};

/// An atomic with its turn.
macro_rules! atomic {
    ($name:ident, $value:ty) => {
        /// The atomic of loom, with a turn.
        #[derive(Debug, Default)]
        pub struct $name {
            turn: loom::sync::atomic::AtomicU64,
            value: loom::sync::atomic::$name,
        }

        #[allow(dead_code, reason = "the engine does not do everything with each type")]
        impl $name {
            /// Holds `value` at first.
            pub fn new(value: $value) -> Self {
                let value = loom::sync::atomic::$name::new(value);
                Self { turn: loom::sync::atomic::AtomicU64::new(0), value }
            }

            /// Takes the turn of an access.
            fn take_turn(&self) -> &loom::sync::atomic::$name {
                self.turn.fetch_add(1, Ordering::Relaxed);
                &self.value
            }

            /// As of `std`.
            pub fn load(&self, ordering: Ordering) -> $value {
                self.take_turn().load(ordering)
            }

            /// As of `std`.
            pub fn store(&self, value: $value, ordering: Ordering) {
                self.take_turn().store(value, ordering);
            }

            /// As of `std`.
            pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                self.take_turn().swap(value, ordering)
            }
        }
    };
}

/// What atomic numbers have in addition.
macro_rules! atomic_number {
    ($name:ident, $value:ty) => {
        atomic!($name, $value);

        #[allow(dead_code, reason = "the engine does not do everything with each type")]
        impl $name {
            /// As of `std`.
            pub fn fetch_add(&self, value: $value, ordering: Ordering) -> $value {
                self.take_turn().fetch_add(value, ordering)
            }

            /// As of `std`.
            pub fn fetch_sub(&self, value: $value, ordering: Ordering) -> $value {
                self.take_turn().fetch_sub(value, ordering)
            }

            /// As of `std`.
            pub fn fetch_max(&self, value: $value, ordering: Ordering) -> $value {
                self.take_turn().fetch_max(value, ordering)
            }

            /// As of `std`.
            pub fn fetch_min(&self, value: $value, ordering: Ordering) -> $value {
                self.take_turn().fetch_min(value, ordering)
            }

            /// As of `std`.
            pub fn fetch_or(&self, value: $value, ordering: Ordering) -> $value {
                self.take_turn().fetch_or(value, ordering)
            }

            /// As of `std`.
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.take_turn().compare_exchange(current, new, success, failure)
            }
        }
    };
}

atomic!(AtomicBool, bool);
atomic_number!(AtomicU32, u32);
atomic_number!(AtomicU64, u64);
atomic_number!(AtomicUsize, usize);

/// Nothing: few turns end by themselves, and loom takes a yield as a promise that the thread need not run before others.
pub fn spin_hint() {}

/// Nothing: what lies behind it are atomics that loom does not know. It would not try other orders of them.
pub fn interleave() {}

/// What [`zeros`] returns.
pub type Zeros<T> = Box<[T]>;

/// So many zeros.
pub fn zeros<T: Default>(len: usize) -> Zeros<T> {
    std::iter::repeat_with(T::default).take(len).collect()
}

/// Enough for others to come, or not.
pub const YIELDS_MAX: u32 = 1;

/// Under loom there is no point in spinning: park at once.
pub const SPINS_MAX: u32 = 1;

/// Tries every execution of `model` in which at most `preemptions` times a thread is interrupted where it could go on; says
/// how many those were, and returns all that they came to. `LOOM_MAX_PREEMPTIONS` permits other interruptions.
#[cfg(test)]
pub fn explore<T: Ord + Send + 'static>(name: &str, preemptions: usize, model: fn() -> T) -> Vec<T> {
    let outcomes = Arc::new(super::PlainMutex::new((0_u64, std::collections::BTreeSet::new())));
    let seen = Arc::clone(&outcomes);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 10_000;
    builder.check(move || {
        let outcome = model();
        let mut seen = seen.lock();
        seen.0 += 1;
        seen.1.insert(outcome);
    });
    let (executions, outcomes) = std::mem::take(&mut *outcomes.lock());
    println!("{name}: {executions} executions");
    outcomes.into_iter().collect()
}
