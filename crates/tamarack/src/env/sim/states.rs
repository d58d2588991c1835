//! Every state in which a crash may leave a disk, by what is in flight at a moment.
//!
//! [`CrashStates::all`] enumerates all combinations of the [`units`](super::units), if they are not too many.
//! [`CrashStates::sampled`] takes from any number of units those combinations that matter most: all moments in the past,
//! the same with one unit missing, each unit alone, each pair missing, and then random ones.

use std::collections::BTreeMap;
use std::rc::Rc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::directory::Names;
use super::disk::SimDisk;
use super::moment::Moment;
use super::random::Random;
use super::state::{NodeId, ROOT, State};
use super::units::{Arrival, FileChoice, FileUnits, all_names, names_with};
use crate::base::sync::Arc;

/// The names of each directory that can be reached.
type Tree = BTreeMap<NodeId, Names>;

/// What a crash may leave of a file.
#[derive(Debug)]
struct FileImage {
    bytes: Arc<Vec<u8>>,
    digest: u64,
}

/// One state of the disk after a crash.
#[derive(Debug)]
pub struct CrashState {
    tree: Rc<Tree>,
    files: Vec<(NodeId, Rc<FileImage>)>,
    digest: u64,
}

/// Enumerates. Keeps what it knows of files, for most are the same a moment later.
#[derive(Debug)]
pub struct CrashStates {
    combinations_max: u64,
    known: BTreeMap<NodeId, Known>,
}

#[derive(Debug)]
struct Known {
    version: u64,
    /// Whether the last of its writes is just being made.
    caught: bool,
    images: Option<Rc<Vec<Rc<FileImage>>>>,
}

/// A unit of the whole disk.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Name(NodeId, usize),
    Shape(NodeId),
    Sector(NodeId, u64, Arrival),
}

impl CrashState {
    /// A digest of all names, lengths and bytes.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The disk of `moment` in this state, in a world of its own.
    pub fn disk(&self, moment: &Moment) -> SimDisk {
        let files = self.files.iter().map(|(id, image)| (*id, Arc::clone(&image.bytes))).collect();
        SimDisk::from_image(State::from_image(moment, &self.tree, files), self.digest)
    }
}

impl CrashStates {
    /// Enumerates where there are no more than so many combinations.
    pub fn new(combinations_max: u64) -> Self {
        Self { combinations_max, known: BTreeMap::new() }
    }

    /// Every state in which a crash at `moment` may leave the disk; `None` if there are too many.
    pub fn all(&mut self, moment: &Moment) -> Option<Vec<CrashState>> {
        let trees = self.trees(moment)?;
        let mut states = Vec::new();
        for tree in trees {
            let files = files_of(&tree);
            let mut images = Vec::with_capacity(files.len());
            let mut count = 1u64;
            for &id in &files {
                let all = self.images(moment, id)?;
                count = count.saturating_mul(all.len() as u64);
                images.push(all);
            }
            if count.saturating_add(states.len() as u64) > self.combinations_max {
                return None;
            }
            let names = name_digests(&tree);
            let tree = Rc::new(tree);
            for mut number in 0..count {
                let mut pick = |all: &Rc<Vec<Rc<FileImage>>>| {
                    let image = &all[(number % all.len() as u64) as usize];
                    number /= all.len() as u64;
                    Rc::clone(image)
                };
                let picked = files.iter().zip(&images).map(|(&id, all)| (id, pick(all))).collect();
                states.push(CrashState::new(&tree, &names, picked));
            }
        }
        Some(states)
    }

    /// The combinations of names; `None` if there are too many.
    fn trees(&self, moment: &Moment) -> Option<Vec<Tree>> {
        let mut trees = vec![Tree::new()];
        for (&id, directory) in &moment.directories {
            let all = all_names(directory)?;
            if (all.len() * trees.len()) as u64 > self.combinations_max {
                return None;
            }
            let with = |tree: &Tree| -> Vec<Tree> {
                let extended = |names: &Names| {
                    let mut tree = tree.clone();
                    tree.insert(id, names.clone());
                    tree
                };
                all.iter().map(extended).collect()
            };
            trees = trees.iter().flat_map(with).collect();
        }
        let mut reachable: Vec<_> = trees.into_iter().map(prune).collect();
        reachable.sort();
        reachable.dedup();
        Some(reachable)
    }

