//! Segments that are open for reading. Files are shared, and bounded in number.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::format::{FOOTER_TRAILER_BYTES, Footer, HeaderFault, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::base::cache::Cache;
use crate::base::checksum::Seed;
use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, SegmentId};
use crate::base::large_pages::LARGE_PAGE_BYTES;
use crate::base::names::FileName;
use crate::base::sync::{Arc, AtomicU64, Mutex, Ordering};
use crate::env::{Access, File, Fs, Loaded, read_exact_at};

/// Files open for walks, at most: a walk is in one or two at a time.
const WALKED_FILES_MAX: usize = 8;
/// Of the files that may be open, where all values are read past the system's cache, this part is for other reads; where those of long walks are
/// alone, it is for these at most ...
const OTHER_FILES_PART: usize = 4;
/// ... and so many descriptors.
const WALKED_PAST_CACHE_MAX: usize = 64;
/// A file that is read past the system's cache takes so many descriptors.
const DESCRIPTORS_PAST_CACHE: usize = 2;
/// Records up to this many bytes are read without a look at the length of the file.
const UNCHECKED_BYTES_MAX: usize = 256 << 10;

/// A segment open for reading.
#[derive(Debug)]
pub struct OpenSegment {
    file: Arc<dyn File>,
    path: PathBuf,
    seed: Seed,
    /// Before this its pages are small, unless they were loaded since.
    parted_to: AtomicU64,
}

impl OpenSegment {
    /// A segment whose header is known.
    pub fn new(file: Arc<dyn File>, path: PathBuf, seed: Seed) -> Self {
        Self { file, path, seed, parted_to: AtomicU64::new(0) }
    }

    /// Its file.
    pub fn file(&self) -> &dyn File {
        &*self.file
    }

    /// The same, to be kept open.
    pub(super) fn shared_file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Its file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has `range` of it in memory, in large pages, and waits for that; nothing new is written to it. Advice: what fails is told by who reads it.
    pub fn load(&self, range: Range<u64>) -> Loaded {
        let start = range.start / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
        let loaded = self.file.load(range).unwrap_or_default();
        if loaded.read > 0 {
            self.parted_to.fetch_min(start, Ordering::Relaxed);
        }
        loaded
    }

    /// Has the next large pages of it parted, at most `pages_max`. Returns how many were looked at.
    fn part_pages(&self, pages_max: u64) -> u64 {
        let from = self.parted_to.load(Ordering::Relaxed);
        if from == u64::MAX {
            return 0;
        }
        let to = from.saturating_add(pages_max.saturating_mul(LARGE_PAGE_BYTES));
        let (end, pages) = match self.file.len() {
            Ok(len) if to < len => (to, pages_max),
            Ok(len) => (u64::MAX, len.saturating_sub(from).div_ceil(LARGE_PAGE_BYTES)),
            Err(_) => (u64::MAX, 0),
        };
        // Before they are looked at: what is loaded from now on is either seen, or takes this back.
        if self.parted_to.compare_exchange(from, end, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            // Advice: without it more is read from the device.
            drop(self.file.part_pages(from..to));
        }
        pages
    }

    /// The seed of its checksums.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Refuses a record that is larger than what is left of the file at `offset`: a forged length must not ask for memory.
    /// A small one is not worth asking the file system how long the file is.
    pub fn check_room(&self, offset: u64, len: usize) -> Result<()> {
        if len <= UNCHECKED_BYTES_MAX {
            return Ok(());
        }
        let file = self.file.len().map_err(|error| Error::io("read the length of", &self.path, error))?;
        let left = file.saturating_sub(offset);
        if len as u64 <= left {
            return Ok(());
        }
        let expected = format!("a record of {len} bytes");
        Err(Error::corruption(
            &self.path,
            offset,
            expected,
            format!("{left} bytes before the end of the file"),
        ))
    }
}

/// Every segment of a cube that is open for reading.
#[derive(Debug)]
pub struct OpenSegments {
    fs: Arc<dyn Fs>,
    directory: PathBuf,
    cube: CubeId,
    direct: bool,
    /// Of those that were open once, so that a file is opened again without its header being read. Rank: innermost.
    seeds: Mutex<BTreeMap<SegmentId, Seed>>,
    open: Cache<SegmentId, Arc<OpenSegment>>,
    /// Some of them open once more, for walks: the kernel reads ahead of those files.
    walked: Cache<SegmentId, Arc<OpenSegment>>,
    /// Some for reads past the system's cache of files.
    read_past_cache: Cache<SegmentId, Arc<OpenSegment>>,
}

/// How many segments may be open ...
#[derive(Debug, Clone, Copy)]
struct Shares {
    /// ... for reads past the system's cache of files,
    past_cache: usize,
    /// ... and for others.
    others: usize,
}

