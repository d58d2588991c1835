//! The functions that headers declare, the library exports and our list of LevelDB's names holds.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::compiler::{CRATE, built, can, compiler, include};

/// The names that begin with `prefix` and are declared as functions in the text of a header.
pub fn declared(header: &str, prefix: &str) -> BTreeSet<String> {
    let mut text = String::new();
    for (index, part) in header.split("/*").enumerate() {
        text += if index == 0 { part } else { part.split_once("*/").map_or("", |(_, after)| after) };
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before_parentheses =
        text.split('(').map(|before| before.rsplit(|c| !is_name(c)).next().unwrap_or(""));
    before_parentheses.filter(|name| name.starts_with(prefix)).map(str::to_owned).collect()
}

/// LevelDB's functions as of version 1.23.
pub fn listed() -> BTreeSet<String> {
    let list = std::fs::read_to_string(Path::new(CRATE).join("tests/data/leveldb-1.23.txt")).unwrap();
    list.lines().map(str::to_owned).collect()
}

/// The functions that our headers declare.
pub fn ours(header: &str, prefix: &str) -> BTreeSet<String> {
    declared(&std::fs::read_to_string(include().join(header)).unwrap(), prefix)
}

#[test]
fn our_header_declares_all_of_leveldb_and_nothing_else() {
    assert_eq!(listed().len(), 68);
    assert_eq!(ours("leveldb/c.h", "leveldb_"), listed());
    assert!(ours("tamarack/c.h", "leveldb_").is_empty());
}

#[test]
fn the_shared_library_exports_what_is_declared_and_nothing_else() {
    let there =
        can("exported names: there is no nm", || Command::new("nm").arg("--version").output().is_ok());
    if !there {
        return;
    }
    let library = built().join("libtamarack_capi.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let exported: BTreeSet<String> =
        text.lines().filter_map(|line| line.rsplit(' ').next()).map(str::to_owned).collect();
    let declared = &ours("leveldb/c.h", "leveldb_") | &ours("tamarack/c.h", "tamarack_");
    assert_eq!(exported, declared);
}

#[test]
fn each_header_stands_alone_in_c_and_in_cpp() {
    let compilers =
        [(compiler(), "c", "-std=c99"), (std::env::var("CXX").unwrap_or("c++".into()), "c++", "-std=c++11")];
    for (compiler, language, standard) in compilers {
        let there = || Command::new(&compiler).arg("--version").output().is_ok();
        if !can(&format!("headers in {language}: there is no {compiler}"), there) {
            continue;
        }
        for header in ["leveldb/c.h", "tamarack/c.h"] {
            let mut command = Command::new(&compiler);
            command.args([
                standard,
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pedantic",
                "-fsyntax-only",
                "-x",
                language,
            ]);
            let output = command.arg("-I").arg(include()).arg(include().join(header)).output().unwrap();
            assert!(output.status.success(), "{header}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn declarations_are_told_from_comments_and_types() {
    let header =
        "/* a_comment(x) */ typedef struct a_t a_t;\nint a_one(void);\nvoid\na_two(int (*f)(a_t*), int);";
    assert_eq!(declared(header, "a_"), BTreeSet::from(["a_one".to_owned(), "a_two".to_owned()]));
}
