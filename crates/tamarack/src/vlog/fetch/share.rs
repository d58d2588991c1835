//! A share: what one thread reads of a fetch, and the buffer that its values lie in.

use super::{Fetch, Fetched, FetchedValue};
use crate::base::error::Result;
use crate::base::ids::SegmentId;
use crate::base::sync::Arc;
use crate::vlog::open_segments::OpenSegment;
use crate::vlog::plan::{Run, Wanted};
use crate::vlog::reader::StoredValue;

/// Whether a read may wait for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Yes,
    No,
}

/// What has been read of a share.
pub(super) struct Share {
    /// The segment of the last run, and whether it is open for reads past the cache.
    segment: Option<(SegmentId, bool, Arc<OpenSegment>)>,
    /// What is read at present was loaded.
    pub(super) is_loaded: bool,
    /// Bytes at the front of the buffer that values lie in.
    used: usize,
    pub(super) out: Fetched,
}

impl Share {
    pub(super) fn new(buffer: Vec<u8>) -> Self {
        Self {
            segment: None,
            is_loaded: false,
            used: 0,
            out: Fetched { bytes: buffer, ..Fetched::default() },
        }
    }

    /// Whether the members of `run` are done with, one way or another; otherwise it would have to wait.
    pub(super) fn read_run(&mut self, fetch: &Fetch, run: &Run, past_cache: bool, wait: Wait) -> bool {
        let Some(segment) = self.segment_of(fetch, run, past_cache) else { return true };
        let members = &fetch.wanted[run.members.clone()];
        if wait == Wait::No {
            // What fails is read again, by those who tell why.
            return self.read_joined(fetch, &segment, run, members, wait).unwrap_or(false);
        }
        let walked = members.len() > 1 && run.is_walk() && !self.is_loaded && !past_cache;
        let walked = walked.then(|| fetch.reader.segments().for_walks(run.segment).ok()).flatten();
        let joined = walked.as_deref().unwrap_or(&segment);
        if members.len() > 1 && self.read_joined(fetch, joined, run, members, wait).is_ok() {
            return true;
        }
        // A member by itself; or the joined read failed, and each member is to have its own outcome.
        for want in members {
            self.read_one(fetch, &segment, want);
        }
        true
    }

    /// Takes the values of `run` out of its `bytes`. Where these are not all there are, each value is to have its own outcome.
    pub(super) fn take_run(&mut self, fetch: &Fetch, segment: &OpenSegment, run: &Run, bytes: &[u8]) {
        let Fetch { reader, keys, how, wanted, .. } = fetch;
        for want in &wanted[run.members.clone()] {
            let at = (u64::from(want.pointer.offset) - run.start) as usize;
            let key = &keys[want.key.clone()];
            let whole = bytes.len() as u64 == run.len();
            let found =
                whole.then(|| reader.find_value(segment, want.pointer, key, how.verify, &bytes[at..]));
            match found {
                Some(Ok(Some(StoredValue { codec, range }))) => {
                    let value = &bytes[at..][range];
                    let range = self.used..self.used + value.len();
                    self.make_room(value.len());
                    self.out.bytes[range.clone()].copy_from_slice(value);
                    self.used = range.end;
                    let stored = StoredValue { codec, range };
                    self.out.found.push(FetchedValue { place: want.place, pointer: want.pointer, stored });
                }
                Some(Err(error)) => self.out.failed.push((want.place, error)),
                Some(Ok(None)) | None => self.read_one(fetch, segment, want),
            }
        }
    }

    /// Makes the buffer so long that `bytes` more fit into it.
    pub(super) fn make_room(&mut self, bytes: usize) {
        if self.out.bytes.len() < self.used + bytes {
            self.out.bytes.resize(self.used + bytes, 0);
        }
    }

    /// The segment of `run`, or the reason why its members cannot be read.
    pub(super) fn segment_of(
        &mut self,
        fetch: &Fetch,
        run: &Run,
        past_cache: bool,
    ) -> Option<Arc<OpenSegment>> {
        let segment = self.segment(fetch, run.segment, past_cache);
        if let Err(error) = &segment {
            let members = &fetch.wanted[run.members.clone()];
            self.out.failed.extend(members.iter().map(|want| (want.place, error.clone())));
        }
        segment.ok()
    }

    fn segment(&mut self, fetch: &Fetch, id: SegmentId, past_cache: bool) -> Result<Arc<OpenSegment>> {
        if let Some((open, is_past_cache, segment)) = &self.segment
            && (*open, *is_past_cache) == (id, past_cache)
        {
            return Ok(Arc::clone(segment));
        }
        let segments = fetch.reader.segments();
        let segment = if past_cache {
            let segment = segments.past_cache(id);
            // Where this walk alone is to leave the cache alone, its values are better read through it than not.
            if segments.are_direct() { segment } else { segment.or_else(|_| segments.get(id)) }
        } else {
            segments.get(id)
        }?;
        self.segment = Some((id, past_cache, Arc::clone(&segment)));
        Ok(segment)
    }

    fn read_one(&mut self, fetch: &Fetch, segment: &OpenSegment, want: &Wanted) {
        let Fetch { reader, keys, how, .. } = fetch;
        let key = &keys[want.key.clone()];
        match reader.read_record(segment, want.pointer, key, how.verify, &mut self.out.bytes, self.used) {
            Ok(stored) => {
                self.used = stored.range.end;
                self.out.found.push(FetchedValue { place: want.place, pointer: want.pointer, stored });
            }
            Err(error) => self.out.failed.push((want.place, error)),
        }
    }

    /// Reads all of `run` at once; `false` if that would have to wait.
    fn read_joined(
        &mut self,
        fetch: &Fetch,
        segment: &OpenSegment,
        run: &Run,
        members: &[Wanted],
        wait: Wait,
    ) -> Result<bool> {
        let Fetch { reader, keys, how, .. } = fetch;
        let len = usize::try_from(run.len()).expect("runs are bounded");
        let base = self.used;
        self.make_room(len);
        let bytes = &mut self.out.bytes[base..][..len];
        match wait {
            Wait::No if !reader.read_bytes_cached(segment, run.start, bytes) => return Ok(false),
            Wait::No => {}
            Wait::Yes => reader.read_bytes(segment, run.start, bytes)?,
        }
        self.used = base + len;
        let (first, mut spelled_otherwise) = (self.out.found.len(), Vec::new());
        for want in members {
            let at = base + (u64::from(want.pointer.offset) - run.start) as usize;
            let bytes = &self.out.bytes[at..base + len];
            match reader.find_value(segment, want.pointer, &keys[want.key.clone()], how.verify, bytes) {
                Ok(Some(StoredValue { codec, range })) => {
                    let stored = StoredValue { codec, range: at + range.start..at + range.end };
                    self.out.found.push(FetchedValue { place: want.place, pointer: want.pointer, stored });
                }
                Ok(None) => spelled_otherwise.push(want),
                Err(error) => self.out.failed.push((want.place, error)),
            }
        }
        if run.has_gaps {
            self.close_gaps(base, first);
        }
        for want in spelled_otherwise {
            self.read_one(fetch, segment, want);
        }
        Ok(true)
    }

    /// Moves the values found from `first` on together, so that they begin at `base` and what lay between them takes no
    /// memory.
    fn close_gaps(&mut self, base: usize, first: usize) {
        self.used = base;
        for FetchedValue { stored, .. } in &mut self.out.found[first..] {
            let to = self.used;
            self.out.bytes.copy_within(stored.range.clone(), to);
            self.used += stored.range.len();
            stored.range = to..self.used;
        }
    }
}