impl Shares {
    fn of(files_max: usize, direct: bool) -> Self {
        let few = files_max / OTHER_FILES_PART;
        let others = if direct { few } else { files_max - few.min(WALKED_PAST_CACHE_MAX) };
        Self { past_cache: ((files_max - others) / DESCRIPTORS_PAST_CACHE).max(1), others }
    }
}

impl OpenSegments {
    /// Those of `cube` in `directory`, with at most `files_max` files open. If they are `direct`, all values are read past the
    /// system's cache of files.
    pub fn new(fs: Arc<dyn Fs>, directory: PathBuf, cube: CubeId, files_max: usize, direct: bool) -> Self {
        let shares = Shares::of(files_max, direct);
        Self {
            fs,
            directory,
            cube,
            direct,
            seeds: Mutex::default(),
            open: Cache::new(shares.others),
            walked: Cache::new(WALKED_FILES_MAX),
            read_past_cache: Cache::new(shares.past_cache),
        }
    }

    /// From now on at most so many files are open.
    pub fn set_files_max(&self, files_max: usize) {
        let shares = Shares::of(files_max, self.direct);
        self.open.set_capacity(shares.others as u64);
        self.read_past_cache.set_capacity(shares.past_cache as u64);
    }

    /// Where they are.
    pub(super) fn fs(&self) -> &Arc<dyn Fs> {
        &self.fs
    }

    /// The path of segment `id`.
    pub fn path(&self, id: SegmentId) -> PathBuf {
        FileName::Segment(id).path(&self.directory)
    }

    /// Gives a segment that is open already.
    pub fn insert(&self, id: SegmentId, segment: OpenSegment) {
        self.seeds.lock().insert(id, segment.seed());
        self.open.insert(id, Arc::new(segment));
    }

    /// Forgets a segment that is about to be removed.
    pub fn forget(&self, id: SegmentId) {
        self.open.remove(&id);
        self.walked.remove(&id);
        self.read_past_cache.remove(&id);
        self.seeds.lock().remove(&id);
    }

    /// Segment `id`, opened if it is not open.
    ///
    /// # Errors
    /// `Io`; `Corruption` when the file is missing or its header is not that of segment `id`.
    pub fn get(&self, id: SegmentId) -> Result<Arc<OpenSegment>> {
        self.open.get_or_insert_with(&id, || {
            let path = self.path(id);
            let file = opened(self.fs.open_read(&path), &path, Access::Random)?;
            let seed = match self.known_seed(id) {
                Some(seed) => seed,
                None => self.read_seed(&*file, &path, id)?,
            };
            Ok(Arc::new(OpenSegment::new(file, path, seed)))
        })
    }

    /// Has `range` of segment `id` in memory, as [`OpenSegment::load`] does. One that was never open is loaded before its header is read, which would
    /// have to wait for whatever else the device is reading, and with it all who walk over the segment: the header comes with its first page.
    pub(super) fn load(&self, id: SegmentId, range: Range<u64>) -> Loaded {
        if self.known_seed(id).is_some() {
            return self.get(id).map(|segment| segment.load(range)).unwrap_or_default();
        }
        let file = self.fs.open_read(&self.path(id));
        file.and_then(|file| file.load(range)).unwrap_or_default()
    }

    /// Lets the system give up what was loaded of `range` of segment `id`, if that is open.
    pub(super) fn unload(&self, id: SegmentId, range: Range<u64>) {
        if let Some(segment) = self.open.peek(&id) {
            // Advice: without it something else is given up.
            drop(segment.file().unload(range));
        }
    }

    fn known_seed(&self, id: SegmentId) -> Option<Seed> {
        self.seeds.lock().get(&id).copied()
    }

    /// The seed of segment `id`, which is opened if it never was.
    fn seed(&self, id: SegmentId) -> Result<Seed> {
        self.known_seed(id).map_or_else(|| self.get(id).map(|segment| segment.seed()), Ok)
    }

    fn read_seed(&self, file: &dyn File, path: &Path, id: SegmentId) -> Result<Seed> {
        let header = read_header(file, path, self.cube, id);
        let seed = header.or_else(|error| mended_header(file, path, self.cube, id)?.ok_or(error))?.seed();
        self.seeds.lock().insert(id, seed);
        Ok(seed)
    }

