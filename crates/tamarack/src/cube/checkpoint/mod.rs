//! Checkpoints: a consistent copy of the cube in another directory, made while reads and writes go on.
//!
//! # The protocol
//!
//! 1. **Claim** the target ([`Target`]): an empty directory, locked as long as it is being filled.
//! 2. **Flush.** Everything acknowledged before the call is in tables then, and so before the log head. (A cube that
//!    was opened read-only cannot flush; its log is copied with the rest.)
//! 3. **Hold** the present read state. Its version holds the handles of all files it mentions, and the state those of
//!    the log's last segments, so nothing that is copied goes meanwhile (I-06).
//! 4. **Share** the tables, the cold segments and the segments of the log before its head by hard links. They are
//!    complete, durable, and never written again by anybody (I-12). Where the file system cannot link they are copied.
//!    Meanwhile no holes are punched, and none into a file that has two names.
//! 5. **Copy** the segment in which the log head lies, up to the head: it may still be written to, and recovery writes
//!    and cuts the segments from the head on, and no others. Then the log of the copy ends at its head, and the copy
//!    holds exactly the batches before it: those in the version's tables. Of a cube that was opened read-only all segments from the
//!    head on are copied, as far as they were replayed, and with their footers; the last one is given one, if it has none. The
//!    manifest has them all, so damage to a copy is as little taken for the end of its log as it would be in the original.
//! 6. **Sync** the copies, then the names in the target. The names that lead to the target are durable since 1.
//! 7. **Put in force**: a manifest with the version as its one edit, then `CURRENT`.
//!
//! Until 7 is done the target has no `CURRENT`, and opening it is refused; a failure removes what was made, a crash
//! leaves it to be destroyed.
//!
//! The copy is the same cube: it keeps the id that seeds all checksums. It shares nothing else with the
//! original but bytes that neither changes: removing a file removes a name, and both make new files of their own.

mod target;

use std::path::Path;

use super::Cube;
use super::readers::ReaderKind;
use super::state::ReadState;
use crate::base::error::Result;
use crate::base::ids::LogPosition;
use crate::base::names::FileName;
use crate::base::segment::SegmentMeta;
use target::Target;

/// What a checkpoint consists of, apart from its manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckpointReport {
    /// Files that both databases have now, as one file with two names.
    pub linked_files: u64,
    /// Bytes of those files. They take up no further space as long as both have them.
    pub linked_bytes: u64,
    /// Files that were copied.
    pub copied_files: u64,
    /// Bytes of the copies.
    pub copied_bytes: u64,
}

impl Cube {
    /// Makes a copy of the cube in `directory`. See `Db::checkpoint`. Blocks on the device.
    ///
    /// # Errors
    /// `InvalidArgument`, `Locked`, `NoSpace`, `Io`, `ReadOnly`, `Closed`, `Corruption`. What was made is removed again.
    pub fn checkpoint(&self, directory: &Path) -> Result<CheckpointReport> {
        let mut target = Target::claim(&*self.env.fs, directory)?;
        if !self.options.read_only {
            self.flush()?;
        }
        // I-12: no hole is punched into a file that is about to be shared.
        let _sharing = self.index.files().begin_sharing();
        let state = self.current.load();
        let sequence = state.version.numbers().last_sequence;
        let now = self.env.clock.monotonic();
        let state = self.readers.hold(ReaderKind::Checkpoint, state, sequence, now);
        let version = &state.version;
        for (_, table) in version.tables() {
            target.share(&self.directory, FileName::Table(table.id), table.file_bytes)?;
        }
        // I-12: recovery writes to no segment but those of the log from its head on.
        for entry in version.segments().sealed().filter(|entry| version.is_collectable(entry.meta.id)) {
            target.share(&self.directory, FileName::Segment(entry.meta.id), entry.meta.file_bytes)?;
        }
        let log = self.copy_log(&state, &mut target)?;
        target.sync_names()?;
        self.index.write_checkpoint(version, log, directory)?;
        Ok(target.finish())
    }

    /// Copies the segments of the log from its head on, as far as they belong to a checkpoint of `state`. Returns those that are
    /// sealed.
    fn copy_log(&self, state: &ReadState, target: &mut Target<'_>) -> Result<Vec<SegmentMeta>> {
        let version = &state.version;
        if !self.options.read_only {
            let head = version.numbers().log_head;
            if head != LogPosition::default() {
                target.copy(&self.directory, FileName::Segment(head.segment), head.offset)?;
            }
            return Ok(Vec::new());
        }
        let registered = version.segments().sealed().map(|entry| entry.meta);
        let registered = registered.filter(|meta| !version.is_collectable(meta.id));
        let mut log: Vec<_> = registered.chain(self.maintenance.unregistered()).collect();
        log.sort_unstable_by_key(|meta| meta.id);
        for meta in &mut log {
            let name = FileName::Segment(meta.id);
            target.copy(&self.directory, name, meta.file_bytes)?;
            if meta.file_bytes == meta.end {
                *meta = target.seal(name, (self.id, meta.id), meta.end, &self.keys)?;
            }
        }
        Ok(log)
    }
}
