//! When a call fails, and with what.

use std::io;
use std::path::Path;

use super::counts::ends_with;
use super::{Call, EIO};

/// A failure to come. Unless told otherwise it strikes the next matching call, once, with [`EIO`].
#[derive(Debug, Clone)]
pub struct Fault {
    calls: Calls,
    suffix: String,
    /// Matching calls that still pass.
    passes: u64,
    lasting: bool,
    spent: bool,
    failure: Failure,
}

#[derive(Debug, Clone, Copy)]
enum Calls {
    Any,
    Mutating,
    Of(Call),
}

/// How a call fails.
#[derive(Debug, Clone, Copy)]
pub enum Failure {
    /// With an error of this kind.
    Kind(io::ErrorKind),
    /// With an error of the operating system.
    Errno(i32),
    /// After the first half of the bytes, with [`EIO`].
    ShortWrite,
    /// After all of the bytes, with [`EIO`].
    WholeWrite,
}

/// What becomes of a call.
#[derive(Debug)]
pub enum Verdict {
    /// It is made.
    Proceed,
    /// It fails without effect.
    Fail(io::Error),
    /// A write does its first half before it fails; another call fails without effect.
    DoHalf(io::Error),
    /// A write is done before it fails; another call fails without effect.
    Do(io::Error),
}

impl Fault {
    /// Strikes calls of one kind.
    pub fn on(call: Call) -> Self {
        Self::of(Calls::Of(call))
    }

    /// Strikes calls that change something or make it durable.
    pub fn on_mutating() -> Self {
        Self::of(Calls::Mutating)
    }

    /// Strikes every kind of call.
    pub fn on_any() -> Self {
        Self::of(Calls::Any)
    }

    fn of(calls: Calls) -> Self {
        let failure = Failure::Errno(EIO);
        Self { calls, suffix: String::new(), passes: 0, lasting: false, spent: false, failure }
    }

    /// Only for paths that end with `suffix`.
    #[must_use]
    pub fn path_ending(self, suffix: &str) -> Self {
        Self { suffix: suffix.to_owned(), ..self }
    }

    /// Strikes the `nth` matching call from now; 1 is the next.
    #[must_use]
    pub fn nth(self, nth: u64) -> Self {
        assert!(nth > 0, "calls are counted from 1");
        Self { passes: nth - 1, ..self }
    }

    /// Goes on striking after the first time.
    #[must_use]
    pub fn for_ever(self) -> Self {
        Self { lasting: true, ..self }
    }

    /// Fails with an error of `kind`.
    #[must_use]
    pub fn kind(self, kind: io::ErrorKind) -> Self {
        Self { failure: Failure::Kind(kind), ..self }
    }

    /// Fails with an error of the operating system.
    #[must_use]
    pub fn errno(self, errno: i32) -> Self {
        Self { failure: Failure::Errno(errno), ..self }
    }

    /// A write does its first half and then fails with [`EIO`].
    #[must_use]
    pub fn short_write(self) -> Self {
        Self { failure: Failure::ShortWrite, ..self }
    }

    /// A write is done, and fails with [`EIO`] all the same.
    #[must_use]
    pub fn whole_write(self) -> Self {
        Self { failure: Failure::WholeWrite, ..self }
    }

    /// Sees a call, and says how it fails if it is struck.
    pub(super) fn strike(&mut self, call: Call, path: &Path) -> Option<Failure> {
        let chosen = match self.calls {
            Calls::Any => true,
            Calls::Mutating => call.is_mutating(),
            Calls::Of(kind) => call == kind,
        };
        if self.spent || !chosen || !ends_with(path, &self.suffix) {
            return None;
        }
        if self.passes > 0 {
            self.passes -= 1;
            return None;
        }
        self.spent = !self.lasting;
        Some(self.failure)
    }
}
