//! Turning memtables into a table of L0.

use crate::base::error::Result;
use crate::base::ids::Sequence;
use crate::base::keys::KeyOrder;
use crate::base::names::FileName;
use crate::base::sync::Arc;

use super::compact::{Decider, Decision};
use super::cursor::Cursor;
use super::memtable::Memtable;
use super::merge::merge;
use super::output::{Destination, Output};
use super::version::TableMeta;

/// Writes the entries of `memtables`, which nobody writes to any more, into one table for L0. Versions that no
/// reader at one of `snapshots` (sorted) or newer can see are left out; deletions stay, for the sake of deeper
/// levels. Returns nothing if there are no entries. The table's data and name are durable.
///
/// The caller makes the log durable up to the newest entry before an edit mentions the table, which points into it.
pub fn flush(
    order: &KeyOrder,
    memtables: &[Arc<Memtable>],
    snapshots: &[Sequence],
    destination: &Destination,
) -> Result<Vec<Arc<TableMeta>>> {
    let cursors = memtables.iter().map(|memtable| Box::new(memtable.cursor()) as Box<dyn Cursor>).collect();
    let mut cursor = merge(order.clone(), cursors);
    let mut decider = Decider::new(order, snapshots);
    let mut output = Output::new(destination.clone(), destination.path(FileName::Current));
    cursor.seek_to_first()?;
    while cursor.valid() {
        if decider.decide(cursor.key(), |_| false) == Decision::Keep {
            output.add(cursor.key(), cursor.payload(), decider.held_for())?;
        }
        cursor.next()?;
    }
    // A cut leaves the files in the output's care until the names are durable too.
    output.cut()?;
    destination.sync_names()?;
    output.finish()
}
