//! The compactions that are running.

use std::collections::HashSet;

use crate::base::ids::TableId;
use crate::base::keys::KeyOrder;

use super::plan::{CompactionPlan, KeyRange};

/// Names a running compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

/// The compactions that are running. Data; whoever shares it puts it into a lock.
#[derive(Debug, Default)]
pub struct InProgress {
    running: Vec<Running>,
    next: u64,
}

#[derive(Debug)]
struct Running {
    ticket: Ticket,
    levels: [u8; 2],
    range: KeyRange,
    leaving: HashSet<TableId>,
}

impl InProgress {
    /// Notes that `plan` runs, until [`finish`](Self::finish) is called with the ticket.
    pub fn start(&mut self, plan: &CompactionPlan) -> Ticket {
        debug_assert!(!self.conflicts(plan), "a plan is started only when it conflicts with none");
        let ticket = Ticket(self.next);
        self.next += 1;
        self.running.push(Running {
            ticket,
            levels: [plan.level, plan.output_level],
            range: plan.range.clone(),
            leaving: plan.upper.iter().map(|table| table.id).collect(),
        });
        ticket
    }

    /// Forgets a compaction that has ended.
    pub fn finish(&mut self, ticket: Ticket) {
        self.running.retain(|running| running.ticket != ticket);
    }

    /// Whether `plan` shares a level and keys with a running compaction.
    pub fn conflicts(&self, plan: &CompactionPlan) -> bool {
        let levels = [plan.level, plan.output_level];
        self.blocks(plan.version.order(), levels, &plan.range)
    }

    /// Whether a running compaction shares one of `levels` and keys of `range`.
    pub fn blocks(&self, order: &KeyOrder, levels: [u8; 2], range: &KeyRange) -> bool {
        self.running.iter().any(|running| {
            running.levels.iter().any(|level| levels.contains(level)) && running.range.overlaps(order, range)
        })
    }

    /// Whether a running compaction takes the table out of its level.
    pub fn takes(&self, table: TableId) -> bool {
        self.running.iter().any(|running| running.leaving.contains(&table))
    }

    /// How many compactions run.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.running.len()
    }
}
