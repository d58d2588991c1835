//! A segment being written, and its sealing.
//!
//! The active segment is a file whose space is reserved ahead (in steps that double, so that a small database
//! stays small) and which is mapped for shared writing. A record is copied straight into the mapping: no system
//! call, and nothing is lost when the process is killed, because the pages belong to the kernel. Where pages are small, large records go
//! to them by a call, which spares a page fault for each. Where space cannot be reserved or files cannot be mapped, the same
//! bytes go through plain writes.
//!
//! Reserved space reads as zeros because the file system knows that nothing was written there; so a sync of the first bytes that are
//! written to a block has to write that knowledge, too. Where each small write is synced, zeros are written to
//! the blocks before they are opened to writers. Where hardly anything is synced, the kernel may keep their pages in large ones
//! instead, which take one fault for hundreds; a sync would write all of such a page for each record.
//!
//! Invariants. Every byte of the records' range is written once, by the one caller to whom `cube::commit` gave
//! it; zeros before it is `allocated`, and never after. A mapped byte is touched only below `allocated`. A mapped segment is truncated only after its
//! last writer is done, when it is sealed ([`SegmentFile::seal`]); a plain one also where a write has failed, by whoever did it and is the only writer ([`Segment::cut`]): the
//! next one writes there again.

#![expect(unsafe_code, reason = "records are copied into memory shared with the kernel")]

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::format::{Footer, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader};
use super::open_segments::read_header;
use super::summary::Summary;
use crate::base::checksum::Seed;
use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, SegmentId};
use crate::base::keys::KeyOrder;
use crate::base::large_pages::LARGE_PAGE_BYTES;
use crate::base::options::LogMode;
use crate::base::segment::SegmentMeta;
use crate::base::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering};
use crate::env::{Access, File, Fs, Mapping, PAGE_BYTES, large_pages_in};

/// First reservation of the first segment's space, in bytes; each further one doubles what is there.
pub const RESERVE_BYTES_MIN: u64 = 256 * 1024;
/// Largest single reservation, and the first one of a segment that follows a full one: bounds how long one writer
/// waits for the file system. The next segment is prepared once no more than this is left to reserve: with larger steps it would be there,
/// taking space that collections could use, for longer.
pub const RESERVE_STEP_MAX: u64 = 8 * 1024 * 1024;

/// The same where blocks are filled: bounds how long the next sync takes, for it has the zeros written, too.
pub const FILLED_STEP_MAX: u64 = 256 * 1024;

/// Records of values of at least so many bytes are handed to the kernel by a call, unless pages are large. For the small pages of a
/// mapping it takes a fault each, and zeroes them first. On the reference machine, with 1.6 GB of values of one size: with values of 8 KiB both
/// were alike, with 16 KiB calls wrote 8 % more in the same time, with 64 KiB 57 %; to large pages copies write a fifth more than calls.
pub const CALLED_BYTES_MIN: usize = 16 * 1024;

/// The file of a segment: what stays of it once nobody writes to it any more.
#[derive(Debug)]
pub struct SegmentFile {
    header: SegmentHeader,
    path: PathBuf,
    file: Arc<dyn File>,
    name_durable: AtomicBool,
    /// Held while records are read for it.
    summary: Mutex<Summary>,
}

/// The segment that records are written to. Dropping the last reference unmaps its file, which should happen
/// before the file is synced: syncing mapped pages interrupts every processor once a page, to make the page
/// read-only. What is [followed](Self::follow) is not mapped any more.
#[derive(Debug)]
pub struct Segment {
    shared: Arc<SegmentFile>,
    seed: Seed,
    mapping: Option<Arc<dyn Mapping>>,
    capacity: u64,
    allocated: AtomicU64,
    joined: Joined,
    /// What its file took before anything was reserved.
    blank_bytes: u64,
}

