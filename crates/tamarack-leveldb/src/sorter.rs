//! Brings operations that come in any order into the order of keys, in bounded memory: what exceeds it goes to a temporary file in
//! sorted runs, which has no name and goes with the process.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checksum::crc32c;
use crate::coding::Input;
use crate::error::{Error, Result};
use crate::keys::Trailer;

/// Bytes of an operation in a run before key and value: checksum of all that follows, their lengths, the trailer.
const HEADER: usize = 20;

/// Bytes of a run that are read at once, at least.
const CHUNK: usize = 64 << 10;

/// Memory that an operation takes besides its key and value.
const SLOT: usize = size_of::<Slot>();

/// Collects operations.
#[derive(Debug)]
pub struct Sorter {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    memory_bytes: usize,
    directory: PathBuf,
    file: Option<Arc<File>>,
    runs: Vec<FileRun>,
    /// Versions that were dropped because the same run has a newer one.
    older_versions: u64,
}

/// Where an operation is in memory.
#[derive(Debug, Clone, Copy)]
struct Slot {
    start: usize,
    key_len: u32,
    value_len: u32,
    trailer: Trailer,
}

/// The newest operation on each key of some, in the order of keys.
#[derive(Debug)]
pub enum SortedRun {
    /// All of them in memory.
    Memory(MemoryRun),
    /// In the temporary file.
    File(FileRun),
}

/// A run in memory.
#[derive(Debug)]
pub struct MemoryRun {
    bytes: Vec<u8>,
    slots: std::vec::IntoIter<Slot>,
    current: Slot,
}

/// A run in the temporary file.
#[derive(Debug)]
pub struct FileRun {
    file: Arc<File>,
    path: PathBuf,
    /// What has not been read yet.
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Where the operation ends in the buffer, and the next one begins.
    position: usize,
    key: std::ops::Range<usize>,
    trailer: Trailer,
}

impl Sorter {
    /// Keeps some `memory_bytes` bytes in memory, and the rest in a file in `directory`.
    pub fn new(memory_bytes: usize, directory: &Path) -> Self {
        Self {
            bytes: Vec::new(),
            slots: Vec::new(),
            memory_bytes,
            directory: directory.to_path_buf(),
            file: None,
            runs: Vec::new(),
            older_versions: 0,
        }
    }

    /// Adds an operation.
    ///
    /// # Errors
    /// [`Error::Io`]: the temporary file cannot be written.
    pub fn add(&mut self, key: &[u8], trailer: Trailer, value: &[u8]) -> Result<()> {
        let taken = self.bytes.len() + self.slots.len() * SLOT;
        if !self.slots.is_empty() && taken + key.len() + value.len() + SLOT > self.memory_bytes {
            self.spill().map_err(|error| self.failed(error))?;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        // Lengths come from files in which they have 32 bits.
        let (key_len, value_len) = (key.len() as u32, value.len() as u32);
        self.slots.push(Slot { start, key_len, value_len, trailer });
        Ok(())
    }

    /// The runs, and how many versions were dropped because there is a newer one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(mut self) -> Result<(Vec<SortedRun>, u64)> {
        self.sort();
        let mut runs: Vec<_> = std::mem::take(&mut self.runs).into_iter().map(SortedRun::File).collect();
        if let Some(first) = self.slots.first() {
            let current = *first;
            runs.push(SortedRun::Memory(MemoryRun {
                bytes: self.bytes,
                slots: self.slots.into_iter(),
                current,
            }));
        }
        Ok((runs, self.older_versions))
    }

    /// Sorts what is in memory, and keeps the newest operation on each key.
    fn sort(&mut self) {
        let bytes = &self.bytes;
        let order = |slot: &Slot| (slot.key(bytes), std::cmp::Reverse(slot.trailer));
        self.slots.sort_unstable_by(|one, other| order(one).cmp(&order(other)));
        let before = self.slots.len();
        self.slots.dedup_by(|later, first| later.key(bytes) == first.key(bytes));
        self.older_versions += (before - self.slots.len()) as u64;
    }

    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(self.file.insert(Arc::new(tempfile::tempfile_in(&self.directory)?))),
        };
        let start = file.metadata()?.len();
        let mut end = start;
        // Only this sorter writes, and each time at the end.
        let mut writer = BufWriter::with_capacity(1 << 20, &*file);
        for slot in self.slots.drain(..) {
            let mut header = [0; HEADER];
            header[4..8].copy_from_slice(&slot.key_len.to_le_bytes());
            header[8..12].copy_from_slice(&slot.value_len.to_le_bytes());
            header[12..].copy_from_slice(&slot.trailer.number().to_le_bytes());
            let data = &self.bytes[slot.start..][..slot.len()];
            let crc = crc32c(crc32c(0, &header[4..]), data);
            header[..4].copy_from_slice(&crc.to_le_bytes());
            writer.write_all(&header)?;
            writer.write_all(data)?;
            end += (HEADER + data.len()) as u64;
        }
        writer.flush()?;
        drop(writer);
        self.bytes.clear();
        self.runs.push(FileRun {
            file,
            path: self.directory.clone(),
            next: start,
            end,
            buffer: Vec::new(),
            position: 0,
            key: 0..0,
            trailer: Trailer::new(0, crate::keys::Kind::Deletion),
        });
        Ok(())
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::io("write a temporary file in", &self.directory, error)
    }
}

impl Slot {
    fn len(&self) -> usize {
        self.key_len as usize + self.value_len as usize
    }

    fn key<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start..][..self.key_len as usize]
    }

    fn value<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start..][self.key_len as usize..self.len()]
    }
}

