//! Publishing under loom: what its atomics promise to whoever sees a ticket or a sequence number, under every schedule
//! and with every value that their orderings permit. Nobody waits for ever: loom takes that for a failure.

use loom::thread;

use super::*;
use crate::base::sync::explore;

/// What writers write before they publish, as the log and the memtable are for them: nothing orders it but the publisher.
#[derive(Debug, Default)]
struct Written([AtomicU64; 2]);

impl Written {
    fn write(&self, ticket: u64) {
        self.0[ticket as usize - 1].store(ticket, Ordering::Relaxed);
    }

    fn check(&self, last: u64) {
        for ticket in 1..=last {
            assert_eq!(self.0[ticket as usize - 1].load(Ordering::Relaxed), ticket, "a hole below {last}");
        }
    }
}

fn world() -> (Arc<Publisher>, Arc<Written>) {
    (Publisher::with_ring(Sequence(0), 2), Arc::default())
}

/// A thread that writes and publishes these tickets, and sees what it and those before it have written.
fn writer(
    world: &(Arc<Publisher>, Arc<Written>),
    tickets: std::ops::RangeInclusive<u64>,
) -> thread::JoinHandle<()> {
    let (publisher, written) = world.clone();
    thread::spawn(move || {
        for ticket in tickets {
            written.write(ticket);
            publisher.publish(Ticket(ticket), Sequence(ticket)).expect("no failure");
            let visible = publisher.visible().0;
            assert!(visible >= ticket, "an acknowledged operation is visible");
            written.check(visible);
        }
    })
}

/// I-02: who sees a sequence number sees what was written below it, and none smaller afterwards.
#[test]
fn loom_what_is_visible_is_written() {
    let seen = explore("writers and a reader", 3, || {
        let world = world();
        let writers = [writer(&world, 2..=2), writer(&world, 1..=1)];
        let (publisher, written) = &world;
        let first = publisher.visible();
        written.check(first.0);
        let second = publisher.visible();
        assert!(second >= first, "I-02");
        written.check(second.0);
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        assert_eq!(publisher.visible(), Sequence(2));
        (first.0, second.0)
    });
    assert_eq!(seen, [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]);
}

/// I-02: who has waited for a ticket sees what was written up to it.
#[test]
fn loom_what_was_waited_for_is_written() {
    explore("a writer and who waits for it", 3, || {
        let world = world();
        let writer = writer(&world, 1..=2);
        let (publisher, written) = &world;
        publisher.wait_for(Ticket(2)).expect("no failure");
        written.check(2);
        writer.join().expect("no panic");
    });
}

/// I-02: a ticket that shares its slot with an earlier one is handed out once that is published, and takes nothing from it.
#[test]
fn loom_a_slot_is_used_again() {
    let waited = explore("two tickets of one slot", 3, || {
        let publisher = Publisher::with_ring(Sequence(0), 1);
        let world = (Arc::clone(&publisher), Arc::default());
        let writer = writer(&world, 1..=1);
        let earlier = publisher.blocks(Ticket(2));
        if let Some(earlier) = earlier {
            publisher.wait_for(earlier).expect("no failure");
        }
        world.1.check(1);
        world.1.write(2);
        publisher.publish(Ticket(2), Sequence(2)).expect("no failure");
        assert_eq!(publisher.visible(), Sequence(2));
        writer.join().expect("no panic");
        earlier.is_some()
    });
    assert_eq!(waited, [false, true]);
}

#[test]
fn loom_a_failure_reaches_whoever_waits() {
    explore("a failure and who waits", 3, || {
        let (publisher, _) = world();
        let failing = Arc::clone(&publisher);
        let failure = thread::spawn(move || failing.fail(&Error::closed()));
        assert!(publisher.publish(Ticket(2), Sequence(2)).is_err());
        assert_eq!(publisher.visible(), Sequence(0));
        failure.join().expect("no panic");
    });
}
