//! `get`: prints one value.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};

use crate::failure::{Failure, Outcome, Result, tell};
use crate::format::Encodings;
use crate::open::Database;
use crate::output::Output;

/// Print the value of a key; exit status 1 if it is not there
#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    database: Database,

    key: String,

    /// Write the value to this file, bytes as they are
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the bytes as they are, without a line end
    #[arg(long, conflicts_with_all = ["output", "json"])]
    raw: bool,

    #[command(flatten)]
    encodings: Encodings,
}

impl Get {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let key = self.encodings.key.decode(&self.key, "key")?;
        let db = self.database.open_for_reading()?;
        let value = db.get(&key)?;
        self.print(json, &key, value.as_deref())?;
        db.close()?;
        Ok(Outcome::positive_if(value.is_some()))
    }

    fn print(&self, json: bool, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if let (Some(path), Some(value)) = (&self.output, value) {
            std::fs::write(path, value).map_err(|error| Failure::io("write", path, error))?;
        }
        let mut output = Output::new();
        if json {
            let to_file = self.output.is_some();
            output.json(&answer(&self.encodings, key, value, to_file))?;
        } else if let Some(value) = value {
            if self.raw {
                output.bytes(value)?;
            } else if self.output.is_none() {
                output.line(&self.encodings.value.block(value))?;
            }
        } else {
            tell(&format!("tamarack: not found: {}", self.encodings.key.line(key)));
        }
        output.finish()
    }
}

/// What `get` and `multi-get` say about one key in JSON. The value itself is left out when `without_value`.
pub fn answer(encodings: &Encodings, key: &[u8], value: Option<&[u8]>, without_value: bool) -> Value {
    let mut object = Map::new();
    encodings.key.insert_json(&mut object, "key", key);
    object.insert("found".into(), value.is_some().into());
    if let Some(value) = value {
        object.insert("bytes".into(), value.len().into());
        if !without_value {
            encodings.value.insert_json(&mut object, "value", value);
        }
    }
    Value::Object(object)
}
