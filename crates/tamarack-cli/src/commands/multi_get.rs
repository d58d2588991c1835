//! `multi-get`: prints the values of several keys, read together.

use clap::Args;
use tamarack::ReadOptions;

use crate::commands::get::answer;
use crate::failure::{Outcome, Result, tell};
use crate::format::Encodings;
use crate::open::Database;
use crate::output::Output;

/// Print `KEY<tab>VALUE` for each key in the order given; exit status 1 if one is not there
#[derive(Debug, Args)]
pub struct MultiGet {
    #[command(flatten)]
    database: Database,

    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,

    #[command(flatten)]
    encodings: Encodings,
}

impl MultiGet {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let keys: Vec<Vec<u8>> =
            self.keys.iter().map(|key| self.encodings.key.decode(key, "key")).collect::<Result<_>>()?;
        let db = self.database.open_for_reading()?;
        let values = db.multi_get(&keys, &ReadOptions::default());
        let all_found = !values.iter().any(|value| matches!(value, Ok(None)));
        Output::answer(|output| {
            for (key, value) in keys.iter().zip(values) {
                let value = value?;
                if json {
                    output.json(&answer(&self.encodings, key, value.as_deref(), false))?;
                    continue;
                }
                let key = self.encodings.key.line(key);
                match value {
                    Some(value) => output.line(&format!("{key}\t{}", self.encodings.value.line(&value)))?,
                    None => tell(&format!("tamarack: not found: {key}")),
                }
            }
            Ok(())
        })?;
        db.close()?;
        Ok(Outcome::positive_if(all_found))
    }
}
