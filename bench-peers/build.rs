//! Finds out whether the system has LevelDB's library (without it that store is left out, and a comparison says so), and
//! which versions the others have.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=Cargo.lock");
    println!("cargo:rustc-check-cfg=cfg(has_leveldb)");
    let locked = std::fs::read_to_string("Cargo.lock").expect("cargo has written Cargo.lock");
    for (variable, package) in [
        ("TAMARACK", "tamarack"),
        ("ROCKSDB", "librocksdb-sys"),
        ("FJALL", "fjall"),
        ("LMDB", "lmdb-master-sys"),
    ] {
        println!("cargo:rustc-env={variable}_VERSION={}", version(&locked, package));
    }
    if std::env::var_os("CARGO_FEATURE_LEVELDB").is_some() && links_with_leveldb() {
        println!("cargo:rustc-cfg=has_leveldb");
    }
}

/// The version of a package in a lock file. Crates that come with a library say behind a plus which version it has.
fn version<'a>(locked: &'a str, package: &str) -> &'a str {
    let entry = locked.split("[[package]]").find(|entry| entry.contains(&format!("name = \"{package}\"\n")));
    let version = entry.and_then(|entry| entry.split("version = \"").nth(1)?.split('"').next());
    let version = version.expect("it is in the lock file");
    version.rsplit('+').next().expect("a text has a last part")
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
