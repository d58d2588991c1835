//! What is measured: an ordered store of keys and values.

use std::ops::Bound;
use std::time::Duration;

use crate::report::{Collected, Written};

/// A change that is part of a batch.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// Sets a key.
    Put(&'a [u8], &'a [u8]),
    /// Removes a key.
    Delete(&'a [u8]),
}

/// The keys that a walk may show.
pub type KeyRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// A store. Its calls block; several threads make them at the same time.
///
/// All stores in a comparison promise the same: a write that has returned survives the end of the process, and with
/// `sync` also a loss of power.
pub trait Store: Sync {
    /// What a call fails with.
    type Error: Send;
    /// A walk through the store.
    type Cursor<'a>: Cursor<Error = Self::Error>
    where
        Self: 'a;

    /// Sets a key.
    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), Self::Error>;

    /// Removes a key.
    fn delete(&self, key: &[u8], sync: bool) -> Result<(), Self::Error>;

    /// Makes changes, all or none.
    fn write(&self, changes: &[Change<'_>], sync: bool) -> Result<(), Self::Error>;

    /// Reads a value into `value`, in place of what is in it; returns whether there is one.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Self::Error>;

    /// Reads several values at once.
    fn multi_get(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Self::Error>;

    /// A walk through `range`, before its first entry, or behind its last one if it goes backward.
    fn walk(&self, range: KeyRange<'_>, backward: bool) -> Result<Self::Cursor<'_>, Self::Error>;

    /// The beginning of a walk of so many entries from `start` on.
    fn scan(&self, start: &[u8], entries: u64) -> Result<Self::Cursor<'_>, Self::Error> {
        let _ = entries;
        self.walk((Bound::Included(start), Bound::Unbounded), false)
    }

    /// Makes everything durable, and waits until there is no more work in the background. Returns for how long there has been none by then: a store that
    /// cannot tell is watched for a while.
    fn settle(&self) -> Result<Duration, Self::Error>;

    /// What the store says it has written so far, if it says so.
    fn written(&self) -> Option<Written>;

    /// The garbage collection of the store, if it collects when it is asked to.
    fn collector(&self) -> Option<&dyn Collector<Error = Self::Error>> {
        None
    }
}

/// Garbage collection on request. Its calls block.
pub trait Collector: Sync {
    /// What a call fails with.
    type Error;

    /// Drops entries that newer ones hide from the index, so that all values are known to be dead that are.
    fn compact(&self) -> Result<(), Self::Error>;

    /// Collects what is most worth it, if anything is.
    fn collect_once(&self) -> Result<Collected, Self::Error>;
}

/// A walk through a store in one direction.
pub trait Cursor {
    /// What a call fails with.
    type Error;

    /// Goes to the next entry; returns whether there is one.
    fn advance(&mut self) -> Result<bool, Self::Error>;

    /// The key of the entry.
    fn key(&self) -> &[u8];

    /// Its value.
    fn value(&mut self) -> Result<&[u8], Self::Error>;
}
