//! Walks a directory and lists what is to be stored, in a fixed order. Reads no file.

use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::layout::{Companion, DIRECTORY_MODE, FILE_MODE, MODE_MASK};
use crate::failure::{Failure, Result};

/// One file, symbolic link, or directory that has to be mentioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub source: PathBuf,
    /// Its path relative to the tree, components joined by `/`.
    pub path: Vec<u8>,
    /// Its length if it is a regular file, whose bytes are to be stored.
    pub file_bytes: Option<u64>,
    /// What has to be said beside the bytes.
    pub companion: Option<Companion>,
    depth: usize,
}

impl Entry {
    /// Why it cannot be a value, if that can be told by its length.
    pub fn too_long(&self) -> Option<&'static str> {
        let longest = u64::from(u32::MAX);
        self.file_bytes
            .is_some_and(|length| length > longest)
            .then_some("larger than 4 GiB − 1, the longest value")
    }
}

/// What a directory holds.
#[derive(Debug, Default)]
pub struct Tree {
    /// What is to be stored, directories before what is in them.
    pub entries: Vec<Entry>,
    /// Directories that need no mention.
    pub implied: Vec<Vec<u8>>,
    /// What cannot be stored, and why.
    pub skipped: Vec<String>,
    /// Regular files.
    pub files: u64,
    /// Bytes in regular files.
    pub bytes: u64,
}

/// How much of a tree to take.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// Most regular files.
    pub files: u64,
    /// Most bytes in regular files.
    pub bytes: u64,
}

impl Limit {
    /// All of it.
    pub const NONE: Self = Self { files: u64::MAX, bytes: u64::MAX };
}

/// Lists the tree under `root`, up to `limit`, leaving out the directory `except` (the database itself).
pub fn collect(root: &Path, except: &Path, limit: Limit) -> Result<Tree> {
    let metadata = std::fs::metadata(root).map_err(|error| Failure::io("read", root, error))?;
    if !metadata.is_dir() {
        return Err(Failure::Usage(format!("{} is not a directory", root.display())));
    }
    let except = std::fs::metadata(except).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let mut tree = Tree::default();
    let mut walk = WalkDir::new(root).min_depth(1).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let (entry, metadata) = match entry.and_then(|entry| entry.metadata().map(|data| (entry, data))) {
            Ok(pair) => pair,
            Err(error) => {
                tree.skipped.push(format!("cannot be read: {error}"));
                continue;
            }
        };
        if metadata.is_dir() && except == Some((metadata.dev(), metadata.ino())) {
            walk.skip_current_dir();
            continue;
        }
        if metadata.is_file() && (tree.files == limit.files || tree.bytes + metadata.len() > limit.bytes) {
            break;
        }
        tree.add(root, &entry, &metadata);
    }
    tree.drop_implied_directories();
    Ok(tree)
}

impl Tree {
    fn add(&mut self, root: &Path, entry: &walkdir::DirEntry, metadata: &std::fs::Metadata) {
        let relative = entry.path().strip_prefix(root).expect("a walk stays below its root");
        let mode = metadata.mode() & MODE_MASK;
        let (file_bytes, companion) = if metadata.is_file() {
            self.files += 1;
            self.bytes += metadata.len();
            (Some(metadata.len()), (mode != FILE_MODE).then_some(Companion::File(mode)))
        } else if metadata.is_dir() {
            (None, Some(Companion::Directory(mode)))
        } else if metadata.is_symlink() {
            match std::fs::read_link(entry.path()) {
                Ok(target) => (None, Some(Companion::Symlink(target.into_os_string().into_vec()))),
                Err(error) => return self.skip(entry.path(), &format!("cannot be read: {error}")),
            }
        } else {
            return self.skip(entry.path(), "neither file, directory nor symbolic link");
        };
        self.entries.push(Entry {
            source: entry.path().to_path_buf(),
            path: relative.as_os_str().as_bytes().to_vec(),
            file_bytes,
            companion,
            depth: entry.depth(),
        });
    }

    fn skip(&mut self, path: &Path, reason: &str) {
        self.skipped.push(format!("{}: {reason}", path.display()));
    }

    /// Leaves out files that are too long or cannot be opened.
    pub fn leave_out_what_cannot_be_stored(&mut self) {
        let obstacle = |entry: &Entry| {
            entry.file_bytes?;
            let unreadable =
                || File::open(&entry.source).err().map(|error| format!("cannot be read: {error}"));
            entry.too_long().map(str::to_owned).or_else(unreadable)
        };
        for entry in std::mem::take(&mut self.entries) {
            match obstacle(&entry) {
                None => self.entries.push(entry),
                Some(reason) => {
                    self.files -= 1;
                    self.bytes -= entry.file_bytes.unwrap_or(0);
                    self.skip(&entry.source, &reason);
                }
            }
        }
    }

    /// Directories need no mention if they have the usual permissions and something in them is stored.
    fn drop_implied_directories(&mut self) {
        let usual = Some(Companion::Directory(DIRECTORY_MODE));
        let has_content: Vec<bool> = (0..self.entries.len())
            .map(|index| {
                let depth = self.entries[index].depth;
                self.entries.get(index + 1).is_some_and(|next| next.depth > depth)
            })
            .collect();
        let mut has_content = has_content.into_iter();
        let is_implied = |entry: &mut Entry| has_content.next() == Some(true) && entry.companion == usual;
        self.implied = self.entries.extract_if(.., is_implied).map(|entry| entry.path).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_what_bytes_cannot_say_has_a_companion() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path();
        let at = |name: &str| root.join(name);
        let set = |name: &str, mode| {
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).expect("the file is ours");
        };
        for name in ["plain", "plain/deep", "empty", "private", "database"] {
            fs::create_dir(at(name)).expect("the directory is ours");
            set(name, 0o755);
        }
        set("private", 0o700);
        for name in ["plain/deep/file", "private/file", "run", "database/ignored"] {
            fs::write(at(name), name).expect("the directory is ours");
            set(name, 0o644);
        }
        set("run", 0o755);
        symlink("plain/deep", at("link")).expect("the directory is ours");

        let tree = collect(root, &at("database"), Limit::NONE).expect("readable");
        let found: Vec<(&str, bool, Option<Companion>)> = tree
            .entries
            .iter()
            .map(|entry| {
                let path = std::str::from_utf8(&entry.path).expect("our own names");
                (path, entry.file_bytes.is_some(), entry.companion.clone())
            })
            .collect();
        assert_eq!(
            found,
            [
                ("empty", false, Some(Companion::Directory(0o755))),
                ("link", false, Some(Companion::Symlink(b"plain/deep".to_vec()))),
                ("plain/deep/file", true, None),
                ("private", false, Some(Companion::Directory(0o700))),
                ("private/file", true, None),
                ("run", true, Some(Companion::File(0o755))),
            ]
        );
        assert_eq!((tree.files, tree.bytes), (3, 15 + 12 + 3));

        let first = collect(root, &at("database"), Limit { files: 1, bytes: u64::MAX }).expect("readable");
        assert_eq!(first.files, 1);
    }
}
