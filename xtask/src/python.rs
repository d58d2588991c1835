//! `cargo xtask python`: builds the Python package's wheel, installs it into a virtual environment of its own below `target`, and runs its
//! tests there; with `--plyvel` those of plyvel as well, whose interface it has.
//!
//! The wheel is built with the settings of the Rust tests' profile, so that the engine is not built again for it; the one that users build
//! is optimised as a whole (the profile `wheel`). What is needed from PyPI is installed once. Without Python, or without a
//! network, nothing is tested, and one line says so.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::steps::Steps;

/// What is installed from PyPI.
const TOOLS: [&str; 2] = ["maturin>=1.9,<2", "pytest>=9"];
/// The release of plyvel whose tests are run.
const PLYVEL: &str = "1.5.1";
/// Those of its tests that cannot pass, as the package's README says: one writes keys that are too long, one fails for root with plyvel too.
const DIFFERENT: &str = "not test_approximate_sizes and not test_open_read_only_dir";
/// Whether an interpreter can build and run the package.
const SUITABLE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";

/// Builds and tests the package. Flags go to pytest, but for `--plyvel`.
///
/// # Errors
/// Those of processes and files.
pub fn run(root: &Path, flags: &[&str]) -> io::Result<ExitCode> {
    let (plyvel, flags): (Vec<&str>, Vec<&str>) = flags.iter().partition(|flag| **flag == "--plyvel");
    let workshop = Workshop { root, directory: root.join("target/python") };
    if let Err(missing) = workshop.prepare()? {
        println!("skipped: the Python package is not tested, because {missing}");
        return Ok(ExitCode::SUCCESS);
    }
    let mut steps = Steps::default();
    workshop.install_wheel(&mut steps)?;
    if steps.any_failed() {
        return Ok(steps.finish());
    }
    steps.run_openly("pytest", workshop.program("pytest").arg("--quiet").args(flags))?;
    if !plyvel.is_empty() {
        workshop.test_plyvel(&mut steps)?;
    }
    Ok(steps.finish())
}

/// Where the package is built and tested.
struct Workshop<'a> {
    root: &'a Path,
    directory: PathBuf,
}

impl Workshop<'_> {
    /// Makes the virtual environment; what is missing, if it cannot be made.
    fn prepare(&self) -> io::Result<Result<(), &'static str>> {
        let suitable = |mut python: Command| python.args(["-c", SUITABLE]).output().is_ok_and(succeeded);
        if !suitable(self.program("python")) {
            if !suitable(Command::new("python3")) {
                return Ok(Err("there is no python3 of version 3.11 or newer with venv: install it \
                               (Debian: python3-venv)"));
            }
            if self.environment().exists() {
                fs::remove_dir_all(self.environment())?;
            }
            let mut make = Command::new("python3");
            if !succeeded(make.args(["-m", "venv"]).arg(self.environment()).output()?) {
                return Ok(Err("python3 cannot make a virtual environment"));
            }
        }
        let tools = ["maturin", "pytest"].map(|tool| self.environment().join("bin").join(tool));
        if tools.iter().all(|tool| tool.exists()) {
            return Ok(Ok(()));
        }
        let installed = succeeded(self.pip().arg("install").args(TOOLS).output()?);
        Ok(if installed {
            Ok(())
        } else {
            Err("pip cannot install maturin and pytest: a network is needed once")
        })
    }

    /// Builds the wheel and installs it, in place of an older one.
    fn install_wheel(&self, steps: &mut Steps) -> io::Result<()> {
        let wheels = self.directory.join("wheels");
        if wheels.exists() {
            fs::remove_dir_all(&wheels)?;
        }
        let mut build = self.program("maturin");
        build.args(["build", "--quiet", "--locked", "--profile", "dev", "--out"]).arg(&wheels);
        // With this, `dev` is what `test` is.
        build.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        steps.run_quietly("wheel", &mut build)?;
        if steps.any_failed() {
            return Ok(());
        }
        let built: Vec<PathBuf> =
            fs::read_dir(&wheels)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
        let mut install = self.pip();
        install.args(["install", "--no-deps", "--no-index", "--force-reinstall"]).args(built);
        steps.run_quietly("install", &mut install)
    }

    /// Runs plyvel's tests, from the sources of its release, with the import changed.
    fn test_plyvel(&self, steps: &mut Steps) -> io::Result<()> {
        let sources = self.directory.join("plyvel");
        fs::create_dir_all(&sources)?;
        let mut download = self.pip();
        download.args(["download", "--no-deps", "--no-binary", "plyvel", "--exists-action", "i", "--dest"]);
        download.arg(&sources).arg(format!("plyvel=={PLYVEL}"));
        steps.run_quietly("download", &mut download)?;
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(sources.join(format!("plyvel-{PLYVEL}.tar.gz"))).arg("-C").arg(&sources);
        steps.run_quietly("unpack", &mut unpack)?;
        if steps.any_failed() {
            return Ok(());
        }
        let tests = fs::read_to_string(sources.join(format!("plyvel-{PLYVEL}/test/test_plyvel.py")))?;
        let changed = sources.join("test_changed_import.py");
        fs::write(&changed, change_import(&tests))?;
        let mut tests = self.program("pytest");
        tests.args(["--quiet", "--rootdir"]).arg(&sources).args(["-k", DIFFERENT]).arg(&changed);
        steps.run_openly("plyvel's tests", &mut tests)
    }

    fn environment(&self) -> PathBuf {
        self.directory.join("venv")
    }

    /// A program of the virtual environment, in the package's directory.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.environment().join("bin").join(name));
        command.current_dir(self.root.join("crates/tamarack-python")).env("VIRTUAL_ENV", self.environment());
        command
    }

    fn pip(&self) -> Command {
        let mut pip = self.program("python");
        pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
        pip
    }
}

fn succeeded(output: std::process::Output) -> bool {
    output.status.success()
}

/// A program for plyvel, with the one line changed that it takes.
fn change_import(program: &str) -> String {
    let changed = |line| if line == "import plyvel" { "import tamarack as plyvel" } else { line };
    program.lines().map(changed).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_a_program_is_changed() {
        let program = "import os\nimport plyvel\n\nplyvel.DB('import plyvel')\n";
        let changed = "import os\nimport tamarack as plyvel\n\nplyvel.DB('import plyvel')\n";
        assert_eq!(change_import(program), changed);
    }
}