    /// Everything that a crash may leave of a file; `None` if that is too much.
    fn images(&mut self, moment: &Moment, id: NodeId) -> Option<Rc<Vec<Rc<FileImage>>>> {
        let file = &moment.files[&id];
        let caught = file.journal.last().is_some_and(|last| last.at + 1 == moment.next_change);
        let known =
            self.known.get(&id).filter(|known| known.version == file.version && known.caught == caught);
        if let Some(known) = known {
            return known.images.clone();
        }
        let units = FileUnits::of(file, moment.next_change);
        let images = (units.combinations() <= self.combinations_max).then(|| {
            let mut images = BTreeMap::new();
            for number in 0..units.combinations() {
                let image = FileImage::new(units.bytes(file, &units.choice(number)));
                images.entry(image.digest).or_insert_with(|| Rc::new(image));
            }
            Rc::new(images.into_values().collect::<Vec<_>>())
        });
        self.known.insert(id, Known { version: file.version, caught, images: images.clone() });
        images
    }

    /// Up to `count` states in which a crash at `moment` may leave the disk; the random ones among them follow from
    /// `seed`.
    pub fn sampled(&self, moment: &Moment, seed: u64, count: usize) -> Vec<CrashState> {
        let units = Units::of(moment);
        let mut random = Random::new(seed);
        units.selections(count, &mut random).iter().map(|selected| units.state(moment, selected)).collect()
    }
}

impl CrashState {
    fn new(tree: &Rc<Tree>, names: &BTreeMap<NodeId, Vec<u64>>, files: Vec<(NodeId, Rc<FileImage>)>) -> Self {
        // A sum: each name adds its own, in any order.
        let mut digest = names.get(&ROOT).map_or(0, |directories| {
            directories.iter().fold(0u64, |sum, directory| sum.wrapping_add(*directory))
        });
        for (id, image) in &files {
            for name in &names[id] {
                digest = digest.wrapping_add(mix(*name, image.digest));
            }
        }
        Self { tree: Rc::clone(tree), files, digest }
    }
}

impl FileImage {
    fn new(bytes: Vec<u8>) -> Self {
        let digest = xxh3_64_with_seed(&bytes, bytes.len() as u64);
        Self { bytes: Arc::new(bytes), digest }
    }
}

fn mix(left: u64, right: u64) -> u64 {
    xxh3_64_with_seed(&right.to_le_bytes(), left)
}

/// The part of a tree that can be reached from its root.
fn prune(mut tree: Tree) -> Tree {
    let mut reached = Tree::new();
    let mut next = vec![ROOT];
    while let Some(id) = next.pop() {
        if let Some(names) = tree.remove(&id) {
            next.extend(names.values());
            reached.insert(id, names);
        }
    }
    reached
}

/// The files that a tree names.
fn files_of(tree: &Tree) -> Vec<NodeId> {
    let mut files: Vec<_> =
        tree.values().flat_map(Names::values).filter(|id| !tree.contains_key(id)).copied().collect();
    files.sort();
    files.dedup();
    files
}

/// Digests of the paths of each file, and under the root those of all directories.
fn name_digests(tree: &Tree) -> BTreeMap<NodeId, Vec<u64>> {
    let mut digests: BTreeMap<NodeId, Vec<u64>> = BTreeMap::new();
    let mut next = vec![(ROOT, 0)];
    while let Some((directory, path)) = next.pop() {
        digests.entry(ROOT).or_default().push(mix(path, 1));
        for (name, &id) in tree.get(&directory).into_iter().flatten() {
            let path = xxh3_64_with_seed(name.as_bytes(), path);
            if tree.contains_key(&id) {
                next.push((id, path));
            } else {
                digests.entry(id).or_default().push(path);
            }
        }
    }
    digests
}

