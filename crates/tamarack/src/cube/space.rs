//! How much space the cube takes, how much of that is alive, and what follows from it.
//!
//! The contract ([`Options::max_space_amplification`](crate::Options)): bytes on disk stay below that many times the
//! live bytes of keys and values, plus a fixed slack. Deciding is pure: [`Space`] is what is known, its methods say
//! what to do. First collections run; as the slack is used up, writers are slowed down, smoothly; if readers
//! hold on to more files than there is alive, or something keeps garbage from being collected, they are refused.
//!
//! What is alive is known from the tables' reference sets, but for records that newer versions in upper levels or in
//! memtables hide. These are estimated: of each new table some keys are looked up in the tables below it.

use std::collections::HashMap;

use super::Cube;
use super::state::ReadState;
use super::throttle::rate_for_debt;
use crate::base::error::{Error, Result};
use crate::base::ids::{SegmentId, TableId};
use crate::base::limits::LEVELS;
use crate::base::names::FileName;
use crate::base::sync::{Arc, Mutex};
use crate::index::version::{HeldBytes, SegmentEntry, TableMeta, Version};
use crate::index::{Estimate, HiddenBytes};
use crate::vlog::format::RECORD_HEADER_BYTES;

/// The slack, in full segments. A quarter of it is for space that is taken but not used (the active segment, the one
/// prepared behind it, outputs of collections and their victims while both are there), the rest for garbage.
const SLACK_SEGMENTS: u64 = 16;
/// Parts of the slack by which shares of it are told.
const SLACK_PARTS: u64 = 32;
/// Parts that garbage may take while writes keep coming before it is collected: what dies meanwhile need not be copied.
const COLLECTED_FROM_PARTS: u64 = 24;
/// The same while writers are slowed down, by whatever takes space: they wait for what collections free.
const COLLECTED_FROM_PARTS_SLOWED: u64 = 22;
/// Parts from which garbage counts as debt, and those that it may take before writers should hardly write.
const GARBAGE_PARTS: (u64, u64) = (26, 29);
/// Parts from which all that is on disk counts as debt ...
const TAKEN_FROM_PARTS: u64 = 27;
/// ... and that with what jobs will write: up to what is filled on purpose.
const COMMITTED_FROM_PARTS: u64 = 28;
/// Parts that are filled on purpose: the rest is for what comes between two looks ...
const FILLED_PARTS: u64 = 30;
/// ... but for this share of one, which is for what writers write before they wait for it ([`throttle`](super::throttle)).
const OWED_SHARE: u64 = 4;
/// Parts up to which files that are not needed any more may fill it, to become new ones.
const STOCK_PARTS: u64 = 29;
/// Parts that they take at most, however much room there is: what the log and the collections begin next.
const STOCK_PARTS_MAX: u64 = 8;
/// Garbage that stays when nothing is written: the live bytes divided by this, but at most so many parts. What is left is among
/// so much that is alive that copying costs more than it frees.
const LEFT_PART_OF_LIVE: u64 = 32;
const LEFT_PARTS_MAX: u64 = 3;

/// Where keys and values are so small that what leads to them takes more than the limit allows, garbage may take this part of the
/// least that can be reached: to have less would cost copies without end.
const GARBAGE_PART_OF_LEAST: u64 = 16;

/// What is known about the space of a cube at one moment. All in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// Files on disk, those included that go when their readers do.
    pub disk: u64,
    /// Keys and values that can be read, by snapshots, too; estimated as far as hidden ones are.
    pub live: u64,
    /// Log records that tables point to, not collected yet, that newer versions hide; estimated.
    pub hidden: u64,
    /// Files, and parts of them, that are removed when their readers are gone.
    pub leaving: u64,
    /// Files that no reader holds: they are being removed, or kept.
    pub removing: u64,
    /// Those of them that are kept to become new ones.
    pub stock: u64,
    /// Space that is reserved for the log and not used yet, or in files that jobs are writing.
    pub reserved: u64,
    /// What those jobs may write yet; not on disk.
    pub promised: u64,
    /// What the limit allows, or can be reached: while used bytes stay below, nothing needs to be done.
    pub goal: u64,
    /// The slack beyond the goal.
    pub slack: u64,
}

/// Why writers are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Readers hold more in files that only they need than there is alive.
    Readers,
    /// All that may be taken is, and something keeps collections from freeing any of it.
    Garbage,
}

