//! `cargo xtask blocks`: builds `blockdisk/`, which records what file systems write for a database and replays what a loss of
//! power may leave of that, and runs it. Images on which something was wrong go to `blockdisk/target/failures`.
//!
//! With `--bugs` it looks whether that would notice anything: syncs are left out of a copy of the engine, one at a time, and
//! each run must fail.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use crate::seeded;
use crate::steps::cargo;

/// Where the program's workspace is.
const WORKSPACE: &str = "blockdisk";

/// The file systems.
const KINDS: [&str; 3] = ["ext4", "xfs", "btrfs"];

/// Seeded bugs that losses of power must show on each of them. Names that are not made durable are not among these: all
/// three keep the name of a new file once the file itself is synced.
const BUGS: &[&str] = &[
    "copies-not-synced",
    "edit-not-synced",
    "flush-before-the-log-is-durable",
    "footer-not-synced",
    "manifest-not-synced-before-current",
    "sync-of-a-write-left-out",
    "table-not-synced",
];

/// How the program says what it cannot do here.
const SKIPPED: &str = "skipped: ";

/// Runs the command: the program with `flags`, or the bugs.
///
/// # Errors
/// Those of files and processes.
pub fn run(root: &Path, flags: &[&str]) -> io::Result<ExitCode> {
    if flags == ["--bugs"] {
        return bugs(root);
    }
    let workspace = root.join(WORKSPACE);
    // No other command runs the program's own tests.
    let tested = cargo(&workspace, &["test", "--release", "--quiet", "--locked"]).status()?;
    let program = build(root, "--locked", &workspace.join("target"))?.filter(|_| tested.success());
    let Some(program) = program else { return Ok(ExitCode::FAILURE) };
    let failures = workspace.join("target/failures");
    let status = Command::new(program).arg("--keep").arg(failures).args(flags).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the program of the workspace at `root`, with a flag on what cargo may look up (the version of the copy is in no lock
/// file); where it is, or `None` if it does not build.
fn build(root: &Path, network: &str, target: &Path) -> io::Result<Option<PathBuf>> {
    let mut command = cargo(&root.join(WORKSPACE), &["build", "--release", "--quiet", network]);
    let built = command.env("CARGO_TARGET_DIR", target).status()?.success();
    Ok(built.then(|| target.join("release/tamarack-blockdisk")))
}

/// Whether each bug is noticed.
fn bugs(root: &Path) -> io::Result<ExitCode> {
    let copy = seeded::make(root)?;
    // Apart from the program without bugs, so that cargo does not take one for the other.
    let target = root.join(WORKSPACE).join("target/bugs");
    let Some(program) = build(&copy, "--offline", &target)? else { return Ok(ExitCode::FAILURE) };
    let run = |bug: Option<&str>, kind: &str| -> io::Result<Output> {
        let mut command = Command::new(&program);
        command.args(["--seeds", "2", "--images", "100", "--file-system", kind]);
        command.arg("--keep").arg(target.join("failures"));
        command.env_remove(seeded::VARIABLE).envs(bug.map(|bug| (seeded::VARIABLE, bug)));
        command.output()
    };
    let mut wrong = false;
    for kind in KINDS {
        let sound = run(None, kind)?;
        let said = String::from_utf8_lossy(&sound.stdout);
        if let Some(why) = said.lines().find(|line| line.starts_with(SKIPPED)) {
            println!("{why}");
            continue;
        }
        if !sound.status.success() {
            println!("{kind}: FAILS without any bug");
            wrong = true;
        }
        for bug in BUGS {
            let noticed = !run(Some(bug), kind)?.status.success();
            println!("{kind}: {bug} {}", if noticed { "noticed" } else { "NOT NOTICED" });
            wrong |= !noticed;
        }
    }
    Ok(if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