/// All units of a disk, in the order in which they came to be.
struct Units {
    all: Vec<(u64, Unit)>,
    of_files: BTreeMap<NodeId, FileUnits>,
}

impl Units {
    fn of(moment: &Moment) -> Self {
        let mut all = Vec::new();
        for (&id, directory) in &moment.directories {
            let changes = directory.journal.iter().enumerate();
            all.extend(changes.map(|(index, change)| (change.at, Unit::Name(id, index))));
        }
        let of_files: BTreeMap<_, _> =
            moment.files.iter().map(|(&id, file)| (id, FileUnits::of(file, moment.next_change))).collect();
        for (&id, units) in &of_files {
            let at = |effect: usize| moment.files[&id].journal[effect].at;
            all.extend(units.shape.iter().map(|&effect| (at(effect), Unit::Shape(id))));
            for (&sector, arrivals) in &units.sectors {
                let unit = |arrival: &Arrival| (at(arrival.effect), Unit::Sector(id, sector, *arrival));
                all.extend(arrivals.iter().map(unit));
            }
        }
        all.sort_by_key(|(at, _)| *at);
        Self { all, of_files }
    }

    /// Up to `count` selections of units: the regular ones, evenly thinned out if they are too many, and random ones.
    fn selections(&self, count: usize, random: &mut Random) -> Vec<Vec<bool>> {
        let units = self.all.len();
        let mut regular = Vec::new();
        for end in 0..=units {
            regular.push((0..units).map(|unit| unit < end).collect::<Vec<bool>>());
            let missing = |one: usize| (0..units).map(|unit| unit < end && unit != one).collect();
            regular.extend((0..end.saturating_sub(1)).map(missing));
        }
        regular.extend((0..units).map(|one| (0..units).map(|unit| unit == one).collect()));
        let pairs = (0..units).flat_map(|first| (0..first).map(move |second| (first, second)));
        regular.extend(pairs.map(|pair| (0..units).map(|unit| unit != pair.0 && unit != pair.1).collect()));
        let regular_count = regular.len().min(count - count / 4);
        let step = regular.len() as f64 / regular_count.max(1) as f64;
        let mut chosen: Vec<Vec<bool>> =
            (0..regular_count).map(|number| regular[(number as f64 * step) as usize].clone()).collect();
        while chosen.len() < count {
            let odds = 1 + random.below(4);
            chosen.push((0..units).map(|_| !random.one_in(1 + odds)).collect());
        }
        chosen
    }

    /// The state in which what was selected has arrived, as far as it can without the rest.
    fn state(&self, moment: &Moment, selected: &[bool]) -> CrashState {
        let mut names: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
        let mut choices: BTreeMap<NodeId, FileChoice> = BTreeMap::new();
        let mut unshaped = std::collections::BTreeSet::new();
        for ((_, unit), &arrives) in self.all.iter().zip(selected) {
            match *unit {
                Unit::Name(id, index) if arrives => names.entry(id).or_default().push(index),
                Unit::Shape(id) if arrives && !unshaped.contains(&id) => {
                    choices.entry(id).or_default().shape += 1
                }
                Unit::Shape(id) => drop(unshaped.insert(id)),
                Unit::Sector(id, sector, arrival) if arrives => {
                    choices.entry(id).or_default().sectors.insert(sector, arrival);
                }
                Unit::Name(..) | Unit::Sector(..) => {}
            }
        }
        let arrived = |id: NodeId, index: usize| names.get(&id).is_some_and(|all| all.contains(&index));
        let tree = prune(
            moment
                .directories
                .iter()
                .map(|(&id, directory)| (id, names_with(directory, |index| arrived(id, index))))
                .collect(),
        );
        let nothing = FileChoice::default();
        let image = |id: NodeId| {
            let choice = choices.get(&id).unwrap_or(&nothing);
            Rc::new(FileImage::new(self.of_files[&id].bytes(&moment.files[&id], choice)))
        };
        let files = files_of(&tree).into_iter().map(|id| (id, image(id))).collect();
        let digests = name_digests(&tree);
        CrashState::new(&Rc::new(tree), &digests, files)
    }
}
