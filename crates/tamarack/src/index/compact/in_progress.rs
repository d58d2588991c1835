//! The compactions that are running.

use std::collections::HashSet;

use crate::base::ids::{SegmentId, TableId};
use crate::base::keys::KeyOrder;

use super::plan::{CompactionPlan, KeyRange};

/// Names a running compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The segments that outputs may point into.
    reaching: HashSet<SegmentId>,
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
            reaching: reaching(plan),
        });
        ticket
    }

    /// Forgets a compaction that has ended.
    pub fn finish(&mut self, ticket: Ticket) {
        self.running.retain(|running| running.ticket != ticket);
    }

    /// The ticket of the next compaction.
    pub fn next_ticket(&self) -> Ticket {
        Ticket(self.next)
    }

    /// Whether a compaction that had begun before that of `ticket` still runs.
    pub fn has_before(&self, ticket: Ticket) -> bool {
        self.running.iter().any(|running| running.ticket < ticket)
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

    /// Whether the outputs of a running compaction may point into `segment`, though no table does yet.
    pub fn reaches(&self, segment: SegmentId) -> bool {
        self.running.iter().any(|running| running.reaching.contains(&segment))
    }

    /// How many compactions run.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.running.len()
    }
}

/// The segments that the inputs of `plan` point into, and those to which these were moved: a compaction replaces
/// pointers by where its version says that they lead.
fn reaching(plan: &CompactionPlan) -> HashSet<SegmentId> {
    let segments = plan.version.segments();
    let pointed = plan.inputs().flat_map(|table| table.references.iter().map(|reference| reference.segment));
    let home = |id| segments.relocation_table(id).map(|table| table.segment);
    pointed.flat_map(|id| std::iter::once(id).chain(home(id))).collect()
}
