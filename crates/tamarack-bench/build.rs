//! Finds out of which commit the engine is built, for reports. Without git, or outside the project's own repository, it is left
//! out.

#![allow(clippy::disallowed_methods, reason = "a build is at home in the operating system")]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../tamarack/src");
    // It changes with each commit and each checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists()) {
        println!("cargo:rerun-if-changed={log}");
    }
    if let Some(commit) = commit() {
        println!("cargo:rustc-env=TAMARACK_COMMIT={commit}");
    }
}

/// The commit, and whether the engine's sources are another than that one's.
fn commit() -> Option<String> {
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let own = Path::new("../..").canonicalize().ok()?;
    if Path::new(&top).canonicalize().ok()? != own {
        return None;
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--", "../tamarack/src"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}, changed") })
}

/// What git says.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
