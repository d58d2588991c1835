//! Repair: makes a cube that can be opened out of what is left of a damaged one, and says what is not left.
//!
//! What counts, in this order.
//!
//! 1. *The manifest, if it is whole*, says which tables and segments count; files that it does not mention prove nothing.
//!    What is whole of them stays exactly what it was: a damaged table or segment costs what its damaged bytes held.
//! 2. *Sequence numbers.* Each operation has its own, in log, tables and cold segments alike. Of all that is known of a key
//!    the operation with the largest one is its state; no snapshot outlives a close, so nothing older is needed.
//!    So pieces can be put together without knowing levels: the index is written anew as one sorted level.
//! 3. *References.* They tell exactly which records a damaged table pointed to ([`tables`]).
//! 4. *The log*, for what is then still missing; it may be old, which is told.
//! 5. *Without a manifest* all tables count that no whole edit has dropped, and the log from the operation on that no
//!    table has ([`log`]). A table that had been dropped, and that no edit names any more, may bring back what
//!    was deleted; that cannot be excluded, so the report then doubts all keys.
//!
//! A value that is known to be lost is not replaced by an older one: its key is then absent, and named. Nothing is taken
//! for a record because it looks like one inside a value ([`crate::vlog::salvage`]). Nothing is removed: what the
//! repaired cube does not use is in `lost`, and [`commit`] tells why a repair may be cut off anywhere and done again.
//!
//! Memory: 32 MiB of entries to be sorted, the indexes and filters of open tables, the footers of a few segments, offsets
//! of records in damaged segments, and the sets of references of one segment. It reads each file about once, those of
//! damaged segments and of lost tables' keys twice.

mod commit;
mod evacuate;
mod log;
mod plan;
pub mod report;
mod segments;
mod tables;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::ids::{CubeId, LogPosition, SegmentId, Sequence, TableId};
use crate::base::keys::KeyOrder;
use crate::base::names::FileName;
use crate::base::options::Options;
use crate::base::sync::Arc;
use crate::env::{Env, Fs, LockMode};
use crate::index::manifest::{self, Survey, leveldb};
use crate::index::repair::{Fate, Workshop, files_in};
use crate::index::table::TableOptions;
use crate::index::version::{TableMeta, Version};
use crate::vlog::format::{RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::vlog::recover::{Task, recover};

use commit::{LOST, REPAIRING};
use evacuate::Evacuation;
use log::Begin;
use report::{Loss, LostRange, RepairReport, RepairedManifest};
use segments::{Home, Place, Segments};
use tables::Tables;

/// The directory in which a repair writes that is only tried.
const TRYING: &str = "repairing-trial";
/// Tables that are open at a time.
const OPEN_TABLES_MAX: usize = 256;
/// A repair makes fewer files of a kind than this.
const NEW_FILES_MAX: u32 = 1 << 24;
/// So many ranges of lost keys are told one by one. What comes behind is one range, though keys in it may be there.
const RANGES_MAX: usize = 10_000;

/// How [`Db::repair_with`](crate::Db::repair_with) repairs.
#[derive(Debug, Clone, Copy, Default)]
pub struct RepairOptions {
    /// Only find out what a repair would do, and change nothing. The new index is written beside the database, and removed
    /// again. Default: false.
    pub dry_run: bool,
    /// Is told what the repair is doing now. Default: nobody.
    pub progress: Option<fn(&str)>,
}

/// A repair under way.
struct Repair<'a> {
    env: &'a Env,
    directory: &'a Path,
    scratch: PathBuf,
    options: &'a Options,
    how: RepairOptions,
    keys: KeyOrder,
    cube: CubeId,
    /// What the manifest says, if it counts.
    version: Option<Version>,
    survey: Survey,
    /// The cube's files.
    files: BTreeSet<FileName>,
    report: RepairReport,
}

/// The log as it will be found.
#[derive(Debug, Clone, Copy)]
struct Log {
    begin: Begin,
    /// Whether it stays as it is.
    stays: bool,
    /// Whether recovery would refuse it.
    was_refused: bool,
}

/// Repairs the cube in `directory`.
///
/// # Errors
/// `InvalidArgument` if there is none, or in another order of keys; `Locked`, `Io`, `NoSpace`; `Unsupported`, also where a file
/// bears one of the last numbers of its kind, behind which new ones have no room;
/// `Corruption` if nothing tells which cube it was. Nothing is lost, and it can be tried again.
pub fn repair(env: &Env, directory: &Path, options: &Options, how: RepairOptions) -> Result<RepairReport> {
    options.check()?;
    let refuse = || Error::invalid_argument(format!("{} holds no database to repair", directory.display()));
    if !env.fs.exists(directory).map_err(|error| Error::io("look for", directory, error))? {
        return Err(refuse());
    }
    let lock = env.fs.lock_dir(directory, LockMode::Exclusive).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            Error::locked(format!("{} is open: close it before repairing it", directory.display()))
        }
        std::io::ErrorKind::NotADirectory => refuse(),
        _ => Error::io("lock", directory, error),
    })?;
    let names = commit::names(&*env.fs, directory)?;
    leveldb::refuse(&*env.fs, directory, &names)?;
    if ours(&names).is_empty() {
        return Err(refuse());
    }
    let repaired = Repair::begin(env, directory, options, how)?.run();
    drop(lock);
    repaired
}

