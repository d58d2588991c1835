//! Where the latest value of each key lies: its number among all values that were written.

use std::ops::{Bound, Range};
use std::sync::atomic::{AtomicU32, Ordering};

use tamarack_bench::{KeyRange, Plan, Workload};

/// The place of each key by the number that its text is. Several threads may use it at once; a key that two of them write at
/// the same time has the value of either.
pub struct Places {
    /// Keys that the plan fills.
    num: u64,
    /// One more than the place; zero where there is no value.
    places: Vec<AtomicU32>,
}

impl Places {
    /// Without a value.
    pub fn new(plan: &Plan, workloads: &[Workload]) -> Self {
        let keys = plan.keys_max(workloads);
        Self { num: plan.num, places: (0..keys).map(|_| AtomicU32::new(0)).collect() }
    }

    /// The place of a key's value, if it has one.
    pub fn get(&self, key: &[u8]) -> Option<u64> {
        self.of(key)?.load(Ordering::Acquire).checked_sub(1).map(u64::from)
    }

    /// The numbers of the keys from this one on that have values, in their order, and the places of these.
    pub fn from(&self, key: &[u8]) -> impl Iterator<Item = (usize, u64)> {
        let first = number(key).and_then(|number| usize::try_from(number).ok()).unwrap_or(self.places.len());
        let places = self.places.iter().enumerate().skip(first);
        places.filter_map(|(number, place)| {
            Some((number, place.load(Ordering::Acquire).checked_sub(1)?.into()))
        })
    }

    /// Notes that the value of a key was written.
    ///
    /// # Errors
    /// If there is no room for such a key, or such a place.
    pub fn set(&self, key: &[u8], place: u64) -> Result<(), String> {
        let unknown = || format!("key {} is no number below {}", key.escape_ascii(), self.places.len());
        let of_key = self.of(key).ok_or_else(unknown)?;
        let noted =
            u32::try_from(place + 1).map_err(|_| "more values than four bytes can count".to_owned())?;
        of_key.store(noted, Ordering::Release);
        Ok(())
    }

    /// Notes that a key has no value.
    pub fn forget(&self, key: &[u8]) {
        if let Some(place) = self.of(key) {
            place.store(0, Ordering::Release);
        }
    }

    fn of(&self, key: &[u8]) -> Option<&AtomicU32> {
        self.places.get(usize::try_from(number(key)?).ok()?)
    }

    /// The part of `values` places that is to them as `range` is to the keys that the plan fills.
    pub fn part(&self, range: KeyRange<'_>, values: u64) -> Range<u64> {
        let place = |bound: Bound<&[u8]>| {
            let (Bound::Included(key) | Bound::Excluded(key)) = bound else { return None };
            let place = u128::from(number(key)?) * u128::from(values) / u128::from(self.num);
            Some(u64::try_from(place).unwrap_or(values).min(values))
        };
        let (start, end) = (place(range.0).unwrap_or(0), place(range.1).unwrap_or(values));
        start..end.max(start)
    }
}

/// The number that a key's text is.
fn number(key: &[u8]) -> Option<u64> {
    key.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}
