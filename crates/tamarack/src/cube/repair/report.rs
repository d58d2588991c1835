//! What a repair tells: what was damaged, what was saved, and which keys are lost or may be older than they were.

use std::fmt;

use crate::base::error::Error;
use crate::base::keys::KeyOrder;

/// How much of its manifest a repair could use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepairedManifest {
    /// It is whole, and says what is what.
    Whole,
    /// It is lost: files alone say what they are.
    Lost,
}

/// What a repair knows of keys that it could not save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// Their newest values are lost. The keys read as absent, never as an older value.
    Lost,
    /// Whatever can be read may be older than what was last written: keys may be missing, and deleted ones be back.
    MayBeOlder,
}

/// A range of keys that a repair could not save, or not for sure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRange {
    /// The first key; `None`: from the first there is.
    pub first: Option<Vec<u8>>,
    /// The last key, which is in the range; `None`: up to the last there is.
    pub last: Option<Vec<u8>>,
    /// How many operations in it are lost, as far as that is known.
    pub operations: Option<u64>,
    /// What that means for them.
    pub loss: Loss,
    /// Why.
    pub reason: String,
}

/// What [`Db::repair`](crate::Db::repair) has found and done. Displayed, it is a text for people.
#[derive(Debug, Clone)]
pub struct RepairReport {
    /// Whether anything had to be changed.
    pub changed: bool,
    /// Whether that was only tried, and nothing was changed.
    pub dry_run: bool,
    /// What became of the manifest.
    pub manifest: RepairedManifest,
    /// Tables looked at.
    pub tables: u64,
    /// Those of them that are damaged or missing.
    pub damaged_tables: u64,
    /// Whether the index was written anew.
    pub index_rebuilt: bool,
    /// Keys in the index, where it was written anew.
    pub keys: u64,
    /// Segments looked at.
    pub segments: u64,
    /// Those of them that are damaged or missing.
    pub damaged_segments: u64,
    /// Records that were copied out of damaged segments.
    pub copied_records: u64,
    /// Their bytes.
    pub copied_bytes: u64,
    /// Operations that were taken from a log that could not be replayed.
    pub log_operations: u64,
    /// What is wrong, each with file and offset.
    pub damage: Vec<Error>,
    /// Which keys are lost, or may be older than they were; nothing else is.
    pub lost: Vec<LostRange>,
    /// Files that were moved into the directory `lost`, by their names there.
    pub moved: Vec<String>,
    pub(super) order: KeyOrder,
}

impl RepairReport {
    pub(super) fn new(order: KeyOrder, dry_run: bool) -> Self {
        Self {
            changed: false,
            dry_run,
            manifest: RepairedManifest::Whole,
            tables: 0,
            damaged_tables: 0,
            index_rebuilt: false,
            keys: 0,
            segments: 0,
            damaged_segments: 0,
            copied_records: 0,
            copied_bytes: 0,
            log_operations: 0,
            damage: Vec::new(),
            lost: Vec::new(),
            moved: Vec::new(),
            order,
        }
    }

    /// Whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        !self.changed && self.damage.is_empty()
    }

    /// What is known to be lost of `key`, or may be: `None` if it has the value that was last written.
    pub fn loss_of(&self, key: &[u8]) -> Option<&LostRange> {
        self.lost.iter().find(|range| {
            let before = |first: &Vec<u8>| self.order.compare_user(key, first).is_lt();
            let behind = |last: &Vec<u8>| self.order.compare_user(key, last).is_gt();
            !range.first.as_ref().is_some_and(before) && !range.last.as_ref().is_some_and(behind)
        })
    }

    pub(super) fn doubt(
        &mut self,
        span: (Option<Vec<u8>>, Option<Vec<u8>>),
        operations: Option<u64>,
        reason: &str,
    ) {
        self.lost.push(LostRange {
            first: span.0,
            last: span.1,
            operations,
            loss: Loss::MayBeOlder,
            reason: reason.to_owned(),
        });
    }
}

impl fmt::Display for LostRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |key: &Option<Vec<u8>>, open: &str| {
            key.as_ref().map_or(open.to_owned(), |key| format!("\"{}\"", key.escape_ascii()))
        };
        match self.loss {
            Loss::Lost => f.write_str("lost: ")?,
            Loss::MayBeOlder => f.write_str("may be older than what was last written: ")?,
        }
        match (&self.first, &self.last) {
            (None, None) => f.write_str("any key")?,
            (Some(first), Some(last)) if first == last => write!(f, "key {}", shown(&self.first, ""))?,
            _ => {
                let (first, last) = (shown(&self.first, "the first"), shown(&self.last, "the last"));
                write!(f, "keys from {first} to {last}")?;
            }
        }
        match self.operations {
            Some(1) => write!(f, " (1 operation: {})", self.reason),
            Some(number) => write!(f, " ({number} operations: {})", self.reason),
            None => write!(f, " ({})", self.reason),
        }
    }
}

impl fmt::Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} tables, {} of them damaged; {} segments, {} of them damaged",
            self.tables, self.damaged_tables, self.segments, self.damaged_segments
        )?;
        self.damage.iter().try_for_each(|error| writeln!(f, "damage: {error}"))?;
        if !self.changed {
            return f.write_str("nothing to repair\n");
        }
        if self.manifest == RepairedManifest::Lost {
            f.write_str("the manifest is lost; what there is was taken from the files themselves\n")?;
        }
        if self.index_rebuilt {
            writeln!(f, "saved: an index of {} keys", self.keys)?;
        }
        if self.copied_records > 0 {
            writeln!(f, "saved: {} records, {} bytes", self.copied_records, self.copied_bytes)?;
        }
        if self.log_operations > 0 {
            writeln!(f, "saved: {} operations of the log", self.log_operations)?;
        }
        self.lost.iter().try_for_each(|range| writeln!(f, "{range}"))?;
        if self.lost.is_empty() {
            f.write_str("nothing was lost\n")?;
        }
        self.moved.iter().try_for_each(|name| writeln!(f, "moved: lost/{name}"))
    }
}
