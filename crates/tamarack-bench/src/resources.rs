//! What a stretch of work cost, as the operating system counts it: time, processor time, bytes to and from
//! devices, and space on disk. Used by `bench` and `demo`; the engine's own counters are not trusted here.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Processor time of those who look, which is not of what is looked at, in nanoseconds.
static LOOKING: AtomicU64 = AtomicU64::new(0);

/// Looks: what that takes of the processor is counted as nobody's.
pub fn look<T>(looking: impl FnOnce() -> T) -> T {
    let (before, seen) = (processor_seconds(ClockId::ThreadCPUTime), looking());
    let nanos = (processor_seconds(ClockId::ThreadCPUTime) - before) * 1e9;
    LOOKING.fetch_add(nanos as u64, Ordering::Relaxed);
    seen
}

fn processor_seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The process's counters at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Resources {
    instant: Instant,
    cpu_seconds: f64,
    device: Option<Device>,
}

/// Bytes this process moved between memory and devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Device {
    written: u64,
    read: u64,
}

/// The difference between two moments.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    /// Wall-clock time.
    pub seconds: f64,
    /// Time of all threads on processors, in user and kernel mode, but for what looking took (see `look`).
    pub cpu_seconds: f64,
    /// Bytes written to devices: pages dirtied, less those that were dropped before they were written.
    /// `None` where the operating system does not say.
    pub device_write_bytes: Option<u64>,
    /// Bytes read from devices, likewise; reads that the page cache served do not count.
    pub device_read_bytes: Option<u64>,
}

impl Resources {
    /// The counters now.
    pub fn now() -> Self {
        let looking = LOOKING.load(Ordering::Relaxed) as f64 * 1e-9;
        let cpu_seconds = processor_seconds(ClockId::ProcessCPUTime) - looking;
        let device = std::fs::read_to_string("/proc/self/io").ok().and_then(|text| Device::parse(&text));
        Self { instant: Instant::now(), cpu_seconds, device }
    }

    /// What was spent since then.
    pub fn spent(&self) -> Spent {
        let now = Self::now();
        let difference =
            |field: fn(&Device) -> u64| Some(field(&now.device?).saturating_sub(field(&self.device?)));
        Spent {
            seconds: now.instant.duration_since(self.instant).as_secs_f64(),
            cpu_seconds: now.cpu_seconds - self.cpu_seconds,
            device_write_bytes: difference(|device| device.written),
            device_read_bytes: difference(|device| device.read),
        }
    }
}

impl Device {
    /// Reads the text of `/proc/self/io`.
    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            text.lines().find_map(|line| {
                let (field, number) = line.split_once(": ")?;
                (field == name).then(|| number.trim().parse::<u64>().ok())?
            })
        };
        let cancelled = field("cancelled_write_bytes")?;
        Some(Self { written: field("write_bytes")?.saturating_sub(cancelled), read: field("read_bytes")? })
    }
}

/// Bytes that everything under `path` occupies on disk, holes not counted.
pub fn disk_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    walkdir::WalkDir::new(path)
        .into_iter()
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .filter(|metadata| metadata.is_file())
        .map(|metadata| metadata.blocks() * 512)
        .sum()
}

/// Bytes of this process that are in memory and belong to no file: its heap and its stacks, not what it has mapped of the store.
/// `None` where the operating system does not say.
pub fn anonymous_bytes() -> Option<u64> {
    parse_anonymous(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads the text of `/proc/self/status`.
fn parse_anonymous(text: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: u64 = rest.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelled_writes_do_not_count() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 12288\n\
                    cancelled_write_bytes: 8192\n";
        assert_eq!(Device::parse(text), Some(Device { written: 4096, read: 4096 }));
        assert_eq!(Device::parse("read_bytes: 1\n"), None);
    }

    #[test]
    fn memory_of_files_does_not_count() {
        let text = "VmRSS:\t   12000 kB\nRssAnon:\t    8000 kB\nRssFile:\t    4000 kB\n";
        assert_eq!(parse_anonymous(text), Some(8000 * 1024));
        assert_eq!(parse_anonymous("VmRSS:\t   12000 kB\n"), None);
    }

    #[test]
    fn the_time_of_who_looks_is_nobodys() {
        const SECONDS: f64 = 0.02;
        let busy = || {
            let begun = processor_seconds(ClockId::ThreadCPUTime);
            while processor_seconds(ClockId::ThreadCPUTime) - begun < SECONDS {}
        };
        let counted = || {
            let counted = Resources::now().cpu_seconds;
            processor_seconds(ClockId::ProcessCPUTime) - counted
        };
        let before = LOOKING.load(Ordering::Relaxed);
        look(busy);
        let looking = (LOOKING.load(Ordering::Relaxed) - before) as f64 * 1e-9;
        assert!(looking >= SECONDS * 0.99, "{looking}");
        assert!(counted() >= SECONDS * 0.99, "it is left out");
    }

    #[test]
    fn counters_only_grow() {
        let before = Resources::now();
        let spent = before.spent();
        assert!(spent.seconds >= 0.0 && spent.cpu_seconds >= 0.0);
    }
}
