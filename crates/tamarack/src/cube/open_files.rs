//! How the limit on open files is shared out between tables and segments.
//!
//! A read that finds its file closed opens it again, and another is closed for it. Of a database of large values nearly all files are
//! segments, of one of small values tables. So tables may have half, and what they have no use for goes to segments.

use super::Cube;

/// Compactions read tables and write others before these are in a version.
const COPIES_OF_TABLES: usize = 2;
/// And flushes; and few tables do not fill a cache, which has several parts, evenly.
const TABLES_MORE: usize = 64;

/// How many tables may be open at first, and at most.
pub fn tables_max(files_max: usize) -> usize {
    files_max / 2
}

/// How many tables may be open where there are `tables`; segments have what is left.
fn tables_max_of(files_max: usize, tables: usize) -> usize {
    let used = tables.saturating_mul(COPIES_OF_TABLES).saturating_add(TABLES_MORE);
    tables_max(files_max).min(used)
}

impl Cube {
    /// Shows readers the index's present version.
    pub(super) fn show_version(&self) {
        self.current.install(|| self.index.version());
        self.share_out_files();
    }

    /// Lets as many tables be open as there is use for, and as many segments as they leave.
    pub(super) fn share_out_files(&self) {
        let files_max = self.options.open_files_max;
        let tables_max = tables_max_of(files_max, self.index.version().tables().count());
        self.index.tables().set_open_max(tables_max);
        self.reader.segments().set_files_max(files_max - tables_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_have_what_tables_do_not_need() {
        let segments = |files, tables| files - tables_max_of(files, tables);
        assert_eq!((segments(1000, 0), segments(1000, 80)), (936, 776));
        assert_eq!([218, 219, usize::MAX].map(|tables| segments(1000, tables)), [500; 3]);
        assert_eq!((tables_max(16), segments(16, 0)), (8, 8));
    }
}
