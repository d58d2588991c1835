//! What `cargo xtask install` lays down is enough for C and C++ programs, under both names, by `pkg-config` and CMake, and for
//! those linked with LevelDB.

use std::path::Path;
use std::process::Command;

use crate::compiler::{CRATE, LEVELDB, Library, Program, TAMARACK, can, said};
use crate::cpp;
use crate::leveldb::has_leveldb;

/// Installing builds the library with full optimisation, which takes longer than all other tests of this crate, so this is run
/// by hand: after a change of names, of headers, or of what is installed.
#[test]
#[ignore = "makes release builds, some minutes: cargo test -p tamarack-capi --test programs -- --ignored"]
fn programs_find_it_by_pkg_config_and_by_the_names_of_libraries() {
    let directory = tempfile::tempdir().unwrap();
    let prefix = directory.path().join("prefix");
    let mut install = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    install.args(["xtask", "install", "--prefix"]).arg(&prefix).current_dir(Path::new(CRATE).join("../.."));
    let output = install.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let libraries = prefix.join("lib");

    if can("pkg-config: it is not installed", || Command::new("pkg-config").arg("--version").output().is_ok())
    {
        let leveldb = pkg_config(&prefix, &["--cflags", "--libs", "leveldb"]);
        Program::compile(LEVELDB, Library::Named, &strs(&leveldb)).pass_with(&libraries, "libleveldb.so.1d");
        let tamarack = pkg_config(&prefix, &["--cflags", "--libs", "tamarack"]);
        Program::compile(TAMARACK, Library::Named, &strs(&tamarack))
            .pass_with(&libraries, "libtamarack.so.0");
        let mut alone = pkg_config(&prefix, &["--static", "--cflags", "--libs", "tamarack"]);
        for flag in alone.iter_mut().filter(|flag| *flag == "-ltamarack") {
            *flag = "-l:libtamarack.a".to_owned();
        }
        Program::compile(TAMARACK, Library::Named, &strs(&alone)).pass(&[]);
        if cpp::has_compiler() {
            cpp::program(cpp::LEVELDB, &cpp::joined(&["-std=c++11"], &leveldb))
                .pass_with(&libraries, "libleveldb.so.1d");
            cpp::program(cpp::TAMARACK, &cpp::joined(&["-std=c++11"], &tamarack))
                .pass_with(&libraries, "libtamarack.so.0");
        }
    }
    if cpp::has_compiler() {
        found_by_cmake(&prefix);
    }
    if has_leveldb() {
        // Not linked again: it asks for the library by LevelDB's name, and finds this one.
        Program::compile(LEVELDB, Library::LevelDb, &[]).pass_with(&libraries, "libleveldb.so.1d");
        if cpp::has_compiler() {
            cpp::program(cpp::LEVELDB, &["-lleveldb"]).pass_with(&libraries, "libleveldb.so.1d");
        }
    }
}

/// A project of CMake's that asks for both packages, in a directory with its databases. The prefix is moved before, for the
/// packages find it by their own place.
fn found_by_cmake(prefix: &Path) {
    if !can("CMake: it is not installed (Debian: apt-get install cmake make)", || {
        ["cmake", "make"].iter().all(|tool| Command::new(tool).arg("--version").output().is_ok())
    }) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let moved = directory.path().join("a moved prefix");
    cpp::succeed(Command::new("cp").arg("-a").arg(prefix).arg(&moved));
    let project = "cmake_minimum_required(VERSION 3.10)\nproject(finds CXX)\n\
         find_package(leveldb 1.20 REQUIRED)\nfind_package(tamarack REQUIRED)\n\
         find_package(leveldb 2 QUIET)\nif(leveldb_FOUND)\n message(FATAL_ERROR \"1.23 is not 2\")\nendif()\n\
         add_executable(one program.cc)\ntarget_link_libraries(one leveldb::leveldb)\n\
         add_executable(other program.cc)\ntarget_link_libraries(other tamarack::tamarack)\n";
    let program = "#include <leveldb/db.h>\n#include <tamarack/db.h>\n\
         int main(int, char** arguments) {\n  leveldb::Options options;\n  options.create_if_missing = true;\n\
         leveldb::DB* db = nullptr;\n  if (!leveldb::DB::Open(options, arguments[1], &db).ok()) return 1;\n\
         const bool ours = tamarack::HandleOf(db) != nullptr;\n  delete db;\n  return ours ? 0 : 2;\n}\n";
    std::fs::write(directory.path().join("CMakeLists.txt"), project).unwrap();
    std::fs::write(directory.path().join("program.cc"), program).unwrap();
    let build = directory.path().join("build");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(directory.path()).arg("-B").arg(&build);
    cpp::succeed(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", moved.display())));
    cpp::succeed(Command::new("cmake").arg("--build").arg(&build));
    for name in ["one", "other"] {
        cpp::succeed(Command::new(build.join(name)).arg(directory.path().join("database")));
        let linked = cpp::succeed(Command::new("ldd").arg(build.join(name)));
        assert!(linked.contains(&moved.join("lib").display().to_string()), "{linked}");
    }
}

fn pkg_config(prefix: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    let output =
        command.args(arguments).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

fn strs(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}
