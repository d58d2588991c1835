//! The quota: how much longer all files together have become, and how long they may.

use std::io;

use super::ENOSPC;
use crate::base::sync::Mutex;
use crate::env::File;

/// Keeps the account. Its lock is held during every call that may change a length, so that two calls cannot
/// both have the last byte.
#[derive(Debug, Default)]
pub struct Space {
    account: Mutex<Account>,
}

#[derive(Debug, Default)]
struct Account {
    used: u64,
    quota: Option<u64>,
}

impl Account {
    /// The length that a file of `len` bytes may grow to.
    fn len_max(&self, len: u64) -> u64 {
        let free = self.quota.map_or(u64::MAX, |quota| quota.saturating_sub(self.used));
        len.saturating_add(free)
    }

    /// A file's length has changed. Files that are older than this world give back what was never counted.
    fn settle(&mut self, before: u64, after: u64) {
        self.used = (self.used + after.saturating_sub(before)).saturating_sub(before.saturating_sub(after));
    }
}

impl Space {
    /// Sets or lifts the limit.
    pub fn set_quota(&self, quota: Option<u64>) {
        self.account.lock().quota = quota;
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.account.lock().used
    }

    /// Bytes left of the quota.
    pub fn free_bytes(&self) -> u64 {
        self.account.lock().len_max(0)
    }

    /// Writes as much as there is room for, like a real file system, and fails if that is not all.
    pub fn write(&self, file: &dyn File, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut account = self.account.lock();
        let before = file.len()?;
        let room = account.len_max(before).saturating_sub(offset);
        let fits = usize::try_from(room).unwrap_or(usize::MAX).min(buf.len());
        let written = file.write_at(&buf[..fits], offset);
        account.settle(before, file.len()?);
        written?;
        if fits < buf.len() {
            return Err(full());
        }
        Ok(())
    }

    /// Makes a change after which `file` is at least or exactly `len` long, if there is room.
    pub fn resize(
        &self,
        file: &dyn File,
        len: u64,
        change: impl FnOnce(&dyn File) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut account = self.account.lock();
        let before = file.len()?;
        if len > account.len_max(before) {
            return Err(full());
        }
        let changed = change(file);
        account.settle(before, file.len()?);
        changed
    }

    /// Makes a change that, if it succeeds, gives a file of `len` bytes one more name. That takes no room, but
    /// removing either name will give back the length, so it is counted for both.
    pub fn share(&self, len: u64, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut account = self.account.lock();
        change()?;
        account.settle(0, len);
        Ok(())
    }

    /// Makes a change that, if it succeeds, frees a file of `len` bytes.
    pub fn free(&self, len: u64, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut account = self.account.lock();
        change()?;
        account.settle(len, 0);
        Ok(())
    }
}

fn full() -> io::Error {
    io::Error::from_raw_os_error(ENOSPC)
}
