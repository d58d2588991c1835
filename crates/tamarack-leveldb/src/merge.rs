//! Merges sorted sources into the newest version of every key, in the order of keys.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::context::Context;
use crate::error::Result;
use crate::keys::{Kind, Trailer};
use crate::sorter::SortedRun;
use crate::table_run::TableRun;

/// A sorted source of operations.
#[derive(Debug)]
pub enum Cursor {
    /// Tables that follow one another.
    Tables(Box<TableRun>),
    /// Operations of logs.
    Sorted(SortedRun),
}

impl Cursor {
    fn advance(&mut self, context: &mut Context) -> Result<bool> {
        match self {
            Self::Tables(run) => run.advance(context),
            Self::Sorted(run) => run.advance(),
        }
    }

    fn user_key(&self) -> &[u8] {
        match self {
            Self::Tables(run) => run.user_key(),
            Self::Sorted(run) => run.user_key(),
        }
    }

    fn trailer(&self) -> Trailer {
        match self {
            Self::Tables(run) => run.trailer(),
            Self::Sorted(run) => run.trailer(),
        }
    }

    fn value(&self) -> &[u8] {
        match self {
            Self::Tables(run) => run.value(),
            Self::Sorted(run) => run.value(),
        }
    }
}

/// A cursor that stands at an operation. The greatest is what comes first: the least key, and of equal ones the newest.
#[derive(Debug)]
struct Standing(Cursor);

impl Ord for Standing {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_key = other.0.user_key().cmp(self.0.user_key());
        by_key.then_with(|| self.0.trailer().cmp(&other.0.trailer()))
    }
}

impl PartialOrd for Standing {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Standing {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Standing {}

/// The merged sources.
#[derive(Debug, Default)]
pub struct Merge {
    heap: BinaryHeap<Standing>,
    key: Vec<u8>,
    value: Vec<u8>,
    has_key: bool,
}

impl Merge {
    /// Adds a source. All have to be added before the first step.
    ///
    /// # Errors
    /// Those of reading its first operation.
    pub fn add(&mut self, mut cursor: Cursor, context: &mut Context) -> Result<()> {
        if cursor.advance(context)? {
            self.heap.push(Standing(cursor));
        }
        Ok(())
    }

    /// Goes to the next key that has a value; `false` behind the last one.
    ///
    /// # Errors
    /// Those of reading the sources.
    pub fn advance(&mut self, context: &mut Context) -> Result<bool> {
        while let Some(mut first) = self.heap.peek_mut() {
            let cursor = &first.0;
            let mut has_value = false;
            if self.has_key && cursor.user_key() == self.key {
                context.counts.older_versions += 1;
            } else {
                self.has_key = true;
                self.key.clear();
                self.key.extend_from_slice(cursor.user_key());
                match cursor.trailer().kind() {
                    Kind::Deletion => context.counts.deletions += 1,
                    Kind::Value => {
                        has_value = true;
                        self.value.clear();
                        self.value.extend_from_slice(cursor.value());
                    }
                }
            }
            if !first.0.advance(context)? {
                PeekMut::pop(first);
            }
            if has_value {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Its value.
    pub fn value(&self) -> &[u8] {
        &self.value
    }
}

/// Puts tables into as few sequences as possible in which one follows the other.
pub fn arrange<T>(mut tables: Vec<T>, range: impl Fn(&T) -> (&[u8], &[u8])) -> Vec<Vec<T>> {
    tables.sort_by(|one, other| range(one).cmp(&range(other)));
    // The sequence whose last table ends first is where the next table fits if it fits anywhere.
    let mut ends: BinaryHeap<Reverse<(Vec<u8>, usize)>> = BinaryHeap::new();
    let mut runs: Vec<Vec<T>> = Vec::new();
    for table in tables {
        let (smallest, largest) = range(&table);
        let largest = largest.to_vec();
        let place = match ends.peek_mut() {
            Some(first) if first.0.0.as_slice() < smallest => PeekMut::pop(first).0.1,
            _ => {
                runs.push(Vec::new());
                runs.len() - 1
            }
        };
        ends.push(Reverse((largest, place)));
        runs[place].push(table);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_do_not_overlap_are_one_sequence() {
        let tables = vec![("c", "d"), ("a", "b"), ("e", "e"), ("a", "c"), ("b", "f"), ("d", "e"), ("a", "a")];
        let runs = arrange(tables, |(smallest, largest)| (smallest.as_bytes(), largest.as_bytes()));
        assert_eq!(runs.len(), 3, "so many overlap at `a`: {runs:?}");
        for run in &runs {
            assert!(run.is_sorted_by(|one, other| one.1 < other.0), "{run:?}");
        }
        assert_eq!(runs.concat().len(), 7);
    }
}
