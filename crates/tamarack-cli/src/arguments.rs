//! The command line as a whole: the list of commands, what `--help` says about all of them, and which code
//! runs for each.

use clap::{Parser, Subcommand};

use crate::bench::{Bench, page::BenchPage, recover::BenchChild};
use crate::commands::{
    check::Check, checkpoint::Checkpoint, compact::Compact, delete::Delete, dump::Dump, export::ExportDir,
    gc::Gc, get::Get, import::ImportDir, import_leveldb::ImportLevelDb, load::Load, multi_get::MultiGet,
    put::Put, repair::Repair, scan::Scan, stats::Stats,
};
use crate::demo::{Demo, child::DemoChild};
use crate::failure::{Outcome, Result};

const AFTER_HELP: &str = "\
Exit status:
  0  done
  1  the answer is no: a key is not there, `check` found problems, `repair` could not save all,
     `gc` left damaged segments alone, or something was left out
  2  the request is wrong as it stands
  3  the operating system failed a call, there is no database, or input cannot be used
  4  corruption: stored bytes are not what was written
  5  the database is open elsewhere

Keys and values are text unless --key-format or --value-format says hex or base64. \
In output, bytes that are not UTF-8 appear as `hex:...`, and in JSON under a name ending in `_hex`; \
text that could be confused with that, or that would break a line, is quoted as a JSON string.";

/// Tamarack, a persistent key-value store for SSDs.
#[derive(Debug, Parser)]
#[command(name = "tamarack", version, about, after_help = AFTER_HELP, max_term_width = 110)]
pub struct Arguments {
    /// Answer in JSON, one object per line; errors too, on standard error
    #[arg(long, global = true)]
    pub json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Put(Put),
    Get(Get),
    #[command(name = "del", visible_alias = "delete")]
    Delete(Delete),
    Scan(Scan),
    MultiGet(MultiGet),
    Load(Load),
    Dump(Dump),
    ImportDir(ImportDir),
    ExportDir(ExportDir),
    #[command(name = "import-leveldb")]
    ImportLevelDb(ImportLevelDb),
    Stats(Stats),
    Check(Check),
    Repair(Repair),
    Compact(Compact),
    Gc(Gc),
    Checkpoint(Checkpoint),
    Bench(Bench),
    BenchPage(BenchPage),
    Demo(Demo),
    #[command(hide = true)]
    BenchChild(BenchChild),
    #[command(hide = true)]
    DemoChild(DemoChild),
}

impl Arguments {
    /// Runs the command.
    pub fn run(self) -> Result<Outcome> {
        let json = self.json;
        match self.command {
            Command::Put(command) => command.run(),
            Command::Get(command) => command.run(json),
            Command::Delete(command) => command.run(),
            Command::Scan(command) => command.run(json),
            Command::MultiGet(command) => command.run(json),
            Command::Load(command) => command.run(json),
            Command::Dump(command) => command.run(json),
            Command::ImportDir(command) => command.run(json),
            Command::ExportDir(command) => command.run(json),
            Command::ImportLevelDb(command) => command.run(json),
            Command::Stats(command) => command.run(json),
            Command::Check(command) => command.run(json),
            Command::Repair(command) => command.run(json),
            Command::Compact(command) => command.run(json),
            Command::Gc(command) => command.run(json),
            Command::Checkpoint(command) => command.run(json),
            Command::Bench(command) => command.run(json),
            Command::BenchPage(command) => command.run(),
            Command::Demo(command) => command.run(json),
            Command::BenchChild(command) => command.run(),
            Command::DemoChild(command) => command.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
