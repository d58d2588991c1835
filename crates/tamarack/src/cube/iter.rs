//! Iterators: one consistent view of a range, in both directions, with values read ahead.
//!
//! An iterator holds the memtables and tables it began with, so its view never changes and nothing it can reach
//! is removed. It walks over index entries in *windows*: the first steps take one entry each; once the caller has
//! gone on in one direction for a few steps the window doubles, from 2 entries to 64, within a byte budget; and
//! the values of a window are fetched together (WiscKey, section 3.2). Only a call of `value` fetches: a caller
//! that looks at keys alone causes no reads of the log.

use std::collections::VecDeque;

use super::Cube;
use super::readers::HeldState;
use super::visible::{Entry, Payload, VisibleCursor};
use crate::base::error::Result;
use crate::base::sync::Arc;
use crate::vlog::fetch::Wanted;

/// Steps in one direction before values are read ahead.
const STEPS_BEFORE_AHEAD: u32 = 2;
/// Entries of the largest window.
const WINDOW_ENTRIES_MAX: usize = 64;
/// Bytes of values that a window may hold: the next entry that would go beyond ends it.
const WINDOW_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The direction of the present window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// One entry of the window.
#[derive(Debug)]
struct Item {
    entry: Entry,
    value: Option<Result<Vec<u8>>>,
}

/// A walk over a range.
pub struct CubeIter {
    cube: Arc<Cube>,
    /// Keeps every memtable, table and segment that the entries come from.
    state: HeldState,
    cursor: VisibleCursor,
    verify: bool,
    direction: Direction,
    /// The present entry and those read ahead in its direction.
    window: VecDeque<Item>,
    window_entries: usize,
    steps: u32,
    /// Whether the cursor has given the last entry in this direction.
    exhausted: bool,
}

impl CubeIter {
    pub(super) fn new(cube: Arc<Cube>, state: HeldState, cursor: VisibleCursor, verify: bool) -> Self {
        Self {
            cube,
            state,
            cursor,
            verify,
            direction: Direction::Forward,
            window: VecDeque::new(),
            window_entries: 1,
            steps: 0,
            exhausted: true,
        }
    }

    /// Whether it stands on an entry.
    pub fn valid(&self) -> bool {
        !self.window.is_empty()
    }

    /// Goes to the first entry at or after `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.place(Direction::Forward, |cursor| cursor.first_from(Some(key)))
    }

    /// Goes to the first entry.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.place(Direction::Forward, |cursor| cursor.first_from(None))
    }

    /// Goes to the last entry.
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.place(Direction::Backward, |cursor| cursor.last_before(None))
    }

    /// Goes to the next entry; only while valid.
    pub fn next(&mut self) -> Result<()> {
        self.step(Direction::Forward)
    }

    /// Goes to the previous entry; only while valid.
    pub fn prev(&mut self) -> Result<()> {
        self.step(Direction::Backward)
    }

    /// The present key; only while valid.
    pub fn key(&self) -> &[u8] {
        &self.window.front().expect("an iterator has a key only while it is valid").entry.key
    }

    /// The present value; only while valid. May read from the device.
    pub fn value(&mut self) -> Result<&[u8]> {
        let front = self.window.front().expect("an iterator has a value only while it is valid");
        if matches!(front.entry.payload, Payload::Pointer(_)) && front.value.is_none() {
            self.fetch();
        }
        let front = self.window.front().expect("fetching removes nothing");
        match (&front.entry.payload, &front.value) {
            (Payload::Inline(value), _) => Ok(value),
            (Payload::Pointer(_), Some(Ok(value))) => Ok(value),
            (Payload::Pointer(_), Some(Err(error))) => Err(error.clone()),
            (Payload::Pointer(_), None) => unreachable!("fetched above"),
        }
    }

    /// Starts anew where `seek` puts the cursor.
    fn place(
        &mut self,
        direction: Direction,
        seek: impl FnOnce(&mut VisibleCursor) -> Result<Option<Entry>>,
    ) -> Result<()> {
        self.window.clear();
        self.direction = direction;
        self.steps = 0;
        self.window_entries = 1;
        self.exhausted = true;
        let first = seek(&mut self.cursor)?;
        self.exhausted = first.is_none();
        self.window.extend(first.map(|entry| Item { entry, value: None }));
        Ok(())
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        if direction != self.direction {
            return self.turn(direction);
        }
        self.window.pop_front();
        self.steps = self.steps.saturating_add(1);
        if self.window.is_empty() && !self.exhausted {
            if self.steps > STEPS_BEFORE_AHEAD {
                self.window_entries = (self.window_entries * 2).min(WINDOW_ENTRIES_MAX);
            }
            self.fill().inspect_err(|_| {
                self.window.clear();
                self.exhausted = true;
            })?;
        }
        Ok(())
    }

    /// Goes on in the other direction: what was read ahead is on the wrong side.
    fn turn(&mut self, direction: Direction) -> Result<()> {
        let key = std::mem::take(&mut self.window.front_mut().expect("only while valid").entry.key);
        match direction {
            Direction::Backward => self.place(direction, |cursor| cursor.last_before(Some(&key))),
            Direction::Forward => {
                self.place(direction, |cursor| cursor.first_from(Some(&key)))?;
                self.step(direction)
            }
        }
    }

    /// Reads the next window of entries.
    fn fill(&mut self) -> Result<()> {
        let mut bytes = 0;
        while self.window.len() < self.window_entries && bytes < WINDOW_BYTES_MAX {
            let entry = match self.direction {
                Direction::Forward => self.cursor.next_entry()?,
                Direction::Backward => self.cursor.previous_entry()?,
            };
            let Some(entry) = entry else {
                self.exhausted = true;
                return Ok(());
            };
            bytes += match &entry.payload {
                Payload::Inline(value) => value.len() as u64,
                Payload::Pointer(pointer) => u64::from(pointer.stored_len),
            };
            self.window.push_back(Item { entry, value: None });
        }
        Ok(())
    }

    /// Fetches every value of the window.
    fn fetch(&mut self) {
        let mut wanted = Vec::with_capacity(self.window.len());
        for (place, item) in self.window.iter_mut().enumerate() {
            let Payload::Pointer(pointer) = item.entry.payload else { continue };
            match self.cube.present_place(&self.state.version, pointer) {
                Ok(pointer) => wanted.push(Wanted::new(place, pointer, &item.entry.key)),
                Err(error) => item.value = Some(Err(error)),
            }
        }
        for want in self.cube.fetch(wanted, self.verify) {
            self.window[want.place].value = Some(want.value);
        }
    }
}
