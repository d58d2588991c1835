//! What a walk has had loaded, beside what it wanted of that.
//!
//! Loading reads whole large pages, and a walk is expected to want the rest of them later. If it does not, much is loaded for little; and then it
//! ends. If they are not in memory any more by then, more lies ahead of the walk than there is memory for.

use std::collections::VecDeque;

use super::piece::Place;
use crate::base::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

/// So much may be loaded whatever is wanted of it: a walk through eight sorted runs begins with two large pages in each, and turns.
const FREE_BYTES: u64 = 64 << 20;
/// Beyond that, at most so many times what was wanted.
const BYTES_PER_WANTED: u64 = 2;
/// A walk that has wanted so much has come a long way.
const LONG_BYTES: u64 = 192 << 20;
/// What was loaded is remembered for so many large pages: several times what lies ahead of a walk.
const REMEMBERED_MAX: usize = 128;
/// Where memory is scarce the last so many stay in memory: about what a walk through three sorted runs is in, and what is on its way for it.
const KEPT_MAX: usize = 12;
/// Of so many that are loaded ...
const COUNTED_PAGES: u64 = 512;
/// ... so many may be there once more: readers beside the walk, or two of its own threads at the same time, may be why.
const AGAIN_MAX: u64 = 4;

/// What one walk has had loaded.
#[derive(Debug, Default)]
pub struct Loads {
    wanted: AtomicU64,
    loaded: AtomicU64,
    memory_is_scarce: AtomicBool,
    /// Held for a look at it.
    last: Mutex<Last>,
}

/// What was loaded last.
#[derive(Debug, Default)]
struct Last {
    /// The oldest first.
    places: VecDeque<Place>,
    /// How many were loaded since they were counted anew, how many of them once more, and how many of those counted before.
    counted: u64,
    again: u64,
    again_before: u64,
}

impl Last {
    /// Takes one in. Returns whether many are loaded once more.
    fn push(&mut self, place: Place) -> bool {
        if let Some(at) = self.places.iter().position(|there| *there == place) {
            self.places.remove(at);
            self.again += 1;
        }
        self.places.push_back(place);
        self.counted += 1;
        if self.counted == COUNTED_PAGES {
            (self.counted, self.again, self.again_before) = (0, 0, self.again);
        }
        self.again.max(self.again_before) > AGAIN_MAX
    }
}

/// How much should be on its way for a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// What was loaded is gone before it is wanted.
    MemoryIsScarce,
    /// It may end soon.
    Usual,
    /// It has come a long way, and there was memory for it.
    Long,
}

impl Loads {
    /// Whether more is to be loaded.
    pub fn are_worth_it(&self) -> bool {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let most = FREE_BYTES.saturating_add(BYTES_PER_WANTED.saturating_mul(wanted));
        self.loaded.load(Ordering::Relaxed) <= most
    }

