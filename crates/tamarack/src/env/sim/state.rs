//! A disk's files and directories together: what paths lead to, how much room is left, and in which order things
//! happened.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::crash::Fate;
use super::directory::{Directory, NameChange, Names};
use super::effect::Change;
use super::faults::Plan;
use super::inode::Inode;
use super::moment::Moment;
use crate::base::sync::Arc;

/// Names a file or a directory for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(u64);

/// The directory that every path begins at.
pub const ROOT: NodeId = NodeId(0);

/// A file or a directory.
#[derive(Debug)]
enum Node {
    File(Inode),
    Directory(Directory),
}

/// Everything on a disk.
#[derive(Debug)]
pub struct State {
    nodes: BTreeMap<NodeId, Node>,
    next_node: u64,
    /// The number of the next change.
    next_change: u64,
    block_bytes: u64,
    blocks_max: u64,
    blocks_used: u64,
    trace: u64,
    /// The same of changes alone.
    change_trace: u64,
    /// Numbers by subjects that somebody wants to find again in the picture of a crash.
    pub facts: BTreeMap<u64, u64>,
    /// The change at which a picture of a kill is to be taken.
    kill_at: Option<u64>,
    killed: Option<Box<State>>,
    /// What is to go wrong.
    pub plan: Plan,
    /// What was between all changes, if somebody wants to know.
    moments: Option<Vec<Moment>>,
}

impl State {
    /// An empty disk with room for `capacity_bytes`.
    pub fn new(block_bytes: u64, capacity_bytes: u64) -> Self {
        Self {
            nodes: BTreeMap::from([(ROOT, Node::Directory(Directory::default()))]),
            next_node: ROOT.0 + 1,
            next_change: 0,
            block_bytes,
            blocks_max: capacity_bytes / block_bytes,
            blocks_used: 0,
            trace: 0,
            change_trace: 0,
            facts: BTreeMap::new(),
            kill_at: None,
            killed: None,
            plan: Plan::default(),
            moments: None,
        }
    }

