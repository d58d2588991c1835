//! Garbage collection of the value log: copies what is alive out of segments that are mostly dead, and lets them go.
//!
//! It is index-free, unlike the paper's (WiscKey, section 3.3.3): it never writes a key, never appends to the log, and
//! so can neither bring a deleted key back nor lose one to a race. What is alive is read from the tables' reference
//! sets; where a record has gone is said by one edit of the manifest.
//!
//! # The protocol
//!
//! 1. **Choose** ([`choose`], pure): victims among the sealed segments whose every record is in tables. No memtable
//!    points into them, and none ever will. The choice and the registration are one step, so that no segment is
//!    taken twice, and the collection holds the version it chose from: nothing it reads can go.
//! 2. **Mark** ([`Survivors`](survivors)): the union of the reference sets of the version's tables, for the victim's own
//!    id and for every id that was moved into it. Tables that come later have their entries from these tables, so
//!    they reference no other record. A record whose key has a newer version in a newer *table* that every snapshot
//!    sees in its place is hidden for good and is left behind. Memtables do not count: what they say could be lost
//!    with the machine, and then the record would be wanted again (I-07). Everything that tables say is durable (I-09).
//! 3. **Copy** ([`ColdWriter`](crate::vlog::cold::ColdWriter)): survivors sorted by key into a cold segment, each
//!    checked down to its value. Damage ends the collection and changes nothing: the victim is *quarantined*, kept
//!    and left alone from then on.
//! 4. **Sync** the file, then its directory.
//! 5. **Install** one edit: the cold segment is added, the victim's ids are moved into it. Readers of the new version
//!    find a pointer's record through the relocation table, compactions replace pointers as they pass; readers of
//!    older versions go on in the victim's file, which their version holds.
//! 6. The victim's file goes with the last version that mentions it (I-06), after the edit is durable (I-04).
//!
//! A crash before 5 leaves a file that no manifest mentions, which is removed; after it, one more that is removed.
//!
//! Where large values have died, the victim is not copied: its file gets holes instead, by a protocol of its own
//! ([`punch`]) that begins with the same two steps. And where values lie in another order than their keys, segments are
//! copied for that alone ([`sort`]), which pointers then follow at once.
//!
//! # What could go wrong, and why it does not
//!
//! *A compaction runs while its inputs' segments are collected.* It may write pointers under ids that are moved by
//! then, also the id of a cold segment that is a victim itself and to which no table points yet. So a victim's own
//! relocation table names every survivor, whatever id it was referenced by; the table of an id that moves on is its old
//! one followed by that, references or none; and a moved id is forgotten only when no table references it
//! and no running compaction may come to ([`InProgress::reaches`](crate::index)).
//! *A hidden record is left behind while a table still points to it.* Reads never follow that pointer; a compaction
//! that meets it drops the entry, but only after it has seen the newer version itself. Otherwise it fails:
//! a record that is missing without reason is damage, never a dropped key. One that began under a snapshot that is gone
//! by then keeps both versions, in one table: there the newer one still comes first.
//! *All references to a victim die while it is collected.* Its copies are dead on arrival and are dropped like any
//! dead segment.
//! *Two collections.* No two share a victim, and outputs are victims only after their edit.

mod batch;
mod choose;
mod collector;
mod job;
mod pace;
mod progress;
mod punch;
#[cfg(all(test, not(shuttle)))]
mod punch_tests;
mod request;
mod sort;
mod survivors;

pub use crate::base::gc::GcReport;
pub use choose::choose;
pub use collector::Collector;
pub use progress::CollectionStats;
pub use request::GcGoal;
pub use sort::{Effort, Reads, Replacing, SCATTERED_BYTES_MAX, Sorted, ToCopies, do_readers_hold_much};

pub use choose::Candidate;
