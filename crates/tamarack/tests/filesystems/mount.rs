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

/// A file system on a loop device, which can be mounted again and again. The device is a new one each time, of which the
/// kernel remembers nothing, as after a loss of power.
pub struct LoopDisk {
    kind: String,
    image: PathBuf,
    target: PathBuf,
    mounted: Option<Device>,
}

/// A loop device that is there for as long as somebody has it open.
struct Device {
    path: String,
    _held: File,
}

impl Device {
    fn new(image: &Path) -> Result<Self, String> {
        let path = run("losetup", &["--find", "--show", image.to_str().unwrap()])?;
        let held = File::open(&path);
        run("losetup", &["--detach", &path])?;
        Ok(Self { _held: held.map_err(|error| format!("{path}: {error}"))?, path })
    }
}

impl LoopDisk {
    /// A new file system of that kind in a file in `place`, not mounted.
    pub fn new(kind: &str, place: &Path) -> Result<Self, String> {
        let (image, target) = (place.join("image"), place.join("mount"));
        std::fs::create_dir_all(&target).unwrap();
        let disk = Self { kind: kind.to_owned(), image, target, mounted: None };
        disk.format()?;
        Ok(disk)
    }

    /// Makes the file system anew, while it is not mounted.
    pub fn format(&self) -> Result<(), String> {
        // XFS takes no less; the file has holes.
        let (bytes, force) = if self.kind == "xfs" { (320 << 20, "-f") } else { (32 << 20, "-F") };
        File::create(&self.image).unwrap().set_len(bytes).unwrap();
        run(&format!("mkfs.{}", self.kind), &["-q", force, self.image.to_str().unwrap()])?;
        Ok(())
    }

    /// The name of the device that it is mounted from.
    pub fn device(&self) -> &str {
        self.mounted.as_ref().expect("mounted").path.trim_start_matches("/dev/")
    }

    /// Mounts it, after a replay of its own journal if need be.
    pub fn mount(&mut self, options: &str) -> Result<PathBuf, String> {
        let device = Device::new(&self.image)?;
        let target = self.target.to_str().unwrap();
        run("mount", &["-t", &self.kind, "-o", options, &device.path, target])?;
        self.mounted = Some(device);
        Ok(self.target.clone())
    }

    /// Unmounts it, when those that were killed have let go of it.
    pub fn unmount(&mut self) {
        while let Err(error) = run("umount", &[self.target.to_str().unwrap()]) {
            assert!(error.contains("busy"), "{error}");
            std::thread::sleep(Duration::from_millis(1));
        }
        self.mounted = None;
    }

    /// Whether the file system's own check finds it damaged, though it has just replayed its journal. It must not be mounted.
    pub fn is_damaged(&mut self) -> Result<bool, String> {
        self.mount("defaults")?;
        self.unmount();
        let image = self.image.to_str().unwrap();
        let checked = if self.kind == "xfs" {
            run("xfs_repair", &["-n", image])
        } else {
            run("e2fsck", &["-f", "-n", image])
        };
        Ok(checked.is_err())
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        if self.mounted.is_some() {
            // The namespace ends with the process, and with it the mount.
            run("umount", &["--lazy", self.target.to_str().unwrap()]).ok();
        }
    }
}
