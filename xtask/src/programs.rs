//! The test programs of the engine: building them, and running them by themselves.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Test programs by name; `lib` is that of the unit tests.
pub type Programs = BTreeMap<String, PathBuf>;

/// Adds to `command`, a `cargo test`, that it builds the programs `names` and runs none; returns where they are. `root` is
/// where the command runs.
///
/// # Errors
/// If they cannot be built, with what cargo says.
pub fn build(command: &mut Command, root: &Path, names: &[&str]) -> io::Result<Programs> {
    command.arg("--no-run");
    for name in names {
        if *name == "lib" {
            command.arg("--lib")
        } else {
            command.args(["--test", name])
        };
    }
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
    if !output.status.success() {
        io::stderr().write_all(&output.stderr)?;
        return Err(io::Error::other("the test programs do not build"));
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let programs: Programs = text.lines().filter_map(|line| executable(root, line)).collect();
    match names.iter().find(|name| !programs.contains_key(**name)) {
        Some(name) => {
            Err(io::Error::other(format!("cargo does not say where the program {name} is:\n{text}")))
        }
        None => Ok(programs),
    }
}

/// The test program that a line of cargo's tells of: `Executable tests/crash.rs (target/debug/deps/crash-0123)`.
fn executable(root: &Path, line: &str) -> Option<(String, PathBuf)> {
    let rest = line.trim_start().strip_prefix("Executable ")?;
    let (source, path) = rest.strip_suffix(')')?.rsplit_once(" (")?;
    let name = match source.strip_prefix("unittests ") {
        Some(_) => "lib",
        None => source.strip_prefix("tests/")?.strip_suffix(".rs")?.trim_end_matches("/main"),
    };
    Some((name.to_owned(), root.join(path)))
}

/// Waits for `child`, and ends it when it has run for so long; whether it succeeded, `None` if it was ended.
///
/// # Errors
/// Those of the process.
pub fn wait(child: &mut Child, patience: Duration) -> io::Result<Option<bool>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if started.elapsed() > patience {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_in_what_cargo_says() {
        let root = Path::new("root");
        let found = |line| executable(root, line).map(|(name, path)| (name, path.display().to_string()));
        assert_eq!(
            found("  Executable tests/crash.rs (target/debug/deps/crash-01)"),
            Some(("crash".into(), "root/target/debug/deps/crash-01".into()))
        );
        assert_eq!(
            found("  Executable unittests src/lib.rs (/elsewhere/tamarack-02)"),
            Some(("lib".into(), "/elsewhere/tamarack-02".into()))
        );
        assert_eq!(found("   Compiling tamarack v0.1.0"), None);
    }
}