/// Removes what repairs have left in directories of their own that were cut off. What they had put into the cube's directory without effect must be
/// gone, as it is once the cube was opened.
///
/// # Errors
/// `Io`.
pub fn remove_scratch(fs: &dyn Fs, directory: &Path) -> Result<()> {
    [REPAIRING, TRYING].into_iter().try_for_each(|name| commit::clear(fs, directory, &directory.join(name)))
}

/// Those of `names` that are files of a cube.
fn ours(names: &[String]) -> BTreeSet<FileName> {
    let parsed = names.iter().filter_map(|name| FileName::parse(name));
    parsed.filter(|name| *name != FileName::Temporary).collect()
}

impl<'a> Repair<'a> {
    fn begin(env: &'a Env, directory: &'a Path, options: &'a Options, how: RepairOptions) -> Result<Self> {
        let keys = KeyOrder::new(Arc::clone(&options.comparator));
        let mut survey = manifest::survey(&files_in(&env.fs, directory), &keys)?;
        let mut repair = Self {
            env,
            directory,
            scratch: directory.join(if how.dry_run { TRYING } else { REPAIRING }),
            options,
            how,
            report: RepairReport::new(keys.clone(), how.dry_run),
            keys,
            cube: CubeId(0),
            version: survey.version.take(),
            survey,
            files: BTreeSet::new(),
        };
        repair.withdraw()?;
        repair.files = ours(&commit::names(&*env.fs, directory)?);
        if let Some(last) = repair.files.iter().find(|name| !name.has_room_behind(NEW_FILES_MAX)) {
            let path = last.path(directory);
            let reason = format!(
                "the files of a repair must have higher numbers than {}, and there are too few: put that file elsewhere and repair again",
                path.display()
            );
            return Err(Error::unsupported(reason));
        }
        repair.cube = repair.identify()?;
        repair.report.damage.append(&mut repair.survey.damage);
        repair.report.changed = !repair.report.damage.is_empty();
        Ok(repair)
    }

    /// Puts aside what an earlier repair has left that was cut off before it took effect.
    fn withdraw(&mut self) -> Result<()> {
        let fs = &*self.env.fs;
        if self.how.dry_run {
            return commit::clear(fs, self.directory, &self.scratch);
        }
        let names = commit::names(fs, &self.scratch)?;
        let found: Vec<FileName> = names.iter().filter_map(|name| FileName::parse(name)).collect();
        // It took effect, and was cut off after that: what it has put in place is in use. It does not remove a manifest before: where
        // all that had lower numbers are gone, it has, and its own is gone, too.
        let (in_force, number_max) = (self.survey.in_force, self.survey.number_max);
        let has_effect = |number: u64| number <= in_force || number > number_max + 1;
        if found.iter().any(|name| matches!(name, FileName::Manifest(number) if has_effect(*number))) {
            return commit::clear(fs, self.directory, &self.scratch);
        }
        let mut left = Vec::new();
        for parsed in found {
            let name = parsed.to_string();
            let mentioned = self.version.as_ref().is_some_and(|version| mentions(version, parsed));
            if !mentioned && commit::same(fs, &self.scratch.join(&name), &self.directory.join(&name))? {
                left.push(parsed);
            }
        }
        if !left.is_empty() {
            let lost = commit::make(fs, self.directory, LOST)?;
            commit::put_aside(fs, self.directory, &lost, &left)?;
            commit::take_out(fs, self.directory, &left)?;
        }
        commit::clear(fs, self.directory, &self.scratch)
    }

    /// The cube's id: as its manifest says, or most of its segments.
    fn identify(&self) -> Result<CubeId> {
        if let Some(cube) = self.survey.cube {
            return Ok(cube);
        }
        let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
        for name in self.files.iter().filter(|name| matches!(name, FileName::Segment(_))) {
            let path = name.path(self.directory);
            let file = self.env.fs.open_read(&path).map_err(|error| Error::io("open", &path, error))?;
            let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
            let read = file.read_at(&mut bytes, 0).map_err(|error| Error::io("read", &path, error))?;
            if let (80, Ok(header)) = (read, SegmentHeader::decode(&bytes)) {
                *votes.entry(header.cube.0).or_default() += 1;
            }
        }
        let most = votes.into_iter().max_by_key(|&(_, votes)| votes);
        most.map(|(cube, _)| CubeId(cube)).ok_or_else(|| {
            let path = FileName::Current.path(self.directory);
            let expected =
                "a manifest or a segment that tells the database's id, without which nothing can be read";
            Error::corruption(&path, 0, expected, "none")
        })
    }

