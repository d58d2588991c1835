//! A temporary directory in which the program is run, and what a run gave.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A fresh directory; the program runs in it.
pub struct World {
    directory: tempfile::TempDir,
}

/// What one run gave.
#[derive(Debug)]
pub struct Run {
    /// The exit status.
    pub status: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error, as text.
    pub stderr: String,
}

impl World {
    /// An empty directory.
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    /// The path of `name` in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The program with `arguments`, not started yet.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tamarack"));
        command.args(arguments).current_dir(self.directory.path());
        command
    }

    /// Runs the program with nothing on standard input.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Run {
        self.run_with_input(arguments, b"")
    }

    /// Runs the program with `input` on standard input.
    pub fn run_with_input<A: AsRef<OsStr>>(&self, arguments: &[A], input: &[u8]) -> Run {
        let mut child = self.start(arguments);
        let mut stdin = child.stdin.take().expect("standard input is piped");
        let input = input.to_vec();
        // A program that does not read its input closes the pipe; that is its right.
        let writer = std::thread::spawn(move || stdin.write_all(&input).ok());
        let output = child.wait_with_output().expect("the program runs");
        writer.join().expect("the writer does not panic");
        Run {
            status: output.status.code().expect("the program was not killed"),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).expect("messages are UTF-8"),
        }
    }

    /// Starts the program with all its streams piped.
    pub fn start<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Child {
        self.command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    }

    /// Runs the program, which must succeed.
    pub fn ok<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Run {
        self.run(arguments).expect_status(0)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("the directory is ours");
    }

    /// Reads a file.
    pub fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        std::fs::read(self.directory.path().join(name)).expect("the file is there")
    }
}

impl Drop for World {
    /// Makes directories writable again that a test made read-only, so that they can be removed.
    fn drop(&mut self) {
        for entry in walkdir::WalkDir::new(self.directory.path()).into_iter().flatten() {
            if entry.file_type().is_dir() {
                std::fs::set_permissions(entry.path(), Permissions::from_mode(0o700)).ok();
            }
        }
    }
}

impl Run {
    /// Demands an exit status.
    pub fn expect_status(self, status: i32) -> Self {
        assert_eq!(self.status, status, "stdout: {}\nstderr: {}", self.text(), self.stderr);
        self
    }

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard output as JSON lines.
    pub fn json_lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    /// Standard output as one JSON object.
    pub fn json(&self) -> Value {
        let mut lines = self.json_lines();
        assert_eq!(lines.len(), 1, "{}", self.text());
        lines.remove(0)
    }
}
