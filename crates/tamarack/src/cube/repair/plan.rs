//! The rest of a repair's steps: what is read of the segments, what is put together, which files are of no use any more,
//! and the edit that makes the repaired version.

use std::collections::BTreeSet;

use super::commit::{self, LOST};
use super::*;
use crate::base::limits::LEVELS;
use crate::base::segment::{SegmentMeta, SegmentMove};
use crate::index::repair::{Examined, put_in_force};
use crate::index::version::VersionEdit;
use crate::vlog::salvage::Wreck;

/// What the repaired cube will be.
pub struct Plan<'a> {
    pub cube: CubeId,
    pub version: Option<&'a Version>,
    pub log: Log,
    pub homes: &'a BTreeMap<SegmentId, Home>,
    pub segments: &'a Segments<'a>,
    /// The new index; `None` if the old one stays.
    pub merged: Option<&'a [Arc<TableMeta>]>,
    pub copies: Vec<SegmentMeta>,
    pub moves: Vec<SegmentMove>,
    pub next_table: TableId,
    /// The segments that the manifest knows to be sealed.
    pub needed: &'a BTreeSet<SegmentId>,
}

/// The end of the last segment of the log that the manifest knows to be sealed.
pub fn sealed_end(version: &Version) -> LogPosition {
    let last = version.segments().sealed().rfind(|entry| !entry.meta.id.is_cold());
    last.map_or_else(LogPosition::default, |entry| LogPosition {
        segment: entry.meta.id,
        offset: entry.meta.end,
    })
}

