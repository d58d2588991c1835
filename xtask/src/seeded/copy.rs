//! The copy of the workspace that has all bugs in it. Files are written only if they change, so that building it again is
//! quick.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Bug, QUESTION, SOURCES, bugs};
use crate::finding::Finding;
use crate::tree::Tree;

/// The environment variable that names the bug in force.
pub const VARIABLE: &str = "TAMARACK_SEEDED_BUG";

/// What the engine of the copy has in addition.
const SWITCH: &str = "
/// Whether the seeded bug `name` is in force.
pub(crate) fn seeded_bug(name: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var(\"TAMARACK_SEEDED_BUG\").ok()).as_deref() == Some(name)
}
";

/// Files by their paths below the root.
type Files = BTreeMap<String, Vec<u8>>;

/// Makes or renews the copy of the workspace at `root`; returns where it is.
///
/// # Errors
/// Those of the files; `InvalidData` if a bug does not fit.
pub fn make(root: &Path) -> io::Result<PathBuf> {
    let copy = root.join("target/bugs");
    let mut files = Files::new();
    read_all(root, "", &mut files)?;
    for bug in bugs::all() {
        plant(bug, &mut files).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
    }
    let manifest = files.entry("Cargo.toml".to_owned()).or_default();
    *manifest = rename_version(&String::from_utf8_lossy(manifest)).into_bytes();
    files.entry(format!("{SOURCES}/lib.rs")).or_default().extend_from_slice(SWITCH.as_bytes());
    let mut there = Files::new();
    if copy.exists() {
        read_all(&copy, "", &mut there)?;
    }
    for path in there.keys().filter(|path| !files.contains_key(*path)) {
        fs::remove_file(copy.join(path))?;
    }
    for (path, bytes) in files.iter().filter(|(path, bytes)| there.get(*path) != Some(*bytes)) {
        let to = copy.join(path);
        fs::create_dir_all(to.parent().expect("files lie below the copy"))?;
        fs::write(to, bytes)?;
    }
    Ok(copy)
}

/// The workspace's manifest with another version, so that cargo does not take what it builds of the copy for ours.
fn rename_version(manifest: &str) -> String {
    let Some((before, rest)) = manifest.split_once("\nversion = \"") else { return manifest.to_owned() };
    let Some((version, after)) = rest.split_once('"') else { return manifest.to_owned() };
    format!("{before}\nversion = \"{version}+bugs\"{after}")
}

/// Where bugs do not fit the engine in `tree`.
pub fn misfits(tree: &Tree) -> Vec<Finding> {
    let sources = tree.sources.iter().map(|source| (source.path.clone(), source.text.clone().into_bytes()));
    let mut files: Files = sources.collect();
    let misfit = |bug: &Bug| plant(bug, &mut files).err();
    let found = bugs::all().filter_map(misfit);
    found.map(|why| Finding::new("xtask/src/seeded/bugs/mod.rs", 1, why)).collect()
}

/// Makes the replacements of `bug`.
fn plant(bug: &Bug, files: &mut Files) -> Result<(), String> {
    for edit in bug.edits {
        let path = format!("{SOURCES}/{}", edit.file);
        let text = files.get(&path).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let text = text.ok_or_else(|| format!("the bug {} is in {path}, which is not there", bug.name))?;
        let count = text.matches(edit.find).count();
        if count != 1 {
            return Err(format!(
                "the bug {} replaces what stands {count} times in {path}: {:?}",
                bug.name, edit.find
            ));
        }
        let question = format!("crate::seeded_bug({:?})", bug.name);
        let seeded = text.replace(edit.find, &edit.put.replace(QUESTION, &question));
        files.insert(path, seeded.into_bytes());
    }
    Ok(())
}

/// Reads every file below `directory` of `root`, except for build output and what version control keeps.
fn read_all(root: &Path, directory: &str, files: &mut Files) -> io::Result<()> {
    for entry in fs::read_dir(root.join(directory))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && !matches!(name.as_str(), "target" | ".git") {
            read_all(root, &path, files)?;
        } else if kind.is_file() {
            files.insert(path, fs::read(entry.path())?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Edit;
    use super::*;

    fn bug(find: &'static str) -> Bug {
        let edits = vec![Edit { file: "a.rs", find, put: "if !BUG { sync() }" }];
        Bug { name: "no-sync", what: "No sync.", edits: edits.leak(), caught_by: ("lib", "a") }
    }

    #[test]
    fn the_copy_has_a_version_of_its_own() {
        let manifest = "[workspace.package]\nversion = \"1.2.3\"\nedition = \"2024\"\n";
        assert_eq!(rename_version(manifest), manifest.replace("1.2.3", "1.2.3+bugs"));
    }

    #[test]
    fn a_text_is_replaced_where_it_stands_once() {
        let mut files = Files::from([(format!("{SOURCES}/a.rs"), b"sync(); close(); close()".to_vec())]);
        plant(&bug("sync()"), &mut files).expect("it fits");
        let text = String::from_utf8_lossy(&files[&format!("{SOURCES}/a.rs")]).into_owned();
        assert_eq!(text, "if !crate::seeded_bug(\"no-sync\") { sync() }; close(); close()");
        assert!(plant(&bug("close()"), &mut files).expect_err("twice").contains("2 times"));
        assert!(plant(&bug("open()"), &mut files).expect_err("nowhere").contains("0 times"));
    }
}
