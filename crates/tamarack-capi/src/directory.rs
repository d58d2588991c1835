//! Where LevelDB's clients keep the databases of their tests.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// The directory that `TEST_TMPDIR` names, or one in the system's temporary directory that belongs to the user; made
/// if it is not there. `None` if it cannot be.
pub fn test_directory() -> Option<Vec<u8>> {
    let named = std::env::var_os("TEST_TMPDIR").filter(|name| !name.is_empty()).map(PathBuf::from);
    let directory = named.unwrap_or_else(|| {
        let user = rustix::process::geteuid().as_raw();
        std::env::temp_dir().join(format!("leveldbtest-{user}"))
    });
    std::fs::create_dir_all(&directory).ok()?;
    Some(directory.as_os_str().as_bytes().to_vec())
}
