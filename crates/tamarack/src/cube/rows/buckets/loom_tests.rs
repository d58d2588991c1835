//! A place beside writes of its bucket, under loom.

use loom::thread;

use super::*;
use crate::base::sync::{Arc, explore};
use crate::cube::publish::{Publisher, Ticket};

const KEY: u64 = 1 << 32;
const OTHER: u64 = 2 << 32;

fn place(number: u32) -> ValuePointer {
    ValuePointer { segment: SegmentId(number), offset: number, stored_len: number }
}

/// I-16: of each moment a reader finds the place of then, or none; never half of one.
#[test]
fn loom_a_place_is_that_of_the_moment() {
    let seen = explore("a place, a write of its key, and a reader who looked it up", 2, || {
        let buckets = Arc::new(Buckets::new(BUCKET_BYTES, Sequence(0)));
        let publisher = Publisher::new(Sequence(0));
        let writer = {
            let (buckets, publisher) = (Arc::clone(&buckets), Arc::clone(&publisher));
            thread::spawn(move || {
                buckets.note_write(KEY, Sequence(1), Some(place(2)));
                publisher.publish(Ticket(1), Sequence(1)).expect("no failure");
            })
        };
        buckets.note_place(KEY, Sequence(0), place(1));
        let moment = publisher.visible();
        let found = buckets.place(KEY, moment);
        let expected = place(moment.0 as u32 + 1);
        assert!(found.is_none_or(|found| found == expected), "I-16: {found:?} at {moment:?}");
        writer.join().expect("no panic");
        (moment.0, found.is_some())
    });
    assert_eq!(seen, [(0, false), (0, true), (1, false), (1, true)]);
}

/// I-16: two writers of one bucket, of which one may find it locked.
#[test]
fn loom_no_place_is_left_that_a_write_has_taken_away() {
    let seen = explore("two writes of a bucket", 2, || {
        let buckets = Arc::new(Buckets::new(BUCKET_BYTES, Sequence(0)));
        buckets.note_place(KEY, Sequence(0), place(1));
        let writer = {
            let buckets = Arc::clone(&buckets);
            thread::spawn(move || buckets.note_write(KEY, Sequence(1), None))
        };
        buckets.note_write(OTHER, Sequence(2), Some(place(2)));
        writer.join().expect("no panic");
        assert_eq!(buckets.place(KEY, Sequence(2)), None, "I-16");
        assert_eq!(buckets.last_write(KEY), Sequence(2));
        buckets.place(OTHER, Sequence(2)).is_some()
    });
    assert_eq!(seen, [false, true]);
}

/// I-16: a reader has looked the key up before a write of it, which finds the bucket locked, and notes the place after that.
#[test]
fn loom_what_was_looked_up_before_a_write_is_no_place_after_it() {
    let seen = explore("two places and a write", 3, || {
        let buckets = Arc::new(Buckets::new(BUCKET_BYTES, Sequence(0)));
        let writer = {
            let buckets = Arc::clone(&buckets);
            thread::spawn(move || buckets.note_write(KEY, Sequence(1), None))
        };
        buckets.note_place(OTHER, Sequence(0), place(2));
        buckets.note_place(KEY, Sequence(0), place(1));
        writer.join().expect("no panic");
        assert_eq!(buckets.place(KEY, Sequence(1)), None, "I-16");
        buckets.place(OTHER, Sequence(1)).is_some()
    });
    assert_eq!(seen, [false, true]);
}

/// I-16: of two writes of one key, whichever is noted first, the later has its place there, or there is none.
#[test]
fn loom_the_place_of_the_earlier_of_two_writes_is_not_left() {
    let seen = explore("two writes of a key and a place", 2, || {
        let buckets = Arc::new(Buckets::new(BUCKET_BYTES, Sequence(0)));
        let writers = [1, 2].map(|sequence| {
            let buckets = Arc::clone(&buckets);
            let note = move || {
                buckets.note_write(KEY, Sequence(sequence), Some(place(sequence as u32)));
            };
            thread::spawn(note)
        });
        buckets.note_place(OTHER, Sequence(0), place(3));
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        let found = buckets.place(KEY, Sequence(2));
        assert!(found.is_none_or(|found| found == place(2)), "I-16: {found:?}");
        found.is_some()
    });
    assert_eq!(seen, [false, true]);
}
