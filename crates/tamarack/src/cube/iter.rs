//! Iterators: one consistent view of a range, in both directions, with values read ahead.
//!
//! An iterator holds the memtables and tables it began with, so its view never changes and nothing it can reach
//! is removed. It walks over index entries in *windows*: the first has as many as the caller expects or most walks have reached lately
//! (`reach`), each of the following as many as there were before it. The values of a window are
//! fetched together (WiscKey, section 3.2), and only a call of `value` makes that happen: a caller that looks at keys
//! alone causes no reads of the log. While most values are asked for windows grow up to a budget of bytes, and the next
//! windows are read by other threads while the caller is busy with the present one.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::Cube;
use super::entries::Entries;
use super::readers::HeldState;
use super::sweep::Sweep;
use super::visible::VisibleCursor;
use super::window::{Shown, Source, Window};
use crate::base::error::{Error, Result};
use crate::base::memory::Taken;
use crate::base::sync::Arc;
use crate::vlog::fetch::How;
use crate::vlog::loads::Pace;
use crate::vlog::walk_pages::WalkPages;

/// Entries of the largest window of a caller that asks for few values.
const WINDOW_ENTRIES_FEW: usize = 64;
/// Entries of the largest window of one that asks for most: what small values are bounded by.
const WINDOW_ENTRIES_MAX: usize = 16 * 1024;
/// Bytes of keys and values that a window may hold: the entry that goes beyond ends it ...
const WINDOW_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// ... and those that it may hold however little memory there is.
const WINDOW_BYTES_MIN: u64 = 64 * 1024;
/// Windows that are read while the caller is busy with the one before them: while one is waited for, others are under way. So many if
/// there is memory for it: of three sorted runs, each in large pages, a window has a third of one of each.
const WINDOWS_AHEAD: u64 = 8;
/// The same for a walk that has come a long way: a virtual device may tell of all that is under way at a time.
const WINDOWS_AHEAD_LONG: u64 = 16;
/// The same where there is little memory: larger windows are better then than more of them.
const WINDOWS_AHEAD_MIN: u64 = 4;
/// What is read at a time beside those: the present window, and about as much as one in buffers between them.
const WINDOWS_BESIDE: u64 = 2;
/// Memory for values that is not in use is kept for the next windows, as much as so many take.
const WINDOWS_SPARE: u64 = 4;

/// The direction of the present window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// What the cursor has behind the windows.
#[derive(Debug)]
enum Beyond {
    Unknown,
    Nothing,
    /// An error, told to the caller when it gets there.
    Failure(Error),
}

/// A walk over a range.
pub struct CubeIter {
    /// The present entry is one of this window's.
    window: Window,
    /// Those behind it, in the order of the direction. None is empty.
    ahead: VecDeque<Window>,
    at: usize,
    cursor: VisibleCursor,
    direction: Direction,
    beyond: Beyond,
    window_entries: usize,
    /// How many entries the caller has said that it will want from where it puts the iterator ...
    told: Option<usize>,
    /// ... if it has put it there: what it will want behind a turn it has not said.
    expected: Option<usize>,
    /// How many entries were taken from there on.
    taken: usize,
    /// The memory for the values of more than a few entries, once there are any.
    memory: Option<Taken>,
    /// Steps in this direction.
    steps: u32,
    /// The entries up to the last whose value was asked for.
    reached: u32,
    /// Calls of `value` in this window.
    asked: usize,
    /// Windows and buffers for values that are not in use.
    spare_windows: Vec<Window>,
    spare_buffers: Vec<Vec<u8>>,
    /// The value of the entry in this place of the window, if it was stored by a codec.
    unpacked: (Option<usize>, Vec<u8>),
    how: How,
    /// What it has paid for in scattered reads since it began to read ahead.
    sweep: Sweep,
    /// Keeps every memtable, table and segment that the entries come from.
    state: HeldState,
    cube: Arc<Cube>,
}

impl CubeIter {
    pub(super) fn new(
        cube: Arc<Cube>,
        state: HeldState,
        cursor: VisibleCursor,
        told: Option<usize>,
        how: How,
    ) -> Self {
        Self {
            window: Window::default(),
            ahead: VecDeque::new(),
            at: 0,
            cursor,
            direction: Direction::Forward,
            beyond: Beyond::Nothing,
            window_entries: 1,
            told: told.map(|all| all.max(1)),
            expected: None,
            taken: 0,
            memory: None,
            steps: 0,
            reached: 0,
            asked: 0,
            spare_windows: Vec::new(),
            spare_buffers: Vec::new(),
            unpacked: (None, Vec::new()),
            how,
            sweep: Sweep::default(),
            state,
            cube,
        }
    }

    /// Whether it stands on an entry.
    pub fn valid(&self) -> bool {
        self.at < self.window.len()
    }

