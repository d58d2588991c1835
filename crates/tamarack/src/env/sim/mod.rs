//! A simulated world: a disk in memory that loses power, a clock that takes no time, randomness from a seed.
//!
//! The whole engine runs in it unchanged, on the threads of the process or, under `--cfg shuttle`, on shuttle's. One
//! seed and one order of calls give the same bytes every time; [`SimDisk::trace`] tells two runs apart.
//!
//! What is modelled:
//! - **Names and files are apart.** A directory maps names to files, and a file may have several names, or none while it
//!   is open. A sync of a file makes its bytes and its length durable, a sync of a directory its names; neither does the
//!   other. A file without durable name is gone after a crash, however often it was synced, and so is everything in a
//!   directory that nobody has made durable in its parent.
//! - **What is in flight.** Every change since the last sync is kept in a journal, in order: written bytes, lengths,
//!   reservations and holes of each file, added, removed and replaced names of each directory. Writing through a mapping
//!   is like any other write, but may be caught in the middle.
//! - **A crash** ([`SimDisk::crash`]) is a new disk with what is durable and a part of what was in flight, as a seed
//!   chooses: nothing, everything, everything up to one moment, or each thing by itself. In the last case each page of
//!   4096 bytes, or each sector of 512, reaches the disk as it was at some moment of its own, earlier or later than
//!   others; the lengths and holes of a file are as they were at yet another moment. So bytes are lost, torn and
//!   reordered, lengths outrun data (which then reads as zeros, or, where nothing was reserved, perhaps as garbage), and
//!   holes that were not synced are undone. Names of a directory survive in any combination in which no change does
//!   without those before it that concern the same name; a replacement is there as a whole or not at all.
//! - **Every crash** that is possible at a moment: [`SimDisk::record`] keeps each [`Moment`], and [`CrashStates`]
//!   enumerates what a crash may leave then, down to sectors, names and lengths, and builds the disk of each state.
//! - **A kill** ([`SimDisk::kill`]) is a new disk on which nothing is lost, for the kernel lives on: what was in flight
//!   still is, and may be lost by a crash later. One can be planned for a change that is still to come
//!   ([`SimDisk::kill_at`]).
//! - **Room.** Files take whole blocks while they have a name or are open; a disk of limited size runs full, and a write
//!   that does not fit is done in part.
//! - **Faults** of the device ([`DiskFault`], [`SimDisk::rot`]): syncs that fail and leave pages that look clean, short
//!   writes, writes that are lost or land elsewhere, bits that flip.
//! - **Locks** on directories, which a crash or a kill releases.
//!
//! What is not: errors without effect (put [`FaultEnv`](super::fault::FaultEnv) around it), permissions, symbolic links, renames from one directory into
//! another or of directories, and two mappings of one file of which the second is longer.
//!
//! The pieces that decide are pure: [`content`] and [`effect`] say what a file is and what changes it, [`directory`] the
//! same of names, [`crash`] what survives. [`state`] puts them together under one lock, which is never held during
//! anything but memory accesses; each call is a point at which shuttle may let another thread go first.

mod content;
mod crash;
mod directory;
mod disk;
mod effect;
mod faults;
mod file;
mod fs;
mod inode;
mod moment;
mod random;
mod state;
mod states;
mod time;
mod units;

#[cfg(all(test, not(shuttle)))]
mod tests;

pub use disk::{SimDisk, SimOptions};
pub use faults::DiskFault;
pub use moment::Moment;
pub use random::Random;
pub use states::{CrashState, CrashStates};