impl SortedRun {
    /// Goes to the next operation; `false` behind the last one.
    ///
    /// # Errors
    /// [`Error::Io`]: the temporary file cannot be read, or does not give back what was written.
    pub fn advance(&mut self) -> Result<bool> {
        match self {
            Self::Memory(run) => Ok(run.slots.next().map(|slot| run.current = slot).is_some()),
            Self::File(run) => {
                run.advance().map_err(|error| Error::io("read a temporary file in", &run.path, error))
            }
        }
    }

    /// The user's key of the operation.
    pub fn user_key(&self) -> &[u8] {
        match self {
            Self::Memory(run) => run.current.key(&run.bytes),
            Self::File(run) => &run.buffer[run.key.clone()],
        }
    }

    /// Which operation it is.
    pub fn trailer(&self) -> Trailer {
        match self {
            Self::Memory(run) => run.current.trailer,
            Self::File(run) => run.trailer,
        }
    }

    /// The value.
    pub fn value(&self) -> &[u8] {
        match self {
            Self::Memory(run) => run.current.value(&run.bytes),
            Self::File(run) => &run.buffer[run.key.end..run.position],
        }
    }
}

impl FileRun {
    fn advance(&mut self) -> io::Result<bool> {
        if self.position == self.buffer.len() && self.next == self.end {
            return Ok(false);
        }
        self.fill(HEADER)?;
        let mut input = Input::new(&self.buffer[self.position..]);
        let changed = || io::Error::new(io::ErrorKind::InvalidData, "it has changed meanwhile");
        let (Some(crc), Some(key_len), Some(value_len), Some(trailer)) =
            (input.fixed32(), input.fixed32(), input.fixed32(), input.fixed64())
        else {
            return Err(changed());
        };
        let len = HEADER + key_len as usize + value_len as usize;
        self.fill(len)?;
        let data = &self.buffer[self.position..self.position + len];
        if crc32c(0, &data[4..]) != crc {
            return Err(changed());
        }
        self.trailer = Trailer::from_number(trailer).ok_or_else(changed)?;
        let key = self.position + HEADER;
        self.key = key..key + key_len as usize;
        self.position += len;
        Ok(true)
    }

    /// Makes `len` bytes available from the position on.
    fn fill(&mut self, len: usize) -> io::Result<()> {
        let there = self.buffer.len() - self.position;
        if there >= len {
            return Ok(());
        }
        self.buffer.drain(..self.position);
        self.position = 0;
        let left = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
        let more = (len - there).max(CHUNK).min(left);
        self.buffer.resize(there + more, 0);
        self.file.read_exact_at(&mut self.buffer[there..], self.next)?;
        self.next += more as u64;
        if there + more < len { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::keys::Kind;

    type Newest = BTreeMap<Vec<u8>, (Trailer, Vec<u8>)>;

    fn collect(run: &mut SortedRun) -> Vec<(Vec<u8>, Trailer, Vec<u8>)> {
        let mut found = Vec::new();
        while run.advance().expect("the temporary file is whole") {
            found.push((run.user_key().to_vec(), run.trailer(), run.value().to_vec()));
        }
        found
    }

    proptest! {
        #[test]
        fn nothing_is_lost_but_older_versions(
            operations in prop::collection::vec(("[a-c]{0,3}", prop::collection::vec(any::<u8>(), 0..40)), 0..60),
            memory_bytes in 1_usize..2000,
        ) {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let mut sorter = Sorter::new(memory_bytes, directory.path());
            let mut newest = Newest::new();
            for (sequence, (key, value)) in operations.iter().enumerate() {
                let trailer = Trailer::new(sequence as u64, Kind::Value);
                sorter.add(key.as_bytes(), trailer, value).expect("it can be written");
                newest.insert(key.as_bytes().to_vec(), (trailer, value.clone()));
            }
            let (mut runs, older) = sorter.finish().expect("it can be written");
            let mut total = 0;
            let mut found = Newest::new();
            for run in &mut runs {
                let entries = collect(run);
                prop_assert!(entries.is_sorted_by(|one, other| one.0 < other.0));
                total += entries.len();
                for (key, trailer, value) in entries {
                    let kept = found.entry(key).or_insert((trailer, value.clone()));
                    if trailer > kept.0 {
                        *kept = (trailer, value);
                    }
                }
            }
            prop_assert_eq!(found, newest);
            prop_assert_eq!(total + older as usize, operations.len());
            prop_assert_eq!(std::fs::read_dir(directory.path()).expect("ours").count(), 0);
        }
    }

    #[test]
    fn what_exceeds_the_memory_goes_to_the_file() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut sorter = Sorter::new(1000, directory.path());
        let value = vec![7; 200_000];
        for sequence in 0..5 {
            let key = format!("key{sequence}");
            sorter
                .add(key.as_bytes(), Trailer::new(sequence, Kind::Value), &value)
                .expect("it can be written");
        }
        let (mut runs, _) = sorter.finish().expect("it can be written");
        assert_eq!(runs.len(), 5);
        assert!(runs[..4].iter().all(|run| matches!(run, SortedRun::File(_))));
        for run in &mut runs {
            assert_eq!(collect(run)[0].2, value);
        }
    }

    #[test]
    fn a_temporary_file_that_changes_is_noticed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut sorter = Sorter::new(1, directory.path());
        for sequence in 0..2 {
            sorter.add(b"key", Trailer::new(sequence, Kind::Value), b"value").expect("it can be written");
        }
        let file = Arc::clone(sorter.file.as_ref().expect("the first operation is in it"));
        file.write_all_at(b"V", HEADER as u64 + 3).expect("it can be written");
        let (mut runs, _) = sorter.finish().expect("it can be written");
        let error = runs[0].advance().expect_err("a byte has changed").to_string();
        assert!(error.contains("changed"), "{error}");
    }
}
