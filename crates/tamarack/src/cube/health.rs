//! Whether a cube may still write.
//!
//! After a failed sync or manifest write, or a panic inside the engine, nobody knows what the device holds beyond
//! the last success. The cube is then *poisoned*: it refuses writes until it is opened again, never tries the
//! failed call a second time, and goes on serving reads. The first cause wins.

use crate::base::error::{Error, Result};
use crate::base::sync::{AtomicBool, Mutex, Ordering};

/// The health of one cube. Lock rank: a leaf.
#[derive(Debug, Default)]
pub struct Health {
    poisoned: AtomicBool,
    cause: Mutex<Option<Error>>,
    /// Failures of background work that poison nothing, newest last.
    warnings: Mutex<Vec<String>>,
}

/// Warnings kept for `stats`.
const WARNINGS_MAX: usize = 16;

impl Health {
    /// Fails if the cube is poisoned.
    ///
    /// # Errors
    /// `ReadOnly`, with the cause and what to do.
    pub fn check_writable(&self) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) { Err(self.error()) } else { Ok(()) }
    }

    /// Whether the cube is poisoned.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// Poisons the cube because of `cause`; returns the error that writers get from now on.
    pub fn poison(&self, cause: &Error) -> Error {
        self.cause.lock().get_or_insert_with(|| cause.clone());
        self.poisoned.store(true, Ordering::Release);
        self.error()
    }

    fn error(&self) -> Error {
        let cause = self.cause.lock().clone();
        let cause = cause.expect("a cause is stored before the cube is marked as poisoned");
        Error::read_only(format!(
            "the database takes no more writes because of an earlier failure ({cause}); \
             close and open it again to recover everything acknowledged"
        ))
    }

    /// Remembers a failure that costs nothing but should be seen, such as a file that could not be removed.
    pub fn warn(&self, warning: String) {
        let mut warnings = self.warnings.lock();
        if warnings.len() == WARNINGS_MAX {
            warnings.remove(0);
        }
        warnings.push(warning);
    }

    /// The remembered warnings, and the cause of the poisoning if there is one.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = self.warnings.lock().clone();
        all.extend(self.cause.lock().as_ref().map(ToString::to_string));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    #[test]
    fn the_first_cause_stays() {
        let health = Health::default();
        health.check_writable().expect("healthy at first");
        health.poison(&Error::closed());
        let error = health.poison(&Error::locked("later"));
        assert_eq!(error.kind(), ErrorKind::ReadOnly);
        assert!(error.message().contains("being closed"), "{error}");
        assert!(health.check_writable().is_err());
    }
}
