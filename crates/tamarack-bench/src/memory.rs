//! A limit on the memory of this process, page cache included, by a control group of Linux.
//!
//! The process makes a group of its own below one that it may write to, sets the limit, and moves into it; what it and its
//! children read and write from then on counts. Both generations of control groups are served. What was in the page
//! cache before would not count, and so is evicted, as far as it belongs to the store.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cache;

/// How much memory there may be: the argument that all programs that measure have in common.
#[derive(Debug, Clone, Args)]
pub struct Memory {
    /// Limit the memory of this process to MIB MiB, page cache included, so that data can exceed it. Needs a control group
    /// of Linux, which root may make; where that cannot be had, nothing is run. A limit below what the store takes for itself
    /// makes the kernel kill the process
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    memory_max: Option<u64>,
}

impl Memory {
    /// Sets the limit, if there is to be one, for a store in `path`. To be called before the store is opened.
    ///
    /// # Errors
    /// As for [`MemoryLimit::enter`].
    pub fn limit(&self, path: &Path) -> Result<Option<MemoryLimit>, String> {
        self.memory_max.map(|mib| MemoryLimit::enter(mib, path)).transpose()
    }
}

/// A limit. It ends when this is dropped: the process moves back, and its group is removed.
#[derive(Debug)]
pub struct MemoryLimit {
    group: PathBuf,
    before: PathBuf,
}

/// The group of the memory controller that a process is in, as `/proc` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// Where the hierarchy is mounted.
    root: PathBuf,
    /// The group of the process, somewhere below.
    group: PathBuf,
    generation: Generation,
}

/// Of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generation {
    First,
    Second,
}

/// What the names of our groups begin with; the number of the process follows.
const NAME: &str = "tamarack-bench-";

impl MemoryLimit {
    /// Limits the memory of this process and of the children that it starts from now on to `mib` MiB, and takes the files
    /// under `store` out of the page cache, if there are any. Blocks until these are durable.
    ///
    /// # Errors
    /// If there is no memory controller, or the process may not use it: the text says why, and what can be done.
    pub fn enter(mib: u64, store: &Path) -> Result<Self, String> {
        if store.exists() {
            cache::evict(store).map_err(|error| format!("cannot evict {}: {error}", store.display()))?;
        }
        let advice = |reason: String| {
            format!(
                "cannot limit the memory to {mib} MiB: {reason}; run as root, or leave --memory-max out and run under \
                 `systemd-run --user --scope -p MemoryMax={mib}M -p MemorySwapMax=0`"
            )
        };
        let place = Place::own().map_err(advice)?;
        place.enter(mib, std::process::id()).map_err(advice)
    }

    /// The limit that this process is under, whoever has set it: in bytes, page cache included.
    pub fn current() -> Option<u64> {
        Place::own().ok()?.limits().min()
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        let back = fs::write(self.before.join("cgroup.procs"), std::process::id().to_string());
        // Nobody can be told here, and it harms nobody: the next process that wants a limit removes what is left.
        back.and_then(|()| fs::remove_dir(&self.group)).ok();
    }
}

impl Place {
    /// That of this process.
    fn own() -> Result<Self, String> {
        let read =
            |path: &str| fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"));
        let place = Self::of(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?);
        place.ok_or_else(|| "no control group of memory is mounted here".to_owned())
    }

    /// The limits of the group and of those above it, in bytes.
    fn limits(&self) -> impl Iterator<Item = u64> {
        // What stands for none in the first generation; in the second it is a word.
        const NONE: u64 = 1 << 60;
        let name = match self.generation {
            Generation::First => "memory.limit_in_bytes",
            Generation::Second => "memory.max",
        };
        let groups = self.group.ancestors().take_while(|group| group.starts_with(&self.root));
        let limit = move |group: &Path| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
        groups.filter_map(limit).filter(|limit| *limit < NONE)
    }

