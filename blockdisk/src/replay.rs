//! One seed on one file system: a life is recorded, then power is taken in its midst again and again, and what is left of
//! the disk is lived on. One in a few of those lives loses its power, too.

use std::collections::HashMap;

use tamarack::testing::Random;

use crate::content::Content;
use crate::crashes::{Epoch, Image, epochs, images};
use crate::disk::Entry;
use crate::evidence::Evidence;
use crate::facts::{Bounds, Noted};
use crate::machine::{Failure, Lived, Machine};
use crate::report::Row;

/// Images of one epoch that are thought of, of which some are tried.
const IMAGES_OF_EPOCH: usize = 16;
/// One life in so many after a loss of power ends with one.
const AGAIN_ONE_IN: u64 = 4;

/// What was recorded of a life, and what was known when it began.
struct Recording {
    base: Content,
    log: Vec<Entry>,
    facts: Vec<Noted>,
    before: Bounds,
}

/// Tries images of one seed on one file system.
pub struct Replay<'a> {
    /// Where they are tried.
    pub machine: &'a Machine,
    /// The kind of file system.
    pub kind: &'a str,
    /// The seed.
    pub seed: u64,
    /// What has come of it so far.
    pub row: &'a mut Row,
    /// Where to keep what went wrong.
    pub evidence: &'a Evidence,
}

impl Replay<'_> {
    /// Records a life and tries about so many images of it; false if something was wrong.
    ///
    /// # Errors
    /// Why there can be no such file system here.
    pub fn run(&mut self, most: usize) -> Result<bool, String> {
        let base = self.machine.format(self.kind)?;
        let lived = match self.machine.live(base.clone(), self.kind, self.seed, None) {
            Ok(lived) => lived,
            Err(Failure::NotMounted(why)) => return Err(why),
            Err(Failure::Wrong(why)) => {
                self.evidence.tell(self.kind, self.seed, &format!("while recording: {why}"));
                return Ok(false);
            }
        };
        let Lived { log, facts, counts, .. } = lived;
        self.row.record(&log, &facts, &counts);
        let recording = Recording { base, log, facts, before: Bounds::default() };
        let mut random = Random::new(self.seed ^ 0x626c_6f63_6b73);
        let mut tried = HashMap::new();
        for (content, image, bounds) in recording.crashes(most, &mut random) {
            self.row.images += 1;
            let seen: &mut u64 = tried.entry(content.digest()).or_insert(u64::MAX);
            if *seen != u64::MAX && *seen >= bounds.least {
                continue;
            }
            *seen = bounds.least;
            self.row.tried(&image);
            let again = random.one_in(AGAIN_ONE_IN).then_some(&mut random);
            if !self.try_one(content, &bounds, &image, again) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lives on what a loss of power has left, and perhaps takes the power away once more; false if something was wrong.
    fn try_one(
        &mut self,
        content: Content,
        bounds: &Bounds,
        image: &Image,
        again: Option<&mut Random>,
    ) -> bool {
        let lived = match self.machine.live(content.clone(), self.kind, self.seed, Some(bounds)) {
            Ok(lived) => lived,
            Err(Failure::NotMounted(why)) => {
                self.row.not_mounted(image, why);
                return true;
            }
            Err(Failure::Wrong(why)) => {
                self.row.losses += 1;
                self.evidence.keep(self.kind, self.seed, &content, bounds, &why);
                return false;
            }
        };
        self.row.found(bounds, lived.found);
        let Some(random) = again else { return true };
        let recording =
            Recording { base: content, log: lived.log, facts: lived.facts, before: bounds.clone() };
        let mut crashes = recording.crashes(1, random);
        let Some((content, image, bounds)) = crashes.pop() else { return true };
        self.row.again += 1;
        self.try_one(content, &bounds, &image, None)
    }
}

impl Recording {
    /// At most so many losses of power, by their moments: what the disk holds, how it came to that, and what must be found.
    fn crashes(&self, most: usize, random: &mut Random) -> Vec<(Content, Image, Bounds)> {
        let mut all: Vec<Image> = Vec::new();
        for epoch in epochs(&self.log) {
            all.extend(images(&self.log, epoch, IMAGES_OF_EPOCH, random));
        }
        let mut chosen: Vec<Image> = Vec::new();
        while chosen.len() < most && !all.is_empty() {
            let at = random.below(all.len() as u64) as usize;
            chosen.push(all.swap_remove(at));
        }
        chosen.sort_by_key(|image| image.epoch.start);
        let (mut base, mut done) = (self.base.clone(), 0);
        let crash = |image: Image| {
            let Epoch { start, end } = image.epoch;
            self.log[done..start].iter().for_each(|entry| entry.apply(&mut base));
            done = start;
            (image.build(&self.log, &base), image, self.before.at(&self.facts, end))
        };
        chosen.into_iter().map(crash).collect()
    }
}
