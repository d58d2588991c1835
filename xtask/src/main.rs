//! The project's own commands: `cargo xtask blocks`, `bugs`, `check`, `fix`, `fuzz`, `install`, `instructions`, `miri`, `python`,
//! `test` and `torture`.
//!
//! `check` only reads. It runs the usual tools and then the rules that no usual tool knows: the order of the
//! layers, the sizes of files and functions, and the agreement of documents and code. Each rule is a module that
//! turns a [`tree::Tree`] into [`finding::Finding`]s and does nothing else.

#![expect(
    clippy::disallowed_methods,
    reason = "the checks read the tree and time themselves; no world is simulated"
)]

use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use steps::{Steps, cargo, target};
use tree::Tree;

mod blocks;
mod documents;
mod finding;
mod fuzz;
mod install;
mod instructions;
mod layers;
mod loom;
mod mentions;
mod programs;
mod python;
mod seeded;
mod sizes;
mod steps;
mod test_code;
mod torture;
mod tree;
mod unsafety;

const USAGE: &str = "\
usage: cargo xtask <command>

  blocks [--seeds N | --minutes M] [--seed S] [--images N] [--file-system KIND]
                      databases on ext4, XFS and Btrfs, over a disk that records all writes; then on what losses of power
                      may leave of it; needs root, FUSE, loop devices and the programs mkfs.*
  blocks --image PATH one image again that such a run has kept
  blocks --bugs       whether such a run notices syncs that are left out
  bugs [NAME...]      puts bugs into a copy of the engine, one at a time, and fails if a test does not catch its bug;
                      --table writes docs/SEEDED_BUGS.md instead
  check [--fast]      formatting, lints, layers, sizes, documents, API documentation; changes nothing;
                      --fast leaves out the API documentation
  fix                 formats the code and applies what clippy can repair
  fuzz [<target>] [--seconds <n>]
                      libFuzzer on one target of fuzz/targets, or on each for a minute; needs cargo-fuzz and a nightly
                      toolchain
  fuzz --seed-corpus  writes the seeds in fuzz/corpus anew: after a change of a format
  instructions        what the processor executes for a put, a get, a seek: counted by callgrind, compared with limits; needs
                      valgrind
  install --prefix DIR
                      headers, libraries, pkg-config files and CMake packages for C and C++ programs, under Tamarack's name and
                      LevelDB's
  miri                the unit tests of what handles memory and bytes by hand, under Miri, which finds undefined
                      behaviour; needs a nightly toolchain and takes some minutes
  python [--plyvel] [<flags>]
                      builds the Python package's wheel and tests it; the flags go to pytest; --plyvel runs plyvel's own tests on
                      it, too; needs python3 of 3.11 or newer, and a network once
  test [-- <flags>]   all tests, then the shuttle suites, the models under loom and the tests of bench-peers; the flags go to the
                      test programs; a test's name among them leaves out all but the first
  torture --hours H [--seed S]
                      everything that is driven by seeds, round after round with new ones, until the time is up";

fn main() -> io::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace root");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["blocks", flags @ ..] => blocks::run(root, flags),
        ["bugs", "--table"] => seeded::write_table(root).map(|()| ExitCode::SUCCESS),
        ["bugs", names @ ..] => seeded::run(root, names),
        ["check"] => check(root, false),
        ["check", "--fast"] => check(root, true),
        ["fix"] => fix(root),
        ["fuzz", flags @ ..] => fuzz::fuzz(root, flags).unwrap_or_else(|| {
            eprintln!("{USAGE}");
            Ok(ExitCode::FAILURE)
        }),
        ["instructions"] => instructions::run(root),
        ["install", "--prefix", prefix] => install::install(root, Path::new(prefix)),
        ["miri"] => miri(root),
        ["python", flags @ ..] => python::run(root, flags),
        ["test"] => test(root, &[]),
        ["test", "--", flags @ ..] => test(root, flags),
        ["torture", "--hours", hours] => torture(root, hours, None),
        ["torture", "--hours", hours, "--seed", seed] => torture(root, hours, Some(seed)),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprintln!("{USAGE}");
            Ok(ExitCode::FAILURE)
        }
    }
}