    /// Goes to the first entry at or after `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.place(Direction::Forward, self.told, |cursor, out| cursor.first_from(Some(key), out))
    }

    /// Goes to the first entry.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.place(Direction::Forward, self.told, |cursor, out| cursor.first_from(None, out))
    }

    /// Goes to the last entry.
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.place(Direction::Backward, self.told, |cursor, out| cursor.last_before(None, out))
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
        self.window.key(self.at)
    }

    /// The present value; only while valid. May read from the device.
    pub fn value(&mut self) -> Result<&[u8]> {
        self.asked += 1;
        self.reached = self.steps.saturating_add(1);
        if self.window.is_unread(self.at) {
            let source = Source { cube: &self.cube, version: &self.state.version, how: self.how };
            self.window.begin(self.at, &source, &mut self.spare_buffers, None);
        }
        if self.window.is_reading() {
            self.window.finish(&mut self.spare_buffers);
        }
        match self.window.value(self.at)? {
            Shown::Plain(value) => Ok(value),
            Shown::Packed(pointer, codec, stored) => {
                let (place, value) = &mut self.unpacked;
                if *place != Some(self.at) {
                    *place = None;
                    self.cube.reader.unpack(pointer, codec, stored, value)?;
                    *place = Some(self.at);
                }
                Ok(value)
            }
        }
    }

    /// Starts anew where `seek` puts the cursor, in the expectation of so many entries.
    fn place(
        &mut self,
        direction: Direction,
        expected: Option<usize>,
        seek: impl FnOnce(&mut VisibleCursor, &mut Entries<'_>) -> Result<bool>,
    ) -> Result<()> {
        self.note_reach();
        self.sweep.turn();
        for mut window in self.ahead.drain(..) {
            window.clear(&mut self.spare_buffers);
            self.spare_windows.push(window);
        }
        self.enter_empty();
        self.direction = direction;
        self.steps = 0;
        self.reached = 0;
        self.window_entries = 1;
        self.expected = expected;
        self.taken = 0;
        self.beyond = Beyond::Nothing;
        if seek(&mut self.cursor, &mut self.window.entries())? {
            self.beyond = Beyond::Unknown;
            let usual = || self.cube.reach.usual();
            self.window_entries = self.expected.map_or_else(usual, |all| all.clamp(1, WINDOW_ENTRIES_MAX));
            let mut window = std::mem::take(&mut self.window);
            self.fill(&mut window);
            self.window = window;
        }
        Ok(())
    }

    /// Has later walks know how far this one went.
    fn note_reach(&self) {
        if self.reached > 0 && self.told.is_none() {
            self.cube.reach.note(self.reached);
        }
    }

    /// Stands nowhere.
    fn enter_empty(&mut self) {
        self.window.clear(&mut self.spare_buffers);
        self.at = 0;
        self.asked = 0;
        self.unpacked.0 = None;
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        if direction != self.direction {
            return self.turn(direction);
        }
        self.at += 1;
        self.steps = self.steps.saturating_add(1);
        if self.at < self.window.len() { Ok(()) } else { self.next_window() }
    }

    /// Goes on in the other direction: what was read ahead is on the wrong side.
    fn turn(&mut self, direction: Direction) -> Result<()> {
        let key = self.key().to_vec();
        let expected = self.told.filter(|_| self.steps == 0);
        match direction {
            Direction::Backward => {
                self.place(direction, expected, |cursor, out| cursor.last_before(Some(&key), out))
            }
            Direction::Forward => {
                self.place(direction, expected, |cursor, out| cursor.first_from(Some(&key), out))?;
                self.step(direction)
            }
        }
    }

    /// Goes to the first entry behind the window.
    fn next_window(&mut self) -> Result<()> {
        let asks_for_most = self.asked * 2 >= self.window.len();
        let largest = if asks_for_most { WINDOW_ENTRIES_MAX } else { WINDOW_ENTRIES_FEW };
        self.window_entries = (self.window_entries * 2).min(self.steps as usize).min(largest);
        let order = self.expected.map(|all| (self.steps as usize).cmp(&all));
        if order == Some(Ordering::Equal) {
            // That was all, it has said. Otherwise it goes on as one that begins.
            self.window_entries = self.cube.reach.usual();
        }
        self.enter_empty();
        if let Some(next) = self.ahead.pop_front() {
            self.spare_windows.push(std::mem::replace(&mut self.window, next));
        } else {
            let mut window = std::mem::take(&mut self.window);
            self.fill(&mut window);
            self.window = window;
        }
        if self.window.len() == 0 {
            let beyond = std::mem::replace(&mut self.beyond, Beyond::Nothing);
            return if let Beyond::Failure(error) = beyond { Err(error) } else { Ok(()) };
        }
        self.trim_spare();
        if asks_for_most && (self.window_entries > WINDOW_ENTRIES_FEW || order == Some(Ordering::Less)) {
            self.read_ahead();
        }
        Ok(())
    }

    /// Has the values of this window and the next ones read.
    fn read_ahead(&mut self) {
        let bytes_max = self.window_bytes_max();
        let windows = self.windows_held() - WINDOWS_BESIDE;
        // It may end with the next step: another window is begun only while no more lies ahead than it has gone over, and none behind what
        // the caller expects before it has come there.
        let entries_max = self.steps as usize;
        let mut entries = self.ahead.iter().map(Window::len).sum::<usize>();
        while (self.ahead.len() as u64) < windows
            && entries < entries_max
            && !self.expected.is_some_and(|all| (self.steps as usize) < all && all <= self.taken)
            && matches!(self.beyond, Beyond::Unknown)
        {
            let mut window = self.spare_windows.pop().unwrap_or_default();
            self.fill(&mut window);
            if window.len() == 0 {
                self.spare_windows.push(window);
                break;
            }
            entries += window.len();
            self.ahead.push_back(window);
        }
        let is_past_cache = !self.how.fill_cache || self.cube.reader.segments().are_direct();
        if self.sweep.pages.is_none() && (is_past_cache || self.sweep.is_long()) {
            let pages = WalkPages::new(&self.cube.reader, &self.cube.memory.scans, windows + 1);
            self.sweep.pages = pages.map(Arc::new);
        }
        let source = Source { cube: &self.cube, version: &self.state.version, how: self.how };
        for window in std::iter::once(&mut self.window).chain(&mut self.ahead) {
            // Values too large for the budget are read one by one, when they are asked for.
            if !window.is_begun() && window.value_bytes() <= 2 * bytes_max {
                window.begin(0, &source, &mut self.spare_buffers, Some(&mut self.sweep));
            }
        }
    }

    /// Keeps no more memory for the next windows than some of them take, and one buffer for a value that is larger than they are.
    fn trim_spare(&mut self) {
        let window = self.window_bytes_max();
        let windows = if self.sweep.loads.pace() == Pace::MemoryIsScarce { 1 } else { WINDOWS_SPARE };
        let (mut left, mut may_be_larger) = (windows * window, true);
        self.spare_buffers.retain(|buffer| {
            let bytes = buffer.capacity() as u64;
            let fits = bytes <= left;
            let is_kept = fits || std::mem::take(&mut may_be_larger);
            left -= if fits { bytes } else { 0 };
            is_kept
        });
    }

    /// Bytes of keys and values that a window may hold.
    fn window_bytes_max(&mut self) -> u64 {
        if self.steps == 0 && self.expected.is_none() {
            return WINDOW_BYTES_MIN;
        }
        let windows = self.windows_held();
        (self.memory().bytes() / windows).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX)
    }

    /// How many windows there are at a time.
    fn windows_held(&mut self) -> u64 {
        let most = match self.sweep.loads.pace() {
            Pace::MemoryIsScarce => WINDOWS_AHEAD_MIN,
            Pace::Usual => WINDOWS_AHEAD,
            Pace::Long => WINDOWS_AHEAD_LONG,
        };
        let windows = self.memory().bytes() / WINDOW_BYTES_MAX;
        windows.clamp(WINDOWS_AHEAD_MIN + WINDOWS_BESIDE, most + WINDOWS_BESIDE)
    }

    fn memory(&mut self) -> &Taken {
        let bytes = (WINDOWS_AHEAD_LONG + WINDOWS_BESIDE) * WINDOW_BYTES_MAX;
        self.memory.get_or_insert_with(|| self.cube.memory.scans.take_up_to(bytes))
    }

    /// Reads the next entries into `window`, behind what is in it.
    fn fill(&mut self, window: &mut Window) {
        let (mut bytes_max, mut is_all) = (WINDOW_BYTES_MIN, false);
        let left = self.expected.map_or(0, |all| all.saturating_sub(self.taken));
        let entries_max = if left > 0 { self.window_entries.min(left) } else { self.window_entries };
        let mut out = window.entries();
        while matches!(self.beyond, Beyond::Unknown) && out.len() < entries_max {
            if out.memory_bytes() >= bytes_max {
                if is_all {
                    break;
                }
                // Memory is taken by those alone who want so much.
                (bytes_max, is_all) = (self.window_bytes_max(), true);
                continue;
            }
            let added = match self.direction {
                Direction::Forward => self.cursor.next_entry(&mut out),
                Direction::Backward => self.cursor.previous_entry(&mut out),
            };
            match added {
                Ok(true) => {}
                Ok(false) => self.beyond = Beyond::Nothing,
                Err(error) => self.beyond = Beyond::Failure(error),
            }
        }
        self.taken += out.len();
    }
}

impl Drop for CubeIter {
    fn drop(&mut self) {
        self.note_reach();
    }
}