    fn run(mut self) -> Result<RepairReport> {
        let fs = Arc::clone(&self.env.fs);
        let name = if self.how.dry_run { TRYING } else { REPAIRING };
        commit::make(&*fs, self.directory, name)?;
        let outcome = self.work();
        if self.how.dry_run || !self.report.changed || outcome.is_err() {
            // After a failure, what is in place already is put aside by the next repair, which must see it here.
            if outcome.is_ok() || self.how.dry_run {
                commit::clear(&*fs, self.directory, &self.scratch)?;
            }
        }
        outcome.map(|()| self.report)
    }

    fn work(&mut self) -> Result<()> {
        self.tell("reading tables");
        let mut workshop = self.workshop();
        let mut tables = Tables::examine(&workshop, &self.wanted_tables(), &mut self.report)?;
        tables.measure(&workshop)?;
        let mut log = self.find_log(&tables)?;
        if self.version.is_some() && self.is_stale(&workshop, &tables, log)? {
            let found =
                "an earlier one: tables that it does not mention are there, and files that it does are not";
            let path = FileName::Current.path(self.directory);
            self.version = None;
            self.report.tables = 0;
            self.report.damaged_tables = 0;
            self.report.damage = vec![Error::corruption(&path, 0, "the last version of the manifest", found)];
            workshop = self.workshop();
            tables = Tables::examine(&workshop, &self.wanted_tables(), &mut self.report)?;
            tables.measure(&workshop)?;
            log = self.find_log(&tables)?;
        }
        self.report.manifest =
            if self.version.is_some() { RepairedManifest::Whole } else { RepairedManifest::Lost };
        self.tell("reading segments");
        let version = self.version.clone();
        let log_from = log.stays.then_some(log.begin.head.segment);
        let mut segments = Segments::new(&self.env.fs, self.directory, self.cube, version.as_ref(), log_from);
        let needed = self.survey_segments(&mut segments, &workshop, &tables, log)?;
        self.tell("collecting what is left");
        let rebuild = version.is_none() || !tables.damaged.is_empty() || !log.stays;
        let (sources, log_end) = self.collect(&mut tables, &workshop, &mut segments, log)?;
        let mut missing = HashSet::new();
        let homes = self.resolve(&workshop, &sources, &mut segments, &mut missing)?;
        self.tell("writing the index");
        let merged = self.merge(&workshop, &sources, rebuild, &missing)?;
        self.report.index_rebuilt = merged.is_some();
        self.report.changed |= merged.is_some() || self.report.damaged_segments > 0;
        if !self.report.changed {
            return Ok(());
        }
        self.tell("copying records");
        let finals = merged.as_deref().unwrap_or(&sources);
        let mut evacuation = self.evacuation(&homes);
        let write = !self.how.dry_run;
        let offsets = |id| workshop.offsets(finals, id);
        evacuation.run(&homes, &mut segments, &offsets, write, &mut self.report)?;
        let head = match log.stays {
            true => log.begin.head,
            false => evacuation.begin_log(self.next_log_id(&homes), log_end)?,
        };
        let Evacuation { segments: copies, moves, .. } = evacuation;
        let plan = plan::Plan {
            cube: self.cube,
            version: version.as_ref(),
            log: Log { begin: Begin { head, last: log_end }, ..log },
            homes: &homes,
            segments: &segments,
            merged: merged.as_deref(),
            copies,
            moves,
            next_table: workshop.next_table_id(),
            needed: &needed,
        };
        self.finish(&plan)
    }

    fn tell(&self, what: &str) {
        if let Some(progress) = self.how.progress {
            progress(what);
        }
    }

    fn workshop(&self) -> Workshop {
        let mut options = TableOptions::new(self.cube, self.keys.clone(), RECORD_HEADER_BYTES as u64);
        options.block_bytes = self.options.block_bytes;
        options.codec = self.options.block_codec;
        options.filter_bits_per_key = self.options.filter_bits_per_key;
        let known = self.version.as_ref().map_or(0, |version| version.numbers().next_table_id.0);
        let there = self.files.iter().map(|name| if let FileName::Table(id) = name { id.0 + 1 } else { 1 });
        let next = TableId(there.max().unwrap_or(1).max(known).max(1));
        let places = (self.directory, &*self.scratch);
        Workshop::new(&self.env.fs, places, options, self.options.table_bytes_max, OPEN_TABLES_MAX, next)
    }