/// How large a segment is made.
#[derive(Debug, Clone, Copy)]
pub struct SegmentSize {
    /// Bytes it can hold.
    pub capacity: u64,
    /// Bytes reserved at once; the rest is reserved as it is needed.
    pub reserve: u64,
    /// What is done with their blocks.
    pub blocks: Blocks,
}

/// What becomes of blocks that are reserved: the more is written between syncs, the more of them are seen to at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// The file system notes that they read as zeros, and the kernel may keep many of them in one page.
    Joined,
    /// The file system notes that they read as zeros.
    Noted,
    /// Zeros are written to them, page by page: as part of a larger piece the kernel would write them to the device with all of that.
    Filled,
}

/// Blocks are filled where at most so many bytes are written between syncs: filling takes the device about as long as each sync then needs
/// less.
const FILLED_BYTES_MAX: u64 = 16 * 1024;

/// They are joined where it is at least so many, with the engine's own syncs: what one writes because one byte of a large page has
/// changed is little beside it. Flushes of memtables of the default size sync some 28 MiB at a time.
const JOINED_BYTES_MIN: u64 = 8 * LARGE_PAGE_BYTES;

impl Blocks {
    /// What should become of them where so many bytes are written between syncs.
    pub fn between_syncs(bytes: u64) -> Self {
        match bytes {
            ..=FILLED_BYTES_MAX => Self::Filled,
            JOINED_BYTES_MIN.. => Self::Joined,
            _ => Self::Noted,
        }
    }

    /// Does that with `offset..offset + len` of `file`, which is reserved and that nobody has touched. Returns where pages may be large.
    fn ready(self, file: &dyn File, mapping: &dyn Mapping, offset: u64, len: u64) -> Range<u64> {
        let none = offset..offset;
        match self {
            Self::Joined => {
                // The footer comes when the last pages have been synced, and would have a large one written again.
                let end = (offset + len).min(mapping.len().saturating_sub(LARGE_PAGE_BYTES));
                // Advice: pages are small without it.
                mapping.join_pages(offset, end.saturating_sub(offset)).unwrap_or(none)
            }
            Self::Noted => none,
            Self::Filled => {
                fill(file, offset..offset + len);
                none
            }
        }
    }
}

/// Writes zeros to `range`, which reads as zeros, where what is written later goes to the same blocks.
fn fill(file: &dyn File, range: Range<u64>) {
    const ZEROS: &[u8] = &[0; PAGE_BYTES as usize];
    if !file.is_rewritten_in_place().unwrap_or(false) {
        return;
    }
    let mut at = range.start;
    while at < range.end {
        let page = (PAGE_BYTES - at % PAGE_BYTES).min(range.end - at);
        // A device that fails is found out by the next sync.
        if file.write_at(&ZEROS[..page as usize], at).is_err() {
            return;
        }
        at += page;
    }
}

/// Where the pages of a segment may be large: from the first that may to the last; others between count as such. It grows while one
/// caller reserves space; nothing that is read depends on it.
#[derive(Debug, Default)]
struct Joined {
    start: AtomicU64,
    end: AtomicU64,
}

impl Joined {
    fn add(&self, pages: &Range<u64>) {
        if pages.is_empty() {
            return;
        }
        if self.end.load(Ordering::Relaxed) == 0 {
            self.start.store(pages.start, Ordering::Relaxed);
        }
        self.end.store(pages.end, Ordering::Relaxed);
    }

    fn has(&self, offset: u64) -> bool {
        (self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed)).contains(&offset)
    }
}

/// The file of a segment that has not begun: its space is reserved and it is mapped, but it has no header yet.
/// Left behind by a crash, it is not part of any log.
#[derive(Debug)]
pub struct PreparedSegment {
    path: PathBuf,
    file: Arc<dyn File>,
    mapping: Option<Arc<dyn Mapping>>,
    size: SegmentSize,
    /// Where its pages may be large.
    joined: Range<u64>,
    /// What the file took before.
    blank_bytes: u64,
}