    /// The same for reads of one stretch after the other.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(super) fn for_walks(&self, id: SegmentId) -> Result<Arc<OpenSegment>> {
        self.walked.get_or_insert_with(&id, || {
            let (path, seed) = (self.path(id), self.seed(id)?);
            let file = opened(self.fs.open_read(&path), &path, Access::Sequential)?;
            Ok(Arc::new(OpenSegment::new(file, path, seed)))
        })
    }

    /// The same for reads past the system's cache of files.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(super) fn past_cache(&self, id: SegmentId) -> Result<Arc<OpenSegment>> {
        self.read_past_cache.get_or_insert_with(&id, || {
            let (path, seed) = (self.path(id), self.seed(id)?);
            // Some is read through the cache, and what lies around it is not wanted there.
            let file = opened(self.fs.open_past_cache(&path), &path, Access::Random)?;
            Ok(Arc::new(OpenSegment::new(file, path, seed)))
        })
    }

    /// The same for reads of single values.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(super) fn for_values(&self, id: SegmentId) -> Result<Arc<OpenSegment>> {
        if self.direct { self.past_cache(id) } else { self.get(id) }
    }

    /// Lets the system give up small pages of what it has of segments that are read one value at a time and `are_durable`: a large page of which
    /// anything is read stays in memory with all that nobody asks for, at the expense of what somebody does. Looks at `pages_max` large
    /// pages at most, which takes up to 0.2 ms each.
    pub fn part_pages(&self, pages_max: u64, are_durable: impl Fn(SegmentId) -> bool) {
        let mut left = pages_max;
        for (id, segment) in self.open.iter() {
            if left == 0 {
                return;
            }
            if are_durable(id) {
                left = left.saturating_sub(segment.part_pages(left));
            }
        }
    }

    /// Whether all values are read past the system's cache of files.
    pub fn are_direct(&self) -> bool {
        self.direct
    }
}

/// Reads a segment's header, and checks that it is the one its name says.
///
/// # Errors
/// `Io`, `Corruption`, `Unsupported`.
pub fn read_header(file: &dyn File, path: &Path, cube: CubeId, id: SegmentId) -> Result<SegmentHeader> {
    let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
    let read = file.read_at(&mut bytes, 0).map_err(|error| Error::io("read", path, error))?;
    if read < bytes.len() {
        return Err(Error::corruption(path, 0, "a segment header of 80 bytes", format!("{read} bytes")));
    }
    match SegmentHeader::decode(&bytes) {
        Ok(header) if header.cube == cube && header.id == id => Ok(header),
        Ok(header) => Err(Error::corruption(
            path,
            0,
            format!("segment {id} of cube {:#x}", cube.0),
            format!("segment {} of cube {:#x}", header.id, header.cube.0),
        )),
        Err(HeaderFault::Blank) => Err(Error::corruption(path, 0, "a segment header", "zeros")),
        Err(HeaderFault::Version(version)) => Err(Error::unsupported(format!(
            "{} has segment format {version}; this build reads format 1: use a newer build",
            path.display()
        ))),
        Err(HeaderFault::Damaged(found)) => Err(Error::corruption(path, 0, "a segment header", found)),
    }
}

/// The header of a sealed segment of which one byte is damaged, in memory alone; `None` if it is another's, or lost.
///
/// # Errors
/// `Io`.
pub fn mended_header(
    file: &dyn File,
    path: &Path,
    cube: CubeId,
    id: SegmentId,
) -> Result<Option<SegmentHeader>> {
    let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
    let read = file.read_at(&mut bytes, 0).map_err(|error| Error::io("read", path, error))?;
    let header = Some(&bytes).filter(|_| read == bytes.len());
    Ok(header.and_then(|bytes| SegmentHeader::mend(bytes, cube, id)))
}

/// The footer of a segment file of `len` bytes; `None` if it is not sealed, or its footer is damaged: the
/// records can be found without it.
pub fn read_footer(file: &dyn File, path: &Path, header: &SegmentHeader, len: u64) -> Result<Option<Footer>> {
    let Some(trailer_at) = len.checked_sub(FOOTER_TRAILER_BYTES as u64) else { return Ok(None) };
    let io = |error| Error::io("read", path, error);
    let mut trailer = [0; FOOTER_TRAILER_BYTES];
    read_exact_at(file, &mut trailer, trailer_at).map_err(io)?;
    let Some((start, payload_len, crc)) = Footer::decode_trailer(header.seed(), len, &trailer) else {
        return Ok(None);
    };
    let mut payload = vec![0; usize::try_from(payload_len).expect("a payload lies inside its file")];
    read_exact_at(file, &mut payload, start).map_err(io)?;
    Ok(Footer::decode_payload(header.seed(), start, &payload, crc).ok())
}

/// The file at `path`, which `access` is declared for.
fn opened(file: io::Result<Arc<dyn File>>, path: &Path, access: Access) -> Result<Arc<dyn File>> {
    let file = file.map_err(|error| missing_or_io(path, error))?;
    file.advise(access).map_err(|error| Error::io("advise on", path, error))?;
    Ok(file)
}

