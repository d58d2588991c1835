//! Every Rust, C and C++ file says what it is, and no file carries leftovers: unfinished work, or paths of one machine.

use crate::finding::Finding;
use crate::tree::Tree;

/// Macros that stand for code that is yet to be written.
const PLACEHOLDERS: [&str; 2] = ["todo", "unimplemented"];

/// The mark of known faults, taken apart so that this file does not bear it.
const FAULT_MARK: &str = concat!("FIX", "ME");

/// Directories at a machine's root in which people keep their own things.
const PRIVATE_ROOTS: [&str; 5] = ["home", "root", "tmp", "work", "Users"];

/// Every file without an introduction, and every leftover.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        if !source.text.starts_with("//!") {
            findings.push(Finding::new(&source.path, 1, "the file does not begin with `//!`"));
        }
        findings.extend(leftovers(&source.path, &source.text));
    }
    for file in &tree.c_files {
        if !file.text.starts_with("/*") && !file.text.starts_with("//") {
            findings.push(Finding::new(&file.path, 1, "the file does not begin with a comment"));
        }
        findings.extend(leftovers(&file.path, &file.text));
    }
    findings.extend(tree.pages.iter().flat_map(|page| leftovers(&page.path, &page.text)));
    findings
}

fn leftovers(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut found = |message: String| findings.push(Finding::new(path, index + 1, message));
        for placeholder in PLACEHOLDERS.map(|name| format!("{name}!")) {
            if line.contains(&placeholder) {
                found(format!("`{placeholder}` is unfinished work"));
            }
        }
        if line.contains(FAULT_MARK) {
            found(format!("`{FAULT_MARK}` marks a fault: repair it"));
        }
        for root in PRIVATE_ROOTS.map(|name| format!("/{name}/")) {
            let starts = line.match_indices(&root).map(|(start, _)| &line[..start]);
            if starts.into_iter().any(|before| !before.ends_with(continues_path)) {
                found(format!("`{root}` is a path of one machine"));
            }
        }
    }
    findings
}

/// Whether a `/` after this character continues a relative path or an address.
fn continues_path(c: char) -> bool {
    c.is_alphanumeric() || "._-~})*".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    fn findings(code: &str, page: &str) -> Vec<String> {
        let (_directory, tree) = tree(&[("a.rs", code), ("b.md", page)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_must_introduce_itself() {
        assert_eq!(findings("//! What it is.\n", ""), [""; 0]);
        assert_eq!(findings("use a::b;\n//\n", ""), ["a.rs:1: the file does not begin with `//!`"]);
        let (_directory, tree) =
            tree(&[("a.h", "int a(void);\n"), ("b.c", "/* What it is. */\n"), ("c.cc", "// What it is.\n")]);
        let found: Vec<_> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["a.h:1: the file does not begin with a comment"]);
    }

    #[test]
    fn leftovers_are_found_in_code_and_pages() {
        let leftovers = [
            PLACEHOLDERS.map(|name| format!("{name}!()")).to_vec(),
            vec![FAULT_MARK.to_owned()],
            PRIVATE_ROOTS.map(|name| format!("open(\"/{name}/a\")")).to_vec(),
        ];
        for leftover in leftovers.concat() {
            let found = findings(&format!("//! A.\n// {leftover}\n"), &format!("{leftover}\n"));
            assert_eq!(found.len(), 2, "{leftover} gave {found:?}");
            assert!(found[0].starts_with("a.rs:2: ") && found[1].starts_with("b.md:1: "), "{found:?}");
        }
    }

    #[test]
    fn relative_paths_and_addresses_pass() {
        assert_eq!(
            findings("//! See target/tmp/x and src/work/y.\n", "<https://example.org/home/x>"),
            [""; 0]
        );
    }
}