impl PreparedSegment {
    /// Creates the file. On failure none is left behind. Blocks on the file system.
    ///
    /// # Errors
    /// `NoSpace` or `Io` when the file cannot be created or its first bytes not be reserved.
    pub fn create(fs: &dyn Fs, path: PathBuf, size: SegmentSize, mode: LogMode) -> Result<Self> {
        let file = fs.create_new(&path).map_err(|error| Error::io("create", &path, error))?;
        Self::of(fs, file, 0, path, size, mode)
    }

    /// Takes over the `file` at `path`, which reads as zeros and takes `blank_bytes`. On failure it is removed. Blocks on
    /// the file system.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn of(
        fs: &dyn Fs,
        file: Arc<dyn File>,
        blank_bytes: u64,
        path: PathBuf,
        size: SegmentSize,
        mode: LogMode,
    ) -> Result<Self> {
        debug_assert!(size.capacity >= SEGMENT_HEADER_BYTES && size.capacity >= blank_bytes);
        match Self::map(&*file, &path, size, mode) {
            Ok(mapping) => {
                let first = size.reserve.min(size.capacity);
                let joined = mapping.as_ref().map(|mapping| size.blocks.ready(&*file, &**mapping, 0, first));
                Ok(Self { path, file, mapping, size, joined: joined.unwrap_or_default(), blank_bytes })
            }
            Err(error) => {
                // The first error is the one to report; a file without a header is swept up at the next open.
                drop(fs.remove_file(&path));
                Err(error)
            }
        }
    }

    fn map(
        file: &dyn File,
        path: &Path,
        size: SegmentSize,
        mode: LogMode,
    ) -> Result<Option<Arc<dyn Mapping>>> {
        if mode == LogMode::Plain {
            return Ok(None);
        }
        let first = size.reserve.min(size.capacity);
        // Advice: without it the kernel reads ahead, which is slower and as right.
        drop(file.advise(Access::Random));
        match file.allocate(0, first).and_then(|()| file.map(size.capacity)) {
            Ok(mapping) => Ok(Some(mapping)),
            Err(error) if error.kind() == io::ErrorKind::Unsupported && mode == LogMode::Auto => {
                file.set_len(0).map_err(|error| Error::io("truncate", path, error))?;
                Ok(None)
            }
            Err(error) => Err(Error::io("reserve and map", path, error)),
        }
    }

    /// Bytes the segment can hold.
    pub fn capacity(&self) -> u64 {
        self.size.capacity
    }

    /// Whether some of its pages may be large.
    pub fn has_large_pages(&self) -> bool {
        !self.joined.is_empty()
    }

    /// Bytes of it that are reserved.
    pub fn reserved(&self) -> u64 {
        self.size.reserve.min(self.size.capacity)
    }

    /// Bytes of disk that it takes.
    pub fn disk_bytes(&self) -> u64 {
        self.reserved().max(self.blank_bytes)
    }

    /// Does what would take the first writers time: has the device begin with blocks that were filled, or else takes the page
    /// faults of the first `len` bytes.
    ///
    /// # Errors
    /// `Io`; the segment works all the same.
    pub fn warm_up(&self, len: u64) -> Result<()> {
        let Some(mapping) = &self.mapping else { return Ok(()) };
        let io = |operation| move |error| Error::io(operation, &self.path, error);
        match self.size.blocks {
            Blocks::Filled => self.file.write_behind(0, self.reserved()).map_err(io("write blocks of")),
            Blocks::Joined | Blocks::Noted => {
                mapping.prefault(0, len.min(self.reserved())).map_err(io("fault in pages of"))
            }
        }
    }

    /// Writes the header. Does not sync.
    ///
    /// # Errors
    /// `Io`, `NoSpace` from a plain write; the file stays behind without a header.
    pub fn begin(self, header: SegmentHeader) -> Result<Segment> {
        let allocated = self.reserved();
        let Self { path, file, mapping, size, joined: pages, blank_bytes } = self;
        let (name_durable, joined) = (AtomicBool::new(false), Joined::default());
        joined.add(&pages);
        let segment = Segment {
            shared: Arc::new(SegmentFile { header, path, file, name_durable, summary: Mutex::default() }),
            seed: header.seed(),
            mapping,
            capacity: size.capacity,
            allocated: AtomicU64::new(allocated),
            joined,
            blank_bytes,
        };
        segment.write(0, &header.encode())?;
        Ok(segment)
    }

    /// Removes the file.
    ///
    /// # Errors
    /// `Io`.
    pub fn discard(&self, fs: &dyn Fs) -> Result<()> {
        fs.remove_file(&self.path).map_err(|error| Error::io("remove", &self.path, error))
    }
}

