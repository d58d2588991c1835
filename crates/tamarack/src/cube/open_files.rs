//! How the limit on open files is shared out between tables and segments.
//!
//! A read that finds its file closed opens it again, and another is closed for it. Of a database of large values nearly all files are
//! segments, of one of small values tables. So tables may have half, and what they have no use for goes to segments. The shares seldom
//! change: a cache forgets some of what it knows of its entries when its size does.

use super::Cube;
use crate::base::options::OPEN_FILES_MIN;
use crate::base::sync::Mutex;

/// Compactions read tables and write others before these are in a version.
const COPIES_OF_TABLES: usize = 2;
/// And flushes; and few tables do not fill a cache, which has several parts, evenly.
const TABLES_MORE: usize = 64;
/// Tables have less again when they have so many times what they need.
const TOO_MUCH: usize = 4;

/// How many files may be held open by a database that may have `files_max`, in a process that may have `limit`: a quarter of these is
/// for whatever else is opened, and one that finds no file to be had where something must be written takes no more writes.
pub fn allowed(files_max: usize, limit: u64) -> usize {
    let part = usize::try_from(limit / 4 * 3).unwrap_or(usize::MAX);
    files_max.min(part.max(OPEN_FILES_MIN))
}

/// How many tables may be open, at most.
pub fn tables_max(files_max: usize) -> usize {
    files_max / 2
}

/// How many tables may be open where there are `tables`, and `present` might be open until now.
fn tables_share(files_max: usize, tables: usize, present: usize) -> usize {
    let used = tables.saturating_mul(COPIES_OF_TABLES).saturating_add(TABLES_MORE);
    let wanted = used.checked_next_power_of_two().unwrap_or(usize::MAX).min(tables_max(files_max));
    if wanted > present || wanted.saturating_mul(TOO_MUCH) <= present { wanted } else { present }
}

/// The shares of a cube.
#[derive(Debug)]
pub struct OpenFiles {
    files_max: usize,
    /// Rank: innermost but for the caches' own locks. Held while a share is set, so that shares are those of one moment.
    tables_max: Mutex<usize>,
}

impl OpenFiles {
    /// Not shared out yet.
    pub fn new(files_max: usize) -> Self {
        Self { files_max, tables_max: Mutex::new(0) }
    }
}

impl Cube {
    /// Shows readers the index's present version.
    pub(super) fn show_version(&self) {
        self.current.install(|| self.index.version());
        self.share_out_files();
    }

    /// Lets as many tables be open as there is use for, and as many segments as they leave.
    pub(super) fn share_out_files(&self) {
        let OpenFiles { files_max, tables_max } = &self.open_files;
        let mut present = tables_max.lock();
        let share = tables_share(*files_max, self.index.version().tables().count(), *present);
        if share != *present {
            *present = share;
            self.index.tables().set_open_max(share);
            self.reader.segments().set_files_max(files_max - share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_keeps_files_for_other_things() {
        let of_a_thousand = |limit| allowed(1000, limit);
        assert_eq!([u64::MAX, 20_000, 1024, 256, 10, 0].map(of_a_thousand), [1000, 1000, 768, 192, 16, 16]);
    }

    #[test]
    fn segments_have_what_tables_do_not_need() {
        let at_first = |tables| tables_share(1000, tables, 0);
        assert_eq!([0, 1, 32, 33, 96, 97, usize::MAX].map(at_first), [64, 128, 128, 256, 256, 500, 500]);
        let from_half = |tables| tables_share(1000, tables, 500);
        assert_eq!([0, 1, 97].map(from_half), [64, 500, 500], "what is there is not taken back lightly");
        assert_eq!(tables_share(16, 0, 0), 8);
    }

    #[test]
    fn shares_do_not_change_with_every_table() {
        let mut share = 0;
        let mut changes = 0;
        for tables in (0..200).map(|step| 60 + step % 8) {
            let next = tables_share(1000, tables, share);
            changes += usize::from(next != share);
            share = next;
        }
        assert_eq!(changes, 1);
    }
}
