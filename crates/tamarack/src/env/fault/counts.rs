//! Counters by kind of call and path.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::Call;

/// All counters of one world.
#[derive(Debug, Default)]
pub struct Counts {
    by_path: HashMap<PathBuf, HashMap<Call, Count>>,
}

/// One counter.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Calls.
    pub calls: u64,
    /// Bytes that they moved.
    pub bytes: u64,
}

impl Counts {
    /// Counts a call.
    pub fn add_call(&mut self, call: Call, path: &Path) {
        self.entry(call, path).calls += 1;
    }

    /// Counts what a call moved.
    pub fn add_bytes(&mut self, call: Call, path: &Path, bytes: u64) {
        self.entry(call, path).bytes += bytes;
    }

    /// The sum over all paths that end with `suffix`.
    pub fn sum(&self, call: Call, suffix: &str) -> Count {
        let mut sum = Count::default();
        for (path, counts) in &self.by_path {
            if let Some(count) = counts.get(&call).filter(|_| ends_with(path, suffix)) {
                sum.calls += count.calls;
                sum.bytes += count.bytes;
            }
        }
        sum
    }

    fn entry(&mut self, call: Call, path: &Path) -> &mut Count {
        self.by_path.entry(path.to_owned()).or_default().entry(call).or_default()
    }
}

/// Whether a path ends with the bytes of `suffix`, not necessarily at a component's start.
pub fn ends_with(path: &Path, suffix: &str) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(suffix.as_bytes())
}
