//! How the keys of a store came into it: by which fill, and in which order.

use crate::workload::Workload;

/// A fill that is done.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Which one.
    pub workload: Workload,
    /// How many operations it had.
    pub operations: u64,
    /// Among how many threads they were divided, to each a range.
    pub threads: u64,
}

impl Load {
    /// The operation before whose end so many others had been done after it: 0 is the last one. All threads count as equally
    /// fast.
    pub fn operation_of_age(&self, age: u64) -> u64 {
        let part = part(self.operations, self.threads - 1 - age % self.threads, self.threads);
        // Parts differ by one: of the oldest, a shorter one has none more than that with which it began.
        (part.end - 1).saturating_sub(age / self.threads).max(part.start)
    }
}

/// The share of `count` things that belongs to one of `parts`.
pub fn part(count: u64, index: u64, parts: u64) -> std::ops::Range<u64> {
    let at = |index: u64| (u128::from(count) * u128::from(index) / u128::from(parts)) as u64;
    at(index)..at(index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        for (count, parts) in [(10, 3), (2, 5), (0, 4), (u64::MAX, 7)] {
            let mut next = 0;
            for index in 0..parts {
                let range = part(count, index, parts);
                assert_eq!(range.start, next);
                next = range.end;
            }
            assert_eq!(next, count);
        }
    }

    #[test]
    fn ages_go_backward_in_every_thread() {
        let operations = |operations, threads| {
            let load = Load { workload: Workload::Fillseq, operations, threads };
            (0..operations).map(|age| load.operation_of_age(age)).collect::<Vec<_>>()
        };
        assert_eq!(operations(5, 1), [4, 3, 2, 1, 0]);
        assert_eq!(operations(6, 2), [5, 2, 4, 1, 3, 0]);
        // Of 3, 3 and 4 operations.
        assert_eq!(operations(10, 3), [9, 5, 2, 8, 4, 1, 7, 3, 0, 6]);
    }
}
