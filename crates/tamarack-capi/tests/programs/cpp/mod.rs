//! LevelDB's C++ classes: programs in `tests/cpp`, compiled by the machine's C++ compiler, and the library of `cpp/leveldb.cc`.
//!
//! Without a C++ compiler all of this is skipped, with a line that says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compiler::{CRATE, Program, built, can, include};

mod headers;
mod library;
mod suites;

/// The sources of a program, by the beginnings of their names.
pub const LEVELDB: &[&str] = &["leveldb_", "check"];
/// The same for what is Tamarack's.
pub const TAMARACK: &[&str] = &["tamarack_", "check"];

/// Warnings are errors.
const WARNINGS: &[&str] = &["-Wall", "-Wextra", "-Wshadow", "-Wnon-virtual-dtor", "-Werror", "-pedantic"];

/// Whether there is a compiler.
pub fn has_compiler() -> bool {
    let compiler = compiler();
    let what = format!("C++: there is no {compiler} (Debian: apt-get install g++; or name one in CXX)");
    can(&what, || Command::new(&compiler).arg("--version").output().is_ok())
}

/// The C++ compiler.
pub fn compiler() -> String {
    std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned())
}

/// A command of the compiler with our warnings.
pub fn compile() -> Command {
    let mut command = Command::new(compiler());
    command.args(WARNINGS);
    command
}

/// Compiles the sources into a program, with these flags, which say with which headers and library.
///
/// # Panics
/// If they do not compile.
pub fn program(sources: &[&str], flags: &[&str]) -> Program {
    let directory = tempfile::tempdir().unwrap();
    let mut command = compile();
    command.arg("-g").arg("-o").arg(directory.path().join("program")).args(files(sources)).args(flags);
    succeed(command.arg("-lpthread"));
    Program::made(directory)
}

/// Flags for our headers and the shared library that cargo has built beside this test.
pub fn ours() -> Vec<String> {
    vec![include_flag(), format!("-L{}", built().display()), "-ltamarack_capi".to_owned()]
}

/// The flag for our headers.
pub fn include_flag() -> String {
    format!("-I{}", include().display())
}

/// Flags as the functions above take them.
pub fn joined<'a>(first: &[&'a str], then: &'a [String]) -> Vec<&'a str> {
    first.iter().copied().chain(then.iter().map(String::as_str)).collect()
}

/// Runs a command that is to succeed.
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", crate::compiler::said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The C++ sources whose names begin so.
fn files(sources: &[&str]) -> Vec<PathBuf> {
    let all =
        std::fs::read_dir(Path::new(CRATE).join("tests/cpp")).unwrap().map(|entry| entry.unwrap().path());
    let wanted = all.filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.ends_with(".cc") && sources.iter().any(|beginning| name.starts_with(beginning))
    });
    wanted.collect()
}
