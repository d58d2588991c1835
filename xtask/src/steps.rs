//! Steps of a command: each prints its name, what came of it and how long it took. A failed step does not keep
//! the next ones from running; the command fails at the end.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::finding::Finding;

/// The steps run so far.
#[derive(Default)]
pub struct Steps {
    failed: Vec<&'static str>,
}

impl Steps {
    /// Runs a cargo command, whose output is shown only when it fails.
    pub fn run_quietly(&mut self, name: &'static str, command: &mut Command) -> io::Result<()> {
        let started = begin(name)?;
        if io::stdout().is_terminal() {
            command.env("CARGO_TERM_COLOR", "always");
        }
        let output = command.output()?;
        self.end(name, started, output.status.success())?;
        if !output.status.success() {
            io::stdout().write_all(&output.stdout)?;
            io::stdout().write_all(&output.stderr)?;
        }
        Ok(())
    }

    /// Runs a cargo command, whose output is shown as it comes.
    pub fn run_openly(&mut self, name: &'static str, command: &mut Command) -> io::Result<()> {
        println!("==> {name}");
        let started = Instant::now();
        let status = command.status()?;
        print!("==> {name}: ");
        self.end(name, started, status.success())
    }

    /// Runs a check of our own and prints what it finds.
    pub fn run_check(&mut self, name: &'static str, check: impl FnOnce() -> Vec<Finding>) -> io::Result<()> {
        let started = begin(name)?;
        let mut findings = check();
        findings.sort();
        self.end(name, started, findings.is_empty())?;
        findings.iter().for_each(|finding| println!("  {finding}"));
        Ok(())
    }

    /// Whether a step failed, where the next one makes no sense without it.
    pub fn any_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// The exit code of the whole command.
    pub fn finish(self) -> ExitCode {
        if self.failed.is_empty() {
            return ExitCode::SUCCESS;
        }
        println!("failed: {}", self.failed.join(", "));
        ExitCode::FAILURE
    }

    fn end(&mut self, name: &'static str, started: Instant, passed: bool) -> io::Result<()> {
        let outcome = if passed { "ok" } else { "FAILED" };
        println!("{outcome} ({:.1} s)", started.elapsed().as_secs_f64());
        if !passed {
            self.failed.push(name);
        }
        io::stdout().flush()
    }
}

fn begin(name: &str) -> io::Result<Instant> {
    print!("{name:<10} ");
    io::stdout().flush()?;
    Ok(Instant::now())
}

/// Where cargo builds the workspace at `root`.
pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into)
}

/// The cargo that runs us, in the workspace root.
pub fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root).args(arguments);
    command
}
