//! `demo`: shows on a real directory tree what Tamarack promises, and measures it on the way.
//!
//! Every step verifies what it claims against the files themselves; the first thing that is not as promised
//! ends the demonstration with a failure. All figures are measured in this run: times by the clock, device bytes
//! and space by the operating system.

pub mod child;
mod crash;
mod steps;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde_json::{Map, Value};
use tamarack::{Db, Options};

use self::steps::Stage;
use crate::failure::{Failure, Outcome, Result};
use crate::output::{self, Output};
use crate::scratch::Scratch;
use crate::tree::collect::{Limit, Tree, collect};

/// See it work: import a directory tree, kill a writer, lose nothing
///
/// Imports the tree, compares every value with its file, kills a second import with SIGKILL and shows that
/// nothing acknowledged was lost, scans both ways, deletes under a snapshot, compacts, and checks every byte.
/// A step that does not hold ends it with a non-zero exit status.
#[derive(Debug, Args)]
pub struct Demo {
    /// Directory to take [default: the sources that cargo has unpacked, else the current directory]
    directory: Option<PathBuf>,

    #[command(flatten)]
    size: Size,

    /// Keep the databases
    #[arg(long)]
    keep: bool,
}

/// How much of the tree to take.
#[derive(Debug, Clone, Copy, Args)]
pub struct Size {
    /// Take this many files at most
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    max_files: u64,

    /// Take this much at most, in MiB
    #[arg(long, default_value_t = 1024, value_name = "MIB", value_parser = clap::value_parser!(u64).range(..=u64::MAX >> 20))]
    max_mib: u64,
}

/// What one step showed.
pub struct Shown {
    /// The step's name for people.
    pub name: &'static str,
    /// Its name in JSON.
    pub field: &'static str,
    /// What happened, for people: one line or two.
    pub text: String,
    /// The figures, for programs.
    pub figures: Value,
}

impl Demo {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let started = Instant::now();
        let root = self.directory.clone().unwrap_or_else(default_directory);
        let scratch = Scratch::new(&scratch_parent(), "tamarack-demo", self.keep)?;
        let tree = self.size.take(&root, scratch.path())?;
        if tree.files == 0 {
            return Err(Failure::Usage(format!("there are no files in {}", root.display())));
        }
        let mut teller = Teller { json, output: Output::new(), figures: Map::new() };
        teller.begin(&root, &tree)?;

        let path = scratch.path().join("first");
        let db = Db::open(&path, Options::default())?;
        let stage = Stage { db: &db, path: &path, tree: &tree };
        teller.tell(stage.import()?)?;
        teller.tell(stage.read_back()?)?;
        teller.tell(crash::kill_and_recover(&root, &tree, &scratch.path().join("second"), self.size)?)?;
        teller.tell(stage.scan()?)?;
        teller.tell(stage.snapshot()?)?;
        teller.tell(stage.compact()?)?;
        teller.tell(stage.check()?)?;
        db.close()?;

        teller.end(started.elapsed().as_secs_f64(), scratch.path(), self.keep)?;
        Ok(Outcome::Done)
    }
}

impl Size {
    /// Lists what of the tree under `root` is taken: what can be stored, but nothing of the `scratch` directory.
    fn take(self, root: &Path, scratch: &Path) -> Result<Tree> {
        let limit = Limit { files: self.max_files, bytes: self.max_mib << 20 };
        let mut tree = collect(root, scratch, limit)?;
        tree.leave_out_what_cannot_be_stored();
        Ok(tree)
    }

    /// The arguments that make another process take the same part of the tree.
    fn arguments(self) -> [String; 2] {
        [format!("--max-files={}", self.max_files), format!("--max-mib={}", self.max_mib)]
    }
}

/// The sources that cargo has unpacked: thousands of real files that every machine with this program has.
fn default_directory() -> PathBuf {
    let cargo_home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    match cargo_home.map(|home| home.join("registry").join("src")) {
        Some(sources) if sources.is_dir() => sources,
        _ => PathBuf::from("."),
    }
}

/// Where the databases go: cargo's target directory if this program runs from there, because temporary
/// directories are often kept in memory, which would make device figures meaningless.
fn scratch_parent() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let target = program.ancestors().find(|path| path.file_name().is_some_and(|name| name == "target"));
    target.map_or_else(std::env::temp_dir, Path::to_path_buf)
}

/// Tells what was shown: lines as it happens, or one JSON object at the end.
struct Teller {
    json: bool,
    output: Output,
    figures: Map<String, Value>,
}

impl Teller {
    fn begin(&mut self, root: &Path, tree: &Tree) -> Result<()> {
        if self.json {
            return Ok(());
        }
        self.output.line(&format!(
            "\nTamarack with {}, {}, from {}\n",
            output::plural(tree.files, "file"),
            output::bytes(tree.bytes),
            root.display()
        ))?;
        self.output.flush()
    }

    fn tell(&mut self, shown: Shown) -> Result<()> {
        if self.json {
            self.figures.insert(shown.field.into(), shown.figures);
            return Ok(());
        }
        for (index, line) in shown.text.lines().enumerate() {
            let (mark, name) = if index == 0 { ("✓", shown.name) } else { (" ", "") };
            self.output.line(&format!("  {mark} {name:<10} {line}"))?;
        }
        self.output.flush()
    }

    fn end(mut self, seconds: f64, scratch: &Path, keep: bool) -> Result<()> {
        if self.json {
            self.figures.insert("seconds".into(), seconds.into());
            self.output.json(&self.figures)?;
        } else {
            self.output.line(&format!("\n  everything held, in {}", output::seconds(seconds)))?;
            if keep {
                self.output.line(&format!("  the databases are in {}", scratch.display()))?;
            }
        }
        self.output.finish()
    }
}
