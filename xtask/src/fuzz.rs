//! `cargo xtask fuzz`: runs libFuzzer on the targets of `fuzz/`, one after the other, and writes the seeds of their corpora.
//!
//! What libFuzzer finds on its way goes to `fuzz/found`, which is not kept; what made it fail to `fuzz/artifacts`. Only a
//! person copies an input into `fuzz/corpus`, where `tests/fuzz.rs` tries it for ever.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::steps::{Steps, cargo};

const SECONDS: &str = "60";
/// libFuzzer's own limits: inputs of a few files, none that takes a minute, and no allocation beyond what the largest
/// input can be worth when all of it is compressed.
const LIMITS: &[&str] = &["-max_len=8192", "-timeout=60", "-malloc_limit_mb=320", "-print_final_stats=1"];

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
struct Task<'a> {
    target: Option<&'a str>,
    seconds: Option<&'a str>,
    seed_corpus: bool,
}

fn parse<'a>(mut arguments: &[&'a str]) -> Option<Task<'a>> {
    let mut task = Task::default();
    loop {
        arguments = match arguments {
            [] => return Some(task),
            ["--seed-corpus", rest @ ..] => {
                task.seed_corpus = true;
                rest
            }
            ["--seconds", seconds, rest @ ..] if seconds.parse::<u64>().is_ok() => {
                task.seconds = Some(seconds);
                rest
            }
            [name, rest @ ..] if task.target.is_none() && !name.starts_with('-') => {
                task.target = Some(name);
                rest
            }
            _ => return None,
        };
    }
}

/// Runs the command; `None` if the arguments are none of it.
pub fn fuzz(root: &Path, arguments: &[&str]) -> Option<io::Result<ExitCode>> {
    let task = parse(arguments)?;
    Some(if task.seed_corpus { seed_corpus(root) } else { run(root, &task) })
}

/// Writes the seeds anew, as they follow from the present formats.
fn seed_corpus(root: &Path) -> io::Result<ExitCode> {
    let mut steps = Steps::default();
    let mut write = cargo(root, &["test", "--quiet", "-p", "tamarack", "--test", "fuzz", "--locked"]);
    steps.run_quietly("seed corpus", write.env("TAMARACK_SEED_CORPUS", "1"))?;
    Ok(steps.finish())
}

fn run(root: &Path, task: &Task<'_>) -> io::Result<ExitCode> {
    let targets = targets(root)?;
    if let Some(name) = task.target.filter(|name| !targets.iter().any(|target| target == name)) {
        eprintln!("there is no target {name}; there are {}", targets.join(", "));
        return Ok(ExitCode::FAILURE);
    }
    if !is_installed() {
        eprintln!(
            "cargo-fuzz is not to be had: `rustup toolchain install nightly` and `cargo install cargo-fuzz --locked`"
        );
        return Ok(ExitCode::FAILURE);
    }
    let mut failed = Vec::new();
    for target in targets.iter().filter(|target| task.target.is_none_or(|name| *target == name)) {
        println!("==> {target}");
        if !run_one(root, target, task.seconds.unwrap_or(SECONDS))? {
            failed.push(target.as_str());
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("failed: {}; the inputs are in fuzz/artifacts", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

/// The names of all targets.
fn targets(root: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("fuzz/targets"))? {
        let name = entry?.file_name();
        names.extend(name.to_str().and_then(|name| name.strip_suffix(".rs")).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

fn cargo_fuzz() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "fuzz"]);
    command
}

fn is_installed() -> bool {
    let mut version = cargo_fuzz();
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

fn run_one(root: &Path, target: &str, seconds: &str) -> io::Result<bool> {
    let (found, kept) = (root.join("fuzz/found").join(target), root.join("fuzz/corpus").join(target));
    fs::create_dir_all(&found)?;
    let mut command = cargo_fuzz();
    // Without a sanitizer, under which threads take a hundred times as long: what is unsafe is for `cargo xtask miri`.
    command
        .args(["run", "--sanitizer", "none", "--fuzz-dir"])
        .arg(root.join("fuzz"))
        .arg(target)
        .args([found, kept]);
    command.arg("--").arg(format!("-max_total_time={seconds}")).args(LIMITS);
    Ok(command.current_dir(root).status()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_in_any_order() {
        let task = Task { target: Some("log"), seconds: Some("5"), seed_corpus: false };
        assert_eq!(parse(&["log", "--seconds", "5"]), Some(task));
        assert_eq!(parse(&["--seconds", "5", "log"]).and_then(|task| task.target), Some("log"));
        assert_eq!(parse(&["--seed-corpus"]).map(|task| task.seed_corpus), Some(true));
        for wrong in [&["--seconds"][..], &["--seconds", "x"], &["log", "table"], &["--fast"]] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
