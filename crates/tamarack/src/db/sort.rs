//! Sorting values on request.

use super::Db;
use crate::base::error::Result;

impl Db {
    /// Sorts values now until no more than [`Options::value_runs_max`](crate::Options::value_runs_max) sorted runs of them lie over any key, whatever it
    /// costs; in the background that is done while nothing is written, as far as it is worth it. Flushes first. Where space or
    /// readers that hold on to old files leave no room for copies, it ends earlier. Blocks on the device; readers and
    /// writers go on.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let options = tamarack::Options { segment_bytes_max: 64 << 10, ..tamarack::Options::default() };
    /// # let db = tamarack::Db::open(directory.path(), options)?;
    /// for key in 0..500_u32 {
    ///     db.put(&(key * 77 % 500).to_be_bytes(), &[7; 1000])?;
    /// }
    /// db.sort_values()?;
    /// assert!(db.stats().value_runs <= 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NoSpace`, `Io`, `ReadOnly`, `Closed`; `Corruption` when a segment is damaged: it is kept, and left alone from then on.
    /// Nothing is lost. A [`close`](Self::close) ends it soon.
    pub fn sort_values(&self) -> Result<()> {
        self.inner.cube.sort_values()
    }
}