/// Whether collecting may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Writes keep coming: a part of the slack is used first.
    Busy,
    /// Nothing is written: the goal is to be reached.
    Idle,
}

impl Space {
    /// Bytes on disk for each live byte; 1 if there are neither.
    pub fn amplification(&self) -> f64 {
        if self.disk == 0 { 1.0 } else { self.disk as f64 / self.live.max(1) as f64 }
    }

    /// Bytes on disk that hold something: live, dead, or how to find it.
    pub fn used(&self) -> u64 {
        self.disk.saturating_sub(self.reserved + self.leaving + self.removing)
    }

    /// How far collections are behind, from 0 to 1: then writers should hardly write. The worst of garbage, of all space but
    /// what only waits for readers, and of that with what jobs will write yet.
    pub fn debt(&self) -> f64 {
        let share = |bytes: u64, from_parts: u64, end: u64| {
            let from = self.goal + self.parts(from_parts);
            bytes.saturating_sub(from) as f64 / end.saturating_sub(from).max(1) as f64
        };
        share(self.used(), GARBAGE_PARTS.0, self.goal + self.parts(GARBAGE_PARTS.1))
            .max(share(self.taken(), TAKEN_FROM_PARTS, self.filled()))
            .max(share(self.committed(), COMMITTED_FROM_PARTS, self.filled()))
    }

    /// Whether a job may write so many bytes, as far as the bound goes.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.committed() + bytes <= self.filled()
    }

    /// Bytes of the files that are not needed any more that may be kept to become new ones: what is left of the bound, but no
    /// more than are soon needed. What jobs will write is not set aside: they take it from there.
    pub fn stock_max(&self) -> u64 {
        let left = (self.goal + self.parts(STOCK_PARTS)).saturating_sub(self.used() + self.reserved);
        left.min(self.parts(STOCK_PARTS_MAX))
    }

    /// Bytes on disk but for what only waits for readers, or to become of use again.
    pub fn taken(&self) -> u64 {
        self.disk.saturating_sub(self.leaving + self.stock)
    }

    /// The same with what jobs will write.
    fn committed(&self) -> u64 {
        self.taken() + self.promised
    }

    /// Whether there is what writers are refused for if it lasts.
    pub fn calls_for(&self, refusal: Refusal) -> bool {
        match refusal {
            Refusal::Readers => self.leaving > self.live + self.slack,
            Refusal::Garbage => self.taken() >= self.filled(),
        }
    }

    /// What is filled on purpose.
    fn filled(&self) -> u64 {
        self.goal + self.parts(FILLED_PARTS) - self.parts(1) / OWED_SHARE
    }

    /// So many parts of the slack.
    fn parts(&self, count: u64) -> u64 {
        self.slack / SLACK_PARTS * count
    }

    /// Whether a collection should begin.
    pub fn calls_for_collection(&self, demand: Demand) -> bool {
        let are_writers_slowed = || rate_for_debt(self.debt()).is_some();
        self.is_over_goal(demand)
            || self.used() > self.goal + self.parts(COLLECTED_FROM_PARTS_SLOWED) && are_writers_slowed()
    }

    /// Whether more is used than may be.
    pub fn is_over_goal(&self, demand: Demand) -> bool {
        let grace = match demand {
            Demand::Busy => self.parts(COLLECTED_FROM_PARTS),
            Demand::Idle => (self.live / LEFT_PART_OF_LIVE).min(self.parts(LEFT_PARTS_MAX)),
        };
        self.used() > self.goal + grace
    }
}

/// Estimates of what tables hide. Lock rank: a leaf.
#[derive(Debug, Default)]
pub struct Hidden {
    known: Mutex<Estimates>,
}

#[derive(Debug, Default)]
struct Estimates {
    /// What each table hides.
    tables: HashMap<TableId, Estimate>,
    /// By cold segment, the first table that did not exist when it was written: it holds nothing that older ones hide.
    collected: HashMap<SegmentId, TableId>,
    /// What a byte of log comes to, as last seen.
    per_log_byte: PerLogByte,
}

/// What a byte of log comes to once it is in tables.
#[derive(Debug, Clone, Copy)]
struct PerLogByte {
    /// Bytes of keys and values in tables, or that these point to: what is overwritten in the memtable is not among them, nor
    /// what takes the place of others in tables.
    adds: f64,
    /// Bytes of log records that these tables hide.
    hides: f64,
}

impl Default for PerLogByte {
    fn default() -> Self {
        Self { adds: 1.0, hides: 0.0 }
    }
}

