//! The victim of the demonstration: imports a tree file by file and reports each acknowledged write.
//!
//! Started by `demo` as a process of its own. For each file it stores it writes the file's number and a line
//! end to standard output, after the database has acknowledged the write and before it begins the next. It
//! never ends by itself: `demo` kills it.

use std::io::{Read, Write};
use std::path::PathBuf;

use clap::Args;

use super::Size;
use crate::failure::{Failure, Outcome, Result};
use crate::open::Database;

/// Import a tree and report every acknowledged file (used by `demo`)
#[derive(Debug, Args)]
pub struct DemoChild {
    #[command(flatten)]
    database: Database,

    directory: PathBuf,

    #[command(flatten)]
    size: Size,
}

impl DemoChild {
    /// Runs the command.
    pub fn run(self) -> Result<Outcome> {
        // The directory of all databases of the demonstration: what the parent leaves out, too.
        let scratch = self.database.path.parent().unwrap_or(&self.database.path);
        let tree = self.size.take(&self.directory, scratch)?;
        let db = self.database.open_or_create()?;
        let mut output = std::io::stdout().lock();
        let files = tree.entries.iter().filter(|entry| entry.file_bytes.is_some());
        for (number, file) in files.enumerate() {
            let bytes =
                std::fs::read(&file.source).map_err(|error| Failure::io("read", &file.source, error))?;
            db.put(&file.path, &bytes)?;
            output
                .write_all(format!("{number}\n").as_bytes())
                .and_then(|()| output.flush())
                .map_err(Failure::output)?;
        }
        // The parent keeps our standard input open: this waits for the kill, with the database still open.
        let mut end = Vec::new();
        std::io::stdin()
            .read_to_end(&mut end)
            .map_err(|source| Failure::Io { action: "wait on standard input".into(), source })?;
        Ok(Outcome::Done)
    }
}
