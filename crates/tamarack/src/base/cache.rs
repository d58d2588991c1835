//! The cache that the engine uses, and under `--cfg shuttle` a stand-in for it.
//!
//! Ordinary builds get `quick_cache`. It lets a thread wait, by means of its own, for another that loads the same entry,
//! and it spreads entries by a hash with a random seed; neither is for a world in which every wait and every choice is
//! shuttle's. The stand-in lets each thread load for itself, and forgets what came first.

pub use imp::Cache;
pub use quick_cache::Weighter;

#[cfg(not(shuttle))]
mod imp {
    pub use quick_cache::sync::Cache;
}

#[cfg(shuttle)]
mod imp {
    use std::collections::VecDeque;

    use quick_cache::{UnitWeighter, Weighter};

    use crate::base::sync::{PlainMutex, interleave};

    /// Entries in the order in which they came, up to a weight.
    #[derive(Debug)]
    pub struct Cache<K, V, W = UnitWeighter> {
        entries: PlainMutex<VecDeque<(K, V)>>,
        weight_max: PlainMutex<u64>,
        weighter: W,
    }

    impl<K: Eq + Clone, V: Clone> Cache<K, V> {
        /// A cache of so many entries.
        pub fn new(entries_max: usize) -> Self {
            Self::with_weighter(entries_max, entries_max as u64, UnitWeighter)
        }
    }

    impl<K: Eq + Clone, V: Clone, W: Weighter<K, V>> Cache<K, V, W> {
        /// A cache of so much weight.
        pub fn with_weighter(_entries: usize, weight_max: u64, weighter: W) -> Self {
            Self { entries: PlainMutex::default(), weight_max: PlainMutex::new(weight_max), weighter }
        }

        /// The entry of `key`, if there is one.
        pub fn peek(&self, key: &K) -> Option<V> {
            interleave();
            let entries = self.entries.lock();
            entries.iter().find(|(there, _)| there == key).map(|(_, value)| value.clone())
        }

        /// The same: nothing here knows what was used.
        pub fn get(&self, key: &K) -> Option<V> {
            self.peek(key)
        }

        /// The entry of `key`, loaded if there is none.
        pub fn get_or_insert_with<E>(&self, key: &K, load: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
            if let Some(value) = self.peek(key) {
                return Ok(value);
            }
            let value = load()?;
            self.insert(key.clone(), value.clone());
            Ok(value)
        }

        /// Adds an entry.
        pub fn insert(&self, key: K, value: V) {
            interleave();
            let mut entries = self.entries.lock();
            let at = entries.iter().position(|(there, _)| *there == key);
            let replaced = at.and_then(|at| entries.remove(at));
            entries.push_back((key, value));
            drop(entries);
            drop(replaced);
            self.shrink();
        }

        /// From now on it is for so much weight.
        pub fn set_capacity(&self, weight_max: u64) {
            interleave();
            *self.weight_max.lock() = weight_max;
            self.shrink();
        }

        fn shrink(&self) {
            let (mut gone, weight_max) = (Vec::new(), *self.weight_max.lock());
            let mut entries = self.entries.lock();
            while self.weight_of(&entries) > weight_max {
                gone.extend(entries.pop_front());
            }
            // Dropping an entry may do anything, so nothing is locked by then.
            drop(entries);
        }

        /// Removes an entry.
        pub fn remove(&self, key: &K) -> Option<(K, V)> {
            interleave();
            let mut entries = self.entries.lock();
            let at = entries.iter().position(|(there, _)| there == key);
            at.and_then(|at| entries.remove(at))
        }

        /// How many entries there are.
        pub fn len(&self) -> usize {
            self.entries.lock().len()
        }

        /// The weight of all entries.
        pub fn weight(&self) -> u64 {
            self.weight_of(&self.entries.lock())
        }

        /// All entries.
        pub fn iter(&self) -> impl Iterator<Item = (K, V)> {
            self.entries.lock().iter().cloned().collect::<Vec<_>>().into_iter()
        }

        fn weight_of(&self, entries: &VecDeque<(K, V)>) -> u64 {
            entries.iter().map(|(key, value)| self.weighter.weight(key, value)).sum()
        }
    }
}
