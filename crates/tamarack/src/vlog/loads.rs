//! What a walk has had loaded, beside what it wanted of that.
//!
//! Loading reads whole large pages, and a walk is expected to want the rest of them later. If it does not, or they are not in memory any more by then,
//! much is loaded for little; and then it ends.

use crate::base::sync::{AtomicU64, Ordering};

/// So much may be loaded whatever is wanted of it: a walk through eight sorted runs begins with two large pages in each, and turns.
const FREE_BYTES: u64 = 64 << 20;
/// Beyond that, at most so many times what was wanted.
const BYTES_PER_WANTED: u64 = 2;

/// What one walk has had loaded.
#[derive(Debug, Default)]
pub struct Loads {
    wanted: AtomicU64,
    loaded: AtomicU64,
}

impl Loads {
    /// Whether more is to be loaded.
    pub fn are_worth_it(&self) -> bool {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let most = FREE_BYTES.saturating_add(BYTES_PER_WANTED.saturating_mul(wanted));
        self.loaded.load(Ordering::Relaxed) <= most
    }

    /// So many bytes were wanted of what is in memory now, and so many had to be read for that.
    pub fn note(&self, wanted: u64, loaded: u64) {
        self.wanted.fetch_add(wanted, Ordering::Relaxed);
        self.loaded.fetch_add(loaded, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_walk_that_wants_what_it_loads_goes_on() {
        let loads = Loads::default();
        for step in 0..1000 {
            assert!(loads.are_worth_it(), "{step}");
            // Three sorted runs: of three windows one finds what the others have loaded.
            loads.note(2 * MIB, if step % 3 == 0 { 0 } else { 4 * MIB });
        }
    }

    #[test]
    fn one_that_wants_little_of_it_does_not() {
        let loads = Loads::default();
        let steps = (0..100).take_while(|_| {
            loads.note(MIB / 8, 4 * MIB);
            loads.are_worth_it()
        });
        assert_eq!(steps.count(), 17);
        loads.note(16 * MIB, 0);
        assert!(loads.are_worth_it(), "what was loaded was wanted in the end");
    }
}
