//! What every part of the reading shares: what is to happen at damage, what has happened, and who hears of the bytes read.

use crate::error::{Damage, Error, Result};
use crate::loss::{Covers, Loss};
use crate::remark::Remark;

/// Figures of what was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tables that were opened.
    pub tables: u64,
    /// Logs that were replayed.
    pub logs: u64,
    /// Operations in them.
    pub log_operations: u64,
    /// Versions of keys that a newer one hides.
    pub older_versions: u64,
    /// Keys of which the newest version is a deletion.
    pub deletions: u64,
}

/// Goes along with everything that reads.
pub struct Context {
    /// Whether damage is left out and counted; otherwise it ends the reading.
    pub salvage: bool,
    /// Whether keys must be in the order of their bytes.
    pub bytewise: bool,
    /// No operation in a table may have a higher sequence number.
    pub last_sequence: u64,
    /// What was left out.
    pub losses: Vec<Loss>,
    /// What is worth knowing besides.
    pub remarks: Vec<Remark>,
    /// Figures.
    pub counts: Counts,
    /// Bytes of the directory's files that have been dealt with.
    pub bytes_read: u64,
}

impl Context {
    /// Leaves out `bytes` bytes, or ends the reading.
    ///
    /// # Errors
    /// [`Error::Damage`] unless damage is left out.
    pub fn lose(&mut self, damage: Damage, bytes: u64, covers: Covers) -> Result<()> {
        if !self.salvage {
            return Err(damage.into());
        }
        self.losses.push(Loss { damage, bytes, covers });
        Ok(())
    }

    /// What `result` gives; or nothing if that is damage and is left out.
    ///
    /// # Errors
    /// Those of `result` that are not left out.
    pub fn tolerate<T>(
        &mut self,
        result: Result<T>,
        bytes: u64,
        covers: impl FnOnce() -> Covers,
    ) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Error::Damage(damage)) => self.lose(damage, bytes, covers()).map(|()| None),
            Err(error) => Err(error),
        }
    }
}
