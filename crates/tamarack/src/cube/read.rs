//! Point reads.
//!
//! A get looks into the active memtable, the frozen ones, and the tables, newest first, and stops at the first
//! version it may see; a pointer then costs one read of the log. Nothing here takes a lock that a writer holds.

use super::Cube;
use super::destination::{Destination, InlineValue};
use super::iter::CubeIter;
use super::readers::ReaderKind;
use super::rows::Missing;
use super::snapshot::HeldSequence;
use super::state::ReadState;
use super::visible::VisibleCursor;
use crate::base::error::{Error, Result};
use crate::base::ids::Sequence;
use crate::base::keys::EntryKind;
use crate::base::names::FileName;
use crate::base::pointer::ValuePointer;
use crate::base::segment::Relocate;
use crate::base::swap::Guard;
use crate::base::sync::Arc;
use crate::index::cursor::Cursor;
use crate::index::memtable::Memtable;
use crate::index::merge::merge;
use crate::index::table::reader::{TableEntry, TablePayload};
use crate::index::version::Version;
use crate::vlog::fetch::How;
use crate::vlog::format::record_len;

/// How a read is done.
#[derive(Debug, Clone, Copy)]
pub struct ReadSettings {
    /// The moment to read at; the present if `None`.
    pub sequence: Option<Sequence>,
    /// Check the checksums of values.
    pub verify: bool,
    /// Keep index blocks in the cache, and values that are read again.
    pub fill_cache: bool,
}

impl ReadSettings {
    /// Whether what is read, which is checked then, may be given to others.
    pub(super) fn keeps_rows(self) -> bool {
        self.verify && self.fill_cache
    }

    /// How values are read.
    pub(super) fn how(self) -> How {
        How { verify: self.verify, fill_cache: self.fill_cache }
    }
}

/// What the index says of a key.
#[derive(Debug)]
pub(super) enum Found<'a> {
    Absent,
    Inline(InlineValue<'a>),
    Pointer(ValuePointer),
}

/// How many reads of the log may be under way at once for one fetch: enough to reach an SSD's full rate.
pub(super) const READ_WAYS: usize = 16;

/// Bytes in the log of the longest value that is read where it is known to lie.
const FOLLOWED_MAX: u32 = 64 << 10;

