//! Processes that a test starts to kill them: the test's own program, running another of its tests; and what is left when
//! something was wrong: the directory, and the command that tries again.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::fast_directory;

/// This program, to run the test `name` alone. What it writes to its standard error can be read as it is written.
pub fn this_program(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).stdout(Stdio::null());
    command
}

/// A directory that outlives a failure.
pub struct Evidence(Option<tempfile::TempDir>);

impl Evidence {
    /// An empty one.
    pub fn new() -> Self {
        Self(Some(fast_directory()))
    }

    /// A file or directory of that name in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.as_ref().expect("kept only when it is dropped").path().join(name)
    }
}

impl Drop for Evidence {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let kept = self.0.take().expect("dropped once").keep();
            eprintln!("the files are kept: {}", kept.display());
        }
    }
}

/// The command that repeats what goes on; told when that fails.
pub struct Replay(pub String);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("repeat with\n  {}", self.0);
        }
    }
}
