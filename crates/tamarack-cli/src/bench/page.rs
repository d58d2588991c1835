//! `bench-page`: makes a page of what runs of `bench` have saved.

use std::path::{Path, PathBuf};

use clap::Args;
use tamarack_bench::{Comparison, page};

use super::record;
use crate::failure::{Failure, Outcome, Result};

const EXAMPLE: &str = "\
Values of several sizes on one page:
  for size in 64 256 1024 4096 16384 65536; do
    tamarack bench fillrandom readrandom --save $size.json \\
      --value-size $size --num $((1000000000 / size))
  done
  tamarack bench-page *.json --html report.html

Writing beside garbage that is collected, or is not (Figure 13 of the WiscKey paper):
  for dead in 25 50 75 100; do
    for workload in fillbesidegarbage fillwhilecollecting; do
      tamarack bench $workload --dead-percent $dead --save $workload-$dead.json
    done
  done
  tamarack bench-page fill*.json --html report.html";

/// Make a page of saved reports
///
/// Takes files that bench --save has written, of this store or of others, all on the same machine, and writes one page
/// with their tables and plots. Reports of the same workload, settings and store are runs of one measurement: the page shows
/// the one with the median throughput. Plots by the size of values appear where the files have several sizes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct BenchPage {
    /// What bench --save has written
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Where the page goes
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
}

impl BenchPage {
    /// Runs the command.
    pub fn run(self) -> Result<Outcome> {
        let mut files = self.files.iter();
        let first = files.next().expect("one file is required");
        let mut comparison = read(first)?;
        for file in files {
            let joined = comparison.join(read(file)?);
            joined.map_err(|error| Failure::Other(format!("{}: {error}", file.display())))?;
        }
        record::write(&self.html, &page(&comparison))?;
        Ok(Outcome::Done)
    }
}

fn read(file: &Path) -> Result<Comparison> {
    let bytes = std::fs::read(file).map_err(|error| Failure::io("read", file, error))?;
    let wrong =
        |error| Failure::Other(format!("{} is not what bench --save writes: {error}", file.display()));
    serde_json::from_slice(&bytes).map_err(wrong)
}
