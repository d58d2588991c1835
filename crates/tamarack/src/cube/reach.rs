//! How far walks usually go: what the first window of the next one has in it.
//!
//! Few say in advance how many entries a scan will want. If it is given one at first and then ever more, each window waits for the
//! device by itself; if it is given many, those that it does not want were read in vain. So the cube remembers how many entries three
//! of four walks reached that asked for values, and the next walk begins with so many.

use crate::base::sync::{AtomicU32, Ordering};

/// The most that a first window has.
const ENTRIES_MAX: u32 = 64;
/// An octave has so many steps.
const OCTAVE: u32 = 256;
/// A walk that went further moves the estimate up by this ...
const UP: u32 = OCTAVE / 16;
/// ... and one that did not moves it down by three times as much: so it comes to rest where three go further for each that does not.
const DOWN: u32 = 3 * UP;

/// An estimate, of which no writer is waited for.
#[derive(Debug, Default)]
pub struct Reach {
    /// The binary logarithm of a number of entries, in steps.
    steps: AtomicU32,
}

impl Reach {
    /// How many entries a walk may be expected to want, at least 1.
    pub fn usual(&self) -> usize {
        let octaves = f64::from(self.steps.load(Ordering::Relaxed)) / f64::from(OCTAVE);
        octaves.exp2() as usize
    }

    /// Learns of a walk that came to so many.
    pub fn note(&self, entries: u32) {
        let (usual, steps) = (self.usual() as u32, self.steps.load(Ordering::Relaxed));
        let next = match entries.cmp(&usual) {
            std::cmp::Ordering::Greater => (steps + UP).min(ENTRIES_MAX.ilog2() * OCTAVE),
            std::cmp::Ordering::Equal => return,
            std::cmp::Ordering::Less => steps.saturating_sub(DOWN),
        };
        self.steps.store(next, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn after(walks: impl IntoIterator<Item = u32>) -> usize {
        let reach = Reach::default();
        walks.into_iter().for_each(|entries| reach.note(entries));
        reach.usual()
    }

    #[test]
    fn it_is_what_three_of_four_walks_reach() {
        assert_eq!(after([]), 1);
        assert_eq!(after([10; 100]), 10);
        assert_eq!(after([1_000_000; 200]), 64, "no first window is larger");
        assert_eq!(after([vec![1000; 200], vec![1; 40]].concat()), 1);
        // 37 is prime to 100: each number as often, in no order.
        let uniform = after((0..1000).map(|number| 1 + number * 37 % 100));
        assert!((15..40).contains(&uniform), "a quarter of 100, not {uniform}");
        let few_long = after((0..1000).map(|number| if number % 3 == 0 { 1000 } else { 2 }));
        assert!(few_long <= 3, "most are short, not {few_long}");
    }
}
