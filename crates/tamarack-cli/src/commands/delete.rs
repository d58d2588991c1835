//! `del`: removes keys.

use clap::Args;
use tamarack::{WriteBatch, WriteOptions};

use crate::failure::{Outcome, Result};
use crate::format::Encodings;
use crate::open::Database;

/// Remove keys, all of them or none; a key that is not there is no error
#[derive(Debug, Args)]
pub struct Delete {
    #[command(flatten)]
    database: Database,

    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,

    /// Return only when the removal would survive a power failure
    #[arg(long)]
    sync: bool,

    #[command(flatten)]
    encodings: Encodings,
}

impl Delete {
    /// Runs the command.
    pub fn run(self) -> Result<Outcome> {
        let mut batch = WriteBatch::new();
        for key in &self.keys {
            batch.delete(&self.encodings.key.decode(key, "key")?)?;
        }
        let db = self.database.open_existing()?;
        db.write(&batch, &WriteOptions { sync: self.sync })?;
        db.close()?;
        Ok(Outcome::Done)
    }
}
