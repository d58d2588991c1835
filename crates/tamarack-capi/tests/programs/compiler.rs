//! The C compiler, the programs it makes of the sources in `tests/c`, and how they are run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where the crate is.
pub const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// The sources of a program, by the beginnings of their names.
pub const LEVELDB: &[&str] = &["leveldb_", "check"];
/// The same for what is Tamarack's.
pub const TAMARACK: &[&str] = &["tamarack_", "check"];
/// The same for the program that misuses the interface.
pub const MISUSE: &[&str] = &["misuse", "check"];

/// Warnings are errors; the sources are C11 with POSIX.
const FLAGS: &[&str] =
    &["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g"];

/// What a program is linked with.
#[derive(Debug, Clone, Copy)]
pub enum Library {
    /// The shared library that cargo has built beside this test.
    Shared,
    /// The static one.
    Static,
    /// LevelDB as the machine has it, with its own header.
    LevelDb,
    /// One that the flags name.
    Named,
}

/// A compiled program, in a directory that goes with it.
#[derive(Debug)]
pub struct Program {
    directory: tempfile::TempDir,
}

impl Program {
    /// Compiles the sources with further flags.
    ///
    /// # Panics
    /// If they do not compile.
    pub fn compile(sources: &[&str], library: Library, flags: &[&str]) -> Self {
        Self::try_compile(sources, library, flags).unwrap_or_else(|said| panic!("{sources:?}: {said}"))
    }

    /// The same, but what the compiler said if they do not compile.
    pub fn try_compile(sources: &[&str], library: Library, flags: &[&str]) -> Result<Self, String> {
        let directory = tempfile::tempdir().unwrap();
        let mut cc = Command::new(compiler());
        cc.args(FLAGS).arg("-o").arg(directory.path().join("program")).args(files(sources)).args(flags);
        match library {
            Library::Shared => cc.arg("-I").arg(include()).arg("-L").arg(built()).arg("-ltamarack_capi"),
            Library::Static => {
                let archive = built().join("libtamarack_capi.a");
                cc.arg("-I").arg(include()).arg(archive).args(["-lgcc_s", "-lrt", "-lm", "-ldl"])
            }
            Library::LevelDb => cc.arg("-lleveldb"),
            Library::Named => &mut cc,
        };
        let output = cc.arg("-lpthread").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(Self { directory }).ok_or(said)
    }

    /// The program that was made as the file `program` in a directory.
    pub fn made(directory: tempfile::TempDir) -> Self {
        Self { directory }
    }

    /// A command that runs it in an empty directory, by another program if one is named.
    pub fn command(&self, through: &[&str]) -> Command {
        let path = self.directory.path().join("program");
        let mut command = match through {
            [] => Command::new(&path),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(&path);
                command
            }
        };
        let databases = self.directory.path().join("databases");
        std::fs::create_dir_all(&databases).unwrap();
        command.arg(databases).env("LD_LIBRARY_PATH", built());
        command
    }

    /// Runs all its suites.
    ///
    /// # Panics
    /// If a check in it does not hold.
    pub fn pass(&self, through: &[&str]) {
        Self::check_passed(&mut self.command(through));
    }

    /// The same, with the shared libraries of the directory `libraries`, of which it asks for the one called `soname`.
    ///
    /// # Panics
    /// If a check does not hold, or the program asks for another library.
    pub fn pass_with(&self, libraries: &Path, soname: &str) {
        let shown = Command::new("ldd")
            .arg(self.directory.path().join("program"))
            .env("LD_LIBRARY_PATH", libraries)
            .output()
            .unwrap();
        let expected = format!("{soname} => {}", libraries.join(soname).display());
        assert!(said(&shown).contains(&expected), "not {expected}:\n{}", said(&shown));
        Self::check_passed(self.command(&[]).env("LD_LIBRARY_PATH", libraries));
    }

    fn check_passed(command: &mut Command) {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}\n{}", output.status, said(&output));
        // A program that runs nothing holds nothing.
        let passed =
            String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.ends_with(": passed")).count();
        assert!(passed >= 8, "{}", said(&output));
    }
}

/// What a program said.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The C compiler.
pub fn compiler() -> String {
    std::env::var("CC").unwrap_or_else(|_| "cc".to_owned())
}

/// The directory of our headers.
pub fn include() -> PathBuf {
    Path::new(CRATE).join("include")
}

/// Where cargo puts the libraries that it builds for this test: beside it.
pub fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

/// The C sources whose names begin so.
fn files(sources: &[&str]) -> Vec<PathBuf> {
    let directory = Path::new(CRATE).join("tests/c");
    let all = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let wanted = all.filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.ends_with(".c") && sources.iter().any(|beginning| name.starts_with(beginning))
    });
    wanted.collect()
}

/// Whether the machine can do something, which is tried by `attempt`; if not, says that `what` is skipped.
pub fn can(what: &str, attempt: impl FnOnce() -> bool) -> bool {
    let can = attempt();
    if !can {
        println!("skipped: {what}");
    }
    can
}
