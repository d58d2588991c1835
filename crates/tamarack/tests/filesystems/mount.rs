//! Small file systems in files, mounted in the mount namespace of this process: they are gone when it is, and so are the
//! loop devices under them, however it ends.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Runs a command of the system; what it says, or why it is not to be had.
pub fn run(command: &str, arguments: &[&str]) -> Result<String, String> {
    let called = || format!("{command} {}", arguments.join(" "));
    match Command::new(command).args(arguments).output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            Err(format!("`{}` fails: {said}", called()))
        }
        Err(error) => Err(format!("`{}` fails: {error}", called())),
    }
}

/// Mounts a small file system in `place`.
pub fn mount(kind: &str, place: &Path) -> Result<PathBuf, String> {
    let mount = place.join("mount");
    std::fs::create_dir_all(&mount).unwrap();
    let target = mount.to_str().unwrap();
    if kind == "tmpfs" {
        run("mount", &["-t", "tmpfs", "-o", "size=8m", "none", target])?;
        return Ok(mount);
    }
    let image = place.join("image");
    File::create(&image).unwrap().set_len(16 << 20).unwrap();
    let image = image.to_str().unwrap();
    run("mkfs.ext4", &["-q", "-F", "-m", "0", image])?;
    run("mount", &["-t", "ext4", "-o", "loop", image, target])?;
    Ok(mount)
}

/// A file system on a loop device, which can be mounted again and again.
pub struct LoopDisk {
    kind: String,
    device: String,
    /// Keeps the device, which is to go when nobody has it open.
    _held: File,
    target: PathBuf,
    mounted: bool,
}

impl LoopDisk {
    /// A new file system of that kind in a file in `place`, not mounted.
    pub fn new(kind: &str, place: &Path) -> Result<Self, String> {
        let (image, target) = (place.join("image"), place.join("mount"));
        std::fs::create_dir_all(&target).unwrap();
        // XFS takes no less; the file has holes.
        let bytes = if kind == "xfs" { 320 << 20 } else { 32 << 20 };
        File::create(&image).unwrap().set_len(bytes).unwrap();
        let image = image.to_str().unwrap();
        let force = if kind == "xfs" { "-f" } else { "-F" };
        run(&format!("mkfs.{kind}"), &["-q", force, image])?;
        let device = run("losetup", &["--find", "--show", image])?;
        let held = File::open(&device);
        run("losetup", &["--detach", &device])?;
        let held = held.map_err(|error| format!("{device}: {error}"))?;
        Ok(Self { kind: kind.to_owned(), device, _held: held, target, mounted: false })
    }

    /// The name of its device.
    pub fn device(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }

    /// Mounts it, after a replay of its own journal if need be.
    pub fn mount(&mut self, options: &str) -> Result<PathBuf, String> {
        let target = self.target.to_str().unwrap();
        run("mount", &["-t", &self.kind, "-o", options, &self.device, target])?;
        self.mounted = true;
        Ok(self.target.clone())
    }

    /// Unmounts it, when those that were killed have let go of it.
    pub fn unmount(&mut self) {
        while let Err(error) = run("umount", &[self.target.to_str().unwrap()]) {
            assert!(error.contains("busy"), "{error}");
            std::thread::sleep(Duration::from_millis(1));
        }
        self.mounted = false;
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        if self.mounted {
            // The namespace ends with the process, and with it the mount.
            run("umount", &["--lazy", self.target.to_str().unwrap()]).ok();
        }
    }
}
