//! The segments of a damaged cube: which are whole, and where a record that a table points to can be found.
//!
//! Each file is read once, whole. Of a whole segment its footer says where records are; of any other each record that is
//! asked for is read and checked by itself, so that damage costs no record but those it touched. A record whose
//! relocation table is lost is found by its sequence number, which no other has. Memory: the footers of segments that are
//! whole, a few at a time, and a set of offsets of those that are not.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use crate::base::checksum::{Checksum, Seed};
use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, SegmentId, Sequence};
use crate::base::pointer::ValuePointer;
use crate::base::segment::SegmentMeta;
use crate::base::sync::Arc;
use crate::env::Fs;
use crate::index::repair::Workshop;
use crate::index::version::{TableMeta, Version};
use crate::vlog::format::{RecordHeader, RecordKind};
use crate::vlog::relocation::Relocations;
use crate::vlog::salvage::Wreck;
use crate::vlog::segment::meta_of;

/// A record of a segment, by the place where it is: file and offset.
pub type Place = (SegmentId, u32);

/// A segment file that has been read.
#[derive(Debug)]
pub struct Surveyed {
    /// What the manifest can say of it, if it is sealed and every byte of it that matters is right.
    pub whole: Option<SegmentMeta>,
    /// What is wrong.
    pub damage: Vec<Error>,
}

/// Where the records are that tables know under one id.
#[derive(Debug, Default)]
pub struct Home {
    /// The relocation table that leads to them, if they were moved, in a whole segment.
    pub table: Option<ValuePointer>,
    /// Whether everything is in place: nothing has to be copied.
    pub settled: bool,
    /// Unless it is settled: each record that is whole, by its offset under the id.
    pub places: Vec<(u32, Place)>,
}

/// All segments.
#[derive(Debug)]
pub struct Segments<'a> {
    fs: Arc<dyn Fs>,
    directory: &'a Path,
    cube: CubeId,
    version: Option<&'a Version>,
    /// The files that are there.
    pub files: BTreeMap<SegmentId, Surveyed>,
    /// Segments of the log that stay as they are, sealed or not.
    log_from: Option<SegmentId>,
    moved: HashMap<SegmentId, Vec<ValuePointer>>,
    /// Of segments without a header.
    seeds: HashMap<SegmentId, Option<Seed>>,
    open: Option<(SegmentId, Arc<Wreck>)>,
    table: Option<(ValuePointer, SegmentId, Option<Arc<Relocations>>)>,
}

impl<'a> Segments<'a> {
    /// No file surveyed yet. The log from `log_from` on is not touched.
    pub fn new(
        fs: &Arc<dyn Fs>,
        directory: &'a Path,
        cube: CubeId,
        version: Option<&'a Version>,
        log_from: Option<SegmentId>,
    ) -> Self {
        let mut moved: HashMap<SegmentId, Vec<ValuePointer>> = HashMap::new();
        for (id, entry) in version.into_iter().flat_map(|version| version.segments().moved()) {
            moved.entry(id).or_default().push(entry.table);
        }
        let fs = Arc::clone(fs);
        Self {
            fs,
            directory,
            cube,
            version,
            files: BTreeMap::new(),
            log_from,
            moved,
            seeds: HashMap::new(),
            open: None,
            table: None,
        }
    }

