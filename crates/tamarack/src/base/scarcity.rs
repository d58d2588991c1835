//! Whether the system's cache of files has most of what is read lately, or there is not memory enough.
//!
//! Some reads note whether they found their bytes in memory or had to wait for the device. While most find them, memory is plentiful, and a
//! copy of one's own displaces nothing. Where more than one of nine has waited for a while, memory counts as scarce, for what is held twice then
//! is at the expense of something else. It does so, too, until what is asked for was read for the first time.

use super::sync::{AtomicU32, Ordering};

/// A read that waits weighs as much as so many that do not.
const WAIT_WEIGHT: u32 = 8;
/// The level from which on memory is scarce: by so many waits, weighed, outnumber reads that found something ...
const SCARCE: u32 = 256;
/// ... and beyond twice of it nothing is noted, so that it does not take for ever to forget.
const LEVEL_MAX: u32 = 2 * SCARCE;
/// Something has been found in memory. Below this level nothing has: maybe the system does not tell.
const KNOWN: u32 = 1;

/// What recent reads say of it. An estimate: notes of reads that run side by side may be lost.
#[derive(Debug, Default)]
pub struct Scarcity {
    level: AtomicU32,
}

impl Scarcity {
    /// A read has found its bytes in memory, or else has to wait.
    #[inline]
    pub fn note(&self, found: bool) {
        let before = self.level.load(Ordering::Relaxed);
        let after = match found {
            true => before.saturating_sub(1).max(KNOWN),
            false if before < KNOWN => before,
            false => (before + WAIT_WEIGHT).min(LEVEL_MAX),
        };
        // Where nothing changes any more, the processors do not take the line from each other.
        if after != before {
            self.level.store(after, Ordering::Relaxed);
        }
    }

    /// Whether memory is scarce.
    #[inline]
    pub fn is_high(&self) -> bool {
        self.level.load(Ordering::Relaxed) >= SCARCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(scarcity: &Scarcity, reads: u32, one_waits_of: u32) {
        (0..reads).for_each(|read| scarcity.note(!read.is_multiple_of(one_waits_of)));
    }

    #[test]
    fn it_follows_what_most_reads_find() {
        let scarcity = Scarcity::default();
        noted(&scarcity, 100_000, 12);
        assert!(!scarcity.is_high(), "few wait");
        noted(&scarcity, 10_000, 6);
        assert!(scarcity.is_high(), "many do");
        noted(&scarcity, 100, 20);
        assert!(scarcity.is_high(), "that is too soon");
        noted(&scarcity, 10_000, 20);
        assert!(!scarcity.is_high());
    }

    #[test]
    fn where_nothing_was_ever_found_the_system_may_not_tell() {
        let scarcity = Scarcity::default();
        noted(&scarcity, 10_000, 1);
        assert!(!scarcity.is_high());
        scarcity.note(true);
        noted(&scarcity, 300, 1);
        assert!(scarcity.is_high());
    }
}
