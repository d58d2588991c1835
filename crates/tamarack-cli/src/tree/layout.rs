//! The layout of a directory tree in a database: the keys, and the bytes of companions.
//!
//! | companion             | when                                                              |
//! |-----------------------|-------------------------------------------------------------------|
//! | `file 0755`           | a regular file whose permissions are not 0644                     |
//! | `directory 0755`      | a directory that holds nothing, or whose permissions are not 0755 |
//! | `symlink TARGET`      | a symbolic link; TARGET is its target, byte for byte              |
//!
//! Permissions are four octal digits: read, write and execute for owner, group and others. Owners, times,
//! set-user-id bits, extended attributes and hard links are not kept; sockets, pipes and devices are left out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::range::KeyRange;

/// Permissions of a file that has no companion.
pub const FILE_MODE: u32 = 0o644;

/// Permissions of a directory that has no companion.
pub const DIRECTORY_MODE: u32 = 0o755;

/// The permission bits that are kept.
pub const MODE_MASK: u32 = 0o777;

const META: &[u8] = b"\0meta/";

/// Where a tree is kept: behind which prefix.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    prefix: Vec<u8>,
}

/// What a companion says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Companion {
    /// A regular file with these permissions.
    File(u32),
    /// A directory with these permissions.
    Directory(u32),
    /// A symbolic link with this target.
    Symlink(Vec<u8>),
}

impl Layout {
    /// A tree kept behind `prefix`.
    pub fn new(prefix: &str) -> Result<Self> {
        if prefix.contains('\0') {
            return Err(Failure::Usage("a prefix has no NUL bytes: they mark metadata".into()));
        }
        Ok(Self { prefix: prefix.as_bytes().to_vec() })
    }

    /// The key of the file at `path`, which is relative to the tree.
    pub fn key(&self, path: &[u8]) -> Vec<u8> {
        [&self.prefix, path].concat()
    }

    /// The key of the companion of `path`.
    pub fn companion_key(&self, path: &[u8]) -> Vec<u8> {
        [META, &self.prefix, path].concat()
    }

    /// The range of all files. Without a prefix it begins behind everything that begins with NUL.
    pub fn keys(&self) -> KeyRange {
        if self.prefix.is_empty() {
            return KeyRange { start: Some(vec![1]), end: None };
        }
        KeyRange::of_prefix(self.prefix.clone())
    }

    /// The range of all companions.
    pub fn companion_keys(&self) -> KeyRange {
        KeyRange::of_prefix(self.companion_key(b""))
    }

    /// The path of a key in [`Layout::keys`].
    pub fn path<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        key.strip_prefix(self.prefix.as_slice()).expect("keys of the tree begin with its prefix")
    }

    /// The path of a key in [`Layout::companion_keys`].
    pub fn companion_path<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        self.path(key.strip_prefix(META).expect("keys of companions begin with their mark"))
    }
}

impl Companion {
    /// The companion's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::File(mode) => format!("file {mode:04o}").into_bytes(),
            Self::Directory(mode) => format!("directory {mode:04o}").into_bytes(),
            Self::Symlink(target) => [b"symlink ", target.as_slice()].concat(),
        }
    }

    /// Reads a companion's bytes; `None` if they are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if let Some(target) = bytes.strip_prefix(b"symlink ") {
            let usable = !target.is_empty() && !target.contains(&0);
            return usable.then(|| Self::Symlink(target.to_vec()));
        }
        let mode = |digits: &[u8]| {
            let octal = digits.len() == 4 && digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
            let value = digits.iter().fold(0, |value, digit| value * 8 + u32::from(digit - b'0'));
            (octal && value <= MODE_MASK).then_some(value)
        };
        if let Some(digits) = bytes.strip_prefix(b"file ") {
            return mode(digits).map(Self::File);
        }
        mode(bytes.strip_prefix(b"directory ")?).map(Self::Directory)
    }
}

/// The place of `path` below a directory, or why a file of that name must not be made there.
pub fn safe_path(path: &[u8]) -> std::result::Result<PathBuf, &'static str> {
    if path.is_empty() {
        return Err("the name is empty");
    }
    if path.contains(&0) {
        return Err("the name has a NUL byte");
    }
    if path[0] == b'/' {
        return Err("the name begins with `/`");
    }
    for component in path.split(|byte| *byte == b'/') {
        match component {
            b"" => return Err("the name has an empty component"),
            b"." | b".." => return Err("the name has a `.` or `..` component"),
            _ => {}
        }
    }
    Ok(Path::new(OsStr::from_bytes(path)).to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Component;

    fn companion() -> impl Strategy<Value = Companion> {
        prop_oneof![
            (0..=MODE_MASK).prop_map(Companion::File),
            (0..=MODE_MASK).prop_map(Companion::Directory),
            proptest::collection::vec(1..=u8::MAX, 1..20).prop_map(Companion::Symlink),
        ]
    }

    proptest! {
        #[test]
        fn companions_come_back(companion in companion()) {
            prop_assert_eq!(Companion::from_bytes(&companion.to_bytes()), Some(companion));
        }

        #[test]
        fn companions_have_one_form(bytes in prop_oneof![any::<Vec<u8>>(), "(file|directory|symlink) [0-9]{0,5}".prop_map(String::into_bytes)]) {
            if let Some(companion) = Companion::from_bytes(&bytes) {
                prop_assert_eq!(companion.to_bytes(), bytes);
            }
        }

        #[test]
        fn safe_paths_stay_below_their_directory(path in "[a./\u{0}]{0,8}") {
            if let Ok(safe) = safe_path(path.as_bytes()) {
                prop_assert!(safe.components().all(|part| matches!(part, Component::Normal(_))));
                prop_assert_eq!(safe.as_os_str().as_bytes(), path.as_bytes());
            }
        }
    }

    #[test]
    fn paths_that_leave_the_directory_are_refused() {
        for path in ["", "/etc/passwd", "..", "../a", "a/../../b", "a//b", "a/", "./a", "a\0b"] {
            assert!(safe_path(path.as_bytes()).is_err(), "{path:?}");
        }
        assert!(safe_path(b"a/..b/c.. /\xff").is_ok());
    }

    #[test]
    fn companions_never_collide_with_files() {
        let layout = Layout::new("").expect("no NUL");
        let companion = layout.companion_key(b"a");
        assert!(companion < layout.keys().start.expect("a start"));
        assert_eq!(layout.companion_path(&companion), b"a");
        let layout = Layout::new("src/").expect("no NUL");
        assert_eq!(layout.key(b"a"), b"src/a");
        assert_eq!(layout.path(b"src/a"), b"a");
        assert_eq!(layout.companion_path(&layout.companion_key(b"a")), b"a");
        assert!(Layout::new("a\0").is_err());
    }
}
