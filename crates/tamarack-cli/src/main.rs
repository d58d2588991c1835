//! The command line of Tamarack: one subcommand per file under `commands`, `bench` and `demo`.
//!
//! This file parses the arguments, runs the command and turns its result into an exit status; it knows nothing
//! about databases. The layers below it, downward: the commands; `tree` (directories as keys), `records`
//! (text files of records), `leveldb` (directories of LevelDB's); then what all of them share: `open`, `range`, `format`, `output`, `progress`, `gc_watch`, `failure`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the engine does its I/O and starts its threads through its environment; a command line is at home \
              in the operating system"
)]

mod arguments;
mod bench;
mod commands;
mod demo;
mod failure;
mod format;
mod gc_watch;
mod leveldb;
mod open;
mod output;
mod progress;
mod range;
mod records;
mod scratch;
mod tree;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    let json = arguments.json;
    match arguments.run() {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            failure.report(json);
            failure.exit_code()
        }
    }
}