impl Hidden {
    /// Notes that cold segment `home` was written from a version whose tables all have smaller ids than `next`.
    pub fn collected(&self, home: SegmentId, next: TableId) {
        self.known.lock().collected.insert(home, next);
    }

    /// Notes that a flush of `log_bytes` of log has made `tables`, which hide `hidden`.
    pub fn note_flush<'a>(
        &self,
        tables: impl Iterator<Item = &'a TableMeta>,
        hidden: HiddenBytes,
        log_bytes: u64,
    ) {
        let share = |bytes: u64| bytes as f64 / log_bytes.max(1) as f64;
        // Of records it is told apart which of those that were there before are hidden.
        let adds = Alive::of(tables, HiddenBytes { records: 0, ..hidden }).user;
        self.known.lock().per_log_byte = PerLogByte { adds: share(adds), hides: share(hidden.records) };
    }
}

impl Estimates {
    /// What the tables of `version` hide: estimates of others are not true of it yet, or any more.
    fn of<'a>(&'a self, version: &'a Version) -> impl Iterator<Item = (TableId, &'a Estimate)> {
        version.tables().filter_map(|(_, table)| Some((table.id, self.tables.get(&table.id)?)))
    }

    /// Bytes of records that `tables` hide, by the segment in which they are: `moved` tells where collections have put those of
    /// segments that are gone.
    fn hidden_by_home<'a>(
        &self,
        moved: &HashMap<SegmentId, SegmentId>,
        tables: impl Iterator<Item = (TableId, &'a Estimate)>,
    ) -> HashMap<SegmentId, u64> {
        let mut sums = HashMap::new();
        for (table, estimate) in tables {
            for (id, bytes) in &estimate.hidden {
                let home = *moved.get(id).unwrap_or(id);
                if self.collected.get(&home).is_none_or(|&since| table >= since) {
                    *sums.entry(home).or_default() += bytes;
                }
            }
        }
        sums
    }
}

/// What a sealed segment holds.
#[derive(Debug, Clone, Copy)]
pub struct Content<'a> {
    /// The segment.
    pub entry: &'a SegmentEntry,
    /// Bytes of records in it that can be read, estimated.
    pub live: u64,
    /// Bytes of records that tables point to and that newer versions hide, estimated.
    pub hidden: u64,
}

/// What tables hold and point to, but for what they hide in each other. All in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Alive {
    /// Keys and values.
    user: u64,
    /// Log records.
    records: u64,
    /// The tables.
    tables: u64,
}

impl Alive {
    fn of<'a>(tables: impl Iterator<Item = &'a TableMeta>, hidden: HiddenBytes) -> Self {
        let (mut values, mut record_bytes, mut inline, mut table_bytes) = (0, 0_u64, 0_u64, 0);
        for table in tables {
            values += table.references.iter().map(|reference| reference.values).sum::<u64>();
            record_bytes += table.referenced_value_bytes;
            inline += table.inline_bytes;
            table_bytes += table.file_bytes;
        }
        let records = record_bytes.saturating_sub(hidden.records);
        let share = records as f64 / record_bytes.max(1) as f64;
        let headers = (values * RECORD_HEADER_BYTES as u64) as f64 * share;
        let user = records.saturating_sub(headers as u64) + inline.saturating_sub(hidden.inline);
        Self { user, records, tables: table_bytes }
    }
}

/// What `live` bytes of keys and values may take if nothing is to be done, where they take at least `least` with all that leads
/// to them.
fn goal(live: u64, least: u64, max_space_amplification: f64) -> u64 {
    let allowed = (live as f64 * max_space_amplification) as u64;
    allowed.max(least + least / GARBAGE_PART_OF_LEAST)
}

fn refused(space: &Space, because: &str) -> Error {
    Error::no_space(format!(
        "the database takes {} bytes on disk for {} live ones, which is all that max_space_amplification and its slack allow, \
         and {because}",
        space.disk, space.live
    ))
}