    /// The tables that count, with what the manifest says of them.
    fn wanted_tables(&self) -> BTreeMap<TableId, Option<Arc<TableMeta>>> {
        match &self.version {
            Some(version) => version.tables().map(|(_, table)| (table.id, Some(Arc::clone(table)))).collect(),
            None => {
                let dropped = &self.survey.dropped_tables;
                let ids = self.files.iter().filter_map(|name| match name {
                    FileName::Table(id) if !dropped.contains(id) => Some((*id, None)),
                    _ => None,
                });
                ids.collect()
            }
        }
    }

    /// Where the log begins, and whether it can be replayed.
    fn find_log(&mut self, tables: &Tables) -> Result<Log> {
        let (begin, sealed_end) = if let Some(version) = &self.version {
            let numbers = version.numbers();
            (Some(Begin { head: numbers.log_head, last: numbers.last_sequence }), plan::sealed_end(version))
        } else {
            let ids: Vec<SegmentId> = self.segment_ids().collect();
            let found = log::find_begin(&*self.env.fs, self.directory, self.cube, &ids, tables.newest)?;
            (found, LogPosition::default())
        };
        let Some(begin) = begin else {
            let begin = Begin { head: LogPosition::default(), last: tables.newest };
            return Ok(Log { begin, stays: false, was_refused: false });
        };
        let task = Task {
            fs: &*self.env.fs,
            directory: self.directory,
            cube: self.cube,
            order: &self.keys,
            head: begin.head,
            last_sequence: begin.last,
            sealed_end,
            inline_value_max: self.options.inline_value_max,
            check_values: true,
            mend: false,
            read_only: true,
        };
        match recover(&task, &mut |_| Ok(())) {
            Ok(_) => {
                let damage = self.damage_beside_log(begin)?;
                self.report.changed |= !damage.is_empty();
                // With a manifest it begins behind all that is shared.
                let stays =
                    damage.is_empty() && (self.version.is_some() || !self.is_shared(begin.head.segment)?);
                self.report.damage.extend(damage);
                Ok(Log { begin, stays, was_refused: false })
            }
            Err(error) if error.kind() == ErrorKind::Corruption => {
                self.report.damage.push(error);
                self.report.changed = true;
                Ok(Log { begin, stays: false, was_refused: true })
            }
            Err(error) => Err(error),
        }
    }

    /// Whether another directory, a checkpoint's or the original's, may have a segment at or behind `head`, too. It was sealed then, and nothing may
    /// change it, as recovery does with those of the log.
    fn is_shared(&self, head: SegmentId) -> Result<bool> {
        for id in self.segment_ids().filter(|id| !id.is_cold() && *id >= head) {
            let path = FileName::Segment(id).path(self.directory);
            let file = self.env.fs.open_read(&path).map_err(|error| Error::io("open", &path, error))?;
            if file.links().map_err(|error| Error::io("count the names of", &path, error))? > 1 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn segment_ids(&self) -> impl Iterator<Item = SegmentId> {
        self.files.iter().filter_map(|name| if let FileName::Segment(id) = name { Some(*id) } else { None })
    }

    /// The ids of all segments that are there, or of which something is known.
    fn known_segments(&self, homes: &BTreeMap<SegmentId, Home>) -> BTreeSet<SegmentId> {
        let mut known: BTreeSet<SegmentId> = self.segment_ids().chain(homes.keys().copied()).collect();
        if let Some(version) = &self.version {
            known.extend(version.segments().sealed().map(|entry| entry.meta.id));
            known.extend(version.segments().moved().map(|(id, _)| id));
        }
        known
    }

    /// An id that no segment of the log has had.
    fn next_log_id(&self, homes: &BTreeMap<SegmentId, Home>) -> SegmentId {
        let last = self.known_segments(homes).into_iter().rfind(|id| !id.is_cold());
        let next = self.version.as_ref().map_or(1, |version| version.numbers().next_segment_id.0);
        SegmentId(last.map_or(1, |id| id.0 + 1).max(next))
    }

    fn evacuation(&self, homes: &BTreeMap<SegmentId, Home>) -> Evacuation<'a> {
        let last = self.known_segments(homes).into_iter().rfind(|id| id.is_cold());
        Evacuation {
            env: self.env,
            scratch: self.scratch.clone(),
            cube: self.cube,
            order: self.keys.clone(),
            next_id: last.map_or(SegmentId::COLD_FIRST, |id| SegmentId(id.0 + 1)),
            segment_bytes_max: self.options.segment_bytes_max,
            segments: Vec::new(),
            moves: Vec::new(),
        }
    }
}

/// Whether a version names the file `name`. It has a use for segments behind the log's head, too, and does not name them.
fn mentions(version: &Version, name: FileName) -> bool {
    match name {
        FileName::Table(id) => version.tables().any(|(_, table)| table.id == id),
        FileName::Segment(id) => {
            version.segments().get(id).is_some() || version.numbers().log_head.segment == id
        }
        _ => false,
    }
}
