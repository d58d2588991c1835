//! `cargo xtask instructions`: what the processor executes for an operation, counted by callgrind, which comes to about the
//! same number on a busy machine as on an idle one. A limit stands a fifth above what was counted when it was set, since what happens in the
//! background moves a count by some per cent; a change that costs more fails, and one that costs much less should lower it.
//!
//! The engine is built as its tests are, with assertions and little optimisation: these numbers are for comparing a change with
//! what was before, not with another store.

use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::steps::{cargo, target};

/// The example that does the work.
const EXAMPLE: &str = "instructions";
/// How many operations each of its functions has.
const OPERATIONS: u64 = 10_000;

/// What is beyond its limit is counted up to so many times, and the least is what counts: of a walk other threads usually read the values,
/// and in one run of eight, or of three on a busy machine, its own thread does, which is up to 20 % more.
const COUNTS_MAX: usize = 8;

/// Instructions for an operation, at most, by the example's functions.
const LIMITS: [(&str, u64); 10] = [
    ("put_each", 6_300),
    ("put_in_batches", 5_800),
    ("get_from_memtable", 6_000),
    ("get_from_tables", 9_500),
    ("get_pinned_rows", 600),
    ("get_together", 11_200),
    ("get_what_is_absent", 2_300),
    ("walk_over_keys", 1_250),
    ("walk_over_values", 2_100),
    ("seek_each", 9_500),
];

/// Counts, and compares with the limits. Does nothing where there is no valgrind, and says so.
///
/// # Errors
/// Those of processes; `Other` if the example fails.
pub fn run(root: &Path) -> io::Result<ExitCode> {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: no instructions are counted, because valgrind is not installed");
        return Ok(ExitCode::SUCCESS);
    }
    let build = ["build", "--quiet", "--locked", "--profile", "test", "-p", "tamarack", "--example", EXAMPLE];
    if !cargo(root, &build).status()?.success() {
        return Ok(ExitCode::FAILURE);
    }
    let program = target(root).join("debug/examples").join(EXAMPLE);
    println!("{:<20}{:>14}{:>14}", "instructions for", "each", "at most");
    let mut exceeded = 0;
    for (function, limit) in LIMITS {
        let mut each = count(&program, function)? / OPERATIONS;
        for _ in 1..COUNTS_MAX {
            if each > limit {
                each = each.min(count(&program, function)? / OPERATIONS);
            }
        }
        let verdict = if each > limit { "  EXCEEDED" } else { "" };
        println!("{function:<20}{each:>14}{limit:>14}{verdict}");
        exceeded += u32::from(each > limit);
    }
    Ok(if exceeded == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is executed within `function` of `program`, what it calls included, by the thread that calls it.
fn count(program: &Path, function: &str) -> io::Result<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(format!("--toggle-collect=*{EXAMPLE}*{function}*")).arg(program);
    let output = command.output()?;
    let words = String::from_utf8_lossy(&output.stderr);
    let counted = collected(&words).filter(|count| output.status.success() && *count > 0);
    counted.ok_or_else(|| io::Error::other(format!("{function} was not counted:\n{words}")))
}

/// The number in the line `==1234== Collected : 5678`.
fn collected(words: &str) -> Option<u64> {
    words.lines().find_map(|line| line.split_once("Collected : ")?.1.split(' ').next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 5678\n"), Some(5678));
        assert_eq!(collected("valgrind: no such file\n"), None);
    }
}
