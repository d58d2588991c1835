//! Finds out whether the system has LevelDB's library: without it that store is left out, and a comparison says so.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(has_leveldb)");
    if std::env::var_os("CARGO_FEATURE_LEVELDB").is_some() && links_with_leveldb() {
        println!("cargo:rustc-cfg=has_leveldb");
    }
}

/// Whether a program that uses it can be linked.
fn links_with_leveldb() -> bool {
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let program = Path::new(&out).join("probe");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-x", "c", "-", "-lleveldb", "-o"]).arg(program);
    let Ok(mut child) = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn() else { return false };
    let source = b"int leveldb_major_version(void); int main(void) { return leveldb_major_version(); }";
    let written = child.stdin.take().is_some_and(|mut stdin| stdin.write_all(source).is_ok());
    child.wait().is_ok_and(|status| status.success()) && written
}
