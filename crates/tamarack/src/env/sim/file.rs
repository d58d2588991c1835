//! Open files and mappings of the simulated disk.

#![expect(unsafe_code, reason = "a mapping hands out its bytes as a slice")]

use std::io;
use std::ops::Range;

use super::content::Memory;
use super::crash::PAGE_BYTES;
use super::disk::Shared;
use super::effect::Change;
use super::state::{NodeId, State};
use crate::base::sync::{Arc, PlainMutexGuard, interleave};
use crate::env::fault::ENOSPC;
use crate::env::{Access, File, Loaded, Mapping, large_pages_in};

/// Keeps a file in being while it is open or mapped.
#[derive(Debug)]
pub struct Handle {
    shared: Arc<Shared>,
    node: NodeId,
}

impl Handle {
    /// Opens a file.
    pub fn open(
        shared: &Arc<Shared>,
        mut state: PlainMutexGuard<'_, State>,
        node: NodeId,
    ) -> io::Result<Arc<Self>> {
        state.with_file(node, |inode| inode.handles += 1)?;
        drop(state);
        Ok(Arc::new(Self { shared: Arc::clone(shared), node }))
    }

    /// Begins a call.
    fn begin(&self, call: &str, numbers: &[u64], bytes: &[u8]) -> PlainMutexGuard<'_, State> {
        let mut state = self.shared.lock();
        state.note(call, format!("{:?}", self.node).as_bytes(), numbers, bytes);
        state
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.shared.lock_at_once();
        let closed = state.with_file(self.node, |inode| inode.handles -= 1);
        debug_assert!(closed.is_ok(), "an open file is never forgotten: {closed:?}");
        state.sweep();
    }
}

/// An open file.
#[derive(Debug)]
pub struct SimFile {
    handle: Arc<Handle>,
    writable: bool,
}

impl SimFile {
    /// A file open for reading, and perhaps for writing.
    pub fn new(handle: Arc<Handle>, writable: bool) -> Self {
        Self { handle, writable }
    }

    /// Begins a call that changes the file.
    fn begin_change(
        &self,
        call: &str,
        numbers: &[u64],
        bytes: &[u8],
    ) -> io::Result<PlainMutexGuard<'_, State>> {
        if self.writable {
            Ok(self.handle.begin(call, numbers, bytes))
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.handle.begin("read_at", &[offset, buf.len() as u64], &[]);
        Ok(state.file(self.handle.node)?.content().read(buf, offset))
    }

    fn read_cached(&self, buf: &mut [u8], offset: u64) -> io::Result<bool> {
        // Every other page is in memory.
        let (first, last) = (offset / PAGE_BYTES, (offset + buf.len() as u64).saturating_sub(1) / PAGE_BYTES);
        if first != last || first % 2 == 1 {
            return Ok(false);
        }
        Ok(self.read_at(buf, offset)? == buf.len())
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.begin_change("write_at", &[offset], buf)?;
        let node = self.handle.node;
        let fits = state.fitting(node, &(offset..offset + buf.len() as u64))? as usize;
        if fits > 0 {
            state.write(node, offset, &buf[..fits], false)?;
        }
        if fits < buf.len() { Err(full()) } else { Ok(()) }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.handle.begin("len", &[], &[]).file(self.handle.node)?.content().len())
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        let state = self.handle.begin("allocated_bytes", &[], &[]);
        Ok(state.file(self.handle.node)?.blocks() * state.block_bytes())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.begin_change("set_len", &[len], &[])?;
        state.change_file(self.handle.node, Change::SetLength(len))
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut state = self.begin_change("allocate", &[offset, len], &[])?;
        let (node, end) = (self.handle.node, offset + len);
        if state.fitting(node, &(offset..end))? < len {
            return Err(full());
        }
        let block_bytes = state.block_bytes();
        state.with_file(node, |inode| inode.reserve_blocks(offset..end, block_bytes))?;
        state.change_file(node, Change::Reserve(end))
    }

    fn links(&self) -> io::Result<u64> {
        Ok(self.handle.begin("links", &[], &[]).file(self.handle.node)?.links)
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut state = self.begin_change("punch_hole", &[offset, len], &[])?;
        state.change_file(self.handle.node, Change::Punch(offset..offset + len))
    }

    fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut state = self.begin_change("zero", &[offset, len], &[])?;
        let (node, end) = (self.handle.node, offset + len);
        if state.fitting(node, &(offset..end))? < len {
            return Err(full());
        }
        let block_bytes = state.block_bytes();
        state.with_file(node, |inode| inode.reserve_blocks(offset..end, block_bytes))?;
        state.change_file(node, Change::Zero(offset..end))
    }

    fn write_behind(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.handle.begin("sync_data", &[], &[]);
        state.sync_file(self.handle.node)?;
        drop(state);
        // What others write between the sync and the return is not covered by it.
        interleave();
        Ok(())
    }

    fn read_ahead(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn load(&self, range: Range<u64>) -> io::Result<Loaded> {
        // Every other page has to be read.
        Ok(Loaded { read: (range.end - range.start) / 2, is_there: true })
    }

    fn advise(&self, _access: Access) -> io::Result<()> {
        Ok(())
    }

    fn map(&self, len: u64) -> io::Result<Arc<dyn Mapping>> {
        let mut state = self.begin_change("map", &[len], &[])?;
        state.with_file(self.handle.node, |inode| inode.handles += 1)?;
        let memory = state.with_file(self.handle.node, |inode| inode.map(len))?;
        drop(state);
        let handle = Arc::new(Handle { shared: Arc::clone(&self.handle.shared), node: self.handle.node });
        let memory = memory.ok_or(io::ErrorKind::Unsupported)?;
        Ok(Arc::new(SimMapping { memory, len, handle }))
    }
}

fn full() -> io::Error {
    io::Error::from_raw_os_error(ENOSPC)
}

/// A mapping. Whatever is written through it is in the file at once, and in its journal.
#[derive(Debug)]
struct SimMapping {
    memory: Arc<Memory>,
    len: u64,
    handle: Arc<Handle>,
}

impl Mapping for SimMapping {
    fn len(&self) -> u64 {
        self.len
    }

    fn prefault(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn join_pages(&self, offset: u64, len: u64) -> io::Result<Range<u64>> {
        Ok(large_pages_in(&(offset..(offset + len).min(self.len))))
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) {
        let mut state = self.handle.begin("write_mapped", &[offset], bytes);
        let node = self.handle.node;
        let file_bytes = state.file(node).map_or(0, |inode| inode.content().len());
        let end = offset + bytes.len() as u64;
        assert!(
            end <= file_bytes.min(self.len),
            "a write to {offset}..{end} of a mapping of {} bytes, in a file of {file_bytes}, is a bus error",
            self.len
        );
        state.write(node, offset, bytes, true).expect("a mapped file is never forgotten");
    }

    unsafe fn bytes(&self, offset: u64, len: usize) -> &[u8] {
        let start = offset as usize;
        // SAFETY: the caller promises that nobody writes any byte of the range while the result lives.
        unsafe { self.memory.bytes(start..start + len) }
    }
}
