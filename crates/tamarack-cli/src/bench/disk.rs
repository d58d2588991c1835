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
    use super::*;

    #[test]
    fn what_was_there_before_and_after_counts() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("file");
        let ((), grown) = peak(directory.path(), || std::fs::write(&file, vec![1; 1 << 20]).expect("room"));
        assert!(grown >= 1 << 20, "{grown}");
        let ((), shrunk) = peak(directory.path(), || ());
        assert_eq!(shrunk, grown);
    }
}
