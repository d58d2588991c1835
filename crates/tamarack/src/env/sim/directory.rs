//! The names in a directory: as everybody sees them, as they are on the disk, and what lies between.

use std::collections::BTreeMap;

use super::moment::DirectoryAt;
use super::state::NodeId;

/// Names and what they stand for.
pub type Names = BTreeMap<String, NodeId>;

/// A directory.
#[derive(Debug, Default)]
pub struct Directory {
    names: Names,
    durable: Names,
    journal: Vec<NameChange>,
    /// Who holds its advisory lock.
    pub lock: Lock,
}

/// An advisory lock.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Lock {
    /// Nobody holds it.
    #[default]
    Free,
    /// So many hold it together.
    Shared(usize),
    /// One holds it.
    Exclusive,
}

/// A change of names that is not durable yet.
#[derive(Debug, Clone)]
pub struct NameChange {
    /// When it was made: changes of the whole disk are counted.
    pub at: u64,
    /// A name that is taken away.
    removed: Option<String>,
    /// A name that is given, in place of any other file that had it.
    given: Option<(String, NodeId)>,
}

impl NameChange {
    /// A name for `node`.
    pub fn add(at: u64, name: &str, node: NodeId) -> Self {
        Self { at, removed: None, given: Some((name.to_owned(), node)) }
    }

    /// A name less.
    pub fn remove(at: u64, name: &str) -> Self {
        Self { at, removed: Some(name.to_owned()), given: None }
    }

    /// The name `to` for `node` in place of `from`.
    pub fn replace(at: u64, from: &str, to: &str, node: NodeId) -> Self {
        Self { at, removed: Some(from.to_owned()), given: Some((to.to_owned(), node)) }
    }

    /// The names that it concerns.
    pub fn concerns(&self) -> impl Iterator<Item = &str> {
        let given = self.given.as_ref().map(|(name, _)| name.as_str());
        self.removed.as_deref().into_iter().chain(given)
    }

    /// Makes it.
    pub fn apply(&self, names: &mut Names) {
        if let Some(name) = &self.removed {
            names.remove(name);
        }
        if let Some((name, node)) = &self.given {
            names.insert(name.clone(), *node);
        }
    }
}

impl Directory {
    /// A directory that is on the disk as it is.
    pub fn durable(names: Names) -> Self {
        Self { durable: names.clone(), names, ..Self::default() }
    }

    /// The same directory once every process that held its lock is dead: what was on its way to the disk still is.
    pub fn killed(&self) -> Self {
        Self {
            names: self.names.clone(),
            durable: self.durable.clone(),
            journal: self.journal.clone(),
            lock: Lock::Free,
        }
    }

    /// The names that everybody sees.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The names that are certainly on the disk.
    pub fn durable_names(&self) -> &Names {
        &self.durable
    }

    /// What is on its way there.
    pub fn journal(&self) -> &[NameChange] {
        &self.journal
    }

    /// What a crash could leave of it.
    pub fn at_this_moment(&self) -> DirectoryAt {
        DirectoryAt { durable: self.durable.clone(), journal: self.journal.clone() }
    }

    /// Changes a name.
    pub fn change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.journal.push(change);
    }

    /// Makes the names durable.
    pub fn sync(&mut self) {
        self.durable.clone_from(&self.names);
        self.journal.clear();
    }

    /// Whether `node` may have a name here, now or after a crash.
    pub fn may_name(&self, node: NodeId) -> bool {
        let journaled = self.journal.iter().filter_map(|change| change.given.as_ref());
        self.names.values().chain(self.durable.values()).any(|&named| named == node)
            || journaled.into_iter().any(|&(_, named)| named == node)
    }
}
