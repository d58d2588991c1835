//! File systems that are shut down under a database that is being written: what the kernel had not given to the device is
//! lost, as in a loss of power, but for what the device itself would lose.

use std::fs::File;
use std::path::Path;

use rustix::ioctl::{Opcode, Setter, ioctl, opcode};

use crate::common::process::this_program;
use crate::common::{PATIENCE_SECONDS, Random, Watchdog};

use super::history::{Bounds, History, Writer};
use super::mount::LoopDisk;

/// `FS_IOC_SHUTDOWN`, by which ext4, xfs and others go down at once.
const SHUTDOWN: Opcode = opcode::read::<u32>(b'X', 125);
/// After all that is dirty was written; after the journal was; or as it is.
const FLAGS: [u32; 5] = [2, 2, 2, 1, 0];

/// What file systems say of damage to what they keep for themselves: `EBADMSG` and `EUCLEAN`.
const OF_DAMAGE: [&str; 2] = ["os error 74", "os error 117"];

/// Shuts a mounted file system down.
fn shut_down(mount: &Path, flags: u32) -> Result<(), String> {
    let root = File::open(mount).unwrap();
    // SAFETY: the call reads a number of four bytes, and this is one.
    let call = unsafe { Setter::<SHUTDOWN, u32>::new(flags) };
    // SAFETY: as above; what it does to the file system is what is wanted.
    let done = unsafe { ioctl(&root, call) };
    done.map_err(|error| format!("the ioctl FS_IOC_SHUTDOWN fails: {error}"))
}

/// Shuts one file system down so many times; why that cannot be, if it cannot.
pub fn shutdowns(kind: &str, place: &Path, count: u64) -> Result<(), String> {
    let mut disk = LoopDisk::new(kind, place)?;
    let mut history = History::default();
    let mut bounds = Bounds::default();
    let (mut survived, mut lost, mut damaged) = (0, 0, 0);
    for cycle in 0..count {
        let what = format!("{kind}, shutdown {cycle}");
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, what.clone());
        let mut random = Random::new(cycle);
        let mount = disk.mount("defaults")?;
        let path = mount.join("db");
        let mut writer = Writer::start(this_program("the_process_that_writes"), &path, cycle, false);
        // Into the recovery from the one before, now and then.
        let words = if random.one_in(6) { 0 } else { 1 + random.below(120) };
        let goes_on = writer.listen(words, &mut bounds);
        // What is said from here on nobody would hear after a loss of power. Nor is it always true: a sync that is under way
        // while ext4 goes down may return a success, though an extent was not marked as written.
        let durable = bounds.durable;
        let shut = shut_down(&mount, random.pick(&FLAGS));
        let said = writer.kill(&mut bounds);
        bounds.durable = durable;
        shut?;
        disk.unmount();
        if !goes_on {
            // A kernel may damage its file system here, rarely, and says so of its own files: an error, as it must be. What
            // is on it says nothing of the database.
            let told = OF_DAMAGE.iter().any(|error| said.contains(error));
            assert!(told && disk.is_damaged()?, "{what}: the writer ended by itself: {said}");
            disk.format()?;
            damaged += 1;
            survived += history.number;
            (history, bounds) = Default::default();
            continue;
        }
        if random.one_in(2) || cycle + 1 == count {
            disk.mount("defaults")?;
            history.verify(&path, cycle, (bounds.durable, bounds.issued), &what);
            lost += bounds.written.saturating_sub(history.number);
            // When open returned, all that it found was durable.
            bounds.durable = history.number;
            disk.unmount();
        }
    }
    survived += history.number;
    assert!(survived > count, "only {survived} batches in {count} cycles: nothing was tested");
    assert!(lost > 0, "nothing was ever lost: no shutdown was like a loss of power");
    println!("\ntold: {count} shutdowns of {kind}: {survived} batches survived, {lost} were lost");
    // That it finds nothing here is what makes it worth asking above.
    println!("\ntold: {kind} itself was damaged {damaged} times; at the end: {}", disk.is_damaged()?);
    Ok(())
}
