//! Values on their way from the log.

use super::Cube;
use super::read::READ_WAYS;
use super::sweep::{Sweep, cost_of};
use crate::base::sync::Arc;
use crate::env::pool::Started;
use crate::vlog::fetch::{Fetch, Fetched, Wanted};

/// Values that are being read. Dropped, it gives up those that nobody has begun with.
#[derive(Debug)]
pub struct Reading {
    /// First, so that nobody works for it any more when the rest goes.
    started: Option<Started>,
    fetch: Arc<Fetch>,
}

impl Cube {
    /// Begins to read `wanted`, whose keys are among `keys`, into `buffers` as far as there are any. If the caller walks on and
    /// will not wait at once, threads of the pool do all of it, and the walk is told; otherwise what is in memory is read first, by
    /// the caller, and they help with the rest.
    pub(super) fn read_values(
        &self,
        keys: Arc<Vec<u8>>,
        wanted: Vec<Wanted>,
        verify: bool,
        buffers: Vec<Vec<u8>>,
        ahead: Option<&mut Sweep>,
    ) -> Reading {
        let mut fetch = Fetch::new(&self.reader, keys, wanted, verify, READ_WAYS, buffers);
        let least = if let Some(sweep) = ahead {
            self.sweep(sweep, &fetch);
            1
        } else {
            fetch.read_cached();
            2
        };
        let fetch = Arc::new(fetch);
        let started = (fetch.shares() >= least).then(|| self.read_pool().start(fetch.jobs()));
        Reading { started, fetch }
    }
}

impl Reading {
    /// What those cost that were not in memory and do not lie together, as bytes that the device could read in sequence meanwhile.
    pub fn scattered_cost(&self) -> u64 {
        self.fetch.scattered().map(|(_, bytes, _)| cost_of(bytes)).sum()
    }

    /// All values, and the buffers that none needed. Works along with the pool until they are there.
    pub fn finish(self) -> (Vec<Fetched>, Vec<Vec<u8>>) {
        match self.started {
            Some(started) => started.finish(),
            None => self.fetch.work(),
        }
        self.fetch.take()
    }
}
