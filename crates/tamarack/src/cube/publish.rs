//! Makes commits visible strictly in log order, however their writers overlap.
//!
//! Each commit has a *ticket*, handed out in log order. Its writer fills log and memtable at its own pace and
//! then reports the ticket done. A ticket is published when it and every smaller one are done: that is when its
//! operations become visible and its writer returns (I-02). So a hole in the log never precedes an acknowledged
//! record, and a reader never sees an operation without all operations before it.
//!
//! Done tickets wait in a ring. Whoever reports one takes the publishing lock, moves over all done tickets at
//! the front, and only then looks whether its own was among them; if not, the owner of the front ticket will
//! publish it and wake it. Lock rank: `publishing` is held for a few instructions and nothing is locked under it.

#[cfg(all(test, loom))]
mod loom_tests;

use crate::base::error::{Error, Result};
use crate::base::ids::Sequence;
use crate::base::sync::{Arc, AtomicU32, AtomicU64, Condvar, Mutex, Ordering, SPINS_MAX, fence, spin_hint};

/// Tickets that can be unpublished at the same time; more than any number of threads that write at once. Under shuttle
/// and loom, where an atomic is costly to make, threads are few.
const RING_TICKETS: u64 = if cfg!(any(shuttle, loom)) { 16 } else { 4096 };

/// A commit's place in log order. The first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// The order of publication of one cube.
#[derive(Debug)]
pub struct Publisher {
    ring: Box<[Slot]>,
    /// The last ticket published.
    published: AtomicU64,
    /// The last sequence number visible.
    visible: AtomicU64,
    publishing: Mutex<()>,
    parked: Mutex<()>,
    wake: Condvar,
    waiters: AtomicU32,
    failure: Mutex<Option<Error>>,
    failed: AtomicU32,
}

#[derive(Debug)]
struct Slot {
    /// The ticket that is done.
    done: AtomicU64,
    /// The last sequence number of that ticket.
    sequence: AtomicU64,
}

impl Publisher {
    /// A publisher behind everything up to `visible`.
    pub fn new(visible: Sequence) -> Arc<Self> {
        Self::with_ring(visible, RING_TICKETS)
    }

    pub(super) fn with_ring(visible: Sequence, tickets: u64) -> Arc<Self> {
        let slot = |_| Slot { done: AtomicU64::new(0), sequence: AtomicU64::new(0) };
        Arc::new(Self {
            ring: (0..tickets).map(slot).collect(),
            published: AtomicU64::new(0),
            visible: AtomicU64::new(visible.0),
            publishing: Mutex::new(()),
            parked: Mutex::new(()),
            wake: Condvar::new(),
            waiters: AtomicU32::new(0),
            failure: Mutex::new(None),
            failed: AtomicU32::new(0),
        })
    }

    /// The last operation that readers may see.
    pub fn visible(&self) -> Sequence {
        Sequence(self.visible.load(Ordering::Acquire))
    }

    /// The ticket that must be published before `ticket` may be handed out, unless it is: the two share a slot of
    /// the ring.
    pub fn blocks(&self, ticket: Ticket) -> Option<Ticket> {
        let earlier = ticket.0.checked_sub(self.ring.len() as u64)?;
        (self.published.load(Ordering::Acquire) < earlier).then_some(Ticket(earlier))
    }

    /// Reports that log and memtable hold everything of `ticket`, whose last operation is `last`, and waits until
    /// it is visible.
    ///
    /// # Errors
    /// The failure given to [`fail`](Self::fail), when an earlier ticket will never be done.
    pub fn publish(&self, ticket: Ticket, last: Sequence) -> Result<()> {
        let slot = self.slot(ticket.0);
        slot.sequence.store(last.0, Ordering::Relaxed);
        slot.done.store(ticket.0, Ordering::Release);
        self.advance();
        self.wait_for(ticket)
    }

