//! Finds out whether the system has LevelDB's library and a Go compiler, which builds Badger's (what cannot be had is left
//! out, and a comparison says so), and which versions the stores have.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=Cargo.lock");
    println!("cargo:rustc-check-cfg=cfg(has_leveldb, has_badger)");
    println!("cargo:rerun-if-env-changed=CXXFLAGS");
    if std::env::var_os("CARGO_FEATURE_ROCKSDB").is_some() && std::env::var_os("CXXFLAGS").is_none() {
        println!(
            "cargo::error=RocksDB would compute its checksums without the processor's help: build in bench-peers, whose .cargo/config.toml says otherwise, or set CXXFLAGS"
        );
    }
    let locked = std::fs::read_to_string("Cargo.lock").expect("cargo has written Cargo.lock");
    for (variable, package) in
        [("ROCKSDB", "librocksdb-sys"), ("FJALL", "fjall"), ("LMDB", "lmdb-master-sys")]
    {
        println!("cargo:rustc-env={variable}_VERSION={}", version(&locked, package));
    }
    if std::env::var_os("CARGO_FEATURE_LEVELDB").is_some() && links_with_leveldb() {
        println!("cargo:rustc-cfg=has_leveldb");
    }
    println!("cargo:rustc-env=BADGER_VERSION={}", badger_version());
    match badger_library() {
        Ok(library) => {
            println!("cargo:rustc-cfg=has_badger");
            println!("cargo:rustc-env=BADGER_LIBRARY={}", library.display());
        }
        Err(missing) => {
            println!("cargo:rustc-env=BADGER_MISSING={missing}");
            // It may be there the next time: a file that is not makes cargo look again.
            println!("cargo:rerun-if-changed=badger/missing");
        }
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

/// Badger's version, as its module file in `badger` has it.
fn badger_version() -> String {
    let required = std::fs::read_to_string("badger/go.mod").expect("the file is there");
    let version =
        required.split("github.com/dgraph-io/badger/v4 v").nth(1).and_then(|rest| rest.lines().next());
    version.expect("it is required").to_owned()
}

/// Builds Badger's library. What is missing for that is told in one line.
fn badger_library() -> Result<PathBuf, String> {
    if std::env::var_os("CARGO_FEATURE_BADGER").is_none() {
        return Err("add the feature badger".to_owned());
    }
    for changed in ["rerun-if-changed=badger", "rerun-if-env-changed=GO", "rerun-if-env-changed=PATH"] {
        println!("cargo:{changed}");
    }
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let library = Path::new(&out).join("libtamarack_badger.so");
    let mut command = Command::new(go().ok_or("install Go (or say by GO where it is), then build again")?);
    command.args(["build", "-buildvcs=false", "-trimpath", "-buildmode=c-shared", "-o"]).arg(&library);
    let output = command.arg(".").current_dir("badger").env("CGO_ENABLED", "1").output();
    let output = output.map_err(|error| format!("Go cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(library);
    }
    let words = String::from_utf8_lossy(&output.stderr);
    words.lines().for_each(|line| println!("cargo:warning=badger: {line}"));
    Err(format!("Go cannot build it: {}", words.lines().last().unwrap_or("it does not say why")))
}

/// Go's command: the one that `GO` names, or else one in the usual places.
fn go() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("GO") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain([PathBuf::from("/usr/local/go/bin")]);
    directories.map(|directory| directory.join("go")).find(|command| command.is_file())
}
