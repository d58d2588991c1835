//! `leveldb_iterator_t`: a walk over a range.
//!
//! Each call takes the iterator's lock, so that several threads may look at one. What a key or value was lent for ends
//! with the next call that moves the iterator, as in LevelDB.
//!
//! Values are read when they are asked for. Where that fails, the entry is not shown as one without a value: the
//! iterator stops to be valid and tells the error, as LevelDB's does when a block cannot be read.

use parking_lot::Mutex;
use tamarack::Iter;

use crate::boundary::arguments::Lent;
use crate::boundary::handle::Kind;
use crate::status::Status;

/// A walk over a range. It keeps the database open.
pub struct Walk {
    state: Mutex<State>,
}

struct State {
    /// `None` if there could not be an iterator.
    iter: Option<Iter>,
    /// Why it is not valid, if that is not the end of the range.
    status: Option<Status>,
}

impl Walk {
    /// A walk with `iter`, or one that is nowhere and tells why.
    pub fn new(iter: Result<Iter, Status>) -> Self {
        let (iter, status) = match iter {
            Ok(iter) => (Some(iter), None),
            Err(status) => (None, Some(status)),
        };
        Self { state: Mutex::new(State { iter, status }) }
    }

    /// Whether it stands on an entry.
    pub fn valid(&self) -> bool {
        self.state.lock().valid()
    }

    /// Places it by `seek`. Forgets an earlier error.
    pub fn place(&self, seek: impl FnOnce(&mut Iter) -> tamarack::Result<()>) {
        self.state.lock().go(seek);
    }

    /// Moves it by `step`, if it stands on an entry.
    pub fn step(&self, step: impl FnOnce(&mut Iter) -> tamarack::Result<()>) {
        let mut state = self.state.lock();
        if state.valid() {
            state.go(step);
        }
    }

    /// The key and its length; `NULL` if it stands nowhere.
    pub fn key(&self) -> (Lent, usize) {
        let state = self.state.lock();
        match &state.iter {
            Some(iter) if state.valid() => (Lent::bytes(iter.key()), iter.key().len()),
            _ => (Lent::NONE, 0),
        }
    }

    /// The value and its length; `NULL` if it stands nowhere or the value cannot be read. In the second case it is not
    /// valid any more, and [`error`](Self::error) says why.
    pub fn value(&self) -> (Lent, usize) {
        let mut state = self.state.lock();
        if !state.valid() {
            return (Lent::NONE, 0);
        }
        let State { iter: Some(iter), status } = &mut *state else { return (Lent::NONE, 0) };
        match iter.value() {
            Ok(value) => (Lent::bytes(value), value.len()),
            Err(error) => {
                *status = Some(Status::from(error));
                (Lent::NONE, 0)
            }
        }
    }

    /// Why it is not valid.
    ///
    /// # Errors
    /// Those of the last call that moved it or read a value.
    pub fn error(&self) -> Result<(), Status> {
        self.state.lock().status.clone().map_or(Ok(()), Err)
    }
}

impl State {
    fn go(&mut self, to: impl FnOnce(&mut Iter) -> tamarack::Result<()>) {
        if let Some(iter) = &mut self.iter {
            self.status = to(iter).err().map(Status::from);
        }
    }

    fn valid(&self) -> bool {
        self.status.is_none() && self.iter.as_ref().is_some_and(Iter::valid)
    }
}

impl Kind for Walk {
    const NAME: &'static str = "an iterator";
    const TAG: u64 = u64::from_le_bytes(*b"iterator");
}
