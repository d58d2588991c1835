//! Values on their way from the log.

use super::Cube;
use super::read::READ_WAYS;
use super::sweep::{Sweep, cost_of};
use crate::base::sync::Arc;
use crate::env::pool::Started;
use crate::vlog::fetch::{Begun, Fetch, Fetched, How};
use crate::vlog::plan::{WALK_BYTES_MIN, Wanted};

/// Where values are looked for.
#[derive(Debug)]
pub enum Look<'a> {
    /// In memory first, by the caller, who will wait for the rest.
    Here,
    /// The same, but where memory is scarce only those are looked for there that tell whether it is so still: one of 64.
    HereIfAny,
    /// On the device: memory is scarce, or as much has been looked for there in vain.
    There,
    /// Anywhere, by threads of the pool: the caller is on this walk, and will not wait at once.
    Meanwhile(&'a mut Sweep),
}

/// Values that are being read. Dropped, it gives up those that nobody has begun with.
#[derive(Debug)]
pub struct Reading {
    /// First, so that nobody begins with what is not theirs any more ...
    interest: Interest,
    /// ... and then nobody works for it any more when the rest goes.
    started: Option<Started>,
    begun: Option<Begun>,
    fetch: Arc<Fetch>,
    /// Whether more was in memory than not, if somebody looked.
    was_here: bool,
}

/// That somebody waits.
#[derive(Debug)]
struct Interest(Arc<Fetch>);

impl Drop for Interest {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

impl Cube {
    /// Begins to read `wanted`, whose keys are among `keys`, into some of `buffers` as far as there are any. What goes into a queue, or to threads of the
    /// pool, is under way when this returns; the rest is read by whoever [finishes](Reading::finish) it.
    pub(super) fn read_values(
        &self,
        keys: Arc<Vec<u8>>,
        wanted: Vec<Wanted>,
        how: How,
        buffers: &mut Vec<Vec<u8>>,
        look: Look<'_>,
    ) -> Reading {
        let mut fetch = Fetch::new(&self.reader, keys, wanted, how, READ_WAYS);
        let (mut least, mut was_here) = (2, false);
        match look {
            Look::Here | Look::HereIfAny => {
                fetch.borrow(buffers);
                let is_in_vain = matches!(look, Look::HereIfAny) && self.reader.scarcity().is_high();
                was_here = fetch.read_cached(is_in_vain);
            }
            Look::There => {}
            Look::Meanwhile(sweep) => {
                self.sweep(sweep, &mut fetch);
                least = 1;
            }
        }
        fetch.borrow(buffers);
        let fetch = Arc::new(fetch);
        let started = (fetch.shares() >= least).then(|| self.read_pool().start(fetch.jobs()));
        let begun = if started.is_none() { fetch.begin() } else { None };
        Reading { interest: Interest(Arc::clone(&fetch)), started, begun, fetch, was_here }
    }
}

impl Reading {
    /// What it costs that values which were not in memory do not lie together, as bytes that the device could read in sequence
    /// meanwhile: one read there would be in any order.
    pub fn scattered_cost(&self) -> u64 {
        let scattered = self.fetch.scattered().map(|(_, scattered)| scattered.bytes);
        scattered.filter(|&bytes| bytes < WALK_BYTES_MIN).skip(1).map(cost_of).sum()
    }

    /// Whether more was in memory than not, if somebody looked.
    pub fn was_here(&self) -> bool {
        self.was_here
    }

    /// All values, and the buffers that none needed. Works along with the pool until they are there.
    pub fn finish(self) -> (Vec<Fetched>, Vec<Vec<u8>>) {
        let _interest = self.interest;
        if let Some(begun) = self.begun {
            self.fetch.finish(begun);
        }
        match self.started {
            Some(started) => started.finish(),
            None => self.fetch.work(),
        }
        self.fetch.take()
    }
}