    /// So many bytes were wanted of what is in memory now.
    pub fn note_wanted(&self, bytes: u64) {
        self.wanted.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many bytes had to be read for the large page at `place`. Returns those that should make room for what comes, if memory is scarce: the
    /// walk has gone over them.
    pub fn note_loaded(&self, place: Place, bytes: u64) -> Vec<Place> {
        self.loaded.fetch_add(bytes, Ordering::Relaxed);
        let mut last = self.last.lock();
        let is_scarce = last.push(place);
        self.memory_is_scarce.store(is_scarce, Ordering::Relaxed);
        let more = last.places.len().saturating_sub(if is_scarce { KEPT_MAX } else { REMEMBERED_MAX });
        let oldest = last.places.drain(..more);
        if is_scarce { oldest.collect() } else { Vec::new() }
    }

    /// How much should lie ahead of the walk.
    pub fn pace(&self) -> Pace {
        if self.memory_is_scarce.load(Ordering::Relaxed) {
            Pace::MemoryIsScarce
        } else if self.wanted.load(Ordering::Relaxed) > LONG_BYTES {
            Pace::Long
        } else {
            Pace::Usual
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::base::ids::SegmentId;

    const MIB: u64 = 1 << 20;

    fn place(number: u64) -> Place {
        Place::of(SegmentId(1 + number as u32 / 16), number % 16 * 2 * MIB)
    }

    /// One wanted a piece of a segment, and it was read for that. Returns what is to be given up.
    fn note(loads: &Loads, number: u64, wanted: u64, loaded: u64) -> Vec<Place> {
        loads.note_wanted(wanted);
        if loaded > 0 { loads.note_loaded(place(number), loaded) } else { Vec::new() }
    }

    #[test]
    fn a_walk_that_wants_what_it_loads_goes_on() {
        let loads = Loads::default();
        for step in 0..1000 {
            assert!(loads.are_worth_it(), "{step}");
            // Three sorted runs: of three windows one finds what the others have loaded.
            note(&loads, step, 2 * MIB, if step % 3 == 0 { 0 } else { 4 * MIB });
        }
    }

    #[test]
    fn one_that_wants_little_of_it_does_not() {
        let loads = Loads::default();
        let steps = (0..100).take_while(|&step| {
            note(&loads, step, MIB / 8, 4 * MIB);
            loads.are_worth_it()
        });
        assert_eq!(steps.count(), 17);
        note(&loads, 0, 16 * MIB, 0);
        assert!(loads.are_worth_it(), "what was loaded was wanted in the end");
    }

    #[test]
    fn a_long_walk_has_more_on_its_way_unless_what_was_loaded_goes() {
        let loads = Loads::default();
        let mut step = 0;
        while loads.pace() == Pace::Usual {
            assert_eq!(note(&loads, step, 2 * MIB, 2 * MIB), []);
            step += 1;
        }
        assert_eq!((step, loads.pace()), (97, Pace::Long));
        // Each piece is wanted by two windows, and now and then the second has to read it again: not often.
        for _ in 0..2 * COUNTED_PAGES {
            note(&loads, step, 2 * MIB, 2 * MIB);
            if step.is_multiple_of(COUNTED_PAGES / 3) {
                note(&loads, step, 2 * MIB, 2 * MIB);
            }
            step += 1;
            assert_eq!(loads.pace(), Pace::Long);
        }
        // And then it always has.
        let mut given_up = Vec::new();
        let begin = step;
        while loads.pace() == Pace::Long {
            assert_eq!(given_up, []);
            note(&loads, step, 2 * MIB, 2 * MIB);
            given_up = note(&loads, step, 2 * MIB, 2 * MIB);
            step += 1;
        }
        assert!(step <= begin + AGAIN_MAX + 1, "{}", step - begin);
        assert_eq!(loads.pace(), Pace::MemoryIsScarce);
        let kept = step - KEPT_MAX as u64;
        let remembered = step - REMEMBERED_MAX as u64;
        assert_eq!(given_up, (remembered..kept).map(place).collect::<Vec<_>>(), "all but the last");
        assert_eq!(note(&loads, step - 1, 2 * MIB, 2 * MIB), [], "it is one of the last");
        assert_eq!(note(&loads, step, 2 * MIB, 2 * MIB), [place(kept)]);
        // Once nothing has been gone for long, there is memory again.
        let begin = step;
        while loads.pace() == Pace::MemoryIsScarce {
            step += 1;
            note(&loads, step, 2 * MIB, 2 * MIB);
        }
        assert!((COUNTED_PAGES..=2 * COUNTED_PAGES).contains(&(step - begin)), "{}", step - begin);
    }

    #[test]
    fn what_was_loaded_long_ago_may_be_gone() {
        let loads = Loads::default();
        for step in 0..10 * (REMEMBERED_MAX as u64 + 1) {
            assert_eq!(note(&loads, step % (REMEMBERED_MAX as u64 + 1), 2 * MIB, 2 * MIB), []);
        }
        assert_eq!(loads.pace(), Pace::Long);
    }
}