    /// Reads every byte of the file of segment `id`. `hints` tells places at which tables say that records are.
    ///
    /// # Errors
    /// `Io`, `Unsupported`.
    pub fn survey(&mut self, id: SegmentId, hints: &dyn Fn() -> Result<Vec<u32>>) -> Result<()> {
        let mut wreck = Wreck::open(&*self.fs, self.directory, self.cube, id, &[])?;
        if wreck.header.is_err() {
            let hints = hints()?;
            wreck = Wreck::open(&*self.fs, self.directory, self.cube, id, &hints)?;
            self.seeds.insert(id, wreck.seed);
        }
        let known = self.version.and_then(|version| version.segments().get(id)).map(|entry| entry.meta);
        let stretches = self.stretches(&wreck);
        let mut relocations = Vec::new();
        let mut damage = wreck.walk(&stretches, &mut |record| {
            if record.header.kind == RecordKind::Relocations
                && let (Some(_), Some(key)) = (record.stored, record.key.first_chunk())
            {
                let stored_len = record.header.stored_len;
                let table = ValuePointer { segment: id, offset: record.offset, stored_len };
                relocations.push((SegmentId(u32::from_le_bytes(*key)), table));
            }
            Ok(())
        })?;
        let sealed = wreck.header.as_ref().ok().zip(wreck.footer.as_ref());
        let meta = sealed.map(|(header, footer)| meta_of(header, wreck.len, footer));
        if let Some(known) = known {
            let differs = |meta: &SegmentMeta| meta.end != known.end || meta.file_bytes != known.file_bytes;
            if meta.as_ref().is_none_or(differs) && damage.is_empty() {
                let expected = format!("the footer of a segment of {} bytes", known.file_bytes);
                let found = format!("none that fits, in {} bytes", wreck.len);
                damage.push(Error::corruption(&wreck.path, known.end.min(wreck.len), expected, found));
            }
        }
        let whole = meta.filter(|_| damage.is_empty()).map(|meta| known.unwrap_or(meta));
        for &(moved, table) in &relocations {
            let tables = self.moved.entry(moved).or_default();
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        self.files.insert(id, Surveyed { whole, damage });
        Ok(())
    }

    /// The stretches of a segment in which records are, as far as the manifest tells.
    pub fn stretches(&self, wreck: &Wreck) -> Vec<Range<u64>> {
        let segments = self.version.map(Version::segments);
        let end = segments.and_then(|segments| segments.get(wreck.id)).map(|entry| entry.meta.end);
        wreck.stretches(end, segments.and_then(|segments| segments.dead_ranges(wreck.id)))
    }

    /// The record at `place`, if it is whole.
    ///
    /// # Errors
    /// `Io`.
    pub fn record(&mut self, place: Place) -> Result<Option<(RecordHeader, Vec<u8>)>> {
        match self.wreck(place.0)? {
            Some(wreck) => wreck.record(place.1),
            None => Ok(None),
        }
    }

    /// The segment `id`, if its file is there.
    ///
    /// # Errors
    /// `Io`, `Unsupported`.
    pub fn wreck(&mut self, id: SegmentId) -> Result<Option<Arc<Wreck>>> {
        if let Some((_, wreck)) = self.open.as_ref().filter(|(open, _)| *open == id) {
            return Ok(Some(Arc::clone(wreck)));
        }
        if !self.files.contains_key(&id) {
            return Ok(None);
        }
        let mut wreck = Wreck::open(&*self.fs, self.directory, self.cube, id, &[])?;
        if let Some(&seed) = self.seeds.get(&id) {
            wreck.seed = seed;
        }
        let wreck = Arc::new(wreck);
        self.open = Some((id, Arc::clone(&wreck)));
        Ok(Some(wreck))
    }

    /// The whole record that tables know at `offset` of segment `id`, wherever a relocation table says it is.
    ///
    /// # Errors
    /// `Io`.
    pub fn find(&mut self, id: SegmentId, offset: u32) -> Result<Option<(Place, RecordHeader, Vec<u8>)>> {
        for place in self.places_of(id, offset)? {
            if let Some((header, record)) = self.record(place)?
                && header.kind == RecordKind::Put
            {
                return Ok(Some((place, header, record)));
            }
        }
        Ok(None)
    }

    fn places_of(&mut self, id: SegmentId, offset: u32) -> Result<Vec<Place>> {
        let mut places = Vec::new();
        if self.files.contains_key(&id) {
            places.push((id, offset));
        }
        for table in self.moved.get(&id).cloned().unwrap_or_default() {
            let relocations = self.relocations(id, table)?;
            if let Some(now) = relocations.and_then(|relocations| relocations.find(offset)) {
                places.push((table.segment, now));
            }
        }
        Ok(places)
    }

    fn relocations(&mut self, id: SegmentId, table: ValuePointer) -> Result<Option<Arc<Relocations>>> {
        if let Some((_, _, known)) = self.table.as_ref().filter(|(at, of, _)| *at == table && *of == id) {
            return Ok(known.clone());
        }
        let record = self.record((table.segment, table.offset))?;
        let fits = record.filter(|(header, record)| {
            header.kind == RecordKind::Relocations && record[24..].starts_with(&id.0.to_le_bytes())
        });
        let decoded = fits.and_then(|(_, record)| Relocations::decode(&record[28..])).map(Arc::new);
        self.table = Some((table, id, decoded.clone()));
        Ok(decoded)
    }

    /// Where the records at `offsets` of segment `id` are. What cannot be found goes to `missing`.
    ///
    /// # Errors
    /// `Io`.
    pub fn resolve(&mut self, id: SegmentId, offsets: &[u32], missing: &mut HashSet<Place>) -> Result<Home> {
        let given_back = |version: &Version, at: Place| version.segments().is_given_back(at.0, at.1);
        if let Some(lost) = self.settled(id, offsets)? {
            let home = Home { table: self.whole_table(id)?, settled: true, places: Vec::new() };
            missing.extend(lost.into_iter().map(|offset| (id, offset)));
            return Ok(home);
        }
        let mut home = Home::default();
        for &offset in offsets {
            match self.find(id, offset)? {
                Some((place, ..)) if self.version.is_none_or(|version| !given_back(version, place)) => {
                    home.places.push((offset, place));
                }
                _ => drop(missing.insert((id, offset))),
            }
        }
        Ok(home)
    }

    /// Whether garbage collection has left the record at `offset` of segment `id` behind, which it does only to those that a
    /// newer version of their key hides.
    ///
    /// # Errors
    /// `Io`.
    pub fn is_left_behind(&mut self, id: SegmentId, offset: u32) -> Result<bool> {
        let Some(version) = self.version else { return Ok(false) };
        if self.is_in_place(id) {
            return Ok(version.segments().is_given_back(id, offset));
        }
        let Some(table) = self.whole_table(id)? else { return Ok(false) };
        let Some(relocations) = self.relocations(id, table)? else { return Ok(false) };
        let now = relocations.find(offset);
        Ok(now.is_none_or(|now| version.segments().is_given_back(table.segment, now)))
    }

    /// Whether the file of segment `id` has no whole header.
    pub fn is_headless(&self, id: SegmentId) -> bool {
        self.seeds.contains_key(&id)
    }

    /// Takes from `home`, of segment `id`, the records of files without a header that are not those that tables mean: such
    /// a file may be another segment.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn verify(
        &mut self,
        workshop: &Workshop,
        tables: &[Arc<TableMeta>],
        (id, home): (SegmentId, &mut Home),
        missing: &mut HashSet<Place>,
    ) -> Result<()> {
        if !home.places.iter().any(|(_, place)| self.is_headless(place.0)) {
            return Ok(());
        }
        let digest = |key: &[u8]| Checksum::unseeded().with(key).finish();
        let mut meant: HashMap<u32, (Sequence, u32)> = HashMap::new();
        workshop.pointers(tables, &HashSet::from([id]), &mut |key, sequence, pointer| {
            meant.insert(pointer.offset, (sequence, digest(key)));
        })?;
        for (offset, place) in std::mem::take(&mut home.places) {
            let found = self
                .record(place)?
                .map(|(header, record)| (header.sequence, digest(super::tables::key_of(&header, &record))));
            if found.is_some() && found == meant.get(&offset).copied() {
                home.places.push((offset, place));
            } else {
                missing.insert((id, offset));
            }
        }
        Ok(())
    }

