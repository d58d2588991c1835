//! The largest size of a directory, and of the memory of this process, while something goes on.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::resources;

/// How often it is looked.
const INTERVAL: Duration = Duration::from_millis(50);

/// The most that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peak {
    /// Bytes that a directory took up on disk.
    pub disk_bytes: u64,
    /// Bytes of memory that are not a part of any file. `None` where the operating system does not say.
    pub anonymous_bytes: Option<u64>,
}

impl Peak {
    /// What there is now.
    fn look(directory: &Path) -> Self {
        resources::look(|| Self {
            disk_bytes: resources::disk_bytes(directory),
            anonymous_bytes: resources::anonymous_bytes(),
        })
    }

    /// The larger one of each.
    fn or(self, other: Self) -> Self {
        Self {
            disk_bytes: self.disk_bytes.max(other.disk_bytes),
            anonymous_bytes: self.anonymous_bytes.max(other.anonymous_bytes),
        }
    }

    /// Runs `work`; returns its result, and the most that `directory` and the process took up meanwhile.
    pub fn during<T>(directory: &Path, work: impl FnOnce() -> T) -> (T, Self) {
        let (finished, working) = channel::<()>();
        std::thread::scope(|scope| {
            let sampler = scope.spawn(move || {
                let mut peak = Self::look(directory);
                while working.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    peak = peak.or(Self::look(directory));
                }
                peak.or(Self::look(directory))
            });
            let result = work();
            drop(finished);
            (result, sampler.join().expect("measuring does not panic"))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    #[test]
    fn what_was_there_before_and_after_counts() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut file = File::create(directory.path().join("file")).expect("the directory is ours");
        // A file system that compresses would make less of equal bytes, and one that allocates late nothing at once.
        let noise: Vec<u8> = (0..1_u64 << 17)
            .flat_map(|n| ((n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes())
            .collect();
        let write = || file.write_all(&noise).and_then(|()| file.sync_all()).expect("there is room");
        let ((), after) = Peak::during(directory.path(), write);
        assert!(after.disk_bytes >= 1 << 20, "{after:?}");
        let ((), before) = Peak::during(directory.path(), || ());
        assert!(before.disk_bytes >= 1 << 20, "{before:?}");
    }

    #[test]
    fn memory_that_is_gone_afterwards_counts() {
        const BYTES: usize = 256 << 20;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let before = resources::anonymous_bytes();
        let ((), peak) = Peak::during(directory.path(), || {
            let memory = std::hint::black_box(vec![1_u8; BYTES]);
            // Longer than who looks is likely to be kept from it.
            std::thread::sleep(40 * INTERVAL);
            drop(memory);
        });
        match before.zip(peak.anonymous_bytes) {
            // Other tests of the process give memory back meanwhile, but not that much.
            Some((before, peak)) => assert!(peak > before / 2 + BYTES as u64 / 2, "{before}, then {peak}"),
            None => println!("skipped: the system does not tell"),
        }
    }
}
