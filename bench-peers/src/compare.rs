//! `compare`: one trial, as the command line says.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tamarack_bench::{Comparison, page};

use crate::stores::Peer;
use crate::summary;
use crate::trial::{Conditions, Trial};

const EXAMPLE: &str = "\
Workloads and their options are those of `measure --help`. Examples:
  compare --stores tamarack,rocksdb -- fillrandom overwrite --num 2000000
  compare --rounds 1 --html page.html -- ycsbload ycsba --distribution uniform";

/// Runs workloads on several stores in turn
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Compare {
    /// Stores [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STORE")]
    stores: Vec<Peer>,

    /// How often each store runs; the median is what counts
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    #[command(flatten)]
    conditions: Conditions,

    /// Write a page with tables and plots to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write all that the page shows to FILE as JSON, which `tamarack bench-page` makes pages of
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Workloads, run in this order on the same database, and how much of what they do: `measure --help` tells
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORK")]
    work: Vec<String>,
}

impl Compare {
    /// Runs the command.
    pub fn run(self) -> Result<(), String> {
        let stores = if self.stores.is_empty() { Peer::value_variants().to_vec() } else { self.stores };
        let trial = Trial::new(stores, self.rounds, self.conditions, self.work);
        let trial = trial.unwrap_or_else(|error| error.exit());
        let mut comparison = trial.comparison();
        let mut keep = |comparison: &Comparison| {
            self.html.iter().try_for_each(|file| write(file, &page(comparison)))?;
            self.save.iter().try_for_each(|file| save(file, comparison))
        };
        let runs = trial.make(&mut comparison, &mut keep)?;
        print!("{}", summary::text(&trial, &runs));
        Ok(())
    }
}

/// Writes a file.
pub fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// Writes a comparison as JSON.
pub fn save(file: &Path, comparison: &Comparison) -> Result<(), String> {
    write(file, &serde_json::to_string(comparison).expect("reports are plain data"))
}
