//! Reads of single values: through the kernel's cache of files, or past it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Advice, AtFlags, OFlags, StatxFlags, fadvise, statx};

/// A file of which values are read at random, so that nothing is read around them: but for what is on their pages, or past the
/// cache in their sectors.
pub struct Reader {
    file: File,
    /// Of reads past the cache; without it they are through it.
    alignment: Option<Alignment>,
}

/// What the device asks for when it is to write into a program's memory.
struct Alignment {
    memory: usize,
    /// In the file.
    sector: usize,
}

impl Alignment {
    /// Where the system does not tell: no device asks for more.
    const USUAL: u32 = 4096;

    fn of(file: &File) -> io::Result<Self> {
        let told = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
        let is_told = told.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && told.stx_dio_offset_align > 0;
        let (memory, sector) = if is_told {
            (told.stx_dio_mem_align, told.stx_dio_offset_align)
        } else {
            (Self::USUAL, Self::USUAL)
        };
        Ok(Self { memory: memory as usize, sector: sector as usize })
    }
}

/// A read that has not been made yet.
pub struct Read {
    memory: Vec<u8>,
    /// Where in the memory the bytes come that are read ...
    begins: usize,
    /// ... how many those are ...
    bytes: usize,
    /// ... and how many of them come before the value.
    lead: usize,
    /// Where the read begins in the file.
    pub offset: u64,
    value_bytes: usize,
}

impl Read {
    /// Where the bytes come.
    pub fn target(&mut self) -> &mut [u8] {
        &mut self.memory[self.begins..][..self.bytes]
    }

    /// The value, once all of it has come.
    fn into_value(mut self) -> Vec<u8> {
        let start = self.begins + self.lead;
        self.memory.copy_within(start..start + self.value_bytes, 0);
        self.memory.truncate(self.value_bytes);
        self.memory
    }
}

impl Reader {
    /// Opens a file; with `direct`, to read past the cache.
    pub fn open(path: &Path, direct: bool) -> Result<Self, String> {
        let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
        let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path);
        let way = if direct { "read past the kernel's cache" } else { "read" };
        let failed = |error: io::Error| format!("{way} {}: {error}", path.display());
        let file = file.map_err(failed)?;
        fadvise(&file, 0, None, Advice::Random).map_err(|error| failed(error.into()))?;
        let alignment = direct.then(|| Alignment::of(&file)).transpose().map_err(failed)?;
        Ok(Self { file, alignment })
    }

    /// The number by which the kernel knows the file.
    pub fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// Readies the read of a value, whose memory will be the value's.
    pub fn prepare(&self, offset: u64, value_bytes: usize, mut memory: Vec<u8>) -> Read {
        let Some(alignment) = &self.alignment else {
            memory.resize(value_bytes, 0);
            return Read { memory, begins: 0, bytes: value_bytes, lead: 0, offset, value_bytes };
        };
        let lead = (offset % alignment.sector as u64) as usize;
        let bytes = (lead + value_bytes).next_multiple_of(alignment.sector);
        memory.resize(bytes + alignment.memory, 0);
        let begins = memory.as_ptr().align_offset(alignment.memory);
        Read { memory, begins, bytes, lead, offset: offset - lead as u64, value_bytes }
    }

    /// Reads a value into `value`.
    pub fn read(&self, offset: u64, value_bytes: usize, value: &mut Vec<u8>) -> io::Result<()> {
        let read = self.prepare(offset, value_bytes, std::mem::take(value));
        *value = self.finish(read, 0)?;
        Ok(())
    }

    /// The value of a read of which so many bytes have come; reads what is missing of it. Behind the last value the file may
    /// end before the sector does.
    pub fn finish(&self, mut read: Read, mut come: usize) -> io::Result<Vec<u8>> {
        while come < read.lead + read.value_bytes {
            let at = read.offset + come as u64;
            match self.file.read_at(&mut read.target()[come..], at) {
                Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, format!("it ends at {at}"))),
                Ok(bytes) => come += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read.into_value())
    }
}