    /// From the texts of `/proc/self/mountinfo` and `/proc/self/cgroup`; the first generation counts where it has the controller.
    fn of(mounts: &str, groups: &str) -> Option<Self> {
        let first =
            |(_, controllers, _): &(&str, &str, &str)| controllers.split(',').any(|name| name == "memory");
        let second = |(number, controllers, _): &(&str, &str, &str)| *number == "0" && controllers.is_empty();
        let lines: Vec<(&str, &str, &str)> = groups
            .lines()
            .filter_map(|line| {
                let (number, rest) = line.split_once(':')?;
                let (controllers, path) = rest.split_once(':')?;
                Some((number, controllers, path))
            })
            .collect();
        let in_first = lines.iter().find(|line| first(line)).map(|line| (line.2, Generation::First));
        let in_second = lines.iter().find(|line| second(line)).map(|line| (line.2, Generation::Second));
        let (path, generation) = in_first.or(in_second)?;
        let (mounted, root) = mounts.lines().find_map(|line| mount(line, generation))?;
        // In a container, only a part of the hierarchy may be mounted.
        let below = Path::new(path).strip_prefix(&mounted).unwrap_or(Path::new(path));
        let group = root.join(below.strip_prefix("/").unwrap_or(below));
        Some(Self { root, group, generation })
    }

    fn enter(&self, mib: u64, process: u32) -> Result<MemoryLimit, String> {
        // Next to where the process is, the limits of the groups above hold as well. A group of the second generation that
        // has processes cannot have limited children, so that one further up may have to do.
        let parents: Vec<&Path> =
            self.group.ancestors().take_while(|group| group.starts_with(&self.root)).collect();
        let mut reasons = Vec::new();
        for parent in parents {
            match self.enter_below(parent, mib, process) {
                Ok(limit) => return Ok(limit),
                Err(reason) => reasons.push(reason),
            }
        }
        reasons.dedup();
        Err(reasons.into_iter().next().unwrap_or_else(|| "there is no group to be below".to_owned()))
    }

    fn enter_below(&self, parent: &Path, mib: u64, process: u32) -> Result<MemoryLimit, String> {
        remove_left_over(parent);
        let group = parent.join(format!("{NAME}{process}"));
        let failed = |what: &str| {
            let what = format!("{what} {}", group.display());
            move |error: io::Error| format!("{what}: {error}")
        };
        fs::create_dir(&group).map_err(failed("make the control group"))?;
        let entered = self.limit(&group, mib).map_err(failed("set the limit of")).and_then(|()| {
            fs::write(group.join("cgroup.procs"), process.to_string()).map_err(failed("move into"))
        });
        match entered {
            Ok(()) => Ok(MemoryLimit { group, before: self.group.clone() }),
            Err(reason) => {
                fs::remove_dir(&group).map_err(failed("remove"))?;
                Err(reason)
            }
        }
    }

    /// Sets the limit, and takes the use of swap space away where that is counted.
    fn limit(&self, group: &Path, mib: u64) -> io::Result<()> {
        let bytes = (mib << 20).to_string();
        let (memory, swap, none) = match self.generation {
            Generation::First => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes.as_str()),
            Generation::Second => ("memory.max", "memory.swap.max", "0"),
        };
        if !group.join(memory).is_file() {
            return Err(io::Error::other("the groups below this one have no memory controller"));
        }
        fs::write(group.join(memory), &bytes)?;
        if group.join(swap).is_file() { fs::write(group.join(swap), none) } else { Ok(()) }
    }
}

/// The part of the hierarchy that a line of `mountinfo` mounts, and where, if it is that of the memory controller.
fn mount(line: &str, generation: Generation) -> Option<(PathBuf, PathBuf)> {
    let (left, right) = line.split_once(" - ")?;
    let [_, _, _, part, point, ..] = left.split(' ').collect::<Vec<_>>()[..] else { return None };
    let mut right = right.split(' ');
    let kind = right.next()?;
    let options = right.next_back()?;
    let fits = match generation {
        Generation::First => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
        Generation::Second => kind == "cgroup2",
    };
    fits.then(|| (PathBuf::from(part), PathBuf::from(point)))
}

