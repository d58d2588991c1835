//! Counts what the present thread allocates, and how much of that it holds.

use std::cell::Cell;

use crate::counted::Counted;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes allocated less bytes freed, and the most that was.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

#[global_allocator]
static MEMORY: Counted = Counted(hold);

// A thread that is about to end allocates without being counted.

fn hold(more: usize, less: usize) {
    if more > 0 {
        ALLOCATIONS.try_with(|count| count.set(count.get() + 1)).ok();
    }
    let change = |held: &Cell<(i64, i64)>| {
        let (now, most) = held.get();
        let now = now + more as i64 - less as i64;
        held.set((now, most.max(now)));
    };
    HELD.try_with(change).ok();
}

/// How many allocations `work` makes on this thread.
pub fn during(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// How many bytes of memory this thread holds at most while it does `work`, beyond what it holds now.
pub fn most_held_during(work: impl FnOnce()) -> u64 {
    let (before, _) = HELD.get();
    HELD.set((before, before));
    work();
    let (_, most) = HELD.get();
    (most - before) as u64
}
