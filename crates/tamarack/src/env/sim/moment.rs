//! A moment of a disk: all that a crash could leave of it follows from this.

use std::collections::BTreeMap;

use super::directory::{NameChange, Names};
use super::effect::Effect;
use super::state::NodeId;
use crate::base::sync::Arc;

/// What is durable, and what is in flight, between two changes of a disk.
#[derive(Debug, Clone)]
pub struct Moment {
    /// The number of the change that comes next.
    pub(super) next_change: u64,
    pub(super) trace: u64,
    pub(super) next_node: NodeId,
    pub(super) block_bytes: u64,
    pub(super) capacity_bytes: u64,
    pub(super) facts: BTreeMap<u64, u64>,
    pub(super) directories: BTreeMap<NodeId, DirectoryAt>,
    pub(super) files: BTreeMap<NodeId, FileAt>,
}

/// A directory at a moment.
#[derive(Debug, Clone)]
pub struct DirectoryAt {
    /// The names that are on the disk.
    pub durable: Names,
    /// What is on its way there.
    pub journal: Vec<NameChange>,
}

/// A file at a moment.
#[derive(Debug, Clone)]
pub struct FileAt {
    /// The bytes that are on the disk.
    pub durable: Arc<Vec<u8>>,
    /// What is on its way there.
    pub journal: Vec<Effect>,
    /// How often it was changed or synced: two moments of a file with the same number are alike.
    pub version: u64,
}

impl Moment {
    /// How many changes of files and names there were before, syncs included.
    pub fn changes(&self) -> u64 {
        self.next_change
    }

    /// A digest of all those changes: equal for two runs that have made the same ones in the same order.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// What was noted for `subject` last, before this moment.
    pub fn fact(&self, subject: u64) -> Option<u64> {
        self.facts.get(&subject).copied()
    }

    /// How many changes are in flight: a write of several sectors is one here.
    pub fn in_flight(&self) -> usize {
        let names = self.directories.values().map(|directory| directory.journal.len());
        names.chain(self.files.values().map(|file| file.journal.len())).sum()
    }
}
