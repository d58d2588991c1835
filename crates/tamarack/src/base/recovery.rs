//! What opening a database found in its log.

use std::fmt;

/// What was recovered from the log when a database was opened.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// let db = tamarack::Db::open(directory.path(), tamarack::Options::default())?;
/// println!("{}", db.recovery());
/// if let Some(torn) = &db.recovery().torn_tail {
///     println!("a crash left {} bytes of unfinished log", torn.ignored_bytes);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecoveryReport {
    /// Bytes of log that were replayed.
    pub log_bytes: u64,
    /// Batches that were replayed.
    pub batches: u64,
    /// Operations in them.
    pub operations: u64,
    /// Bytes that were not known to be on the device, and were written and synced again before open returned.
    pub rewritten_bytes: u64,
    /// The unfinished end of the log, if there was one. It was never acknowledged as durable.
    pub torn_tail: Option<TornTail>,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// The end of a log that a crash left unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TornTail {
    /// The segment in which the whole records end.
    pub segment: u32,
    /// The offset at which they end.
    pub offset: u64,
    /// Bytes behind that point that were not zero and are not part of the log.
    pub ignored_bytes: u64,
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "replayed {} operations in {} batches from {} bytes of log in {:.3} s, rewrote {} bytes",
            self.operations, self.batches, self.log_bytes, self.seconds, self.rewritten_bytes
        )?;
        if let Some(torn) = &self.torn_tail {
            write!(
                f,
                "; ignored a torn tail of {} bytes behind offset {} of segment {}",
                torn.ignored_bytes, torn.offset, torn.segment
            )?;
        }
        Ok(())
    }
}