    /// The relocation table for segment `id`, if there is one that counts and can be read in a whole segment.
    fn whole_table(&mut self, id: SegmentId) -> Result<Option<ValuePointer>> {
        if self.is_in_place(id) {
            return Ok(None);
        }
        let mut tables = self.moved.get(&id).cloned().unwrap_or_default();
        // The one that the manifest names comes first; else what was moved last counts.
        if self.version.is_none_or(|version| version.segments().relocation_table(id).is_none()) {
            tables.sort_by_key(|table| std::cmp::Reverse(table.segment));
        }
        for table in tables {
            let whole = self.files.get(&table.segment).is_some_and(|file| file.whole.is_some());
            if whole && self.relocations(id, table)?.is_some() {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    fn is_in_place(&self, id: SegmentId) -> bool {
        let in_log = self.log_from.is_some_and(|from| !id.is_cold() && id >= from);
        self.files.get(&id).is_some_and(|file| file.whole.is_some() || in_log)
    }

    /// Unless records of `id` have to be copied: those of `offsets` at which there is none.
    fn settled(&mut self, id: SegmentId, offsets: &[u32]) -> Result<Option<Vec<u32>>> {
        let dead = |home: SegmentId, offset: u32| {
            self.version.is_some_and(|version| version.segments().is_given_back(home, offset))
        };
        if self.is_in_place(id) {
            let mut lost: Vec<u32> = offsets.iter().copied().filter(|&offset| dead(id, offset)).collect();
            let wreck = self.wreck(id)?.ok_or_else(|| self.gone(id))?;
            for &offset in offsets {
                let there = match &wreck.footer {
                    Some(footer) => footer.offsets.binary_search(&offset).is_ok(),
                    None => wreck.record(offset)?.is_some(),
                };
                if !there {
                    lost.push(offset);
                }
            }
            return Ok(Some(lost));
        }
        let Some(table) = self.whole_table(id)? else { return Ok(None) };
        let Some(relocations) = self.relocations(id, table)? else { return Ok(None) };
        let there = |offset: &u32| {
            let now = relocations.find(*offset);
            now.is_some_and(|now| {
                !self.version.is_some_and(|version| version.segments().is_given_back(table.segment, now))
            })
        };
        Ok(Some(offsets.iter().copied().filter(|offset| !there(offset)).collect()))
    }

    fn gone(&self, id: SegmentId) -> Error {
        let path = crate::base::names::FileName::Segment(id).path(self.directory);
        Error::corruption(&path, 0, "the segment that was there when the repair began", "no file")
    }

    /// Looks in all files for the records of troubled segments that were not found where they should be: by their
    /// sequence numbers. Those that are found leave `missing`.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn search(
        &mut self,
        workshop: &Workshop,
        tables: &[Arc<TableMeta>],
        homes: &mut BTreeMap<SegmentId, Home>,
        missing: &mut HashSet<Place>,
    ) -> Result<()> {
        let troubled: HashSet<SegmentId> =
            homes.iter().filter(|(_, home)| !home.settled).map(|(&id, _)| id).collect();
        let mut wanted: HashMap<Sequence, Place> = HashMap::new();
        workshop.pointers(tables, &troubled, &mut |_, sequence, pointer| {
            let at = (pointer.segment, pointer.offset);
            if missing.contains(&at) {
                wanted.insert(sequence, at);
            }
        })?;
        if wanted.is_empty() {
            return Ok(());
        }
        let ids: Vec<SegmentId> = self.files.keys().copied().collect();
        for file in ids {
            let Some(wreck) = self.wreck(file)? else { continue };
            wreck.walk(&self.stretches(&wreck), &mut |record| {
                if record.header.kind == RecordKind::Put
                    && record.stored.is_some()
                    && let Some(at) = wanted.get(&record.header.sequence)
                    && missing.remove(at)
                    && let Some(home) = homes.get_mut(&at.0)
                {
                    home.places.push((at.1, (file, record.offset)));
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
