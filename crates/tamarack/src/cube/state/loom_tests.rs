//! The read state beside a publisher, under loom: what a reader holds of the present.

use std::path::Path;

use loom::thread;

use super::*;
use crate::base::comparator::Bytewise;
use crate::base::ids::SegmentId;
use crate::base::keys::KeyOrder;
use crate::base::sync::explore;
use crate::cube::publish::Publisher;
use crate::index::testing::{MemoryFs, RecordedFiles};
use crate::index::version::Files;

/// I-06: a reader at the present holds the segment of every operation that it sees.
#[test]
fn loom_a_segment_begun_before_the_moment_is_held() {
    let seen = explore("a new segment and a reader", 3, || {
        let order = KeyOrder::new(Arc::new(Bytewise));
        let files = Files::new(MemoryFs::new(), Path::new("cube"), Box::new(RecordedFiles::default()));
        let current = Arc::new(Current::new(ReadState {
            active: Arc::new(Memtable::new(order.clone(), 0, None)),
            frozen: Vec::new(),
            version: Arc::new(Version::empty(order, Arc::clone(&files))),
            unregistered: Vec::new(),
            flushed_log_bytes: 0,
            replayed_log_bytes: 0,
        }));
        let publisher = Publisher::new(Sequence(0));
        let writer = {
            let (current, publisher) = (Arc::clone(&current), Arc::clone(&publisher));
            thread::spawn(move || {
                for id in 1..=2 {
                    current.add_segment(files.segment(SegmentId(id)));
                    publisher.publish(Ticket(id.into()), Sequence(id.into())).expect("no failure");
                }
            })
        };
        let (state, sequence) = current.at_present(|| publisher.visible());
        assert!(state.unregistered.len() as u64 >= sequence.0, "I-06: {sequence:?}");
        writer.join().expect("no panic");
        sequence.0
    });
    assert_eq!(seen, [0, 1, 2]);
}
