//! What goes wrong with the device itself, when a test says so: once, at the first call that it can strike.

use std::io;

use super::crash::{Fate, Kind, SECTOR_BYTES};
use super::effect::{Change, Effect};
use super::random::Random;
use super::state::{NodeId, State};
use crate::base::sync::Arc;
use crate::env::fault::EIO;

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// A sync of a file fails with [`EIO`], and what was in flight counts as written from then on, as Linux has it:
    /// some of it is, later syncs bring none of the rest, and reads show all of it until the power is lost.
    SyncFails,
    /// A write call does its first half and fails with [`EIO`].
    ShortWrite,
    /// A write succeeds, can be read and synced, and never reaches the device.
    LostWrite,
    /// A write succeeds and can be read, but reaches the device at another place, in the same file or in another one.
    MisdirectedWrite,
}

/// What is to go wrong, and what has.
#[derive(Debug, Default, Clone)]
pub struct Plan {
    /// Faults, and before which change they do not strike.
    planned: Vec<(DiskFault, u64)>,
    struck: u64,
    seed: u64,
}

impl Plan {
    /// Adds a fault that strikes from change number `from` on. Where chance has a part in it, it follows from `seed`.
    pub fn add(&mut self, fault: DiskFault, from: u64, seed: u64) {
        self.planned.push((fault, from));
        self.seed = seed;
    }

    /// How many have struck.
    pub fn struck(&self) -> u64 {
        self.struck
    }

    /// The fault among `choices` that strikes change number `now`.
    fn strike(&mut self, choices: &[DiskFault], now: u64) -> Option<DiskFault> {
        let strikes = |&(fault, from): &(DiskFault, u64)| from <= now && choices.contains(&fault);
        let index = self.planned.iter().position(strikes)?;
        self.struck += 1;
        Some(self.planned.swap_remove(index).0)
    }

    fn random(&self) -> Random {
        Random::new(self.seed.wrapping_add(self.struck))
    }
}

impl State {
    /// Writes `bytes` to a file, unless that goes wrong.
    pub fn write(&mut self, id: NodeId, offset: u64, bytes: &[u8], mapped: bool) -> io::Result<()> {
        let choices = [DiskFault::LostWrite, DiskFault::MisdirectedWrite, DiskFault::ShortWrite];
        let choices = if mapped { &choices[..2] } else { &choices[..] };
        let now = self.changes();
        let struck = self.plan.strike(choices, now);
        let change = |bytes: &[u8]| Change::Write { offset, bytes: Arc::new(bytes.to_vec()), mapped };
        match struck {
            Some(DiskFault::ShortWrite) => {
                self.change_file(id, change(&bytes[..bytes.len() / 2]))?;
                return Err(io::Error::from_raw_os_error(EIO));
            }
            Some(fault) => {
                // The file is as long as if all were well.
                self.change_file(id, Change::Reserve(offset + bytes.len() as u64))?;
                self.with_file(id, |inode| inode.cache(&change(bytes)))?;
                if fault == DiskFault::MisdirectedWrite {
                    self.misdirect(id, offset, bytes)?;
                }
            }
            None => self.change_file(id, change(bytes))?,
        }
        Ok(())
    }

    /// Lets a write arrive at another sector.
    fn misdirect(&mut self, id: NodeId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut random = self.plan.random();
        let others = self.files_in_use();
        let target = if random.one_in(2) { id } else { others[random.below(others.len() as u64) as usize] };
        let at = self.changes();
        self.with_file(target, |inode| {
            let sectors = (inode.content().len() / SECTOR_BYTES).max(1);
            let offset = random.below(sectors) * SECTOR_BYTES + offset % SECTOR_BYTES;
            // No longer than the file is.
            inode.stray(Effect {
                at,
                change: Change::Write { offset, bytes: Arc::new(bytes.to_vec()), mapped: true },
            });
        })
    }

    /// Fails a sync of a file, if that is to go wrong now.
    pub fn fail_sync(&mut self, id: NodeId) -> io::Result<()> {
        let now = self.changes();
        if self.plan.strike(&[DiskFault::SyncFails], now).is_none() {
            return Ok(());
        }
        let mut fate = Fate::of(Kind::Any, self.plan.random().number());
        self.with_file(id, |inode| {
            let arrived = fate.bytes(inode.durable_bytes(), inode.journal());
            inode.forget_in_flight(arrived);
        })?;
        Err(io::Error::from_raw_os_error(EIO))
    }

    /// Flips a bit of a file that has a name. Returns the file and the offset, if there is any byte.
    pub fn rot(&mut self, seed: u64) -> Option<(NodeId, u64)> {
        let mut random = Random::new(seed);
        let mut files = self.files_in_use();
        files.retain(|id| self.file(*id).is_ok_and(|inode| inode.content().len() > 0));
        let id = *files.get(random.below(files.len().max(1) as u64) as usize)?;
        let flip = |inode: &mut super::inode::Inode| {
            let offset = random.below(inode.content().len());
            inode.flip(offset, 1 << random.below(8));
            offset
        };
        self.with_file(id, flip).ok().map(|offset| (id, offset))
    }
}
