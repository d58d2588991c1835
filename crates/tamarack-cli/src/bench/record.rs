//! What is kept of a run: its reports, with machine and command line, as a page or as JSON.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use clap::Args;
use tamarack::Options;
use tamarack_bench::{Comparison, Machine, Outcome, Report, Row, Tamarack, page};

use crate::failure::{Failure, Result};
use crate::output;

/// Where it is kept.
#[derive(Debug, Args)]
pub struct Files {
    /// Write a page with tables and plots, which needs nothing but itself, to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write all that the page shows to FILE as JSON; bench-page makes pages of one or several of these
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// A run while it goes on.
pub struct Record<'a> {
    files: &'a Files,
    comparison: Comparison,
    options: String,
}

impl<'a> Record<'a> {
    /// Begins a record of a database in `path` with `options`. Makes sure that it can be written in the end.
    pub fn new(files: &'a Files, path: &Path, options: &Options) -> Result<Self> {
        for file in [&files.html, &files.save].into_iter().flatten() {
            let opened = OpenOptions::new().write(true).create(true).truncate(false).open(file);
            opened.map_err(|error| Failure::io("write", file, error))?;
        }
        let comparison = Comparison::new(Machine::of(path), command_line(std::env::args()));
        Ok(Self { files, comparison, options: describe(options) })
    }

    /// Adds a report.
    pub fn add(&mut self, report: Report) {
        self.row(Outcome::Report(Box::new(report)));
    }

    /// Writes what there is; also when the run has failed, with the reason in place of the report that is missing.
    pub fn finish(mut self, result: &Result<crate::failure::Outcome>) -> Result<()> {
        if let Err(failure) = result {
            self.row(Outcome::Missing(failure.to_string()));
        }
        if let Some(file) = &self.files.html {
            write(file, &page(&self.comparison))?;
        }
        if let Some(file) = &self.files.save {
            let json = serde_json::to_string(&self.comparison).expect("our own types serialise to JSON");
            write(file, &json)?;
        }
        Ok(())
    }

    fn row(&mut self, outcome: Outcome) {
        self.comparison.rows.push(Row {
            store: "Tamarack".to_owned(),
            version: Tamarack::version(),
            options: self.options.clone(),
            outcome,
        });
    }
}

/// Writes a file.
pub fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text).map_err(|error| Failure::io("write", file, error))
}

/// The command line as it could be typed again; the program by its name alone.
fn command_line(mut arguments: impl Iterator<Item = String>) -> String {
    let program = arguments.next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let is_plain = |c: char| c.is_alphanumeric() || "-_=.,/:+@%".contains(c);
    let quoted = |argument: String| {
        let plain = !argument.is_empty() && argument.chars().all(is_plain);
        if plain { argument } else { format!("'{}'", argument.replace('\'', r"'\''")) }
    };
    [program].into_iter().chain(arguments.map(quoted)).collect::<Vec<_>>().join(" ")
}

/// The options that matter most, in words.
fn describe(options: &Options) -> String {
    let Options {
        memory_max,
        memtable_bytes,
        block_cache_bytes,
        row_cache_bytes,
        direct_reads,
        inline_value_max,
        max_space_amplification,
        gc,
        value_runs_max,
        ..
    } = options;
    let budget =
        memory_max.map_or(String::new(), |bytes| format!("at most {} of memory: ", output::bytes(bytes)));
    format!(
        "{budget}memtable {}, block cache {}, row cache {}, reads {}, values inline up to {inline_value_max} B, at most {max_space_amplification} bytes on disk \
         per live byte, gc {gc:?}, at most {value_runs_max} runs of values",
        output::bytes(*memtable_bytes as u64),
        output::bytes(*block_cache_bytes as u64),
        output::bytes(*row_cache_bytes as u64),
        if *direct_reads { "direct" } else { "cached" },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_typed_again() {
        let arguments = ["/opt/bin/tamarack", "bench", "fillseq", "--db=a b", "it's", ""];
        let line = command_line(arguments.into_iter().map(str::to_owned));
        assert_eq!(line, r"tamarack bench fillseq '--db=a b' 'it'\''s' ''");
    }
}
