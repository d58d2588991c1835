//! A row beside a write of its key, under loom.

use loom::thread;

use super::*;
use crate::base::comparator::Bytewise;
use crate::base::sync::explore;
use crate::cube::publish::{Publisher, Ticket};

const KEY: &[u8] = b"key";

/// I-15: whoever reads at a moment behind a write is not served what was there before it.
#[test]
fn loom_no_row_is_served_behind_a_write_of_its_key() {
    let seen = explore("a row, a write of its key, and a reader", 3, || {
        let rows =
            Arc::new(Rows::new(1 << 10, &KeyOrder::new(Arc::new(Bytewise)), Sequence(0), Arc::default(), 2));
        let missing = rows.get(KEY, Sequence(0)).expect_err("it is not there yet");
        rows.keep(missing, KEY, b"old", Sequence(0));
        let publisher = Publisher::new(Sequence(0));
        let writer = {
            let (rows, publisher) = (Arc::clone(&rows), Arc::clone(&publisher));
            thread::spawn(move || {
                rows.note_write(KEY, Sequence(1), None);
                publisher.publish(Ticket(1), Sequence(1)).expect("no failure");
            })
        };
        let moment = publisher.visible();
        let is_served = rows.get(KEY, moment).is_ok();
        assert!(!is_served || moment == Sequence(0), "I-15: {moment:?}");
        writer.join().expect("no panic");
        (moment.0, is_served)
    });
    assert_eq!(seen, [(0, false), (0, true), (1, false)]);
}

/// I-15: of two writes that make the row anew, the earlier one late, a reader is served the one that its moment is behind.
#[test]
fn loom_a_row_made_anew_is_what_was_written() {
    let seen = explore("a row, two writes that make it anew, and a reader", 3, || {
        let rows =
            Arc::new(Rows::new(1 << 10, &KeyOrder::new(Arc::new(Bytewise)), Sequence(0), Arc::default(), 2));
        let missing = rows.get(KEY, Sequence(0)).expect_err("it is not there yet");
        rows.keep(missing, KEY, &[0], Sequence(0));
        assert!(rows.get(KEY, Sequence(0)).is_ok(), "asked for");
        let publisher = Publisher::new(Sequence(0));
        let write = |number: u8| {
            rows.note_write(KEY, Sequence(number.into()), None);
            publisher.publish(Ticket(number.into()), Sequence(number.into())).expect("no failure");
        };
        let renew = |number: u8| {
            let rows = Arc::clone(&rows);
            move || rows.renew(KEY, &[number], Sequence(number.into()))
        };
        write(1);
        let late = thread::spawn(renew(1));
        let reader = {
            let (rows, publisher) = (Arc::clone(&rows), Arc::clone(&publisher));
            thread::spawn(move || {
                let moment = publisher.visible();
                (moment.0, rows.get(KEY, moment).ok().map(|value| u64::from(value[0])))
            })
        };
        write(2);
        renew(2)();
        late.join().expect("no panic");
        let (moment, served) = reader.join().expect("no panic");
        assert!(served.is_none_or(|value| value == moment), "I-15: {served:?} at {moment}");
        (moment, served)
    });
    assert_eq!(seen, [(1, None), (1, Some(1)), (2, None), (2, Some(2))]);
}