/// A file that the index refers to and that is not there is damage, not an ordinary failure.
fn missing_or_io(path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::corruption(path, 0, "a segment of the value log", "no file");
    }
    Error::io("open", path, error)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::base::checksum::FileKind;
    use crate::base::ids::{LogPosition, Sequence};
    use crate::env::sim::{SimDisk, SimOptions};

    const CUBE: CubeId = CubeId(7);

    /// Segments of that number, of which nothing but the header is written.
    fn segments(count: u32, files_max: usize) -> OpenSegments {
        let env = SimDisk::new(&SimOptions::default()).env();
        let segments = OpenSegments::new(Arc::clone(&env.fs), PathBuf::from("/"), CUBE, files_max, false);
        for id in (1..=count).map(SegmentId) {
            let header = SegmentHeader {
                cube: CUBE,
                id,
                salt: 5,
                predecessor: LogPosition::default(),
                first_sequence: Sequence(1),
                durable: LogPosition::default(),
            };
            let file = env.fs.create_new(&segments.path(id)).expect("nothing fails");
            file.write_at(&header.encode(), 0).expect("nothing fails");
        }
        segments
    }

    #[test]
    fn a_segment_is_opened_again_without_a_look_at_its_header() {
        let segments = segments(1, 16);
        let open = |id| segments.get(SegmentId(id)).map(|segment| segment.seed());
        let seed = open(1).expect("its header is whole");
        let file = segments.fs.open_write(&segments.path(SegmentId(1))).expect("nothing fails");
        file.write_at(&[0; SEGMENT_HEADER_BYTES as usize], 0).expect("nothing fails");
        segments.open.remove(&SegmentId(1));
        assert_eq!(open(1).expect("it is known"), seed);
        segments.forget(SegmentId(1));
        assert_eq!(open(1).expect_err("it has none").kind(), crate::base::error::ErrorKind::Corruption);
    }

    #[test]
    fn a_segment_is_loaded_before_its_header_is_looked_at() {
        let segments = segments(1, 16);
        let file = segments.fs.open_write(&segments.path(SegmentId(1))).expect("nothing fails");
        file.write_at(&[0; SEGMENT_HEADER_BYTES as usize], 0).expect("nothing fails");
        assert!(segments.load(SegmentId(1), 0..10).is_there);
        assert!(segments.get(SegmentId(1)).is_err(), "whoever reads it is told");
        let missing = segments.load(SegmentId(2), 0..10);
        assert!(!missing.is_there && missing.read == 0);
    }

    #[test]
    fn shares_are_of_what_may_be_open() {
        for (files_max, direct) in (8..2000).flat_map(|files_max| [(files_max, false), (files_max, true)]) {
            let Shares { past_cache, others } = Shares::of(files_max, direct);
            assert!(others + DESCRIPTORS_PAST_CACHE * past_cache <= files_max && others > 0, "{files_max}");
            assert!(
                direct == (DESCRIPTORS_PAST_CACHE * past_cache > others) || files_max < 12,
                "{files_max}"
            );
        }
    }

    #[test]
    fn as_many_stay_open_as_may() {
        let segments = segments(200, 20);
        let open_all = || {
            (0..3).for_each(|_| {
                (1..=200).for_each(|id| drop(segments.get(SegmentId(id)).expect("its header is whole")))
            });
            segments.open.len()
        };
        // The cache has several parts.
        let most = |files_max| Shares::of(files_max, false).others + 8;
        assert!((1..=most(20)).contains(&open_all()));
        segments.set_files_max(150);
        let many = open_all();
        assert!((60..=most(150)).contains(&many), "{many}");
        segments.set_files_max(20);
        assert!(segments.open.len() <= most(20), "at once");
    }

    #[test]
    fn what_is_loaded_is_parted_again() {
        const MIB: u64 = 1 << 20;
        let env = SimDisk::new(&SimOptions::default()).env();
        let path = PathBuf::from("/segment");
        let file = env.fs.create_new(&path).expect("nothing fails");
        file.set_len(33 * MIB).expect("nothing fails");
        let segment = OpenSegment::new(file, path, Seed::new(CubeId(7), FileKind::Segment, 1, 0));
        assert_eq!(segment.part_pages(10), 10);
        assert_eq!(segment.part_pages(10), 7, "the last one is not whole");
        assert_eq!(segment.part_pages(10), 0);
        assert!(segment.load(5 * MIB..7 * MIB).is_there);
        assert_eq!(segment.parted_to.load(Ordering::Relaxed), 4 * MIB, "where a large page begins");
        assert_eq!(segment.part_pages(u64::MAX), 15);
        assert_eq!(segment.part_pages(u64::MAX), 0);
    }
}