    /// The disk of `moment` after a crash that has left the names of `tree` and `files` with those bytes.
    pub fn from_image(
        moment: &Moment,
        tree: &BTreeMap<NodeId, Names>,
        files: Vec<(NodeId, Arc<Vec<u8>>)>,
    ) -> Self {
        let mut state = Self::new(moment.block_bytes, moment.capacity_bytes);
        (state.next_node, state.facts) = (moment.next_node.0, moment.facts.clone());
        for (id, bytes) in files {
            let mut inode = Inode::durable(bytes, moment.block_bytes);
            let names = tree.values().flat_map(BTreeMap::values);
            inode.links = names.filter(|named| **named == id).count() as u64;
            state.blocks_used += inode.blocks();
            state.nodes.insert(id, Node::File(inode));
        }
        let directories =
            tree.iter().map(|(&id, names)| (id, Node::Directory(Directory::durable(names.clone()))));
        state.nodes.extend(directories);
        state
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Blocks that nobody uses.
    pub fn blocks_free(&self) -> u64 {
        self.blocks_max.saturating_sub(self.blocks_used)
    }

    /// A digest of all calls so far, and how many changes they made.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// How many changes there were, syncs included.
    pub fn changes(&self) -> u64 {
        self.next_change
    }

    /// Takes a call into the digest.
    pub fn note(&mut self, call: &str, subject: &[u8], numbers: &[u64], bytes: &[u8]) {
        let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        for part in [call.as_bytes(), subject, &numbers, bytes] {
            self.trace = xxh3_64_with_seed(part, self.trace);
        }
    }

    /// Takes a change into the digest of all changes.
    fn note_change(&mut self, id: NodeId, numbers: &[u64], bytes: &[u8]) {
        let numbers: Vec<u8> =
            [&[id.0], numbers].concat().iter().flat_map(|number| number.to_le_bytes()).collect();
        self.change_trace = xxh3_64_with_seed(bytes, xxh3_64_with_seed(&numbers, self.change_trace));
    }

    /// What `path` leads to.
    pub fn find(&self, path: &Path) -> io::Result<NodeId> {
        let mut node = ROOT;
        for name in names_of(path)? {
            node = *self.directory(node)?.names().get(name).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    /// The directory in which `path` names something, and the name.
    pub fn find_parent<'a>(&self, path: &'a Path) -> io::Result<(NodeId, &'a str)> {
        let name = path.file_name().and_then(OsStr::to_str).ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.find(path.parent().unwrap_or(Path::new("")))?;
        self.directory(parent)?;
        Ok((parent, name))
    }

    /// A directory.
    pub fn directory(&self, id: NodeId) -> io::Result<&Directory> {
        match self.nodes.get(&id) {
            Some(Node::Directory(directory)) => Ok(directory),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// A directory, to be changed.
    pub fn directory_mut(&mut self, id: NodeId) -> io::Result<&mut Directory> {
        match self.nodes.get_mut(&id) {
            Some(Node::Directory(directory)) => Ok(directory),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// A file.
    pub fn file(&self, id: NodeId) -> io::Result<&Inode> {
        match self.nodes.get(&id) {
            Some(Node::File(inode)) => Ok(inode),
            Some(Node::Directory(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Does something to a file, and keeps the account of blocks.
    pub fn with_file<T>(&mut self, id: NodeId, act: impl FnOnce(&mut Inode) -> T) -> io::Result<T> {
        let inode = match self.nodes.get_mut(&id) {
            Some(Node::File(inode)) => inode,
            Some(Node::Directory(_)) => return Err(io::ErrorKind::IsADirectory.into()),
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        let before = if inode.is_in_use() { inode.blocks() } else { 0 };
        let outcome = act(inode);
        let after = if inode.is_in_use() { inode.blocks() } else { 0 };
        self.blocks_used = self.blocks_used + after - before;
        Ok(outcome)
    }

    /// Changes a file.
    pub fn change_file(&mut self, id: NodeId, change: Change) -> io::Result<()> {
        let (at, block_bytes) = (self.take_change(), self.block_bytes);
        self.note_change(id, &change.numbers(), change.bytes());
        self.with_file(id, |inode| inode.change(at, change, block_bytes))
    }

    /// How many bytes of `range`, from its start, there is room for.
    pub fn fitting(&self, id: NodeId, range: &Range<u64>) -> io::Result<u64> {
        Ok(self.file(id)?.fitting(range, self.blocks_free(), self.block_bytes))
    }

    /// Adds a new file, or a directory, without a name.
    pub fn add_node(&mut self, is_directory: bool) -> NodeId {
        let id = NodeId(self.next_node);
        self.next_node += 1;
        let node =
            if is_directory { Node::Directory(Directory::default()) } else { Node::File(Inode::default()) };
        self.nodes.insert(id, node);
        id
    }

    /// Gives `node` the name `name` in `parent`, in place of `from` if that is given, and of any file that had it.
    pub fn name(&mut self, parent: NodeId, from: Option<&str>, name: &str, node: NodeId) -> io::Result<()> {
        let at = self.take_change();
        let replaced = self.directory(parent)?.names().get(name).copied();
        let change = match from {
            Some(from) => NameChange::replace(at, from, name, node),
            None => NameChange::add(at, name, node),
        };
        self.note_change(parent, &[1, node.0], [from.unwrap_or_default(), "/", name].concat().as_bytes());
        self.directory_mut(parent)?.change(change);
        if from.is_none() && matches!(self.nodes.get(&node), Some(Node::File(_))) {
            self.with_file(node, |inode| inode.links += 1)?;
        }
        match replaced {
            Some(replaced) => self.with_file(replaced, |inode| inode.links -= 1),
            None => Ok(()),
        }
    }

    /// Takes a name away.
    pub fn unname(&mut self, parent: NodeId, name: &str) -> io::Result<()> {
        let at = self.take_change();
        let node = self.directory(parent)?.names().get(name).copied().ok_or(io::ErrorKind::NotFound)?;
        self.note_change(parent, &[0, node.0], name.as_bytes());
        self.directory_mut(parent)?.change(NameChange::remove(at, name));
        match self.nodes.get(&node) {
            Some(Node::File(_)) => self.with_file(node, |inode| inode.links -= 1),
            _ => Ok(()),
        }
    }

    /// The files that have a name or are open.
    pub fn files_in_use(&self) -> Vec<NodeId> {
        let used = |node: &Node| matches!(node, Node::File(inode) if inode.is_in_use());
        self.nodes.iter().filter(|(_, node)| used(node)).map(|(&id, _)| id).collect()
    }

    /// A path of a file or directory.
    pub fn path_of(&self, id: NodeId) -> Option<PathBuf> {
        if id == ROOT {
            return Some(PathBuf::from("/"));
        }
        let parents = self.nodes.iter().filter_map(|(&parent, node)| match node {
            Node::Directory(directory) => Some((parent, directory.names())),
            Node::File(_) => None,
        });
        let named = |(parent, names): (NodeId, &Names)| {
            let name = names.iter().find(|(_, named)| **named == id)?.0.clone();
            Some((parent, name))
        };
        let (parent, name) = parents.into_iter().find_map(named)?;
        Some(self.path_of(parent)?.join(name))
    }

    /// How many open files and mappings there are.
    pub fn open_handles(&self) -> u64 {
        let handles = |node: &Node| if let Node::File(inode) = node { inode.handles } else { 0 };
        self.nodes.values().map(handles).sum()
    }

    /// Forgets files that nobody can reach any more, whatever a crash brings back.
    pub fn sweep(&mut self) {
        let unused = |node: &Node| matches!(node, Node::File(inode) if !inode.is_in_use());
        let unused: Vec<_> = self.nodes.iter().filter(|(_, node)| unused(node)).map(|(&id, _)| id).collect();
        for id in unused {
            let named = |node: &Node| matches!(node, Node::Directory(names) if names.may_name(id));
            if !self.nodes.values().any(named) {
                self.nodes.remove(&id);
            }
        }
    }

    /// The disk after a crash, on which everything is durable.
    pub fn crashed(&self, fate: &mut Fate) -> Self {
        let mut after = Self::new(self.block_bytes, self.blocks_max.saturating_mul(self.block_bytes));
        (after.next_node, after.trace, after.facts) = (self.next_node, self.trace, self.facts.clone());
        self.crash_into(&mut after, fate, ROOT);
        after.blocks_used = after.nodes.values().map(Node::blocks).sum();
        after
    }

    /// The disk after the death of every process that used it.
    pub fn killed(&self) -> Self {
        let killed = |node: &Node| match node {
            Node::File(inode) => Node::File(inode.killed()),
            Node::Directory(directory) => Node::Directory(directory.killed()),
        };
        let nodes = self.nodes.iter().map(|(&id, node)| (id, killed(node))).collect();
        let mut after = Self {
            nodes,
            facts: self.facts.clone(),
            kill_at: None,
            killed: None,
            plan: Plan::default(),
            moments: None,
            ..*self
        };
        after.blocks_used = after.nodes.values().map(Node::blocks).sum();
        after.sweep();
        after
    }

    /// Makes a file's bytes and its length durable. It counts as a change: a kill may come before it.
    pub fn sync_file(&mut self, id: NodeId) -> io::Result<()> {
        self.take_change();
        self.note_change(id, &[], &[]);
        self.fail_sync(id)?;
        self.with_file(id, Inode::sync)
    }

    /// Makes the names of a directory durable, which counts as a change, too.
    pub fn sync_directory(&mut self, id: NodeId) -> io::Result<()> {
        self.take_change();
        self.note_change(id, &[], &[]);
        self.directory_mut(id)?.sync();
        Ok(())
    }

    /// Plans to take a picture of a kill when the change of that number is about to be made.
    pub fn kill_at(&mut self, change: u64) {
        self.kill_at = Some(change);
    }

    /// The picture that was taken.
    pub fn take_killed(&mut self) -> Option<Self> {
        self.killed.take().map(|killed| *killed)
    }

    /// Adds what a crash leaves of `node`, once, and of everything in it.
    fn crash_into(&self, after: &mut Self, fate: &mut Fate, id: NodeId) {
        match &self.nodes[&id] {
            Node::File(inode) => {
                let block_bytes = self.block_bytes;
                let mut bytes = || fate.bytes(inode.durable_bytes(), inode.journal());
                let survivor = after
                    .nodes
                    .entry(id)
                    .or_insert_with(|| Node::File(Inode::durable(Arc::new(bytes()), block_bytes)));
                if let Node::File(survivor) = survivor {
                    survivor.links += 1;
                }
            }
            Node::Directory(directory) => {
                let names = fate.names(directory.durable_names(), directory.journal());
                names.values().for_each(|&named| self.crash_into(after, fate, named));
                after.nodes.insert(id, Node::Directory(Directory::durable(names)));
            }
        }
    }

    /// Keeps each moment from now on.
    pub fn record(&mut self) {
        self.moments = Some(Vec::new());
    }

    /// The moments between all changes since [`record`](Self::record), the present one included.
    pub fn take_moments(&mut self) -> Vec<Moment> {
        let mut moments = self.moments.take().unwrap_or_default();
        moments.push(self.moment());
        moments
    }

    fn moment(&self) -> Moment {
        let mut moment = Moment {
            next_change: self.next_change,
            trace: self.change_trace,
            next_node: NodeId(self.next_node),
            block_bytes: self.block_bytes,
            capacity_bytes: self.blocks_max.saturating_mul(self.block_bytes),
            facts: self.facts.clone(),
            directories: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        for (&id, node) in &self.nodes {
            match node {
                Node::File(inode) => drop(moment.files.insert(id, inode.at_this_moment())),
                Node::Directory(directory) => drop(moment.directories.insert(id, directory.at_this_moment())),
            }
        }
        moment
    }

    fn take_change(&mut self) -> u64 {
        if self.moments.is_some() {
            let moment = self.moment();
            self.moments.get_or_insert_default().push(moment);
        }
        if self.kill_at.take_if(|change| *change == self.next_change).is_some() {
            self.killed = Some(Box::new(self.killed()));
        }
        self.next_change += 1;
        self.next_change - 1
    }
}

impl Node {
    fn blocks(&self) -> u64 {
        match self {
            Self::File(inode) if inode.is_in_use() => inode.blocks(),
            Self::File(_) => 0,
            Self::Directory(_) => 0,
        }
    }
}

/// The names along a path, whether it begins at the root or not.
fn names_of(path: &Path) -> io::Result<Vec<&str>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => names.push(name.to_str().ok_or(io::ErrorKind::InvalidInput)?),
            Component::ParentDir | Component::Prefix(_) => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(names)
}
