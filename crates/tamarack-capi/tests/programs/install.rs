//! What `cargo xtask install` lays down is enough for C programs, under both names, and for those linked with LevelDB.

use std::path::Path;
use std::process::Command;

use crate::compiler::{CRATE, LEVELDB, Library, Program, TAMARACK, can, said};
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
    }
    if has_leveldb() {
        // Not linked again: it asks for the library by LevelDB's name, and finds this one.
        Program::compile(LEVELDB, Library::LevelDb, &[]).pass_with(&libraries, "libleveldb.so.1d");
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
