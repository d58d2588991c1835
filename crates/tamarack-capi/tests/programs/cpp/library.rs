//! The library of `cpp/leveldb.cc`, for programs that were linked with LevelDB's own: they find every name in it, and run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{LEVELDB, compile, has_compiler, include_flag, program, succeed};
use crate::compiler::{CRATE, built, can};
use crate::leveldb::has_leveldb;

/// The classes and functions of LevelDB's that are not in it, for the reasons that `docs/LEVELDB.md` gives.
const NOT_THERE: &[&str] = &["5Table", "12TableBuilder", "8DumpFile", "9NewMemEnv"];

/// Makes the library in `directory`, as `cargo xtask install` does.
fn make(directory: &Path) -> PathBuf {
    let library = directory.join("libleveldb.so.1d");
    let sources = Path::new(CRATE).join("cpp");
    let mut command = compile();
    command
        .args(["-std=c++11", "-O2", "-fPIC", "-shared"])
        .arg(include_flag())
        .arg(sources.join("leveldb.cc"));
    command.arg(format!("-Wl,--version-script={}", sources.join("exports.map").display()));
    command.args(["-Wl,-soname,libleveldb.so.1d", "-Wl,--no-undefined", "-Wl,--whole-archive"]);
    command.arg(built().join("libtamarack_capi.a")).arg("-Wl,--no-whole-archive");
    succeed(command.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]).arg("-o").arg(&library));
    library
}

/// The names that a shared library shows.
fn shown(library: &Path) -> BTreeSet<String> {
    let text = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    text.lines().filter_map(|line| line.rsplit(' ').next()).map(str::to_owned).collect()
}

/// LevelDB's names in C++ as of version 1.23: those of its classes, without what the compiler has put beside them.
fn listed() -> BTreeSet<String> {
    let list = std::fs::read_to_string(Path::new(CRATE).join("tests/data/leveldb-1.23-cpp.txt")).unwrap();
    list.lines().map(str::to_owned).collect()
}

fn is_leveldbs(name: &str) -> bool {
    ["_ZN7leveldb", "_ZNK7leveldb", "_ZTVN7leveldb", "_ZTIN7leveldb", "_ZTSN7leveldb"]
        .iter()
        .any(|beginning| name.starts_with(beginning))
}

#[test]
fn it_shows_every_name_of_leveldbs_classes_and_nothing_of_what_is_behind_them() {
    let has_nm = || Command::new("nm").arg("--version").output().is_ok();
    if !has_compiler() || !can("names of the C++ library: there is no nm", has_nm) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let shown = shown(&make(directory.path()));
    let is_there = |name: &String| {
        let unqualified =
            name.trim_start_matches("_ZN").trim_start_matches('K').trim_start_matches("7leveldb");
        !NOT_THERE.iter().any(|beginning| unqualified.starts_with(beginning))
    };
    let expected: BTreeSet<String> = listed().into_iter().filter(is_there).collect();
    assert!(expected.len() > 100, "{}", expected.len());
    let missing: Vec<_> = expected.difference(&shown).collect();
    assert!(missing.is_empty(), "missing: {missing:?}");
    let others: Vec<_> = shown
        .iter()
        .filter(|name| !is_leveldbs(name) && !name.starts_with("leveldb_") && !name.starts_with("tamarack_"))
        .collect();
    assert!(others.is_empty(), "shown: {others:?}");
}

#[test]
fn our_list_is_that_of_leveldb() {
    let library = Path::new("/usr/lib/x86_64-linux-gnu/libleveldb.so.1d");
    if can("names of LevelDB's C++ library: it is not at Debian's place", || library.exists()) {
        let theirs: BTreeSet<String> = shown(library).into_iter().filter(|name| is_leveldbs(name)).collect();
        assert_eq!(theirs, listed());
    }
}

#[test]
fn programs_that_were_compiled_with_leveldbs_headers_run_with_it() {
    if has_compiler() && has_leveldb() {
        let directory = tempfile::tempdir().unwrap();
        make(directory.path());
        program(LEVELDB, &["-std=c++17", "-lleveldb"]).pass_with(directory.path(), "libleveldb.so.1d");
    }
}