impl Cube {
    /// What each sealed segment of `version` holds.
    pub(super) fn contents<'a>(&self, version: &'a Version) -> Vec<Content<'a>> {
        let referenced = version.segments().live_by_home();
        let moved = version.segments().moved().map(|(id, moved)| (id, moved.table.segment)).collect();
        let hidden = {
            let estimates = self.hidden.known.lock();
            estimates.hidden_by_home(&moved, estimates.of(version))
        };
        let content = |entry: &'a SegmentEntry| {
            let home = entry.meta.id;
            // What was given back may still be referenced, by entries that are hidden.
            let dead = version.segments().dead_bytes(home);
            let left = entry.meta.value_record_bytes.min(entry.meta.end.saturating_sub(dead));
            let referenced = referenced.get(&home).map_or(0, |live| live.bytes).min(left);
            let hidden = hidden.get(&home).map_or(0, |&bytes| bytes.min(referenced));
            Content { entry, live: referenced - hidden, hidden }
        };
        version.segments().sealed().map(content).collect()
    }

    /// The space of the present version.
    pub(super) fn space(&self) -> Space {
        let state = self.current.load();
        let version = &state.version;
        let contents = self.contents(version);
        let unflushed = state.unflushed_log_bytes(self.order.log_bytes());
        let PerLogByte { adds, hides } = self.hidden.known.lock().per_log_byte;
        let hidden_by_memtables = (unflushed as f64 * hides) as u64;
        let in_memtables = (unflushed as f64 * adds) as u64;
        let alive = self.alive_in_tables(version);
        let live = (alive.user + in_memtables).saturating_sub(hidden_by_memtables);
        let relocations: u64 =
            version.segments().moved().map(|(_, moved)| u64::from(moved.table.stored_len)).sum();
        let least =
            alive.tables + relocations + unflushed + alive.records.saturating_sub(hidden_by_memtables);
        self.taken_now(Space {
            live,
            hidden: contents.iter().map(|content| content.hidden).sum::<u64>() + hidden_by_memtables,
            goal: goal(live, least, self.options.max_space_amplification),
            slack: self.slack(),
            ..Space::default()
        })
    }

    /// The same as `space`, seen a moment ago, with what is taken by now.
    pub(super) fn taken_now(&self, space: Space) -> Space {
        let state = self.current.load();
        let files = self.index.files();
        let (going, leaving) = (files.leaving(), files.leaving_bytes());
        let removing =
            going.values().sum::<u64>().saturating_sub(self.readers.held_bytes(&going)).min(leaving);
        let filled = self.headroom.filled();
        let (_, unused) = self.unregistered_bytes(&state);
        Space {
            disk: self.disk_bytes(&state) + leaving + filled.written,
            reserved: unused + self.spare.bytes() + filled.written,
            promised: filled.promised,
            leaving: leaving - removing,
            removing,
            stock: files.stock_bytes().min(removing),
            ..space
        }
    }

    /// What the tables of `version` hold and point to and no table hides.
    ///
    /// Both sums count pointers, whether garbage collection has left their records behind or not: who was left behind is
    /// hidden by a table as long as a table points to it. By segment the difference would be mostly what sampling missed;
    /// in all, such errors cancel each other for the most part.
    fn alive_in_tables(&self, version: &Version) -> Alive {
        let estimates = self.hidden.known.lock();
        let mut hidden = HiddenBytes::default();
        estimates.of(version).for_each(|(_, estimate)| hidden += estimate.total);
        Alive::of(version.tables().map(|(_, table)| &**table), hidden)
    }

    /// What the contract allows beyond the goal, in bytes.
    pub(super) fn slack(&self) -> u64 {
        SLACK_SEGMENTS * self.options.segment_bytes_max
    }

    /// Looks whether there is still what writers are refused for.
    ///
    /// # Errors
    /// `NoSpace` if there is.
    pub(super) fn check_space(&self, refusal: Refusal) -> Result<()> {
        let space = self.space();
        if space.calls_for(refusal)
            && let Some(because) = self.reason(refusal, &space)
        {
            return Err(refused(&space, &because));
        }
        self.throttle.refuse(None);
        Ok(())
    }

    fn reason(&self, refusal: Refusal, space: &Space) -> Option<String> {
        match refusal {
            Refusal::Readers => Some(format!(
                "{} of them are in files that only readers still need: drop iterators that were begun long ago, or raise \
                 max_space_amplification",
                space.leaving
            )),
            Refusal::Garbage => {
                self.what_hinders_collections().map(|why| format!("garbage collection frees nothing: {why}"))
            }
        }
    }

    /// Bytes of the files of `state`.
    pub(super) fn disk_bytes(&self, state: &ReadState) -> u64 {
        let version = &state.version;
        let tables = version.tables().map(|(_, table)| table.file_bytes).sum::<u64>();
        let of_segment = |entry: &SegmentEntry| {
            entry.meta.file_bytes.saturating_sub(version.segments().hole_bytes(entry.meta.id))
        };
        let sealed = version.segments().sealed().map(of_segment).sum::<u64>();
        let unpunched: u64 = self.index.files().unpunched().iter().map(|(_, bytes)| bytes).sum();
        let (unregistered, _) = self.unregistered_bytes(state);
        tables + sealed + unpunched + unregistered + self.spare.bytes()
    }

    /// Bytes of the segments of the log that the manifest does not know, and how many of these nothing was written to: the rest
    /// of the active one, and all of one that a writer is about to begin.
    fn unregistered_bytes(&self, state: &ReadState) -> (u64, u64) {
        let active = self.order.active_segment();
        let bytes = state.unregistered.iter().filter_map(|handle| {
            let FileName::Segment(id) = handle.name() else { return None };
            // A length that cannot be read is no reason to fail: whoever needs the file will.
            let bytes = || self.reader.segments().get(id).ok()?.file().len().ok();
            match &active {
                Some((active, end)) if active.header().id == id => {
                    Some((active.disk_bytes(), active.disk_bytes().saturating_sub(*end)))
                }
                Some((active, _)) if active.header().id < id => bytes().map(|bytes| (bytes, bytes)),
                _ => bytes().map(|bytes| (bytes, 0)),
            }
        });
        bytes.fold((0, 0), |(all, unused), (bytes, blank)| (all + bytes, unused + blank))
    }

    /// Estimates what `tables`, each of a level, hide, which are in the present version or about to come; returns what
    /// those of level 0 hide. Reads each of them. A table that cannot be read counts as hiding nothing: whoever needs it
    /// will say what is wrong.
    pub(super) fn estimate_tables(&self, tables: &[(u8, Arc<TableMeta>)]) -> HiddenBytes {
        let lease = self.leases.take(&self.reader);
        // Reading takes a while, in which it should not keep segments in place.
        let version = self.index.version().without_values();
        let snapshots = self.snapshots.list();
        let mut by_level0 = HiddenBytes::default();
        for (level, table) in tables {
            let above_some = (usize::from(*level) + 1..LEVELS).any(|below| !version.level(below).is_empty());
            if *level > 0 && !above_some {
                continue;
            }
            let hidden = self.index.estimate_hidden(&version, *level, table, &snapshots, &*lease);
            let hidden = hidden.unwrap_or_default();
            if *level == 0 {
                by_level0 += hidden.total;
            }
            self.hidden.known.lock().tables.insert(table.id, hidden);
        }
        by_level0
    }

    /// Estimates what tables hide of which nothing is known, because they were there when the cube was opened.
    pub(super) fn estimate_missing(&self) {
        let version = self.index.version();
        let tables = version.tables().map(|(level, table)| (level, Arc::clone(table)));
        let missing: Vec<_> = {
            let estimates = self.hidden.known.lock();
            tables.filter(|(_, table)| !estimates.tables.contains_key(&table.id)).collect()
        };
        drop(version);
        self.estimate_tables(&missing);
    }

    /// Forgets the estimates of tables that are gone, and what is noted of segments that are. Estimates of tables that are
    /// about to come, of a flush that has not ended yet, stay.
    pub(super) fn forget_estimates(&self, gone: impl Iterator<Item = TableId>) {
        let version = self.index.version();
        let mut estimates = self.hidden.known.lock();
        gone.for_each(|id| drop(estimates.tables.remove(&id)));
        estimates.collected.retain(|&id, _| version.segments().get(id).is_some());
    }

    /// What is kept for snapshots alone: what the tables of the present version have in them, and about what they hide in
    /// each other. What only memtables hide is not known yet.
    pub(super) fn held_for_snapshots(&self) -> HeldBytes {
        let version = self.index.version();
        let estimates = self.hidden.known.lock();
        let mut sum = HeldBytes::new();
        for (_, table) in version.tables() {
            let hidden = estimates.tables.get(&table.id).map(|hidden| &hidden.held);
            for (&snapshots, &bytes) in table.held.iter().chain(hidden.into_iter().flatten()) {
                *sum.entry(snapshots).or_default() += bytes;
            }
        }
        sum
    }

    /// Bytes of log that a byte written lately has hidden.
    pub(super) fn hidden_per_log_byte(&self) -> f64 {
        self.hidden.known.lock().per_log_byte.hides
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn debt_begins_where_garbage_is_collected_and_grows_with_the_slack_used() {
        let space =
            |disk, reserved| Space { disk, reserved, live: 100, goal: 130, slack: 320, ..Space::default() };
        let over = |disk, demand| space(disk, 0).is_over_goal(demand);
        assert!(
            !over(133, Demand::Idle) && over(134, Demand::Idle),
            "what is little beside what is alive stays"
        );
        let large = |disk| Space { live: 10_000, ..space(disk, 0) }.is_over_goal(Demand::Idle);
        assert!(!large(160) && large(161), "but no more than a part of the slack");
        assert!(!over(370, Demand::Busy) && over(371, Demand::Busy));
        let calls = |space: Space| space.calls_for_collection(Demand::Busy);
        let waits = |disk| Space { promised: 100, ..space(disk, 0) };
        assert!(calls(waits(351)), "writers wait");
        assert!(!calls(waits(350)), "for something else");
        assert!(!calls(Space { promised: 0, ..waits(370) }), "they need not wait");
        let debt = |disk, reserved| space(disk, reserved).debt();
        assert_eq!([debt(390, 0), debt(405, 0), debt(420, 0)], [0.0, 0.5, 1.0]);
        assert_eq!(
            [debt(400, 60), debt(414, 150), debt(428, 200)],
            [0.0, 0.5, 1.0],
            "all space may take more"
        );
        let promised = |promised| Space { promised, ..space(400, 150) };
        assert!(promised(0).debt() < 0.7, "jobs write nothing more");
        assert!((promised(28).debt() - 1.0).abs() < f64::EPSILON, "they will fill the bound");
        assert!(promised(20).has_room(8) && !promised(20).has_room(9));
        let stocked = |stock| Space { removing: stock, stock, ..space(420, 50) };
        assert!(stocked(20).debt() < stocked(0).debt(), "what is made of it takes no more");
        assert!(Space { promised: 20, ..stocked(20) }.has_room(8) && !stocked(0).has_room(9));
        assert_eq!([stocked(20).stock_max(), stocked(0).stock_max()], [20, 0], "but it is there");
        assert_eq!(space(100, 0).stock_max(), 80, "more would lie idle");
        assert!(Space { leaving: 20, ..promised(20) }.has_room(28), "readers keep what they hold");
        assert_eq!(Space { leaving: 170, ..space(450, 0) }.debt(), 0.0, "readers hold it");
        assert!(
            (Space { removing: 170, ..space(428, 0) }.debt() - 1.0).abs() < f64::EPSILON,
            "it is there yet"
        );
        assert!(!Space { removing: 170, ..space(450, 0) }.is_over_goal(Demand::Busy), "and collected");
        let held = |leaving| Space { leaving, ..space(400, 0) };
        let refuses = |space: Space, refusal| space.calls_for(refusal);
        assert!(!refuses(held(420), Refusal::Readers) && refuses(held(421), Refusal::Readers));
        assert!(!refuses(space(427, 0), Refusal::Garbage) && refuses(space(428, 0), Refusal::Garbage));
        assert!(!refuses(Space { leaving: 1, ..space(428, 0) }, Refusal::Garbage), "a reader holds it");
        assert!((space(150, 0).amplification() - 1.5).abs() < f64::EPSILON);
        assert!((Space::default().amplification() - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_goal_is_never_less_than_can_be_reached() {
        assert_eq!(goal(1000, 1060, 1.3), 1300);
        assert_eq!(goal(1000, 1600, 1.3), 1700, "small entries");
        assert_eq!(goal(0, 0, 1.3), 0);
    }

    #[test]
    fn what_older_tables_hide_is_not_in_a_segment_collected_since() {
        let hidden = Hidden::default();
        let (log, cold) = (SegmentId(1), SegmentId::COLD_FIRST);
        let estimate = |bytes| Estimate { hidden: BTreeMap::from([(log, bytes)]), ..Estimate::default() };
        let estimates = [estimate(30), estimate(70)];
        let hides = |moved: &[(SegmentId, SegmentId)]| {
            let tables = [(TableId(3), &estimates[0]), (TableId(7), &estimates[1])];
            hidden.known.lock().hidden_by_home(&moved.iter().copied().collect(), tables.into_iter())
        };
        assert_eq!(hides(&[]), HashMap::from([(log, 100)]));
        hidden.collected(cold, TableId(5));
        assert_eq!(hides(&[(log, cold)]), HashMap::from([(cold, 70)]));
    }
}
