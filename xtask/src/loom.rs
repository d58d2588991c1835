//! How the models under loom are built.

use std::path::Path;
use std::process::Command;

use crate::steps::cargo;
use crate::with_rustflags;

/// A `cargo test` of the engine in the workspace `workspace`, as loom wants it. What it builds is kept below `root`, apart
/// from other builds, so that neither throws the other away.
pub fn tests(workspace: &Path, root: &Path) -> Command {
    let mut command = cargo(workspace, &["test", "--profile", "loom", "-p", "tamarack"]);
    command.env("CARGO_TARGET_DIR", root.join("target/loom"));
    with_rustflags(&mut command, "RUSTFLAGS", "--cfg loom");
    command
}
