//! Bugs that take a memory model, or every schedule, to be seen: what one thread has written is not what another finds.
//! Models under loom catch them.

use super::super::{Bug, Edit};

pub const BUGS: &[Bug] = &[
    Bug {
        name: "done-before-it-is-written",
        what: "A ticket is reported done without release: whoever publishes it may publish what is not written yet.",
        edits: &[Edit {
            file: "cube/publish.rs",
            find: "slot.done.store(ticket.0, Ordering::Release);",
            put: "slot.done.store(ticket.0, if BUG { Ordering::Relaxed } else { Ordering::Release });",
        }],
        caught_by: ("loom", "loom_what_is_visible_is_written"),
    },
    Bug {
        name: "done-taken-without-acquire",
        what: "Whoever publishes another's ticket does not acquire what that one has written.",
        edits: &[Edit {
            file: "cube/publish.rs",
            find: "slot.done.load(Ordering::Acquire)",
            put: "slot.done.load(if BUG { Ordering::Relaxed } else { Ordering::Acquire })",
        }],
        caught_by: ("loom", "loom_what_is_visible_is_written"),
    },
    Bug {
        name: "visible-without-release",
        what: "The visible sequence is moved without release: readers see it and not what is below it.",
        edits: &[Edit {
            file: "cube/publish.rs",
            find: "self.visible.store(sequence, Ordering::Release);",
            put: "self.visible.store(sequence, if BUG { Ordering::Relaxed } else { Ordering::Release });",
        }],
        caught_by: ("loom", "loom_a_reader_beside_a_rotation_finds_what_is_visible"),
    },
    Bug {
        name: "visible-read-without-acquire",
        what: "Readers take the visible sequence without acquire.",
        edits: &[Edit {
            file: "cube/publish.rs",
            find: "Sequence(self.visible.load(Ordering::Acquire))",
            put: "Sequence(self.visible.load(if BUG { Ordering::Relaxed } else { Ordering::Acquire }))",
        }],
        caught_by: ("loom", "loom_a_segment_begun_before_the_moment_is_held"),
    },
    Bug {
        name: "published-without-release",
        what: "A ticket is published without release: whoever waits for it goes on without what was written before it.",
        edits: &[Edit {
            file: "cube/publish.rs",
            find: "self.published.store(published, Ordering::Release);",
            put: "self.published.store(published, if BUG { Ordering::Relaxed } else { Ordering::Release });",
        }],
        caught_by: ("loom", "loom_what_was_waited_for_is_written"),
    },
    Bug {
        name: "published-met-without-acquire",
        what: "Whoever finds a ticket published at once does not acquire what was written before it.",
        edits: &[Edit {
            file: "cube/publish.rs",
            find: "            if self.published.load(Ordering::Acquire) >= ticket.0 {\n                return Ok(());",
            put: "            if self.published.load(if BUG { Ordering::Relaxed } else { Ordering::Acquire }) >= ticket.0 {\n                return Ok(());",
        }],
        caught_by: ("loom", "loom_what_was_waited_for_is_written"),
    },
    Bug {
        name: "published-awaited-without-acquire",
        what: "Whoever finds a ticket published before it parks does not acquire what was written before it.",
        edits: &[Edit {
            file: "cube/publish.rs",
            find: "            if self.published.load(Ordering::Acquire) >= ticket.0 {\n                break Ok(());",
            put: "            if self.published.load(if BUG { Ordering::Relaxed } else { Ordering::Acquire }) >= ticket.0 {\n                break Ok(());",
        }],
        caught_by: ("loom", "loom_what_was_waited_for_is_written"),
    },
    Bug {
        name: "slot-reused-without-acquire",
        what: "A ticket whose slot is free is handed out without acquiring what its predecessor has written.",
        edits: &[Edit {
            file: "cube/publish.rs",
            find: "(self.published.load(Ordering::Acquire) < earlier)",
            put: "(self.published.load(if BUG { Ordering::Relaxed } else { Ordering::Acquire }) < earlier)",
        }],
        caught_by: ("loom", "loom_a_slot_is_used_again"),
    },
    Bug {
        name: "waiter-without-fence",
        what: "A waiter looks for its ticket without a fence after it has announced itself, and is never woken.",
        edits: &[Edit {
            file: "cube/publish.rs",
            find: "        fence(Ordering::SeqCst);\n        let result = loop {",
            put: "        if !BUG {\n            fence(Ordering::SeqCst);\n        }\n        let result = loop {",
        }],
        caught_by: ("loom", "loom_what_was_waited_for_is_written"),
    },
    Bug {
        name: "publisher-without-fence",
        what: "Whoever publishes looks for waiters without a fence, and leaves one asleep.",
        edits: &[Edit {
            file: "cube/publish.rs",
            find: "            fence(Ordering::SeqCst);\n            if self.waiters",
            put: "            if !BUG {\n                fence(Ordering::SeqCst);\n            }\n            if self.waiters",
        }],
        caught_by: ("loom", "loom_what_was_waited_for_is_written"),
    },
    Bug {
        name: "failure-told-to-nobody",
        what: "A failure wakes nobody.",
        edits: &[Edit {
            file: "cube/publish.rs",
            find: "        self.failed.store(1, Ordering::Release);\n        self.wake_all();",
            put: "        self.failed.store(1, Ordering::Release);\n        if !BUG {\n            self.wake_all();\n        }",
        }],
        caught_by: ("loom", "loom_a_failure_reaches_whoever_waits"),
    },
    Bug {
        name: "state-not-looked-at-again",
        what: "A reader at the present keeps a read state from before its moment.",
        edits: &[Edit {
            file: "cube/state.rs",
            find: "if Arc::ptr_eq(&state, &self.state.load()) {",
            put: "if BUG || Arc::ptr_eq(&state, &self.state.load()) {",
        }],
        caught_by: ("loom", "loom_a_segment_begun_before_the_moment_is_held"),
    },
    Bug {
        name: "turn-ends-unheard",
        what: "The end of a turn wakes nobody who waits for it.",
        edits: &[Edit {
            file: "cube/order.rs",
            find: "        self.order.free.notify_all();",
            put: "        if !BUG {\n            self.order.free.notify_all();\n        }",
        }],
        caught_by: ("loom", "loom_writers_beside_a_rotation_keep_one_order"),
    },
    Bug {
        name: "sync-covers-what-came-meanwhile",
        what: "A sync counts for whoever asked while it ran.",
        edits: &[Edit {
            file: "cube/durability.rs",
            find: "        state.durable = state.durable.max(target);",
            put: "        let target = if BUG { state.wanted } else { target };\n        state.durable = state.durable.max(target);",
        }],
        caught_by: ("loom", "loom_a_sync_that_returns_began_after_the_write"),
    },
    Bug {
        name: "node-linked-without-release",
        what: "A node is linked into the list without release: who meets it may meet zeros.",
        edits: &[Edit {
            file: "skiplist/node.rs",
            find: "compare_exchange(current.word, next.word, Ordering::Release, Ordering::Relaxed)",
            put: "compare_exchange(current.word, next.word, if BUG { Ordering::Relaxed } else { Ordering::Release }, Ordering::Relaxed)",
        }],
        caught_by: ("loom", "loom_what_is_found_is_whole"),
    },
    Bug {
        name: "link-followed-without-acquire",
        what: "A link of the list is followed without acquire.",
        edits: &[Edit {
            file: "skiplist/node.rs",
            find: "self.word().load(Ordering::Acquire)",
            put: "self.word().load(if BUG { Ordering::Relaxed } else { Ordering::Acquire })",
        }],
        caught_by: ("loom", "loom_what_is_found_is_whole"),
    },
    Bug {
        name: "tail-noted-without-release",
        what: "The end of a level is noted without release.",
        edits: &[Edit {
            file: "skiplist/tails.rs",
            find: "store(last.word(), Ordering::Release)",
            put: "store(last.word(), if BUG { Ordering::Relaxed } else { Ordering::Release })",
        }],
        caught_by: ("loom", "loom_inserts_at_one_place_keep_the_order"),
    },
    Bug {
        name: "tail-taken-without-acquire",
        what: "An insert begins at the noted end of a level without acquire.",
        edits: &[Edit {
            file: "skiplist/tails.rs",
            find: "self.words[level].load(Ordering::Acquire)",
            put: "self.words[level].load(if BUG { Ordering::Relaxed } else { Ordering::Acquire })",
        }],
        caught_by: ("loom", "loom_inserts_at_one_place_keep_the_order"),
    },
    Bug {
        name: "memtable-copied-too-early",
        what: "The first memtable is copied while writers still insert.",
        edits: &[Edit {
            file: "cube/turn.rs",
            find: "            self.publisher.wait_for(turn.last_ticket)?;",
            put: "            if !(BUG && turn.memtable.is_sample()) {\n                self.publisher.wait_for(turn.last_ticket)?;\n            }",
        }],
        caught_by: ("engine", "writers_beside_the_growth_of_the_first_memtable_lose_nothing"),
    },
    Bug {
        name: "finger-left-without-release",
        what: "A finger is set to a node without release.",
        edits: &[Edit {
            file: "skiplist/fingers.rs",
            find: "let (bucket, word) = (&self.buckets[own], node.word());",
            put: "let (bucket, word) = (&self.buckets[own], node.word());\n        if BUG {\n            bucket.fetch_max(word, Ordering::Relaxed);\n            self.occupied[own / BITS].fetch_or(1 << (own % BITS), Ordering::Relaxed);\n            return;\n        }",
        }],
        caught_by: ("loom", "loom_a_finger_leads_to_what_is_behind_it"),
    },
    Bug {
        name: "finger-taken-without-acquire",
        what: "A search begins at a finger without acquire.",
        edits: &[Edit {
            file: "skiplist/fingers.rs",
            find: "[bucket].load(Ordering::Acquire)",
            put: "[bucket].load(if BUG { Ordering::Relaxed } else { Ordering::Acquire })",
        }],
        caught_by: ("loom", "loom_a_finger_leads_to_what_is_behind_it"),
    },
];
