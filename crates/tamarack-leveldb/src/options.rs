//! How a directory is read.

use std::path::PathBuf;

/// How a directory is read. The default takes nothing that is not whole.
#[derive(Debug, Clone)]
pub struct Options {
    /// Leave out what is damaged, and count it as a [`Loss`](crate::Loss), instead of ending at it. Default: false.
    pub salvage: bool,
    /// Read databases with a comparator of a program's own as well, in the order of their keys' bytes. Keys that the
    /// comparator takes for equal although their bytes differ are then entries of their own, and may have values that were
    /// overwritten or deleted. All entries are sorted anew, which takes disk space for most of them. Default: false.
    pub any_comparator: bool,
    /// Bytes of operations that are kept in memory while they are sorted: those of the logs, and with
    /// [`any_comparator`](Self::any_comparator) all. What exceeds them goes to a temporary file. Default: 64 MiB.
    pub memory_bytes: usize,
    /// Where that file is made; it has no name, and goes with the process. Default: the system's directory for such files.
    pub temporary_directory: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            salvage: false,
            any_comparator: false,
            memory_bytes: 64 << 20,
            temporary_directory: std::env::temp_dir(),
        }
    }
}