impl Cube {
    /// Gives the value of `key` to `destination`; `false`, and nothing is given, if there is none.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn get(
        &self,
        key: &[u8],
        settings: ReadSettings,
        destination: &mut impl Destination,
    ) -> Result<bool> {
        let moment = settings.sequence.unwrap_or_else(|| self.publisher.visible());
        let missing = match self.rows.get(key, moment) {
            Ok(value) => {
                destination.take(value);
                return Ok(true);
            }
            Err(missing) => missing,
        };
        if settings.verify && self.read_in_place(missing, key, destination) {
            if settings.keeps_rows() {
                destination.keep(&self.rows, missing, key, moment);
            }
            return Ok(true);
        }
        let (state, sequence) = self.moment(settings);
        match self.find(&state, key, sequence, settings.fill_cache)? {
            Found::Absent => return Ok(false),
            Found::Inline(value) => destination.take_inline(key, value),
            Found::Pointer(pointer) => {
                let pointer = self.present_place(&state.version, pointer)?;
                destination.read(&self.reader, pointer, key, settings.verify)?;
                if settings.fill_cache {
                    self.rows.note_place(missing, sequence, pointer);
                }
            }
        }
        if settings.keeps_rows() {
            destination.keep(&self.rows, missing, key, sequence);
        }
        Ok(true)
    }

    /// Gives `destination` the value that lies in the place which is known of `key`, if that is there yet, and is of `key`.
    fn read_in_place(&self, missing: Missing, key: &[u8], destination: &mut impl Destination) -> bool {
        if missing.place().is_none() {
            return false;
        }
        // It holds the segment until the value was read.
        let state = self.current.peek();
        let place = self.known_place(&state, missing);
        place.is_some_and(|pointer| destination.read(&self.reader, pointer, key, true).is_ok())
    }

    /// The place that is known of a key, if it is there in `state`: to be followed by who checks what lies there, and looks the key up if that
    /// is not its value. What was not checked may have been given back meanwhile (I-13): the place is that of a version which an operation behind the
    /// moment may have hidden. A long value is looked up: that is little beside reading it, and reading that of another key would be much.
    pub(super) fn known_place(&self, state: &ReadState, missing: Missing) -> Option<ValuePointer> {
        missing.place().filter(|place| {
            place.stored_len <= FOLLOWED_MAX
                && state.holds(FileName::Segment(place.segment))
                && self.check_not_given_back(&state.version, *place).is_ok()
        })
    }

    /// Whether `key` has a value; reads nothing of the log.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn contains(&self, key: &[u8], settings: ReadSettings) -> Result<bool> {
        let (state, sequence) = self.moment(settings);
        let found = self.find(&state, key, sequence, settings.fill_cache)?;
        Ok(!matches!(found, Found::Absent))
    }

    /// A walk over `start..end`, which is said to want `expected` entries.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn iter(
        self: &Arc<Self>,
        start: Option<Vec<u8>>,
        end: Option<Vec<u8>>,
        expected: Option<usize>,
        settings: ReadSettings,
    ) -> Result<CubeIter> {
        let (state, sequence) = self.moment(settings);
        let state = Guard::into_inner(state);
        let memtables =
            std::iter::once(&state.active).chain(state.frozen.iter().map(|frozen| &frozen.memtable));
        let mut cursors: Vec<Box<dyn Cursor>> = memtables
            .map(|memtable: &Arc<Memtable>| Box::new(memtable.cursor()) as Box<dyn Cursor>)
            .collect();
        cursors.extend(self.index.cursors(&state.version, settings.fill_cache));
        let merged = merge(self.keys.clone(), cursors);
        let cursor = VisibleCursor::new(merged, self.keys.clone(), sequence, start, end);
        let now = self.env.clock.monotonic();
        let held = self.readers.hold(ReaderKind::Iterator, state, sequence, now);
        Ok(CubeIter::new(Arc::clone(self), held, cursor, expected, settings.how()))
    }

    /// Holds the present moment, under a name if there is one.
    pub fn snapshot(&self, name: Option<&str>) -> HeldSequence {
        self.snapshots.take(&self.publisher, self.env.clock.monotonic(), name)
    }

    /// Refuses a snapshot of another cube.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check_snapshot(&self, held: &HeldSequence) -> Result<()> {
        if held.belongs_to(&self.snapshots) {
            return Ok(());
        }
        Err(Error::invalid_argument("a snapshot of another database: take one of this"))
    }

    /// Where the record is, in the segments of `version`, to which a pointer of `version` or of a memtable beside it
    /// leads: in its place, or where garbage collection has moved it.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    #[inline]
    pub(super) fn present_place(&self, version: &Version, pointer: ValuePointer) -> Result<ValuePointer> {
        let present = match version.segments().relocation_table(pointer.segment) {
            None => pointer,
            Some(table) => self.reader.relocate(table, pointer)?.ok_or_else(|| {
                let path = self.reader.segments().path(table.segment);
                let expected =
                    format!("the place of the record at {} of segment {}", pointer.offset, pointer.segment);
                Error::corruption(&path, u64::from(table.offset), expected, "none")
            })?,
        };
        self.check_not_given_back(version, present)?;
        Ok(present)
    }

    /// I-13: zeros are never taken for a value, not even if its checksum is not looked at.
    #[inline]
    fn check_not_given_back(&self, version: &Version, pointer: ValuePointer) -> Result<()> {
        let Some(dead) = version.segments().dead_ranges(pointer.segment) else { return Ok(()) };
        let start = u64::from(pointer.offset);
        let Some(range) = dead.find(&(start..start + record_len(0, u64::from(pointer.stored_len)))) else {
            return Ok(());
        };
        let found = format!("a part of the range {} to {}, which was given back", range.start, range.end);
        Err(Error::corruption(&self.reader.segments().path(pointer.segment), start, "a record", found))
    }

    /// What a read looks into, and the moment that it sees.
    pub(super) fn moment(&self, settings: ReadSettings) -> (Guard<Arc<ReadState>>, Sequence) {
        match settings.sequence {
            // Taken before: whatever it sees is in the state and in segments that the state holds.
            Some(sequence) => (self.current.peek(), sequence),
            None => self.current.at_present(|| self.publisher.visible()),
        }
    }

    /// Looks `key` up.
    pub(super) fn find<'a>(
        &self,
        state: &'a ReadState,
        key: &[u8],
        sequence: Sequence,
        fill_cache: bool,
    ) -> Result<Found<'a>> {
        match Found::in_memtables(state, key, sequence) {
            Some(found) => Ok(found),
            None => self.index.lookup(&state.version, key, sequence, fill_cache).map(Found::in_tables),
        }
    }
}

impl<'a> Found<'a> {
    /// What the memtables of `state` say of `key`, if anything.
    pub(super) fn in_memtables(state: &'a ReadState, key: &[u8], sequence: Sequence) -> Option<Self> {
        let frozen = state.frozen.iter().map(|frozen| &frozen.memtable);
        let mut memtables = std::iter::once(&state.active).chain(frozen);
        let entry = memtables.find_map(|memtable| memtable.get(key, sequence))?;
        Some(match entry.kind {
            EntryKind::Delete => Self::Absent,
            EntryKind::Inline => Self::Inline(InlineValue::Memtable(entry.payload)),
            EntryKind::Pointer => Self::Pointer(
                ValuePointer::from_bytes(entry.payload).expect("memtables hold what commits put there"),
            ),
        })
    }

    /// What a lookup in the tables says, which found `entry`.
    pub(super) fn in_tables(entry: Option<TableEntry>) -> Self {
        match entry.map(|entry| entry.payload) {
            None | Some(TablePayload::Delete) => Self::Absent,
            Some(TablePayload::Inline(value)) => Self::Inline(InlineValue::Block(value)),
            Some(TablePayload::Pointer(pointer)) => Self::Pointer(pointer),
        }
    }
}