    /// Waits until `ticket`, and every one before it, is published.
    ///
    /// # Errors
    /// The failure given to [`fail`](Self::fail).
    pub fn wait_for(&self, ticket: Ticket) -> Result<()> {
        for _ in 0..SPINS_MAX {
            if self.published.load(Ordering::Acquire) >= ticket.0 {
                return Ok(());
            }
            spin_hint();
        }
        let mut parked = self.parked.lock();
        self.waiters.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence of `advance`: either the new ticket is seen here, or the waiter is seen there.
        fence(Ordering::SeqCst);
        let result = loop {
            if self.published.load(Ordering::Acquire) >= ticket.0 {
                break Ok(());
            }
            if self.failed.load(Ordering::Acquire) != 0 {
                break Err(self.failure());
            }
            self.wake.wait(&mut parked);
        };
        self.waiters.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// Says that some ticket will never be done, because of `error`: everybody who waits gets it.
    pub fn fail(&self, error: &Error) {
        self.failure.lock().get_or_insert_with(|| error.clone());
        self.failed.store(1, Ordering::Release);
        self.wake_all();
    }

    fn failure(&self) -> Error {
        self.failure.lock().clone().expect("a failure is stored before it is flagged")
    }

    /// Publishes every done ticket at the front.
    fn advance(&self) {
        let publishing = self.publishing.lock();
        let before = self.published.load(Ordering::Relaxed);
        let mut published = before;
        loop {
            let slot = self.slot(published + 1);
            if slot.done.load(Ordering::Acquire) != published + 1 {
                break;
            }
            let sequence = slot.sequence.load(Ordering::Relaxed);
            debug_assert!(sequence >= self.visible.load(Ordering::Relaxed), "I-02: visibility only grows");
            self.visible.store(sequence, Ordering::Release);
            published += 1;
            self.published.store(published, Ordering::Release);
        }
        drop(publishing);
        if published > before {
            // Pairs with the fence of `wait_for`.
            fence(Ordering::SeqCst);
            if self.waiters.load(Ordering::Relaxed) > 0 {
                self.wake_all();
            }
        }
    }

    fn wake_all(&self) {
        drop(self.parked.lock());
        self.wake.notify_all();
    }

    fn slot(&self, ticket: u64) -> &Slot {
        &self.ring[(ticket % self.ring.len() as u64) as usize]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// I-02: the later ticket waits for the earlier one.
    #[cfg(not(shuttle))]
    #[test]
    fn visibility_follows_ticket_order() {
        let publisher = Publisher::new(Sequence(10));
        let later = Arc::clone(&publisher);
        let thread = std::thread::spawn(move || later.publish(Ticket(2), Sequence(15)));
        assert_eq!(publisher.visible(), Sequence(10), "ticket 2 alone publishes nothing");
        publisher.publish(Ticket(1), Sequence(12)).expect("no failure");
        thread.join().expect("no panic").expect("no failure");
        assert_eq!(publisher.visible(), Sequence(15));
    }

    #[cfg(not(shuttle))]
    #[test]
    fn a_failure_reaches_everybody_who_waits() {
        let publisher = Publisher::new(Sequence(0));
        let later = Arc::clone(&publisher);
        let thread = std::thread::spawn(move || later.publish(Ticket(2), Sequence(2)));
        publisher.fail(&Error::closed());
        assert!(thread.join().expect("no panic").is_err());
        assert_eq!(publisher.visible(), Sequence(0));
    }

    /// Writers take tickets under a lock and publish them at their own pace; each must return, find its own
    /// operation visible, and never see visibility go back (I-02).
    #[cfg(shuttle)]
    fn writers_publish_in_order() {
        let publisher = Publisher::with_ring(Sequence(0), 4);
        let next = Arc::new(Mutex::new(0_u64));
        let done: Arc<Vec<AtomicU64>> = Arc::new((0..8).map(|_| AtomicU64::new(0)).collect());
        let writers: Vec<_> = (0..3)
            .map(|_| {
                let (publisher, next, done) = (Arc::clone(&publisher), Arc::clone(&next), Arc::clone(&done));
                shuttle::thread::spawn(move || {
                    for _ in 0..2 {
                        let ticket = {
                            let mut next = next.lock();
                            *next += 1;
                            *next
                        };
                        done[ticket as usize].store(1, Ordering::SeqCst);
                        publisher.publish(Ticket(ticket), Sequence(ticket)).expect("no failure");
                        let visible = publisher.visible().0;
                        assert!(visible >= ticket, "an acknowledged operation is visible");
                        for earlier in 1..=visible {
                            assert_eq!(done[earlier as usize].load(Ordering::SeqCst), 1, "no hole");
                        }
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("no panic");
        }
        assert_eq!(publisher.visible(), Sequence(6));
    }

    #[cfg(shuttle)]
    #[test]
    fn shuttle_writers_publish_in_order() {
        shuttle::check_random(writers_publish_in_order, 20_000);
        shuttle::check_pct(writers_publish_in_order, 20_000, 3);
    }
}