impl Repair<'_> {
    /// Whether the manifest is one of an earlier time: what it names is gone, and there is what it cannot know. A table
    /// that is not whole is what a crash has left of one that was being written, and proves nothing.
    pub(super) fn is_stale(&self, workshop: &Workshop, tables: &Tables, log: Log) -> Result<bool> {
        let Some(version) = &self.version else { return Ok(false) };
        let gone = |name: FileName| !self.files.contains(&name);
        // Log that is damaged is there; what an earlier manifest takes for log has been removed since.
        let first = log.begin.head.segment;
        let last = self.segment_ids().filter(|id| !id.is_cold()).max().unwrap_or(first).max(first);
        let log_is_gone = !log.stays && (first.0..=last.0).any(|id| gone(FileName::Segment(SegmentId(id))));
        let missing = tables.damaged.iter().any(|(id, _)| gone(FileName::Table(*id)))
            || version.segments().sealed().any(|entry| gone(FileName::Segment(entry.meta.id)))
            || log_is_gone;
        if !missing {
            return Ok(false);
        }
        let next = version.numbers().next_table_id;
        for name in &self.files {
            if let FileName::Table(id) = *name
                && id >= next
                && matches!(workshop.examine(id, None)?, Examined::Whole(_))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What is wrong with the segments in which the log is, besides the log: what stands before its head, and footers that
    /// the manifest knows of.
    pub(super) fn damage_beside_log(&self, begin: Begin) -> Result<Vec<Error>> {
        let mut all = Vec::new();
        for id in self.segment_ids().filter(|id| !id.is_cold() && *id >= begin.head.segment) {
            let known = self.version.as_ref().and_then(|version| version.segments().get(id));
            let wreck = Wreck::open(&*self.env.fs, self.directory, self.cube, id, &[])?;
            if known.is_none() && id != begin.head.segment {
                // No crash leaves the header of another segment.
                if let Some(found) = wreck.header.as_ref().err().filter(|_| wreck.is_foreign()) {
                    all.push(Error::corruption(&wreck.path, 0, "a segment header", found.clone()));
                }
                continue;
            }
            let end = known.map_or(begin.head.offset, |entry| entry.meta.end);
            all.extend(wreck.walk(&wreck.stretches(Some(end), None), &mut |_| Ok(()))?);
            let sealed = wreck.footer.as_ref().is_some_and(|footer| footer.records_end == end);
            if let Some(entry) = known.filter(|entry| !sealed || wreck.len != entry.meta.file_bytes) {
                let expected = format!("the footer of a segment of {} bytes", entry.meta.file_bytes);
                let found = format!("none that fits, in {} bytes", wreck.len);
                all.push(Error::corruption(&wreck.path, end.min(wreck.len), expected, found));
            }
        }
        Ok(all)
    }

    /// Reads all segments that matter; returns those that the manifest knows.
    pub(super) fn survey_segments(
        &mut self,
        segments: &mut Segments<'_>,
        workshop: &Workshop,
        tables: &Tables,
        log: Log,
    ) -> Result<BTreeSet<SegmentId>> {
        let is_damaged = !tables.damaged.is_empty();
        let tables = &*tables.whole;
        let there: BTreeSet<SegmentId> = self.segment_ids().collect();
        let needed: BTreeSet<SegmentId> = match &self.version {
            Some(version) => version.segments().sealed().map(|entry| entry.meta.id).collect(),
            None => BTreeSet::new(),
        };
        let referenced: BTreeSet<SegmentId> = tables
            .iter()
            .flat_map(|table| table.references.iter().map(|reference| reference.segment))
            .collect();
        let in_log = |id: &SegmentId| !id.is_cold() && *id >= log.begin.head.segment;
        for &id in &there {
            let wanted = self.version.is_none()
                || needed.contains(&id)
                || referenced.contains(&id)
                // Where the log is replayed from nothing before its head is, which damaged tables may have pointed to.
                || ((!log.stays || is_damaged) && in_log(&id));
            if wanted {
                segments.survey(id, &|| workshop.offsets(tables, id))?;
            }
        }
        for &id in needed.iter().filter(|id| !there.contains(id)) {
            let path = FileName::Segment(id).path(self.directory);
            let expected = "a segment that the manifest mentions";
            self.report.damage.push(Error::corruption(&path, 0, expected, "no such file"));
            self.report.damaged_segments += 1;
        }
        for (id, file) in &segments.files {
            self.report.segments += 1;
            let matters = needed.contains(id) || (self.version.is_none() && referenced.contains(id));
            if matters && file.whole.is_none() && !(log.stays && in_log(id)) {
                self.report.damaged_segments += 1;
                // Without a manifest nobody knows where holes are.
                let hole = |error: &&Error| {
                    self.version.is_none()
                        && error.as_corruption().is_some_and(|place| place.found == "zeros")
                };
                self.report.damage.extend(file.damage.iter().filter(|error| !hole(error)).cloned());
            }
        }
        Ok(needed)
    }

    /// Puts together the tables of which the index will be made; and tells the last operation of all.
    pub(super) fn collect(
        &mut self,
        tables: &mut Tables,
        workshop: &Workshop,
        segments: &mut Segments<'_>,
        log: Log,
    ) -> Result<(Vec<Arc<TableMeta>>, Sequence)> {
        let mut runs = workshop.runs();
        let replayed_from = log.stays.then_some(log.begin.last);
        let lost = tables.salvage(workshop, segments, replayed_from, &mut runs, &mut self.report)?;
        if !lost.is_empty() && self.version.is_some() {
            self.survey_strays(segments)?;
        }
        let keys = (&self.keys, log.begin.last);
        tables::look_for(&lost, keys, self.options.inline_value_max, segments, &mut runs)?;
        lost.iter().for_each(|part| part.tell(&mut self.report));
        let mut last = log.begin.last;
        if !log.stays {
            let sealed_end = self.version.as_ref().map_or_else(LogPosition::default, sealed_end);
            let inline = self.options.inline_value_max;
            let begin = (log.begin, sealed_end);
            let end = log::salvage(segments, begin, log.was_refused, inline, &mut runs, &mut self.report)?;
            last = last.max(end).max(tables.newest);
        }
        if self.version.is_none() {
            let reason =
                "the manifest is lost, so a table that was out of use may have been taken for one in use";
            self.report.doubt((None, None), None, reason);
        }
        let mut sources = tables.whole.clone();
        sources.extend(runs.finish()?);
        Ok((sources, last))
    }

    /// Reads the cold segments that the manifest does not mention: they may have what is missing elsewhere.
    fn survey_strays(&self, segments: &mut Segments<'_>) -> Result<()> {
        for id in self.segment_ids().filter(|id| id.is_cold()) {
            if !segments.files.contains_key(&id) {
                segments.survey(id, &|| Ok(Vec::new()))?;
            }
        }
        Ok(())
    }

    /// Finds the records that `sources` point to.
    pub(super) fn resolve(
        &mut self,
        workshop: &Workshop,
        sources: &[Arc<TableMeta>],
        segments: &mut Segments<'_>,
        missing: &mut HashSet<Place>,
    ) -> Result<BTreeMap<SegmentId, Home>> {
        let ids: BTreeSet<SegmentId> = sources
            .iter()
            .flat_map(|table| table.references.iter().map(|reference| reference.segment))
            .collect();
        let mut homes = BTreeMap::new();
        for &id in &ids {
            let offsets = workshop.offsets(sources, id)?;
            let mut home = segments.resolve(id, &offsets, missing)?;
            segments.verify(workshop, sources, (id, &mut home), missing)?;
            homes.insert(id, home);
        }
        let troubled = |(id, home): (&SegmentId, &Home)| (!home.settled).then_some(*id);
        let unsettled: Vec<SegmentId> = homes.iter().filter_map(troubled).collect();
        let incomplete = missing.iter().any(|(id, _)| unsettled.contains(id));
        if incomplete && self.version.is_some() {
            self.survey_strays(segments)?;
            for &id in &unsettled {
                missing.retain(|(of, _)| *of != id);
                let offsets = workshop.offsets(sources, id)?;
                let mut home = segments.resolve(id, &offsets, missing)?;
                segments.verify(workshop, sources, (id, &mut home), missing)?;
                homes.insert(id, home);
            }
        }
        if incomplete {
            segments.search(workshop, sources, &mut homes, missing)?;
        }
        Ok(homes)
    }

    /// Writes the index anew if it must be, or if the newest version of a key is lost.
    pub(super) fn merge(
        &mut self,
        workshop: &Workshop,
        sources: &[Arc<TableMeta>],
        rebuild: bool,
        missing: &HashSet<Place>,
    ) -> Result<Option<Vec<Arc<TableMeta>>>> {
        let is_lost = |pointer: crate::base::pointer::ValuePointer| {
            missing.contains(&(pointer.segment, pointer.offset))
        };
        if !rebuild {
            let mut any = false;
            if !missing.is_empty() {
                workshop.merge(sources, false, &is_lost, &mut |_, _, fate| any |= fate == Fate::Lost)?;
            }
            if !any {
                return Ok(None);
            }
        }
        let (mut keys, mut lost) = (0_u64, Vec::<LostRange>::new());
        let mut adjacent = false;
        let merged = workshop.merge(sources, true, &is_lost, &mut |key, sequence, fate| {
            keys += u64::from(fate == Fate::Kept);
            let may_extend = adjacent || lost.len() >= RANGES_MAX;
            adjacent = fate == Fate::Lost;
            match lost.last_mut() {
                _ if fate != Fate::Lost => {}
                Some(range) if may_extend => {
                    range.last = Some(key.to_vec());
                    range.operations = range.operations.map(|number| number + 1);
                }
                _ => lost.push(LostRange {
                    first: Some(key.to_vec()),
                    last: Some(key.to_vec()),
                    operations: Some(1),
                    loss: Loss::Lost,
                    reason: format!("the record of operation {} is damaged or missing", sequence.0),
                }),
            }
        })?;
        self.report.keys = keys;
        self.report.lost.extend(lost);
        Ok(Some(merged))
    }

    /// Puts the plan into effect.
    pub(super) fn finish(&mut self, plan: &Plan<'_>) -> Result<()> {
        let kept = plan.kept();
        let edit = plan.edit(&kept, &self.keys);
        let aside = self.useless(plan, &kept);
        if self.how.dry_run {
            self.report.moved = aside.iter().map(ToString::to_string).collect();
            return Ok(());
        }
        let number = self.survey.number_max + 1;
        self.tell("taking effect");
        let fs = &self.env.fs;
        commit::announce(&**fs, &self.scratch, number)?;
        fs.sync_dir(&self.scratch).map_err(|error| Error::sync(&self.scratch, error))?;
        commit::move_in(&**fs, &self.scratch, self.directory, &|name| plan.uses(name))?;
        let lost = commit::make(&**fs, self.directory, LOST)?;
        self.report.moved = commit::put_aside(&**fs, self.directory, &lost, &aside)?;
        commit::write_report(&**fs, &lost, &self.report.to_string())?;
        self.secure(plan, &kept)?;
        put_in_force(fs, self.directory, self.cube, &self.keys, number, &edit)?;
        // First the manifests: that none but the new one is there tells, should that be lost, that it was in force.
        let mut out: Vec<FileName> = aside.into_iter().filter(|name| *name != FileName::Current).collect();
        out.sort_by_key(|name| !matches!(name, FileName::Manifest(_)));
        commit::take_out(&**fs, self.directory, &out)?;
        commit::clear(&**fs, self.directory, &self.scratch)
    }

    /// Makes durable what no manifest has known to be so: segments that were written, or sealed, by who was cut off. Footers whose sync
    /// may have failed are written once more, unless another directory has them, too. At no moment is a file another than it was.
    fn secure(&self, plan: &Plan<'_>, kept: &BTreeMap<SegmentId, SegmentMeta>) -> Result<()> {
        let fs = &*self.env.fs;
        for &id in kept.keys().filter(|id| !plan.needed.contains(id)) {
            let Wreck { path, header, footer, .. } = Wreck::open(fs, self.directory, self.cube, id, &[])?;
            let file = fs.open_write(&path).map_err(|error| Error::io("open", &path, error))?;
            let links = file.links().map_err(|error| Error::io("count the names of", &path, error))?;
            if let (Ok(header), Some(footer), 1) = (&header, &footer, links) {
                file.write_at(&footer.encode(header.seed()), footer.records_end)
                    .map_err(|error| Error::io("write the footer of", &path, error))?;
            }
            file.sync_data().map_err(|error| Error::sync(&path, error))?;
        }
        Ok(())
    }

    /// Files that the repaired cube does not use.
    fn useless(&self, plan: &Plan<'_>, kept: &BTreeMap<SegmentId, SegmentMeta>) -> Vec<FileName> {
        let in_log = |id: SegmentId| !id.is_cold() && plan.log.stays && id >= plan.log.begin.head.segment;
        let is_useless = |name: &FileName| match *name {
            // Without a manifest everything may have been of use; else only what the manifest mentions was.
            FileName::Table(id) => match plan.version {
                Some(version) => plan.merged.is_some() && version.tables().any(|(_, table)| table.id == id),
                None => true,
            },
            FileName::Segment(id) => {
                let surveyed = plan.version.is_none() || plan.segments.files.contains_key(&id);
                surveyed && !kept.contains_key(&id) && !in_log(id)
            }
            FileName::Manifest(_) => true,
            FileName::Current => plan.version.is_none() || !self.report.damage.is_empty(),
            FileName::Temporary => false,
        };
        self.files.iter().copied().filter(is_useless).collect()
    }
}

impl Plan<'_> {
    /// Whether the new file `name` is part of the repaired cube; others were in between.
    fn uses(&self, name: FileName) -> bool {
        match name {
            FileName::Table(id) => {
                self.merged.is_some_and(|tables| tables.iter().any(|table| table.id == id))
            }
            FileName::Segment(_) => true,
            _ => false,
        }
    }

    /// The old segments that stay, and are sealed.
    fn kept(&self) -> BTreeMap<SegmentId, SegmentMeta> {
        let used = |id: &SegmentId| {
            let open = self.log.stays && !id.is_cold() && *id >= self.log.begin.head.segment;
            let home = self.homes.get(id).is_some_and(|home| home.settled && home.table.is_none());
            let has_moved = || {
                let mut tables = self.homes.values().filter_map(|home| home.table);
                tables.any(|table| table.segment == *id)
            };
            self.needed.contains(id) || (!open && (home || has_moved()))
        };
        let files = self.segments.files.iter().filter(|(id, _)| used(id));
        files.filter_map(|(&id, file)| file.whole.map(|meta| (id, meta))).collect()
    }

    fn edit(&self, kept: &BTreeMap<SegmentId, SegmentMeta>, keys: &KeyOrder) -> VersionEdit {
        let mut moves: BTreeMap<SegmentId, SegmentMove> = BTreeMap::new();
        let known = self.version.into_iter().flat_map(|version| version.segments().moved());
        for (id, entry) in known.filter(|(_, entry)| kept.contains_key(&entry.table.segment)) {
            moves.insert(id, SegmentMove { id, table: entry.table });
        }
        for (&id, home) in self.homes.iter().filter(|(_, home)| home.settled) {
            if let Some(table) = home.table {
                moves.insert(id, SegmentMove { id, table });
            }
        }
        moves.extend(self.moves.iter().map(|&moved| (moved.id, moved)));
        let dead = self.version.into_iter().flat_map(|version| version.segments().all_dead_ranges());
        let tables = match (self.merged, self.version) {
            (Some(merged), _) => merged.iter().map(|table| (LEVELS as u8 - 1, Arc::clone(table))).collect(),
            (None, version) => {
                let tables = version.into_iter().flat_map(Version::tables);
                tables.map(|(level, table)| (level, Arc::clone(table))).collect()
            }
        };
        let ids = kept.keys().filter(|id| !id.is_cold()).map(|id| SegmentId(id.0 + 1));
        let next_segment = ids.chain([SegmentId(self.log.begin.head.segment.0 + 1)]).max();
        let numbers = self.version.map(Version::numbers);
        VersionEdit {
            cube: Some(self.cube),
            comparator: Some(keys.comparator().name().to_owned()),
            add_tables: tables,
            add_segments: kept.values().chain(&self.copies).copied().collect(),
            dead_ranges: dead
                .filter(|(id, _)| kept.contains_key(id))
                .map(|(id, dead)| (id, dead.clone()))
                .collect(),
            move_segments: moves.into_values().collect(),
            log_head: Some(self.log.begin.head),
            last_sequence: Some(self.log.begin.last),
            next_table_id: Some(self.next_table),
            next_segment_id: next_segment.max(numbers.map(|numbers| numbers.next_segment_id)),
            ..VersionEdit::default()
        }
    }
}
