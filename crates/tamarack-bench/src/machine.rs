//! The machine on which something is measured, as far as the operating system tells.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The machine. What could not be found out is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model.
    pub cpu: Option<String>,
    /// Processors that this process may use.
    pub cores: Option<usize>,
    pub memory_bytes: Option<u64>,
    pub kernel: Option<String>,
    /// Type and options of the file system on which the data are.
    pub file_system: Option<String>,
    /// The device below it.
    pub device: Option<String>,
}

impl Machine {
    /// This machine, and the file system that `path` is on or would be on.
    pub fn of(path: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let existing = path.ancestors().find_map(|path| fs::canonicalize(path).ok());
        // A relative path that does not exist yet has no ancestor but the empty one.
        let existing = existing.or_else(|| fs::canonicalize(".").ok());
        let mount = existing.as_ref().zip(read("/proc/self/mountinfo"));
        let mount = mount.and_then(|(path, mounts)| Mount::of(path, &mounts));
        let device = existing.and_then(|path| fs::metadata(path).ok()).map(|metadata| metadata.dev());
        Self {
            cpu: read("/proc/cpuinfo").and_then(|text| field(&text, "model name")),
            cores: std::thread::available_parallelism().ok().map(usize::from),
            memory_bytes: read("/proc/meminfo").and_then(|text| memory_bytes(&text)),
            kernel: read("/proc/sys/kernel/osrelease").map(|release| format!("Linux {}", release.trim())),
            file_system: mount.as_ref().map(|mount| format!("{} ({})", mount.kind, mount.options)),
            device: mount.map(|mount| describe_device(&mount.source, device.unwrap_or(0))),
        }
    }

    /// What the machine is called and what is known of it.
    pub(crate) fn facts(&self) -> [(&'static str, Option<String>); 6] {
        let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
        [
            ("cpu", self.cpu.clone()),
            ("cores", self.cores.map(|cores| cores.to_string())),
            ("memory", self.memory_bytes.map(gib)),
            ("kernel", self.kernel.clone()),
            ("file system", self.file_system.clone()),
            ("device", self.device.clone()),
        ]
    }

    /// In what it differs from another one, if it does.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let text = |fact: Option<String>| fact.unwrap_or_else(|| "unknown".to_owned());
        let mut facts = self.facts().into_iter().zip(other.facts());
        let ((name, ours), (_, theirs)) = facts.find(|(ours, theirs)| ours != theirs)?;
        Some(format!("{name}: {}, {}", text(ours), text(theirs)))
    }
}

/// The value of the first line that begins with `name` in a text of names and values.
fn field(text: &str, name: &str) -> Option<String> {
    let value = |line: &str| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(value)
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let kib: u64 = field(meminfo, "MemTotal")?.strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// A line of `mountinfo`.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    kind: String,
    source: String,
    options: String,
}

impl Mount {
    /// The one that a path without symbolic links is on: that of the longest mount point, and of equal ones the last.
    fn of(path: &Path, mountinfo: &str) -> Option<Self> {
        let mounts = mountinfo.lines().filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let [_, _, _, _, point, options, ..] = left.split(' ').collect::<Vec<_>>()[..] else {
                return None;
            };
            let [kind, source, ..] = right.split(' ').collect::<Vec<_>>()[..] else { return None };
            let point = PathBuf::from(point.replace("\\040", " "));
            let mount = Self { kind: kind.into(), source: source.into(), options: options.into() };
            path.starts_with(&point).then_some((point, mount))
        });
        mounts.max_by_key(|(point, _)| point.components().count()).map(|(_, mount)| mount)
    }
}

/// The block device's name, model and kind, as far as `sysfs` knows the number.
fn describe_device(source: &str, number: u64) -> String {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let base = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // A partition's directory lies in that of its disk.
    let disk = if base.join("partition").is_file() { base.join("..") } else { base };
    let read = |name: &str| fs::read_to_string(disk.join(name)).ok().map(|text| text.trim().to_owned());
    let kind = read("queue/rotational").map(|flag| if flag == "1" { "rotational" } else { "not rotational" });
    let read_ahead = read("queue/read_ahead_kb").map(|kib| format!("read-ahead {kib} KiB"));
    let facts = [read("device/model"), kind.map(str::to_owned), read_ahead];
    let facts: Vec<String> = facts.into_iter().flatten().filter(|fact| !fact.is_empty()).collect();
    if facts.is_empty() { source.to_owned() } else { format!("{source} ({})", facts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
28 27 0:5 / /data rw,noatime - xfs /dev/sdb1 rw
29 27 0:6 / /data/my\\040files rw - btrfs /dev/sdc rw
30 27 0:7 / /data rw,nodev - tmpfs tmpfs rw
broken
";

    #[test]
    fn a_path_is_on_the_nearest_mount_and_there_on_the_last() {
        let kind = |path: &str| Mount::of(Path::new(path), MOUNTS).map(|mount| mount.kind);
        assert_eq!(kind("/var/db").as_deref(), Some("ext4"));
        assert_eq!(kind("/database").as_deref(), Some("ext4"));
        assert_eq!(kind("/data/my files/db").as_deref(), Some("btrfs"));
        assert_eq!(kind("/data/db").as_deref(), Some("tmpfs"));
        let root = Mount { kind: "ext4".into(), source: "/dev/vda".into(), options: "rw,relatime".into() };
        assert_eq!(Mount::of(Path::new("/"), MOUNTS), Some(root));
        assert_eq!(Mount::of(Path::new("/"), "broken"), None);
    }

    #[test]
    fn processor_and_memory_are_read() {
        assert_eq!(field("processor\t: 0\nmodel name\t: A: B\n", "model name").as_deref(), Some("A: B"));
        assert_eq!(memory_bytes("MemFree: 3 kB\nMemTotal:       24682752 kB\n"), Some(24_682_752 * 1024));
        assert_eq!(memory_bytes("MemTotal: lots\n"), None);
    }

    #[test]
    fn this_machine_has_a_kernel_and_a_file_system_even_where_nothing_is_yet() {
        let machine = Machine::of(Path::new("not/there/yet"));
        assert!(machine.cores.is_some_and(|cores| cores > 0), "{machine:?}");
        assert!(machine.kernel.is_some() && machine.file_system.is_some(), "{machine:?}");
        assert_eq!(machine.difference(&machine), None);
    }
}
