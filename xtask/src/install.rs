//! `cargo xtask install --prefix DIR`: Tamarack for C and C++ programs: headers, libraries and what `pkg-config` and CMake read.
//!
//! The library is linked twice from the same objects, because a shared library has one name of its own (soname): the
//! one that programs linked with it will ask for. That of LevelDB's name has LevelDB's C++ classes as well, if there is
//! a C++ compiler. Files are laid out by [`layout`], which only decides; [`place`] does it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::steps::{Steps, cargo};

mod cpp;
mod packages;

/// A library, and the names by which programs know it.
struct Library {
    /// What `-l`, `pkg-config` and CMake call it.
    name: &'static str,
    /// What it says its version is.
    version: &'static str,
    /// The name that programs linked with it ask for.
    soname: &'static str,
    /// Further names for those that were linked with another build.
    others: &'static [&'static str],
}

/// Its soname's number changes when programs have to be linked again.
const TAMARACK: Library =
    Library { name: "tamarack", version: env!("CARGO_PKG_VERSION"), soname: "libtamarack.so.0", others: &[] };
/// The soname is that of Debian's LevelDB; LevelDB's own builds have the other name. The version is that of the LevelDB whose
/// interface it is.
const LEVELDB: Library =
    Library { name: "leveldb", version: "1.23.0", soname: "libleveldb.so.1d", others: &["libleveldb.so.1"] };

impl Library {
    /// The file that the other names are links to.
    fn file(&self) -> String {
        format!("lib{}.so.{}", self.name, self.version)
    }
}

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
        ("tamarack", "cdylib", Some(TAMARACK.soname)),
        ("leveldb", "cdylib", Some(LEVELDB.soname)),
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
    let interface = root.join("crates/tamarack-capi");
    cpp::add_classes(&mut steps, &interface, &built)?;
    if steps.any_failed() {
        return Ok(steps.finish());
    }
    fs::create_dir_all(prefix)?;
    let prefix = prefix.canonicalize()?;
    for (path, item) in layout(&prefix, &interface.join("include"), &built)? {
        place(&prefix.join(path), &item)?;
    }
    println!("installed below {}", prefix.display());
    Ok(steps.finish())
}

/// What belongs where below `prefix`: the headers of the directory `headers`, and the libraries of `built`.
fn layout(prefix: &Path, headers: &Path, built: &Path) -> io::Result<Vec<(String, Item)>> {
    let mut items = Vec::new();
    for header in files(headers, "")? {
        let source = headers.join(&header);
        items.push((format!("include/{header}"), Item::Copy(source)));
    }
    items.push(("lib/libtamarack.a".to_owned(), Item::Copy(built.join("libtamarack.a"))));
    items.push(("lib/libleveldb.a".to_owned(), Item::Link("libtamarack.a".to_owned())));
    for library in [&TAMARACK, &LEVELDB] {
        items.push((format!("lib/{}", library.file()), Item::Copy(built.join(library.soname))));
        let plain = format!("lib{}.so", library.name);
        for link in [library.soname, &plain].into_iter().chain(library.others.iter().copied()) {
            items.push((format!("lib/{link}"), Item::Link(library.file())));
        }
        items.extend(packages::describe(prefix, library).map(|(path, text)| (path, Item::Text(text))));
    }
    Ok(items)
}

/// The files below `directory`, relative to `root`.
fn files(root: &Path, directory: &str) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(directory))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
        if entry.file_type()?.is_dir() {
            found.extend(files(root, &path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
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
        for path in ["leveldb/c.h", "tamarack/c.h", "tamarack/leveldb/database.h"] {
            place(&headers.join(path), &Item::Text(path.to_owned())).expect("writes");
        }
        for name in ["libtamarack.a", TAMARACK.soname, LEVELDB.soname] {
            place(&built.join(name), &Item::Text(name.to_owned())).expect("writes");
        }
        for _ in 0..2 {
            for (path, item) in layout(&prefix, &headers, &built).expect("reads") {
                place(&prefix.join(path), &item).expect("is placed");
            }
        }
        let read = |path: &str| fs::read_to_string(prefix.join(path)).expect(path);
        assert_eq!(read("include/tamarack/c.h"), "tamarack/c.h");
        assert_eq!(read("include/leveldb/c.h"), "leveldb/c.h");
        assert_eq!(read("include/tamarack/leveldb/database.h"), "tamarack/leveldb/database.h");
        for name in ["libtamarack.so", "libtamarack.so.0"] {
            assert_eq!(read(&format!("lib/{name}")), TAMARACK.soname);
        }
        for name in ["libleveldb.so", "libleveldb.so.1", "libleveldb.so.1d", "libleveldb.so.1.23.0"] {
            assert_eq!(read(&format!("lib/{name}")), LEVELDB.soname);
        }
        for name in ["libtamarack.a", "libleveldb.a"] {
            assert_eq!(read(&format!("lib/{name}")), "libtamarack.a");
        }
        for name in ["leveldb", "tamarack"] {
            assert!(read(&format!("lib/pkgconfig/{name}.pc")).contains(&format!("-l{name} ")));
            assert!(read(&format!("lib/cmake/{name}/{name}Config.cmake")).contains(&format!("lib{name}.so")));
        }
    }
}
