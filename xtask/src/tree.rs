//! The working tree as the checks see it: every Rust file read and parsed once, every Markdown page and C file read
//! once.
//!
//! It knows which lines are test code. It judges nothing, except that a file which does not parse is a finding.
//! Hidden directories and build output are no part of the tree.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::finding::Finding;
use crate::test_code::{self, TestCode};

/// The root, and the text files below it that are ours.
pub struct Tree {
    /// Where the tree lies.
    pub root: PathBuf,
    /// Every `.rs` file that parses, by path.
    pub sources: Vec<Source>,
    /// Every `.md` file, by path.
    pub pages: Vec<Page>,
    /// Every `.c`, `.cc` and `.h` file, by path.
    pub c_files: Vec<Page>,
}

/// A Rust file.
pub struct Source {
    /// Relative to the root, with `/` between names.
    pub path: String,
    /// The file as it is.
    pub text: String,
    /// The file parsed.
    pub syntax: syn::File,
    test_code: TestCode,
}

/// A Markdown file, or one in C or C++.
pub struct Page {
    /// Relative to the root, with `/` between names.
    pub path: String,
    /// The file as it is.
    pub text: String,
}

impl Tree {
    /// Reads the tree below `root`.
    pub fn load(root: &Path) -> io::Result<(Self, Vec<Finding>)> {
        let mut paths = Vec::new();
        collect(root, "", &mut paths)?;
        paths.sort();
        let mut tree =
            Self { root: root.to_owned(), sources: Vec::new(), pages: Vec::new(), c_files: Vec::new() };
        let mut findings = Vec::new();
        for path in paths {
            let text = fs::read_to_string(root.join(&path))
                .map_err(|error| io::Error::new(error.kind(), format!("cannot read {path}: {error}")))?;
            if path.ends_with(".md") {
                tree.pages.push(Page { path, text });
                continue;
            }
            if is_c(&path) {
                tree.c_files.push(Page { path, text });
                continue;
            }
            match syn::parse_file(&text) {
                Ok(syntax) => {
                    let test_code = TestCode::of(&path, &syntax);
                    tree.sources.push(Source { path, text, syntax, test_code });
                }
                Err(error) => {
                    findings.push(Finding::new(&path, error.span().start().line, error.to_string()))
                }
            }
        }
        tree.mark_test_files();
        Ok((tree, findings))
    }

    /// The page at `path`.
    pub fn page(&self, path: &str) -> Option<&Page> {
        self.pages.iter().find(|page| page.path == path)
    }

    /// A file that its parent declares under `#[cfg(test)]` is test code, and so is everything below it.
    fn mark_test_files(&mut self) {
        let stems: BTreeSet<String> = self
            .sources
            .iter()
            .flat_map(|source| test_code::test_modules(&source.syntax).map(|name| source.child_stem(&name)))
            .collect();
        for source in &mut self.sources {
            let is_below = |stem: &String| {
                source.path.strip_prefix(stem).is_some_and(|rest| rest.starts_with(['.', '/']))
            };
            if stems.iter().any(is_below) {
                source.test_code = TestCode::Everything;
            }
        }
    }
}

impl Source {
    /// Whether the line, counted from one, is compiled for tests only.
    pub fn is_test(&self, line: usize) -> bool {
        self.test_code.contains(line)
    }

    /// The path, without its ending, of the file of a child module.
    fn child_stem(&self, name: &str) -> String {
        let stem = self.path.strip_suffix(".rs").unwrap_or(&self.path);
        let (directory, file) = stem.rsplit_once('/').unwrap_or(("", stem));
        if matches!(file, "mod" | "lib" | "main") {
            format!("{directory}/{name}")
        } else {
            format!("{stem}/{name}")
        }
    }
}

fn collect(root: &Path, directory: &str, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(directory))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !name.starts_with('.') && name != "target" {
                collect(root, &path, paths)?;
            }
        } else if kind.is_file() && (name.ends_with(".rs") || name.ends_with(".md") || is_c(&name)) {
            paths.push(path);
        }
    }
    Ok(())
}

fn is_c(name: &str) -> bool {
    name.ends_with(".c") || name.ends_with(".cc") || name.ends_with(".h")
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Writes `files` into a new directory and loads it.
    pub fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().expect("files have a directory")).expect("creates");
            fs::write(path, text).expect("writes");
        }
        let (tree, findings) = Tree::load(directory.path()).expect("loads");
        assert_eq!(findings, []);
        (directory, tree)
    }

    #[test]
    fn test_code_is_told_from_the_rest() {
        let inline = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(not(test))]\nfn c() {}\n";
        let (_directory, tree) = tree(&[
            ("crates/a/src/inline.rs", inline),
            ("crates/a/src/lib.rs", "mod inline;\n#[cfg(all(test, shuttle))]\nmod model;\nmod models;\n"),
            ("crates/a/src/model/mod.rs", "mod deep;"),
            ("crates/a/src/model/deep.rs", "fn a() {}"),
            ("crates/a/src/models.rs", "fn a() {}"),
            ("crates/a/tests/it.rs", "fn a() {}"),
        ]);
        let is_test = |path: &str, line| {
            tree.sources.iter().find(|source| source.path == path).expect("is there").is_test(line)
        };
        assert!(!is_test("crates/a/src/inline.rs", 1));
        assert!(is_test("crates/a/src/inline.rs", 4));
        assert!(!is_test("crates/a/src/inline.rs", 7));
        assert!(is_test("crates/a/src/model/mod.rs", 1));
        assert!(is_test("crates/a/src/model/deep.rs", 1));
        assert!(!is_test("crates/a/src/models.rs", 1));
        assert!(is_test("crates/a/tests/it.rs", 1));
    }

    #[test]
    fn a_file_that_does_not_parse_is_found_and_build_output_is_not_looked_at() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(directory.path().join("target")).expect("creates");
        fs::write(directory.path().join("target/bad.rs"), "fn {").expect("writes");
        fs::write(directory.path().join("bad.rs"), "//! Bad.\nfn {").expect("writes");
        let (tree, findings) = Tree::load(directory.path()).expect("loads");
        assert!(tree.sources.is_empty());
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().starts_with("bad.rs:2: "));
    }
}