impl Segment {
    /// Its header.
    pub fn header(&self) -> &SegmentHeader {
        &self.shared.header
    }

    /// Its file.
    pub fn shared(&self) -> &Arc<SegmentFile> {
        &self.shared
    }

    /// Bytes it can hold.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Whether records are copied into a mapping; otherwise each write is a system call that can fail.
    pub fn is_mapped(&self) -> bool {
        self.mapping.is_some()
    }

    /// The end of the range that may be written now.
    pub fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Acquire)
    }

    /// Whether what stands at `offset` may be in one page with much else.
    pub fn is_joined(&self, offset: u64) -> bool {
        self.joined.has(offset)
    }

    /// Bytes of disk that it takes.
    pub fn disk_bytes(&self) -> u64 {
        self.allocated().max(self.blank_bytes)
    }

    /// How many bytes to reserve next if that is to serve for a while.
    pub fn next_step(&self, blocks: Blocks) -> u64 {
        let have = self.allocated();
        let largest = if blocks == Blocks::Filled { FILLED_STEP_MAX } else { RESERVE_STEP_MAX };
        let step = have.min(largest).min(self.capacity - have);
        // A large page that the end of a step cuts in two is none.
        let in_large_pages = large_pages_in(&(0..have + step)).end.saturating_sub(have);
        let cut = blocks == Blocks::Joined && in_large_pages > 0 && have + step < self.capacity;
        if cut { in_large_pages } else { step }
    }

    /// Reserves `bytes` more. Without a mapping that only allows them to be written: the file system finds the space
    /// then. One caller at a time. Blocks on the file system.
    ///
    /// # Errors
    /// `NoSpace` or `Io`; the segment is unchanged and can go on with what it has.
    pub fn reserve(&self, bytes: u64, blocks: Blocks) -> Result<()> {
        let have = self.allocated();
        debug_assert!(have + bytes <= self.capacity);
        if let Some(mapping) = &self.mapping
            && bytes > 0
        {
            self.shared
                .file
                .allocate(have, bytes)
                .map_err(|error| Error::io("reserve space in", self.shared.path(), error))?;
            // Nobody writes there before it is allocated.
            self.joined.add(&blocks.ready(&*self.shared.file, &**mapping, have, bytes));
        }
        self.allocated.store(have + bytes, Ordering::Release);
        Ok(())
    }

    /// Takes the page faults of `offset..end`, as far as that is reserved, ahead of whoever will write there.
    ///
    /// # Errors
    /// `Io`; writing goes on to work, but slower.
    pub fn prefault(&self, offset: u64, end: u64) -> Result<()> {
        let end = end.min(self.allocated());
        match &self.mapping {
            Some(mapping) if offset < end => mapping
                .prefault(offset, end - offset)
                .map_err(|error| Error::io("fault in pages of", self.shared.path(), error)),
            _ => Ok(()),
        }
    }

    /// Follows the writers, who are done with all before `end`. What the footer will say of these records is read while the system has them
    /// in memory: once they are on the device it may give them up. And their pages are given up by the mapping: else each would interrupt
    /// all processors as it is synced, be it for a flush or for who asked for it. What somebody else does at this moment is not done;
    /// what fails is left to [`seal`](SegmentFile::seal).
    pub fn follow(&self, end: u64, order: &KeyOrder) {
        let SegmentFile { path, file, summary, .. } = &*self.shared;
        let Some(mut summary) = summary.try_lock() else { return };
        let page = if self.is_joined(end) { LARGE_PAGE_BYTES } else { PAGE_BYTES };
        let before = summary.footer().records_end / page * page;
        drop(summary.extend(&**file, path, self.seed, end, order));
        let left = before..summary.footer().records_end / page * page;
        if let Some(mapping) = &self.mapping {
            drop(mapping.leave(left));
        }
    }

    /// Writes the record with `header`, `key` and stored value at `offset` of a mapped segment. The caller owns
    /// that range, below [`allocated`](Self::allocated), alone.
    pub fn write_record(&self, offset: u64, header: &RecordHeader, key: &[u8], stored: &[u8]) {
        let mapping = self.mapping.as_ref().expect("plain segments are written by whole batches");
        let head = header.encode(self.seed, offset, key);
        let end = offset + header.record_len();
        assert!(end <= self.allocated(), "records are written inside the reserved range");
        // The file and its mapping are the same pages. If the call fails, the mapping is what is left: it is where a record
        // that was granted its place must go.
        let called = stored.len() >= CALLED_BYTES_MIN
            && !self.is_joined(offset)
            && self.shared.file.write_parts_at([&head, key, stored], offset).is_ok();
        if called {
            return;
        }
        let key_at = offset + RECORD_HEADER_BYTES as u64;
        copy(&**mapping, self.allocated(), offset, &head);
        copy(&**mapping, self.allocated(), key_at, key);
        copy(&**mapping, self.allocated(), key_at + key.len() as u64, stored);
    }

    /// Appends the bytes of a record that will stand at `offset` to `out`, for [`write`](Self::write).
    pub fn encode_record(
        &self,
        out: &mut Vec<u8>,
        offset: u64,
        header: &RecordHeader,
        key: &[u8],
        stored: &[u8],
    ) {
        out.extend_from_slice(&header.encode(self.seed, offset, key));
        out.extend_from_slice(key);
        out.extend_from_slice(stored);
    }

    /// Writes whole records at `offset`, whose range the caller owns alone.
    ///
    /// # Errors
    /// Only a plain segment can fail, with `Io` or `NoSpace`; what then stands at `offset` is undefined and must be [cut](Self::cut) off.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        match &self.mapping {
            Some(mapping) => {
                copy(&**mapping, self.allocated(), offset, bytes);
                Ok(())
            }
            None => {
                let SegmentFile { file, path, .. } = &*self.shared;
                file.write_at(bytes, offset).map_err(|error| Error::io("write", path, error))
            }
        }
    }

    /// Cuts a plain segment off at `offset`, before which its records end.
    ///
    /// # Errors
    /// `Io`.
    pub fn cut(&self, offset: u64) -> Result<()> {
        debug_assert!(!self.is_mapped(), "others write behind it");
        let SegmentFile { file, path, .. } = &*self.shared;
        file.set_len(offset).map_err(|error| Error::io("cut", path, error))
    }
}

