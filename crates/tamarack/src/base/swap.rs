//! Pointers that are read without a lock and replaced as a whole.
//!
//! Ordinary builds get `arc_swap`; built with `--cfg shuttle` each access is also a point at which another thread may
//! run first; built with `--cfg loom` a stand-in promises no more than `arc_swap` does, which loom cannot look into: whoever
//! loads a value sees what was done before it was stored, and may be given an older value than the newest.

pub use arc_swap::{ArcSwapOption, Guard};
pub use imp::ArcSwap;

#[cfg(not(any(shuttle, loom)))]
mod imp {
    pub use arc_swap::ArcSwap;
}

#[cfg(shuttle)]
mod imp {
    use arc_swap::Guard;

    use crate::base::sync::{Arc, interleave};

    /// An `arc_swap` that shuttle knows of.
    #[derive(Debug)]
    pub struct ArcSwap<T>(arc_swap::ArcSwap<T>);

    impl<T> ArcSwap<T> {
        /// A pointer to `value`.
        pub fn from_pointee(value: T) -> Self {
            Self(arc_swap::ArcSwap::from_pointee(value))
        }

        /// What it points to, for a short look.
        pub fn load(&self) -> Guard<Arc<T>> {
            interleave();
            self.0.load()
        }

        /// What it points to, to keep.
        pub fn load_full(&self) -> Arc<T> {
            interleave();
            self.0.load_full()
        }

        /// Points to `value` from now on.
        pub fn store(&self, value: Arc<T>) {
            interleave();
            // Dropping the old value may do anything; it must not be in the midst of the replacement.
            drop(self.0.swap(value));
        }
    }
}

#[cfg(loom)]
mod imp {
    use arc_swap::{DefaultStrategy, Guard};

    use crate::base::sync::{Arc, AtomicUsize, Ordering, PlainMutex};

    /// All values that it ever had, and the place of the present one, which loom knows of.
    #[derive(Debug)]
    pub struct ArcSwap<T> {
        values: PlainMutex<Vec<Arc<T>>>,
        present: AtomicUsize,
    }

    impl<T> ArcSwap<T> {
        /// A pointer to `value`.
        pub fn from_pointee(value: T) -> Self {
            Self { values: PlainMutex::new(vec![Arc::new(value)]), present: AtomicUsize::new(0) }
        }

        /// What it points to, for a short look.
        pub fn load(&self) -> Guard<Arc<T>> {
            Guard::<_, DefaultStrategy>::from_inner(self.load_full())
        }

        /// What it points to, to keep.
        pub fn load_full(&self) -> Arc<T> {
            let place = self.present.load(Ordering::Acquire);
            Arc::clone(&self.values.lock()[place])
        }

        /// Points to `value` from now on.
        pub fn store(&self, value: Arc<T>) {
            let place = {
                let mut values = self.values.lock();
                values.push(value);
                values.len() - 1
            };
            self.present.swap(place, Ordering::AcqRel);
        }
    }
}
