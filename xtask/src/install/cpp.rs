//! LevelDB's C++ classes in the library of LevelDB's name: for programs that were linked with LevelDB's own, which has them.
//!
//! Programs that are compiled with the installed headers do not need it, so a machine without a C++ compiler gets everything
//! else.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::LEVELDB;
use crate::steps::Steps;

/// Links the library under LevelDB's name in `built` anew, from the static one and the classes of `interface`, the crate of the
/// C interface. Does nothing but say so if there is no C++ compiler.
///
/// # Errors
/// Those of the files.
pub fn add_classes(steps: &mut Steps, interface: &Path, built: &Path) -> io::Result<()> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let version =
        Command::new(&compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        println!(
            "skipped: {} for programs linked with LevelDB's C++ library: there is no {compiler} (Debian: apt-get install \
             g++; or name one in CXX)",
            LEVELDB.soname
        );
        return Ok(());
    }
    let linked = built.join("with-classes.so");
    steps.run_quietly("classes", &mut link(&compiler, interface, built, &linked))?;
    if !steps.any_failed() {
        fs::rename(linked, built.join(LEVELDB.soname))?;
    }
    Ok(())
}

/// The test of the library links it in the same way.
fn link(compiler: &str, interface: &Path, built: &Path, linked: &Path) -> Command {
    let classes = interface.join("cpp");
    let mut command = Command::new(compiler);
    command.args(["-std=c++11", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-I"]).arg(interface.join("include"));
    command.arg(classes.join("leveldb.cc"));
    // All of the static library, less what is not needed for the names that are shown.
    command
        .arg("-Wl,--whole-archive")
        .arg(built.join("libtamarack.a"))
        .arg("-Wl,--no-whole-archive,--gc-sections");
    command.arg(format!("-Wl,--version-script={}", classes.join("exports.map").display()));
    command.arg(format!("-Wl,--no-undefined,-soname,{}", LEVELDB.soname));
    command
        .args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-Wl,--strip-debug", "-o"])
        .arg(linked);
    command
}
