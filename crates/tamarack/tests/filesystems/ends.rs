//! Other ends: a file system that becomes read-only under a database, and a process that the kernel ends for the memory
//! it takes.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tamarack::{Db, ErrorKind, WriteOptions};

use crate::common::process::this_program;

use super::history::{Bounds, History, Writer, options};
use super::mount::LoopDisk;

/// The file system meets an error of its own and lets nobody write any more, as it does when its device fails.
pub fn becomes_read_only(place: &Path) -> Result<(), String> {
    let mut disk = LoopDisk::new("ext4", place)?;
    let path = disk.mount("errors=remount-ro")?.join("db");
    let trigger = PathBuf::from(format!("/sys/fs/ext4/{}/trigger_fs_error", disk.device()));
    let db = Db::open(&path, options(0)).unwrap();
    let value = |number: u32| number.to_le_bytes().repeat(60);
    let put = |number: u32| db.put_with(&number.to_be_bytes(), &value(number), &WriteOptions { sync: true });
    (0..200).for_each(|number| put(number).unwrap());
    std::fs::write(&trigger, "1").map_err(|error| format!("{}: {error}", trigger.display()))?;
    // The first sync is refused, of a write or of a job before it; no write is taken after that, and nobody waits. The
    // journal, which is what fails, gives another error than calls that come later.
    let error = (200..300).find_map(|number| put(number).err()).expect("a file system that is read-only");
    assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::ReadOnly), "{error}");
    let causes = ["Read-only file system", "Input/output error"];
    assert!(causes.iter().any(|cause| error.to_string().contains(cause)), "{error}");
    let error = put(300).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}");
    for call in [db.flush(), db.sync(), db.compact_range(None, None)] {
        let kind = call.unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::ReadOnly | ErrorKind::Io), "{kind}");
    }
    for number in 0..200_u32 {
        assert_eq!(db.get(&number.to_be_bytes()).unwrap(), Some(value(number)), "{number}");
    }
    drop(db);
    disk.unmount();
    disk.mount("defaults")?;
    let db = Db::open(&path, options(0)).unwrap();
    for number in 0..200_u32 {
        assert_eq!(db.get(&number.to_be_bytes()).unwrap(), Some(value(number)), "{number}, mounted again");
    }
    db.put_with(b"key", b"value", &WriteOptions::synced()).unwrap();
    db.close().unwrap();
    disk.unmount();
    Ok(())
}

/// Bytes of memory that a group of processes may take.
const MEMORY_BYTES: u64 = 48 << 20;

/// A group of processes whose memory is limited. Gone when it is dropped.
struct Group(PathBuf);

impl Group {
    /// A new one, under whichever version of cgroups counts memory here.
    fn new() -> Result<Self, String> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let mut roots = mounts.lines().filter_map(|line| {
            let fields: Vec<_> = line.split(' ').collect();
            let limit = match fields[2] {
                "cgroup" if fields[3].split(',').any(|option| option == "memory") => "memory.limit_in_bytes",
                "cgroup2" => "memory.max",
                _ => return None,
            };
            Some((PathBuf::from(fields[1]), limit))
        });
        let mut tried = "no cgroup counts memory".to_owned();
        let made = roots.find_map(|(root, limit)| {
            let group = Self(root.join(format!("tamarack-test-{}", std::process::id())));
            let bytes = MEMORY_BYTES.to_string();
            let made =
                std::fs::create_dir(&group.0).and_then(|()| std::fs::write(group.0.join(limit), bytes));
            match made {
                Ok(()) => Some(group),
                Err(error) => {
                    tried = format!("a cgroup cannot be limited: {}: {error}", group.0.display());
                    None
                }
            }
        });
        made.ok_or(tried)
    }

    /// `command`, but in the group.
    fn put(&self, command: &Command) -> Command {
        let mut shell = Command::new("sh");
        let procs = self.0.join("cgroup.procs");
        shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(procs).arg(command.get_program());
        shell.args(command.get_args());
        shell
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.0).ok();
    }
}

/// The kernel ends the writing process for its memory, again and again: all that was acknowledged is there.
pub fn out_of_memory(count: u64) -> Result<(), String> {
    let group = Group::new()?;
    // Files in memory would count, too.
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("db");
    let (mut history, mut bounds) = (History::default(), Bounds::default());
    for cycle in 0..count {
        let command = group.put(&this_program("the_process_that_writes"));
        let writer = Writer::start(command, &path, cycle, true);
        let (status, said) = writer.end(&mut bounds);
        let killed = status.signal() == Some(9);
        assert!(killed, "the process was not killed for its memory but ended with {status}: {said}");
        let what = format!("end of memory {cycle}");
        history.verify(&path, cycle, (bounds.written, bounds.issued), &what);
    }
    assert!(history.number > count, "only {} batches", history.number);
    println!("\ntold: {count} ends of memory, {} batches, none lost", history.number);
    Ok(())
}