/// Removes groups whose processes were killed before they could.
fn remove_left_over(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            // Somebody else may be faster, or may be the only one who is allowed to.
            fs::remove_dir(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const SECOND: &str = "35 31 0:32 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_group_is_found_in_either_generation() {
        let place = |mounts, groups| Place::of(mounts, groups).map(|place| (place.group, place.generation));
        let expected = |path: &str, generation| Some((PathBuf::from(path), generation));
        assert_eq!(
            place(FIRST, "5:cpu:/\n4:memory:/a/b\n0::/c\n"),
            expected("/sys/fs/cgroup/memory/a/b", Generation::First)
        );
        assert_eq!(
            place(SECOND, "0::/user.slice/x.scope\n"),
            expected("/sys/fs/cgroup/user.slice/x.scope", Generation::Second)
        );
        assert_eq!(place(SECOND, "0::/\n"), expected("/sys/fs/cgroup", Generation::Second));
        let container = "35 31 0:32 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        assert_eq!(
            place(container, "4:memory:/docker/1/in\n"),
            expected("/sys/fs/cgroup/memory/in", Generation::First)
        );
        assert_eq!(place("", "0::/\n"), None);
        assert_eq!(place(FIRST, ""), None);
    }

    /// A directory that looks like a hierarchy with a group `own`; what the kernel would put into new groups is missing.
    fn hierarchy() -> (tempfile::TempDir, Place) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (root, group) = (directory.path().to_owned(), directory.path().join("own"));
        fs::create_dir(&group).expect("the directory is ours");
        (directory, Place { root, group, generation: Generation::Second })
    }

    #[test]
    fn a_group_without_the_controller_is_refused_and_removed() {
        let (_directory, place) = hierarchy();
        let reason = place.enter(64, 7).expect_err("there is no memory.max");
        assert!(
            reason.contains("own/tamarack-bench-7") && reason.contains("no memory controller"),
            "{reason}"
        );
        let left = |path: &Path| fs::read_dir(path).expect("it is there").count();
        assert_eq!((left(&place.group), left(&place.root)), (0, 1));
    }

    #[test]
    fn the_limit_and_no_swap_space_are_written() {
        let (_directory, place) = hierarchy();
        for (generation, files) in [
            (Generation::Second, [("memory.max", "67108864"), ("memory.swap.max", "0")]),
            (
                Generation::First,
                [("memory.limit_in_bytes", "67108864"), ("memory.memsw.limit_in_bytes", "67108864")],
            ),
        ] {
            for (name, _) in files {
                fs::write(place.group.join(name), "max").expect("the directory is ours");
            }
            Place { generation, ..place.clone() }.limit(&place.group, 64).expect("the files are there");
            for (name, text) in files {
                assert_eq!(fs::read_to_string(place.group.join(name)).expect("it is there"), text, "{name}");
            }
        }
    }

    #[test]
    fn the_limits_above_are_seen() {
        let (_directory, place) = hierarchy();
        assert_eq!(place.limits().count(), 0);
        fs::write(place.group.join("memory.max"), "max\n").expect("the directory is ours");
        assert_eq!(place.limits().count(), 0);
        fs::write(place.root.join("memory.max"), "4096\n").expect("the directory is ours");
        assert_eq!(place.limits().collect::<Vec<_>>(), [4096]);
    }

    #[test]
    fn groups_of_processes_that_are_gone_are_removed() {
        let (_directory, place) = hierarchy();
        let (gone, ours) = (u32::MAX, std::process::id());
        for name in [format!("{NAME}{gone}"), format!("{NAME}{ours}"), "other".to_owned()] {
            fs::create_dir(place.group.join(name)).expect("the directory is ours");
        }
        remove_left_over(&place.group);
        let is_left = |name: &str| place.group.join(name).exists();
        assert!(!is_left(&format!("{NAME}{gone}")) && is_left(&format!("{NAME}{ours}")) && is_left("other"));
    }

    #[test]
    fn who_may_not_make_a_group_is_told_so() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path().join("missing");
        let place = Place { group: root.clone(), root, generation: Generation::First };
        let reason = place.enter(64, 7).expect_err("it cannot be made");
        assert!(reason.starts_with("make the control group"), "{reason}");
    }
}