fn check(root: &Path, fast: bool) -> io::Result<ExitCode> {
    let mut steps = Steps::default();
    steps.run_quietly("format", &mut cargo(root, &["fmt", "--all", "--check"]))?;
    // The profile of the tests: build scripts and macros are there if those have been built.
    let mut clippy = cargo(root, &["clippy", "--quiet", "--workspace", "--all-targets", "--locked"]);
    clippy.args(["--profile", "test", "--", "-D", "warnings"]);
    steps.run_quietly("clippy", &mut clippy)?;
    let (tree, unparsed) = Tree::load(root)?;
    steps.run_check("syntax", || unparsed)?;
    steps.run_check("layers", || layers::check(&tree))?;
    steps.run_check("unsafe", || unsafety::check(&tree))?;
    steps.run_check("sizes", || sizes::check(&tree))?;
    steps.run_check("documents", || documents::check(&tree))?;
    steps.run_check("bugs", || seeded::check(&tree))?;
    if !fast {
        let mut doc = cargo(root, &["doc", "--quiet", "--workspace", "--no-deps", "--locked"]);
        steps.run_quietly("api docs", with_rustflags(&mut doc, "RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(steps.finish())
}

fn fix(root: &Path) -> io::Result<ExitCode> {
    let mut steps = Steps::default();
    let clippy = ["clippy", "--workspace", "--all-targets", "--fix", "--allow-dirty", "--allow-staged"];
    steps.run_openly("clippy", &mut cargo(root, &clippy))?;
    // Last, because repairs are not always formatted.
    steps.run_openly("format", &mut cargo(root, &["fmt", "--all"]))?;
    Ok(steps.finish())
}

fn test(root: &Path, flags: &[&str]) -> io::Result<ExitCode> {
    let mut steps = Steps::default();
    let mut tests = cargo(root, &["test", "--workspace", "--locked", "--no-fail-fast", "--"]);
    steps.run_openly("tests", tests.args(flags))?;
    // A second name would widen the run to tests that cannot run under shuttle or loom.
    if flags.iter().all(|flag| flag.starts_with('-')) {
        let suites = ["test", "-p", "tamarack", "--lib", "--test", "shuttle", "--locked", "--", "shuttle"];
        let mut shuttle = cargo(root, &suites);
        // Another build of everything: kept apart, so that neither throws the other away.
        shuttle.args(flags).env("CARGO_TARGET_DIR", root.join("target/shuttle"));
        steps.run_openly("shuttle", with_rustflags(&mut shuttle, "RUSTFLAGS", "--cfg shuttle"))?;
        let mut models = loom::tests(root, root);
        steps.run_openly("loom", models.args(["--lib", "--locked", "--", "loom"]).args(flags))?;
        steps.run_openly("peers", peers(root).args(flags))?;
    }
    Ok(steps.finish())
}

/// The comparison's own tests, with the peers that need no more than a C compiler.
fn peers(root: &Path) -> Command {
    let manifest = ["test", "--manifest-path", "bench-peers/Cargo.toml", "--locked"];
    let mut tests = cargo(root, &manifest);
    tests.args(["--no-default-features", "--features", "fjall,lmdb", "--"]);
    // Most of what it is built from is there.
    tests.env("CARGO_TARGET_DIR", target(root));
    tests
}

fn torture(root: &Path, hours: &str, seed: Option<&str>) -> io::Result<ExitCode> {
    let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("{text} is no number"));
    let hours = hours.parse().map_err(|_| invalid(hours))?;
    let seed = seed.map(|seed| seed.parse().map_err(|_| invalid(seed))).transpose()?;
    torture::run(root, hours, seed)
}

/// The modules that Miri can follow: no system calls, no C.
const MIRI_MODULES: &[&str] = &[
    "base::",
    "skiplist::",
    "index::key_shape",
    "index::memtable",
    "vlog::relocation",
    "cube::collect::batch",
];

fn miri(root: &Path) -> io::Result<ExitCode> {
    let mut steps = Steps::default();
    let mut component = Command::new("rustup");
    component.args(["component", "add", "--toolchain", "nightly", "miri", "rust-src"]);
    steps.run_quietly("component", &mut component)?;
    let mut tests = Command::new("rustup");
    tests.args(["run", "nightly", "cargo", "miri", "test", "-p", "tamarack", "--lib", "--locked", "--"]);
    tests.args(MIRI_MODULES).current_dir(root);
    // Miri is some hundred times slower: a few cases of each property must do. Proptest looks for its working directory.
    tests.envs([("PROPTEST_CASES", "3"), ("MIRIFLAGS", "-Zmiri-disable-isolation")]);
    tests.env("CARGO_TARGET_DIR", root.join("target/miri"));
    steps.run_openly("miri", &mut tests)?;
    Ok(steps.finish())
}

/// Adds compiler flags to those that the caller has set.
fn with_rustflags<'a>(command: &'a mut Command, variable: &str, flags: &str) -> &'a mut Command {
    let inherited = std::env::var(variable).unwrap_or_default();
    command.env(variable, format!("{inherited} {flags}").trim_start())
}