impl SegmentFile {
    /// The segment's header.
    pub fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// The open file.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Seals the segment, whose records end at `end` and whose writers are done: makes it durable by `sync`, writes the footer, cuts the
    /// file to its size, syncs that. Blocks on the device.
    ///
    /// # Errors
    /// Those of `sync`; `Io`, `NoSpace`; `Corruption` when a record is not what was written (those that were followed are not read again).
    pub fn seal(&self, end: u64, order: &KeyOrder, sync: impl FnOnce() -> Result<()>) -> Result<SegmentMeta> {
        let Self { header, path, file, .. } = self;
        // The device has something to do while the rest is read. Advice: what cannot be written, the sync tells.
        drop(file.write_behind(0, end));
        let mut summary = self.summary.lock();
        summary.extend(&**file, path, header.seed(), end, order)?;
        debug_assert_eq!(summary.footer().records_end, end, "nothing behind the records was followed");
        sync()?;
        let meta = finish(&**file, path, header, summary.footer())?;
        summary.clear();
        Ok(meta)
    }

    /// Makes everything written so far durable, and the segment's name.
    ///
    /// # Errors
    /// `Io`. The caller must not try again, nor take anything written since the last success as durable.
    pub fn sync(&self, fs: &dyn Fs) -> Result<()> {
        self.file.sync_data().map_err(|error| Error::sync(&self.path, error))?;
        if !self.name_durable.load(Ordering::Acquire) {
            sync_parent(fs, &self.path)?;
            self.name_durable.store(true, Ordering::Release);
        }
        Ok(())
    }
}

