//! Leases: relocation tables outlive the files they stand in, for the jobs that need them.
//!
//! A compaction follows pointers by the relocation tables of the version it began with. Holding the segments that
//! these tables are in would keep whole segments on disk, for as long as it runs. So it takes a lease instead, before
//! it loads its version; and whoever collects a segment gives the relocation tables in it to every lease, after a
//! version without the segment is current and before its file may go. A lease that is taken later is followed by a
//! version that does not know the segment.
//!
//! A lease takes 8 bytes of memory for each record of the segments that are collected while it lasts.

use std::collections::HashMap;
use std::sync::Weak;

use super::reader::SegmentReader;
use super::relocation::Relocations;
use crate::base::error::Result;
use crate::base::pointer::ValuePointer;
use crate::base::segment::Relocate;
use crate::base::sync::{Arc, Mutex};

/// Follows relocation tables that were there when it was taken, or since. Lock rank: a leaf.
#[derive(Debug)]
pub struct Lease {
    reader: Arc<SegmentReader>,
    retired: Mutex<HashMap<ValuePointer, Arc<Relocations>>>,
}

/// The leases that last. Lock rank: `held` is locked before a lease's own tables.
#[derive(Debug, Default)]
pub struct Leases {
    held: Mutex<Vec<Weak<Lease>>>,
}

impl Leases {
    /// Takes a lease, until it is dropped.
    pub fn take(&self, reader: &Arc<SegmentReader>) -> Arc<Lease> {
        let lease = Arc::new(Lease { reader: Arc::clone(reader), retired: Mutex::default() });
        let mut held = self.held.lock();
        held.retain(|lease| lease.strong_count() > 0);
        held.push(Arc::downgrade(&lease));
        lease
    }

    /// Gives every lease the relocation tables, by their places, of a segment that is about to go.
    pub fn retire(&self, tables: &[(ValuePointer, Arc<Relocations>)]) {
        for lease in self.held.lock().iter().filter_map(Weak::upgrade) {
            lease.retired.lock().extend(tables.iter().map(|(place, table)| (*place, Arc::clone(table))));
        }
    }
}

impl Relocate for Lease {
    fn relocate(&self, table: ValuePointer, pointer: ValuePointer) -> Result<Option<ValuePointer>> {
        let find = |relocations: &Relocations| {
            let now = relocations.find(pointer.offset);
            now.map(|offset| ValuePointer { segment: table.segment, offset, ..pointer })
        };
        // Compactions ask for millions of records, and mostly the table is there.
        if let Some(relocations) = self.reader.relocations_in_memory(table) {
            return Ok(find(&relocations));
        }
        if let Some(relocations) = self.retired.lock().get(&table) {
            return Ok(find(relocations));
        }
        match self.reader.relocations(table, pointer.segment) {
            Ok(relocations) => Ok(find(&relocations)),
            // It may have been retired, and its file removed, since the look above.
            Err(error) => {
                self.retired.lock().get(&table).map_or(Err(error), |relocations| Ok(find(relocations)))
            }
        }
    }
}
