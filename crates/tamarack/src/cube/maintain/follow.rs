//! Following the log: what the footer of a segment will say is read while the segment is written.

use super::super::Cube;
use super::super::publish::Ticket;
use crate::base::sync::Arc;
use crate::env::pool::Priority;
use crate::vlog::segment::Segment;

/// What is written for good once a ticket is published.
#[derive(Debug)]
pub(super) struct Written {
    segment: Arc<Segment>,
    end: u64,
    barrier: Ticket,
}

impl Cube {
    /// Has what stands before `end` of `segment` [followed](Segment::follow) in the background, once `barrier` is published. What was to be
    /// followed before and nobody has begun with is a part of that, or left to the sealing of its segment.
    pub(in super::super) fn follow(&self, segment: &Arc<Segment>, end: u64, barrier: Ticket) {
        let Some(this) = self.this.upgrade() else { return };
        let mut state = self.maintenance.state.lock();
        if state.closing || self.health.is_poisoned() {
            return;
        }
        state.written = Some(Written { segment: Arc::clone(segment), end, barrier });
        if !state.following {
            state.following = true;
            this.start(&mut state, Priority::High, |state| state.following = false, Self::following_job);
        }
    }

    fn following_job(&self) {
        loop {
            let mut state = self.maintenance.state.lock();
            let Some(Written { segment, end, barrier }) = state.written.take() else {
                state.following = false;
                drop(state);
                self.maintenance.changed.notify_all();
                return;
            };
            drop(state);
            if self.publisher.wait_for(barrier).is_ok() {
                segment.follow(end, &self.keys);
            }
        }
    }
}