/// Copies into a mapped segment.
fn copy(mapping: &dyn Mapping, allocated: u64, offset: u64, bytes: &[u8]) {
    assert!(offset + bytes.len() as u64 <= allocated, "records are written inside the reserved range");
    // SAFETY: the range lies below `allocated`, so inside mapping and file; the file is truncated only by
    // `seal`, after the last writer; and each range has one owner, so nobody else touches these bytes.
    unsafe { mapping.write(offset, bytes) }
}

/// Syncs the directory that holds `path`.
pub fn sync_parent(fs: &dyn Fs, path: &Path) -> Result<()> {
    let parent = path.parent().expect("segment files lie in the cube's directory");
    fs.sync_dir(parent).map_err(|error| Error::sync(parent, error))
}

/// Seals the file of a segment that nobody writes to, whose records end at `end`: syncs it, writes the footer, cuts the file to its
/// size, syncs again. Blocks on the device.
///
/// # Errors
/// `Io`, `NoSpace`; `Corruption` when a record below `end` is not what was written.
pub fn seal(
    file: &dyn File,
    path: &Path,
    header: &SegmentHeader,
    end: u64,
    order: &KeyOrder,
) -> Result<SegmentMeta> {
    let mut summary = Summary::default();
    summary.extend(file, path, header.seed(), end, order)?;
    finish(file, path, header, summary.footer())
}

/// The same with the footer for all its records.
fn finish(file: &dyn File, path: &Path, header: &SegmentHeader, footer: &Footer) -> Result<SegmentMeta> {
    let (seed, end) = (header.seed(), footer.records_end);
    let io = |operation| move |error| Error::io(operation, path, error);
    file.sync_data().map_err(|error| Error::sync(path, error))?;
    let bytes = footer.encode(seed);
    file.write_at(&bytes, end).map_err(io("write the footer of"))?;
    let file_bytes = end + bytes.len() as u64;
    file.set_len(file_bytes).map_err(io("cut"))?;
    file.sync_data().map_err(|error| Error::sync(path, error))?;
    Ok(meta_of(header, file_bytes, footer))
}

/// Opens the file of a segment, and [seals](seal) it. Its name is not made durable.
///
/// # Errors
/// `Io`, `NoSpace`; `Corruption` when header or records are not what was written.
pub fn seal_file(
    fs: &dyn Fs,
    path: &Path,
    (cube, id): (CubeId, SegmentId),
    end: u64,
    order: &KeyOrder,
) -> Result<SegmentMeta> {
    let file = fs.open_write(path).map_err(|error| Error::io("open", path, error))?;
    let header = read_header(&*file, path, cube, id)?;
    seal(&*file, path, &header, end, order)
}

/// What the manifest keeps of a sealed segment.
pub fn meta_of(header: &SegmentHeader, file_bytes: u64, footer: &Footer) -> SegmentMeta {
    SegmentMeta {
        id: header.id,
        written: header.first_sequence,
        end: footer.records_end,
        file_bytes,
        value_records: footer.value_records,
        value_record_bytes: footer.value_record_bytes,
    }
}
