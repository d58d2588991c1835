//! A machine with one disk: the disk is served here, and processes of our own live on it, one after the other.
//!
//! Everything is mounted in a mount namespace of this process, so that all mounts are gone when it is, however it ends, and
//! the loop devices under them with the mounts. This process itself never touches the file system above the disk.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use fuser::BackgroundSession;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use tempfile::TempDir;

use crate::commands::{run, wait};
use crate::content::Content;
use crate::disk::{Disk, Entry};
use crate::facts::{self, Bounds, Noted};
use crate::life::{COUNT, FOUND, NOT_MOUNTED, Place};
use crate::serve::{POSITION, serve};

/// The first argument of a process that lives on the disk.
pub const LIVE: &str = "live";

/// This program, even if its file has been replaced since it began.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// The machine.
pub struct Machine {
    disk: Disk,
    directory: TempDir,
    _session: BackgroundSession,
}

/// What a life has come to.
pub struct Lived {
    /// What happened to the disk.
    pub log: Vec<Entry>,
    /// What the process could rely on.
    pub facts: Vec<Noted>,
    /// How many batches it has found.
    pub found: u64,
    /// What happened in the engine, by name.
    pub counts: Vec<(String, u64)>,
}

/// Why there was no life, or no good one.
pub enum Failure {
    /// The file system could not be mounted.
    NotMounted(String),
    /// Something was wrong.
    Wrong(String),
}

/// Takes this process, which has one thread so far, into a mount namespace of its own.
///
/// # Errors
/// Why that is not permitted.
pub fn enter_namespace() -> Result<(), String> {
    // SAFETY: no other thread is there, and file descriptors stay shared.
    let entered = unsafe { unshare_unsafe(UnshareFlags::NEWNS) };
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    let entered = entered.and_then(|()| mount_change("/", private));
    entered.map_err(|error| format!("no mount namespace of its own: {error}"))
}

impl Machine {
    /// A machine with an empty disk.
    ///
    /// # Errors
    /// Why there can be no file system in user space.
    pub fn new() -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
        for name in ["disk", "mount"] {
            let made = std::fs::create_dir(directory.path().join(name));
            made.map_err(|error| format!("no temporary directory: {error}"))?;
        }
        let disk = Disk::default();
        let session = serve(&disk, &directory.path().join("disk"));
        let session = session.map_err(|error| format!("no file system in user space: {error}"))?;
        Ok(Self { disk, directory, _session: session })
    }

    /// A new file system of that kind.
    ///
    /// # Errors
    /// Why there is none.
    pub fn format(&self, kind: &str) -> Result<Content, String> {
        let number = self.disk.put_in(Content::default());
        let path = self.path(&format!("disk/{number}"));
        let flags: &[&str] = match kind {
            // What is not written now, the kernel would write while we record.
            "ext4" => &["-q", "-F", "-N", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
            "xfs" | "btrfs" => &["-q", "-f"],
            _ => return Err(format!("there is no file system {kind}")),
        };
        let path = path.to_str().ok_or("the temporary directory has no name in UTF-8")?;
        run(&format!("mkfs.{kind}"), &[flags, &[path]].concat())?;
        Ok(self.disk.content())
    }

    /// Puts in a disk with `content`, and lets a process live on it: the first of all, or one after a loss of power, which is
    /// to find what lies in `bounds`.
    ///
    /// # Errors
    /// If the file system is not mounted, or something is wrong.
    pub fn live(
        &self,
        content: Content,
        kind: &str,
        seed: u64,
        bounds: Option<&Bounds>,
    ) -> Result<Lived, Failure> {
        let number = self.disk.put_in(content);
        let paths = [
            self.path(&format!("disk/{number}")),
            self.path(&format!("disk/{POSITION}")),
            self.path("mount"),
        ];
        let mut command = Command::new(THIS_PROGRAM);
        command.arg(LIVE).arg(kind).args(&paths).arg(seed.to_string()).args(bounds.map(Bounds::to_string));
        let output = wait(&mut command).map_err(Failure::Wrong)?;
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            return Ok(Lived::new(self.disk.log(), &said));
        }
        if output.status.code() == Some(NOT_MOUNTED) {
            return Err(Failure::NotMounted(said.trim().to_owned()));
        }
        // It was unmounted unless the process has ended before.
        let mounted = self.path("mount");
        let unmounted = run("umount", &[mounted.to_str().unwrap_or_default()]);
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let words = if words.is_empty() { output.status.to_string() } else { words };
        Err(Failure::Wrong(match unmounted {
            Ok(()) => words,
            Err(why) => format!("{words}; {why}"),
        }))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Lived {
    fn new(log: Vec<Entry>, said: &str) -> Self {
        let found = said.lines().find_map(|line| line.strip_prefix(FOUND)?.parse().ok()).unwrap_or(0);
        let count = |line: &str| {
            let (name, number) = line.strip_prefix(COUNT)?.split_once(' ')?;
            Some((name.to_owned(), number.parse().ok()?))
        };
        let counts = said.lines().filter_map(count).collect();
        Self { log, facts: said.lines().filter_map(facts::parse).collect(), found, counts }
    }
}

/// Where and how a process is to live, by the arguments that it was started with.
pub fn place(arguments: &[OsString]) -> Option<(Place, Option<Bounds>)> {
    let [kind, image, position, mount, seed, bounds @ ..] = arguments else { return None };
    let place = Place {
        kind: kind.to_str()?.to_owned(),
        image: image.into(),
        position: position.into(),
        mount: mount.into(),
        seed: seed.to_str()?.parse().ok()?,
    };
    match bounds {
        [] => Some((place, None)),
        [bounds] => Some((place, Some(bounds.to_str()?.parse().ok()?))),
        _ => None,
    }
}
