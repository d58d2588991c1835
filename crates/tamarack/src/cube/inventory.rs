//! How much space the cube takes, and how much of that is alive: what [`Space`] is decided by.
//!
//! What is alive is known from the tables' reference sets, but for records that newer versions in upper levels or in
//! memtables hide. These are estimated: of each new table some keys are looked up in the tables below it.

use std::collections::HashMap;

use super::Cube;
use super::space::{Refusal, SLACK_SEGMENTS, Space, goal};
use super::state::ReadState;
use crate::base::error::{Error, Result};
use crate::base::ids::{SegmentId, TableId};
use crate::base::limits::LEVELS;
use crate::base::names::FileName;
use crate::base::sync::{Arc, AtomicU64, Mutex, Ordering};
use crate::index::version::{HeldBytes, SegmentEntry, TableMeta, Version};
use crate::index::{Estimate, HiddenBytes};
use crate::vlog::format::RECORD_HEADER_BYTES;

/// Estimates of what tables hide. Lock rank: a leaf.
#[derive(Debug, Default)]
pub struct Hidden {
    known: Mutex<Estimates>,
    /// Bytes of records that estimates have in them, though nothing points there any more.
    outdated: AtomicU64,
}

/// That estimates are outdated, until it is dropped.
#[derive(Debug)]
pub(super) struct Outdated<'a> {
    hidden: &'a Hidden,
    bytes: u64,
}

impl Drop for Outdated<'_> {
    fn drop(&mut self) {
        self.hidden.outdated.fetch_sub(self.bytes, Ordering::Relaxed);
    }
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

    /// Notes that nothing will point any more to `bytes` of records that tables hide, whose estimates are made anew before what is returned is dropped.
    pub(super) fn outdate(&self, bytes: u64) -> Outdated<'_> {
        self.outdated.fetch_add(bytes, Ordering::Relaxed);
        Outdated { hidden: self, bytes }
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
                    let sum: &mut u64 = sums.entry(home).or_default();
                    *sum = sum.saturating_add(*bytes);
                }
            }
        }
        sums
    }

    /// What the tables of `version` hold and point to and no table hides; `outdated` of the bytes that estimates have are hidden no more.
    ///
    /// Both sums count pointers, whether garbage collection has left their records behind or not: who was left behind is
    /// hidden by a table as long as another points to it. When a compaction drops the pointer, estimates of what hides it are made anew
    /// ([`Outdated`]). By segment the difference would be mostly what sampling missed; in all, such errors cancel each other for the most part.
    fn alive(&self, version: &Version, outdated: u64) -> Alive {
        let mut hidden = HiddenBytes::default();
        self.of(version).for_each(|(_, estimate)| hidden += estimate.total);
        hidden.records = hidden.records.saturating_sub(outdated);
        Alive::of(version.tables().map(|(_, table)| &**table), hidden)
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

/// What each sealed segment of `version` holds, by what is known of its tables.
fn contents<'a>(version: &'a Version, estimates: &Estimates) -> Vec<Content<'a>> {
    let referenced = version.segments().live_by_home();
    let moved = version.segments().moved().map(|(id, moved)| (id, moved.table.segment)).collect();
    let hidden = estimates.hidden_by_home(&moved, estimates.of(version));
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

fn refused(space: &Space, because: &str) -> Error {
    Error::no_space(format!(
        "the database takes {} bytes on disk for {} live ones, which is all that max_space_amplification and its slack allow, \
         and {because}",
        space.disk, space.live
    ))
}

impl Cube {
    /// What each sealed segment of `version` holds. Of a version that was replaced meanwhile, what its tables hide may be forgotten already: then more seems
    /// alive.
    pub(super) fn contents<'a>(&self, version: &'a Version) -> Vec<Content<'a>> {
        contents(version, &self.hidden.known.lock())
    }

    /// The space of the present version.
    pub(super) fn space(&self) -> Space {
        let estimates = self.hidden.known.lock();
        // Estimates are forgotten once a version without their tables is shown, so those of the one that is seen under the lock are there.
        let state = self.current.load();
        let version = &state.version;
        let hidden_by_tables =
            contents(version, &estimates).iter().map(|content| content.hidden).sum::<u64>();
        let alive = estimates.alive(version, self.hidden.outdated.load(Ordering::Relaxed));
        let PerLogByte { adds, hides } = estimates.per_log_byte;
        drop(estimates);
        let unflushed = state.unflushed_log_bytes(self.order.log_bytes());
        let hidden_by_memtables = (unflushed as f64 * hides) as u64;
        let in_memtables = (unflushed as f64 * adds) as u64;
        let live = (alive.user + in_memtables).saturating_sub(hidden_by_memtables);
        let relocations: u64 =
            version.segments().moved().map(|(_, moved)| u64::from(moved.table.stored_len)).sum();
        let least =
            alive.tables + relocations + unflushed + alive.records.saturating_sub(hidden_by_memtables);
        self.taken_now(Space {
            live,
            hidden: hidden_by_tables + hidden_by_memtables,
            goal: goal(live, least, self.options.max_space_amplification),
            least,
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
            wanted: filled.wanted,
            waited: filled.waited,
            compacting: filled.compacting,
            leaving: leaving - removing,
            removing,
            stock: files.stock_bytes().min(removing),
            ..space
        }
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
        self.estimate_present(&missing);
    }

    /// Estimates what `tables` hide, which were in the present version a moment ago.
    pub(super) fn estimate_present(&self, tables: &[(u8, Arc<TableMeta>)]) {
        self.estimate_tables(tables);
        let (present, shown) = (self.index.version(), self.current.load());
        let is_gone = |id: &TableId| {
            [&present, &shown.version]
                .iter()
                .all(|version| version.tables().all(|(_, table)| table.id != *id))
        };
        // Whoever has replaced them meanwhile may have forgotten what was known before that; what is shown yet, it will.
        self.forget_estimates(tables.iter().map(|(_, table)| table.id).filter(is_gone));
    }

    /// Forgets the estimates of tables that are gone, and what is noted of segments that are. Estimates of tables that are
    /// about to come, of a flush that has not ended yet, stay.
    pub(super) fn forget_estimates(&self, gone: impl Iterator<Item = TableId>) {
        let (present, shown);
        let mut estimates = self.hidden.known.lock();
        // Under the lock, so that nothing is forgotten that was noted of a later version.
        present = self.index.version();
        shown = self.current.load();
        let versions = [&present, &shown.version];
        gone.for_each(|id| drop(estimates.tables.remove(&id)));
        estimates
            .collected
            .retain(|&id, _| versions.iter().any(|version| version.segments().get(id).is_some()));
    }

    /// What is kept for snapshots alone: what the tables of the present version have in them, and about what they hide in
    /// each other. What only memtables hide is not known yet.
    pub(super) fn held_for_snapshots(&self) -> HeldBytes {
        let version;
        let estimates = self.hidden.known.lock();
        version = self.index.version();
        let mut sum = HeldBytes::new();
        for (_, table) in version.tables() {
            let hidden = estimates.tables.get(&table.id).map(|hidden| &hidden.held);
            for (&snapshots, &bytes) in table.held.iter().chain(hidden.into_iter().flatten()) {
                let held = sum.entry(snapshots).or_default();
                *held = held.saturating_add(bytes);
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
