//! What the footer of a segment says of its records, gathered while others are written behind them.

use std::path::Path;

use super::format::{Footer, RecordKind, SEGMENT_HEADER_BYTES};
use super::scan::{End, Scanner, Values};
use crate::base::checksum::Seed;
use crate::base::error::{Error, Result};
use crate::base::keys::KeyOrder;
use crate::env::File;

/// A summary of the first records of a segment.
#[derive(Debug)]
pub struct Summary {
    footer: Footer,
}

impl Default for Summary {
    fn default() -> Self {
        Self { footer: Footer { records_end: SEGMENT_HEADER_BYTES, ..Footer::default() } }
    }
}

impl Summary {
    /// The footer for them.
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Forgets everything but where they end: the footer is written.
    pub fn clear(&mut self) {
        self.footer = Footer { records_end: self.footer.records_end, ..Footer::default() };
    }

    /// Adds the records up to `end`, where one ends, unless they are in it. Blocks on the device, unless they are in memory.
    ///
    /// # Errors
    /// `Io`; `Corruption` when one is not what was written. Those before it are in the summary then.
    pub fn extend(
        &mut self,
        file: &dyn File,
        path: &Path,
        seed: Seed,
        end: u64,
        order: &KeyOrder,
    ) -> Result<()> {
        let footer = &mut self.footer;
        if end <= footer.records_end {
            return Ok(());
        }
        let mut scanner = Scanner::new(file, path, seed, footer.records_end, end);
        while let Some(record) = scanner.next(Values::Skip)? {
            footer.records_end = record.offset + record.header.record_len();
            footer.offsets.push(u32::try_from(record.offset).expect("records begin in the first 4 GiB"));
            if matches!(record.header.kind, RecordKind::Mark | RecordKind::Relocations) {
                continue;
            }
            if record.header.kind == RecordKind::Put {
                footer.value_records += 1;
                footer.value_record_bytes += record.header.record_len();
            }
            if footer.smallest.as_deref().is_none_or(|key| order.compare_user(record.key, key).is_lt()) {
                footer.smallest = Some(record.key.to_vec());
            }
            if footer.largest.as_deref().is_none_or(|key| order.compare_user(record.key, key).is_gt()) {
                footer.largest = Some(record.key.to_vec());
            }
        }
        match scanner.end() {
            End::Limit => Ok(()),
            End::Blank { at } => Err(Error::corruption(path, *at, "a record", "zeros")),
            End::Invalid { at, expected, found } => {
                Err(Error::corruption(path, *at, expected.clone(), found.clone()))
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::base::checksum::Checksum;
    use crate::base::codec::Codec;
    use crate::base::comparator::Bytewise;
    use crate::base::ids::{CubeId, LogPosition, SegmentId, Sequence};
    use crate::base::options::LogMode;
    use crate::base::sync::Arc;
    use crate::env::Fs;
    use crate::env::fault::{Call, FaultEnv};
    use crate::env::sim::{SimDisk, SimOptions};
    use crate::vlog::format::{BatchPlace, MARK_RECORD_BYTES, RecordHeader, SegmentHeader, encode_mark};
    use crate::vlog::open_segments::read_footer;
    use crate::vlog::segment::{Blocks, PreparedSegment, Segment, SegmentSize};

    const CAPACITY: u64 = 1 << 20;

    fn segment(fs: &dyn Fs) -> Segment {
        segment_in(fs, Path::new("/db"))
    }

    fn segment_in(fs: &dyn Fs, directory: &Path) -> Segment {
        fs.create_dir_all(directory).expect("a disk that works");
        let size = SegmentSize { capacity: CAPACITY, reserve: CAPACITY, blocks: Blocks::Noted };
        let header = SegmentHeader {
            cube: CubeId(1),
            id: SegmentId(1),
            salt: 5,
            predecessor: LogPosition::default(),
            first_sequence: Sequence(1),
            durable: LogPosition::default(),
        };
        let made = PreparedSegment::create(fs, directory.join("segment"), size, LogMode::Mapped);
        made.and_then(|prepared| prepared.begin(header)).expect("a disk that works")
    }

    /// Writes a record of `key`. Returns where it ends.
    fn write(segment: &Segment, at: u64, kind: RecordKind, key: u32, value: &[u8]) -> u64 {
        let key = format!("{key:08}");
        let header = RecordHeader {
            kind,
            place: BatchPlace::ONLY,
            codec: Codec::None,
            key_len: key.len() as u16,
            stored_len: value.len() as u32,
            sequence: Sequence(at),
            value_checksum: Checksum::unseeded().with(value).finish(),
        };
        segment.write_record(at, &header, key.as_bytes(), value);
        at + header.record_len()
    }

    /// Writes records of all kinds. Returns where each ends.
    fn fill(segment: &Segment) -> Vec<u64> {
        let (mut at, mut ends) = (SEGMENT_HEADER_BYTES, Vec::new());
        for number in 0..400_u32 {
            let key = number.wrapping_mul(2_654_435_761) % 1000;
            at = match number % 4 {
                0 => write(segment, at, RecordKind::Delete, key, b""),
                1 => {
                    let mark = encode_mark(segment.header().seed(), at, Sequence(at), LogPosition::default());
                    segment.write(at, &mark).expect("a mapped segment");
                    at + MARK_RECORD_BYTES as u64
                }
                _ => write(segment, at, RecordKind::Put, key, &[number as u8; 500]),
            };
            ends.push(at);
        }
        ends
    }

    fn order() -> KeyOrder {
        KeyOrder::new(Arc::new(Bytewise))
    }

    #[test]
    fn records_are_summed_up_in_pieces_as_at_once() {
        let segment = segment(&*SimDisk::new(&SimOptions::default()).env().fs);
        let (file, ends, order) = (segment.shared().file(), fill(&segment), order());
        let seed = segment.header().seed();
        let summary = |ends: &[u64]| {
            let mut summary = Summary::default();
            for &end in ends {
                summary.extend(&**file, segment.shared().path(), seed, end, &order).expect("whole records");
            }
            summary.footer().clone()
        };
        let last = *ends.last().expect("there are some");
        let once = summary(&[last]);
        assert_eq!(once.records_end, last);
        assert_eq!(once.offsets.len(), ends.len());
        assert_eq!((once.value_records, once.value_record_bytes), (200, 200 * (24 + 8 + 500)));
        for step in [1, 2, 7, 399] {
            let mut some: Vec<_> = ends.iter().copied().step_by(step).collect();
            // What is in it is not read twice.
            some.extend([some[0], last, some[0]]);
            assert_eq!(summary(&some), once, "each {step} records");
        }
    }

    #[test]
    fn what_is_not_a_record_yet_is_an_error_and_no_record_before_it_counts_twice() {
        let segment = segment(&*SimDisk::new(&SimOptions::default()).env().fs);
        let (file, path) = (segment.shared().file(), segment.shared().path());
        let (seed, order, mut summary) = (segment.header().seed(), order(), Summary::default());
        let first = write(&segment, SEGMENT_HEADER_BYTES, RecordKind::Put, 1, b"value");
        let second = first + 24 + 8 + 5;
        assert!(summary.extend(&**file, path, seed, second, &order).is_err(), "zeros");
        assert_eq!(summary.footer().records_end, first);
        assert_eq!(write(&segment, first, RecordKind::Put, 2, b"value"), second);
        summary.extend(&**file, path, seed, second, &order).expect("it is one now");
        assert_eq!((summary.footer().records_end, summary.footer().value_records), (second, 2));
        summary.clear();
        assert_eq!((summary.footer().records_end, summary.footer().offsets.capacity()), (second, 0));
    }

    #[test]
    fn a_segment_that_was_followed_is_sealed_without_reading_it_again() {
        let (env, faults) = FaultEnv::new(SimDisk::new(&SimOptions::default()).env());
        let (segment, order) = (segment(&*env.fs), order());
        let ends = fill(&segment);
        let (half, end) = (ends[ends.len() / 2], *ends.last().expect("there are some"));
        segment.follow(half, &order);
        segment.follow(end, &order);
        segment.follow(half, &order);
        let file = Arc::clone(segment.shared());
        drop(segment);
        let before = (faults.count(Call::Read), faults.count(Call::SyncData));
        let mut synced = false;
        let sync = || {
            synced = true;
            file.sync(&*env.fs)
        };
        let meta = file.seal(end, &order, sync).expect("nothing fails");
        assert_eq!(faults.count(Call::Read), before.0);
        assert!(synced && faults.count(Call::SyncData) > before.1);
        assert_eq!((meta.end, meta.value_records), (end, 200));
        let footer = read_footer(&**file.file(), file.path(), file.header(), meta.file_bytes);
        let footer = footer.expect("it can be read").expect("it is whole");
        assert_eq!((footer.records_end, footer.offsets.len()), (end, ends.len()));
    }

    /// KiB of the file at `path` that are mapped by this process.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn mapped_kib(path: &Path) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("the system says so");
        // The system knows it without symbolic links.
        let path = path.canonicalize().expect("it is there");
        let (_, of_file) = maps.split_once(path.to_str().expect("a name of letters")).expect("it is mapped");
        let rss =
            of_file.lines().find_map(|line| line.strip_prefix("Rss:")).expect("a number for each mapping");
        rss.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Else a sync would interrupt all processors for each of their pages.
    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn what_was_followed_is_not_mapped_any_more() {
        let directory = tempfile::tempdir().expect("a directory");
        let segment = segment_in(&*crate::env::posix::posix_env().fs, directory.path());
        let (ends, path) = (fill(&segment), segment.shared().path());
        let end = *ends.last().expect("there are some");
        let before = mapped_kib(path);
        assert!(before >= end / 1024, "{before} KiB of {end} bytes");
        segment.follow(end, &order());
        let left = mapped_kib(path);
        assert!(left <= 64, "{left} KiB: but for the page that is written next");
        let next = write(&segment, end, RecordKind::Put, 1, b"value");
        segment.follow(next, &order());
        segment.shared().seal(next, &order(), || Ok(())).expect("nothing fails");
    }
}
