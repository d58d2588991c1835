//! The largest size of a directory while something goes on in it.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::resources;

/// How often the directory is measured.
const INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work`; returns its result, and the most bytes that `directory` took up on disk meanwhile.
pub fn peak<T>(directory: &Path, work: impl FnOnce() -> T) -> (T, u64) {
    let (finished, working) = channel::<()>();
    std::thread::scope(|scope| {
        let sampler = scope.spawn(move || {
            let mut peak = resources::disk_bytes(directory);
            while working.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                peak = peak.max(resources::disk_bytes(directory));
            }
            peak.max(resources::disk_bytes(directory))
        });
        let result = work();
        drop(finished);
        (result, sampler.join().expect("measuring does not panic"))
    })
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
        let ((), after) = peak(directory.path(), write);
        assert!(after >= 1 << 20, "{after}");
        let ((), before) = peak(directory.path(), || ());
        assert!(before >= 1 << 20, "{before}");
    }
}
