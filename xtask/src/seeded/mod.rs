//! Who tests the tests: bugs that are put into a copy of the engine, one at a time, and must be caught.
//!
//! A [`Bug`] is a few replacements of the engine's own text, in which `BUG` stands for the question whether this bug is
//! in force. `cargo xtask bugs` makes a copy of the workspace that has all of them ([`copy`]), builds its tests once,
//! and runs, for each bug, the test that is to catch it with the bug in force ([`mod@run`]): the test must fail. Before that,
//! all those tests must pass with no bug in force. So the engine itself holds no bug, not even a dormant one, and a bug
//! that no longer fits the engine is found at once: every text to be replaced must stand in its file exactly once, which
//! `cargo xtask check` looks at, too.
//!
//! `docs/SEEDED_BUGS.md` is the table of bugs and tests; it is generated, and `check` compares it.

use std::path::Path;

use crate::finding::Finding;
use crate::tree::Tree;

mod bugs;
mod copy;
mod run;

pub use copy::{VARIABLE, make};
pub use run::run;

/// Where the engine's sources are.
const SOURCES: &str = "crates/tamarack/src";
/// What stands in replacements for the question whether the bug is in force.
const QUESTION: &str = "BUG";
/// The generated table.
const PAGE: &str = "docs/SEEDED_BUGS.md";

/// A mistake, and who notices it.
pub struct Bug {
    /// Its name.
    pub name: &'static str,
    /// What is wrong, in a sentence.
    pub what: &'static str,
    /// How it is made.
    pub edits: &'static [Edit],
    /// The test program (`lib` for unit tests, `loom` for models) and the test, or a part of its name, that fails.
    pub caught_by: (&'static str, &'static str),
}

/// A replacement of text in one file of the engine.
pub struct Edit {
    /// The file, below the engine's sources.
    pub file: &'static str,
    /// What stands there exactly once.
    pub find: &'static str,
    /// What stands there instead.
    pub put: &'static str,
}

/// Bugs that do not fit the engine or whose test is not there, and a table that is not the one that they make.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = copy::misfits(tree);
    let tests: Vec<(&str, &str)> =
        tree.sources.iter().map(|source| (source.path.as_str(), source.text.as_str())).collect();
    for bug in bugs::all().filter(|bug| !is_there(&tests, bug.caught_by)) {
        let (program, test) = bug.caught_by;
        let what = format!("{} is to be caught by {program} {test}, which is not there", bug.name);
        findings.push(Finding::new(PAGE, 1, what));
    }
    let page = tree.page(PAGE).map_or("", |page| &page.text);
    if page != table() {
        findings.push(Finding::new(PAGE, 1, "is not what `cargo xtask bugs --table` writes: run that"));
    }
    findings
}

/// Whether the program has such a test, in the sources `tests` (paths and texts).
fn is_there(tests: &[(&str, &str)], (program, test): (&str, &str)) -> bool {
    let (file, directory) =
        (format!("crates/tamarack/tests/{program}.rs"), format!("crates/tamarack/tests/{program}/"));
    let is_of_program = |path: &str| match program {
        "lib" | "loom" => path.starts_with(SOURCES),
        _ => path == file || path.starts_with(&directory),
    };
    let function = format!("fn {}", test.rsplit("::").next().unwrap_or(test));
    tests.iter().any(|(path, text)| is_of_program(path) && text.contains(&function))
}

/// Writes the table.
///
/// # Errors
/// Those of the file.
pub fn write_table(root: &Path) -> std::io::Result<()> {
    std::fs::write(root.join(PAGE), table())
}

fn table() -> String {
    let mut rows: Vec<String> = bugs::all().map(row).collect();
    rows.sort();
    format!(
        "# Seeded bugs\n\n\
         Who tests the tests: `cargo xtask bugs` puts each of these {} mistakes into a copy of the engine, and fails if the \
         test beside it\ndoes not. Tests are named by program (`lib`: the unit tests, `loom`: the models) and function, or by \
         the part of their names\nthat is run. This page is generated (`cargo xtask bugs --table`).\n\n\
         | bug | what is wrong | caught by |\n|-----|---------------|-----------|\n{}\n",
        rows.len(),
        rows.join("\n")
    )
}

fn row(bug: &Bug) -> String {
    let (program, test) = bug.caught_by;
    format!("| {} | {} | `{program}`: `{test}` |", bug.name, bug.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_looked_for_in_its_program() {
        let tests = [
            ("crates/tamarack/tests/engine/gc.rs", "fn it_works() {}"),
            ("crates/tamarack/src/lib.rs", "fn it_holds() {}"),
        ];
        assert!(is_there(&tests, ("engine", "gc::it_works")) && is_there(&tests, ("lib", "it_holds")));
        assert!(!is_there(&tests, ("gc", "it_works")) && !is_there(&tests, ("engine", "it_holds")));
    }

    #[test]
    fn names_are_unique_and_every_bug_asks_whether_it_is_in_force() {
        let mut names: Vec<_> = bugs::all().map(|bug| bug.name).collect();
        let number = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), number);
        for bug in bugs::all() {
            assert!(!bug.edits.is_empty(), "{}", bug.name);
            assert!(bug.edits.iter().all(|edit| edit.put.contains(QUESTION)), "{}", bug.name);
        }
    }
}
