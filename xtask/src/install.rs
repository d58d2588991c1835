//! `cargo xtask install --prefix DIR`: Tamarack for C programs: headers, libraries and what `pkg-config` reads.
//!
//! The library is linked twice from the same objects, because a shared library has one name of its own (soname): the
//! one that programs linked with it will ask for. Files are laid out by [`layout`], which only decides; [`place`] does
//! it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::steps::{Steps, cargo};

/// The version of the library.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The name that programs linked with `-ltamarack` ask for. Its number changes when they have to be linked again.
const TAMARACK_SONAME: &str = "libtamarack.so.0";
/// The name that programs linked with Debian's LevelDB ask for.
const LEVELDB_SONAME: &str = "libleveldb.so.1d";
/// The version of LevelDB whose interface it is.
const LEVELDB_VERSION: &str = "1.23.0";
/// What a program needs besides, that is linked with the static library.
const STATIC_NEEDS: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl";

/// Something below the prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    /// A copy of a file.
    Copy(PathBuf),
    /// A link to a name beside it.
    Link(String),
    /// A file with this text.
    Text(String),
}

/// Builds and installs below `prefix`.
///
/// # Errors
/// Those of the files.
pub fn install(root: &Path, prefix: &Path) -> io::Result<ExitCode> {
    let mut steps = Steps::default();
    let built = root.join("target/install");
    for (step, kind, soname) in [
        ("static", "staticlib", None),
        ("tamarack", "cdylib", Some(TAMARACK_SONAME)),
        ("leveldb", "cdylib", Some(LEVELDB_SONAME)),
    ] {
        let package = ["rustc", "--quiet", "--release", "--locked", "-p", "tamarack-capi", "--lib"];
        let mut build = cargo(root, &package);
        build.args(["--crate-type", kind]).env("CARGO_TARGET_DIR", &built);
        if let Some(soname) = soname {
            build.args(["--", "-C"]).arg(format!("link-arg=-Wl,-soname,{soname}"));
        }
        steps.run_quietly(step, &mut build)?;
        if steps.any_failed() {
            return Ok(steps.finish());
        }
        // The next build has the same name, so this one is put away.
        let file = if soname.is_some() { "libtamarack_capi.so" } else { "libtamarack_capi.a" };
        fs::copy(built.join("release").join(file), built.join(soname.unwrap_or("libtamarack.a")))?;
    }
    fs::create_dir_all(prefix)?;
    let prefix = prefix.canonicalize()?;
    let headers = root.join("crates/tamarack-capi/include");
    for (path, item) in layout(&prefix, &headers, &built) {
        place(&prefix.join(path), &item)?;
    }
    println!("installed below {}", prefix.display());
    Ok(steps.finish())
}

/// What belongs where below `prefix`: the headers of the directory `headers`, and the libraries of `built`.
fn layout(prefix: &Path, headers: &Path, built: &Path) -> Vec<(String, Item)> {
    let mut items = Vec::new();
    for header in ["leveldb/c.h", "tamarack/c.h"] {
        items.push((format!("include/{header}"), Item::Copy(headers.join(header))));
    }
    items.push(("lib/libtamarack.a".to_owned(), Item::Copy(built.join("libtamarack.a"))));
    items.push(("lib/libleveldb.a".to_owned(), Item::Link("libtamarack.a".to_owned())));
    for (name, version, soname, others) in [
        ("tamarack", VERSION, TAMARACK_SONAME, &[][..]),
        // LevelDB's own builds have this soname.
        ("leveldb", LEVELDB_VERSION, LEVELDB_SONAME, &["libleveldb.so.1"][..]),
    ] {
        let file = format!("lib{name}.so.{version}");
        items.push((format!("lib/{file}"), Item::Copy(built.join(soname))));
        for link in [soname, &format!("lib{name}.so")].into_iter().chain(others.iter().copied()) {
            items.push((format!("lib/{link}"), Item::Link(file.clone())));
        }
        items.push((format!("lib/pkgconfig/{name}.pc"), Item::Text(pkg_config(prefix, name, version))));
    }
    items
}

fn pkg_config(prefix: &Path, name: &str, version: &str) -> String {
    format!(
        "prefix={}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: {name}\nDescription: Tamarack, a key-value store, with the C interface of LevelDB\nVersion: {version}\n\
         Cflags: -I${{includedir}}\nLibs: -L${{libdir}} -l{name}\nLibs.private: {STATIC_NEEDS}\n",
        prefix.display()
    )
}

/// Puts `item` at `path`. What was there is replaced, not changed: a running program keeps what it has.
fn place(path: &Path, item: &Item) -> io::Result<()> {
    let directory = path.parent().expect("every item lies below the prefix");
    fs::create_dir_all(directory)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match item {
        Item::Copy(source) => fs::copy(source, path).map(drop),
        Item::Link(name) => std::os::unix::fs::symlink(name, path),
        Item::Text(text) => fs::write(path, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_laid_out_can_be_placed_and_placed_again() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (built, headers) = (directory.path().join("built"), directory.path().join("headers"));
        let prefix = directory.path().join("prefix");
        for path in ["leveldb/c.h", "tamarack/c.h"] {
            place(&headers.join(path), &Item::Text(path.to_owned())).expect("writes");
        }
        for name in ["libtamarack.a", TAMARACK_SONAME, LEVELDB_SONAME] {
            place(&built.join(name), &Item::Text(name.to_owned())).expect("writes");
        }
        for _ in 0..2 {
            for (path, item) in layout(&prefix, &headers, &built) {
                place(&prefix.join(path), &item).expect("is placed");
            }
        }
        let read = |path: &str| fs::read_to_string(prefix.join(path)).expect(path);
        assert_eq!(read("include/tamarack/c.h"), "tamarack/c.h");
        assert_eq!(read("include/leveldb/c.h"), "leveldb/c.h");
        for name in ["libtamarack.so", "libtamarack.so.0"] {
            assert_eq!(read(&format!("lib/{name}")), TAMARACK_SONAME);
        }
        for name in ["libleveldb.so", "libleveldb.so.1", "libleveldb.so.1d", "libleveldb.so.1.23.0"] {
            assert_eq!(read(&format!("lib/{name}")), LEVELDB_SONAME);
        }
        for name in ["libtamarack.a", "libleveldb.a"] {
            assert_eq!(read(&format!("lib/{name}")), "libtamarack.a");
        }
        let text = read("lib/pkgconfig/leveldb.pc");
        assert!(text.contains(&format!("prefix={}\n", prefix.display())), "{text}");
        assert!(text.contains("\nVersion: 1.23.0\n") && text.contains("-lleveldb\n"), "{text}");
        assert!(read("lib/pkgconfig/tamarack.pc").contains("-ltamarack\n"));
    }
}
