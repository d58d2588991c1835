//! Reads many values at once: sorted by place, neighbours joined into one read, reads done in parallel.
//!
//! An SSD serves scattered reads well only if many are under way (WiscKey, section 3.2 and figure 3). Scans and
//! multi-gets collect what they want and hand it over here. [`plan`] is pure; how work runs in parallel is the
//! caller's business.

use super::format::record_len;
use super::reader::SegmentReader;
use crate::base::error::Result;
use crate::base::ids::SegmentId;
use crate::base::pointer::ValuePointer;
use crate::base::sync::{Arc, Mutex};
use crate::env::pool::Job;

/// A gap of at most this many bytes between two records is read along rather than skipped.
const GAP_BYTES_MAX: u64 = 16 * 1024;
/// One read fetches at most this many bytes, unless a single record is larger.
const RUN_BYTES_MAX: u64 = 1024 * 1024;

/// One value wanted, and what became of it.
#[derive(Debug)]
pub struct Wanted {
    /// Whatever the caller knows it by.
    pub place: usize,
    /// Where it lies.
    pub pointer: ValuePointer,
    /// The key it was written under.
    pub key: Vec<u8>,
    /// The value, once fetched.
    pub value: Result<Vec<u8>>,
}

impl Wanted {
    /// A value to fetch.
    pub fn new(place: usize, pointer: ValuePointer, key: &[u8]) -> Self {
        Self { place, pointer, key: key.to_vec(), value: Ok(Vec::new()) }
    }

    fn end(&self) -> u64 {
        u64::from(self.pointer.offset) + record_len(self.key.len(), u64::from(self.pointer.stored_len))
    }
}

/// Records that one read fetches, in the order of their place.
#[derive(Debug)]
struct Run {
    segment: SegmentId,
    start: u64,
    end: u64,
    members: Vec<Wanted>,
}

/// Groups `wanted` into reads.
fn plan(mut wanted: Vec<Wanted>) -> Vec<Run> {
    wanted.sort_unstable_by_key(|want| want.pointer);
    let mut runs: Vec<Run> = Vec::new();
    for want in wanted {
        let (segment, start, end) = (want.pointer.segment, u64::from(want.pointer.offset), want.end());
        match runs.last_mut() {
            Some(run)
                if run.segment == segment
                    && start <= run.end + GAP_BYTES_MAX
                    && end.max(run.end) - run.start <= RUN_BYTES_MAX =>
            {
                run.end = run.end.max(end);
                run.members.push(want);
            }
            _ => runs.push(Run { segment, start, end, members: vec![want] }),
        }
    }
    runs
}

/// What the jobs of one fetch share.
#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Vec<Run>>,
    done: Mutex<Vec<Wanted>>,
}

/// Fetches every value of `wanted`, in up to `ways` jobs that are given to `run_all`, which returns when all have
/// run. The values come back in no particular order, each with its own outcome: one bad record spoils no other.
pub fn fetch(
    reader: &Arc<SegmentReader>,
    wanted: Vec<Wanted>,
    verify: bool,
    ways: usize,
    run_all: impl FnOnce(Vec<Job>),
) -> Vec<Wanted> {
    let runs = plan(wanted);
    let ways = ways.min(runs.len());
    if ways <= 1 {
        return runs.into_iter().flat_map(|run| read_run(reader, run, verify)).collect();
    }
    let shared = Arc::new(Shared { waiting: Mutex::new(runs), done: Mutex::default() });
    let jobs = (0..ways)
        .map(|_| {
            let (reader, shared) = (Arc::clone(reader), Arc::clone(&shared));
            Box::new(move || {
                loop {
                    let Some(run) = shared.waiting.lock().pop() else { return };
                    let members = read_run(&reader, run, verify);
                    shared.done.lock().extend(members);
                }
            }) as Job
        })
        .collect();
    run_all(jobs);
    let mut done = shared.done.lock();
    std::mem::take(&mut *done)
}

fn read_run(reader: &SegmentReader, mut run: Run, verify: bool) -> Vec<Wanted> {
    if run.members.len() > 1 && read_joined(reader, &mut run, verify).is_ok() {
        return run.members;
    }
    // A member by itself; or the joined read failed, and each member is to have its own outcome.
    for want in &mut run.members {
        let mut value = Vec::new();
        want.value = reader.read(want.pointer, &want.key, verify, &mut value).map(|()| value);
    }
    run.members
}

fn read_joined(reader: &SegmentReader, run: &mut Run, verify: bool) -> Result<()> {
    let segment = reader.segment(run.segment)?;
    let mut bytes = vec![0; usize::try_from(run.end - run.start).expect("runs are bounded")];
    reader.read_bytes(&segment, run.start, &mut bytes)?;
    for want in &mut run.members {
        let record = &bytes[(u64::from(want.pointer.offset) - run.start) as usize..];
        let mut value = Vec::new();
        let whole = reader.extract(&segment, want.pointer, &want.key, verify, record, &mut value);
        want.value = match whole {
            Ok(Some(())) => Ok(value),
            Ok(None) => reader.read(want.pointer, &want.key, verify, &mut value).map(|()| value),
            Err(error) => Err(error),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(segment: u32, offset: u32, stored_len: u32) -> Wanted {
        Wanted::new(0, ValuePointer { segment: SegmentId(segment), offset, stored_len }, b"key")
    }

    fn runs(wanted: Vec<Wanted>) -> Vec<(u32, u64, u64, usize)> {
        plan(wanted).iter().map(|run| (run.segment.0, run.start, run.end, run.members.len())).collect()
    }

    #[test]
    fn neighbours_are_joined_and_distant_records_are_not() {
        let wanted = vec![want(1, 100, 73), want(1, 200, 73), want(1, 90_000, 73), want(2, 90_100, 73)];
        assert_eq!(runs(wanted), [(1, 100, 300, 2), (1, 90_000, 90_100, 1), (2, 90_100, 90_200, 1)]);
    }

    #[test]
    fn a_read_has_a_largest_size() {
        let wanted = vec![want(1, 0, 600_000), want(1, 600_100, 600_000), want(1, 1_300_000, 5_000_000)];
        assert_eq!(runs(wanted).len(), 3);
    }

    #[test]
    fn the_same_record_may_be_wanted_twice() {
        let wanted = vec![want(1, 100, 73), want(1, 100, 73)];
        assert_eq!(runs(wanted), [(1, 100, 200, 2)]);
    }
}
