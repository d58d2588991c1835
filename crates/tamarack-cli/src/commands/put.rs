//! `put`: stores one value.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use tamarack::WriteOptions;

use crate::failure::{Failure, Outcome, Result};
use crate::format::Encodings;
use crate::open::Database;

/// Store a value under a key; makes the database if there is none
#[derive(Debug, Args)]
pub struct Put {
    #[command(flatten)]
    database: Database,

    key: String,

    /// The value; `-` reads it from standard input, bytes as they are
    #[arg(required_unless_present = "file")]
    value: Option<String>,

    /// Take the value from this file, bytes as they are
    #[arg(long, conflicts_with = "value", value_name = "FILE")]
    file: Option<PathBuf>,

    /// Return only when the value would survive a power failure
    #[arg(long)]
    sync: bool,

    #[command(flatten)]
    encodings: Encodings,
}

impl Put {
    /// Runs the command.
    pub fn run(self) -> Result<Outcome> {
        let key = self.encodings.key.decode(&self.key, "key")?;
        let value = self.value_bytes()?;
        let db = self.database.open_or_create()?;
        db.put_with(&key, &value, &WriteOptions { sync: self.sync })?;
        db.close()?;
        Ok(Outcome::Done)
    }

    fn value_bytes(&self) -> Result<Vec<u8>> {
        if let Some(path) = &self.file {
            return std::fs::read(path).map_err(|error| Failure::io("read", path, error));
        }
        match self.value.as_deref().expect("clap demands a value or --file") {
            "-" => {
                let mut bytes = Vec::new();
                std::io::stdin().lock().read_to_end(&mut bytes).map_err(|source| Failure::Io {
                    action: "read the value from standard input".into(),
                    source,
                })?;
                Ok(bytes)
            }
            text => self.encodings.value.decode(text, "value"),
        }
    }
}
