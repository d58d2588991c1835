//! What follows from how much space the cube takes, and how much of that is alive ([`inventory`](super::inventory)).
//!
//! The contract ([`Options::max_space_amplification`](crate::Options)): bytes on disk stay below that many times the
//! live bytes of keys and values, plus a fixed slack. Deciding is pure: [`Space`] is what is known, its methods say
//! what to do. First collections run; as the slack is used up, writers are slowed down, smoothly; if readers
//! hold on to more files than there is alive, or something keeps garbage from being collected, they are refused.

use super::throttle::rate_for_debt;

/// The slack, in full segments. A quarter of it is for space that is taken but not used (the active segment, the one
/// prepared behind it, outputs of collections and their victims while both are there), the rest for garbage.
pub const SLACK_SEGMENTS: u64 = 16;
/// Parts of the slack by which shares of it are told.
const SLACK_PARTS: u64 = 32;
/// Parts that garbage may take while writes keep coming before it is collected: what dies meanwhile need not be copied.
const COLLECTED_FROM_PARTS: u64 = 24;
/// And so many more before one collection at a time is too few: there is room for another as yet.
const COLLECTED_BY_ALL_FROM_PARTS: u64 = 25;
/// The same while writers are slowed down, by whatever takes space: they wait for what collections free.
const COLLECTED_FROM_PARTS_SLOWED: u64 = 22;
/// Parts from which garbage counts as debt, and those that it may take before writers should hardly write.
const GARBAGE_PARTS: (u64, u64) = (26, 29);
/// Parts from which all that is on disk counts as debt ...
const TAKEN_FROM_PARTS: u64 = 27;
/// ... and that with what jobs will write: up to what is filled on purpose.
const COMMITTED_FROM_PARTS: u64 = 28;
/// The debt that a compaction which has not begun comes to, at most, and once it has waited long: collections gain on writers that are
/// slowed down so much.
const DEBT_OF_WANTED: (f64, f64) = (0.7, 0.9);
/// Parts that collections make room for at most, for the sake of compactions ...
const COMPACTIONS_PARTS_MAX: u64 = 12;
/// ... or what garbage may take of the goal divided by this: in a large database tables are large beside the slack, but not beside that.
const COMPACTIONS_PART_OF_GARBAGE: u64 = 4;
/// What is being removed, up to so many parts, is as good as gone where it is about what will be written.
const REMOVING_PARTS: u64 = 2;
/// Between so many parts of garbage there is room for what a compaction writes, and garbage will soon take it: less by what that is.
const FILLING_PARTS: (u64, u64) = (16, 22);
/// Parts that are filled on purpose: the rest is for what comes between two looks ...
const FILLED_PARTS: u64 = 30;
/// ... but for this share of one, which is for what writers write before they wait for it ([`throttle`](super::throttle)).
const OWED_SHARE: u64 = 4;
/// Parts up to which files that are not needed any more may fill it, to become new ones.
const STOCK_PARTS: u64 = 29;
/// Parts that they take at most, however much room there is: what the log and the collections begin next.
const STOCK_PARTS_MAX: u64 = 8;
/// Garbage that stays when nothing is written: the live bytes divided by this, but at most so many parts. What is left is among
/// so much that is alive that copying costs more than it frees.
const LEFT_PART_OF_LIVE: u64 = 32;
const LEFT_PARTS_MAX: u64 = 3;

/// Where keys and values are so small that what leads to them takes more than the limit allows, garbage may take this part of the
/// least that can be reached: to have less would cost copies without end.
const GARBAGE_PART_OF_LEAST: u64 = 16;

/// What is known about the space of a cube at one moment. All in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// Files on disk, those included that go when their readers do.
    pub disk: u64,
    /// Keys and values that can be read, by snapshots, too; estimated as far as hidden ones are.
    pub live: u64,
    /// Log records that tables point to, not collected yet, that newer versions hide; estimated.
    pub hidden: u64,
    /// Files, and parts of them, that are removed when their readers are gone.
    pub leaving: u64,
    /// Files that no reader holds: they are being removed, or kept.
    pub removing: u64,
    /// Those of them that are kept to become new ones.
    pub stock: u64,
    /// Space that is reserved for the log and not used yet, or in files that jobs are writing.
    pub reserved: u64,
    /// What those jobs may write yet; not on disk.
    pub promised: u64,
    /// What compactions write that run, on disk or not.
    pub compacting: u64,
    /// What a compaction would write that has not begun.
    pub wanted: u64,
    /// How long it has waited for room, in thousandths of long.
    pub waited: u64,
    /// What the limit allows, or can be reached: while used bytes stay below, nothing needs to be done.
    pub goal: u64,
    /// What is taken by what is alive and by what leads to it: the goal leaves the rest to garbage.
    pub least: u64,
    /// The slack beyond the goal.
    pub slack: u64,
}

/// Why writers are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Readers hold more in files that only they need than there is alive.
    Readers,
    /// All that may be taken is, and something keeps collections from freeing any of it.
    Garbage,
}

/// Whether collecting may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Writes keep coming: a part of the slack is used first.
    Busy,
    /// Nothing is written: the goal is to be reached.
    Idle,
}

impl Space {
    /// Bytes on disk for each live byte; 1 if there are neither.
    pub fn amplification(&self) -> f64 {
        if self.disk == 0 { 1.0 } else { self.disk as f64 / self.live.max(1) as f64 }
    }

    /// Bytes on disk that hold something: live, dead, or how to find it.
    pub fn used(&self) -> u64 {
        self.disk.saturating_sub(self.reserved + self.leaving + self.removing)
    }

    /// How far collections are behind, from 0 to 1: then writers should hardly write. The worst of garbage, of all space but
    /// what only waits for readers, and of that with what jobs will write yet; and, up to a limit, with what is wanted, too.
    pub fn debt(&self) -> f64 {
        let share = |bytes: u64, from_parts: u64, end: u64| {
            let from = self.goal + self.parts(from_parts);
            bytes.saturating_sub(from) as f64 / end.saturating_sub(from).max(1) as f64
        };
        let gone = self.removing.saturating_sub(self.stock).min(self.parts(REMOVING_PARTS));
        let ahead = self.committed().saturating_sub(gone);
        let wanted = self.wanted.min(self.compactions_max());
        share(self.used(), GARBAGE_PARTS.0, self.goal + self.parts(GARBAGE_PARTS.1))
            .max(share(self.taken(), TAKEN_FROM_PARTS, self.filled()))
            .max(share(ahead, COMMITTED_FROM_PARTS, self.filled()))
            .max(share(ahead + wanted, COMMITTED_FROM_PARTS, self.filled()).min(self.debt_of_wanted()))
    }

    fn debt_of_wanted(&self) -> f64 {
        let (least, most) = DEBT_OF_WANTED;
        least + (most - least) * self.waited.min(1000) as f64 / 1000.0
    }

    /// Whether a job may write so many bytes beside others that free some: as far as the bound goes, and unless it would be what slows writers
    /// down.
    pub fn has_room(&self, bytes: u64) -> bool {
        let with_it = Self { promised: self.promised + bytes, ..*self };
        with_it.committed() <= self.filled() && (self.slows_writers() || !with_it.slows_writers())
    }

    /// Whether a compaction may begin that writes so many bytes, beside others that will write `begun` ones: there is room for all of them and for
    /// what goes on meanwhile, or it is so large that none is made for it.
    pub fn has_room_for_compaction(&self, bytes: u64, begun: u64) -> bool {
        bytes == 0
            || bytes > self.compactions_max()
            || self.committed() + begun + bytes <= self.goal + self.parts(TAKEN_FROM_PARTS)
    }

    /// Whether garbage is about to take the room that there is now for a compaction which writes so many bytes. Below the goal there need not be any.
    pub fn is_filling(&self, bytes: u64) -> bool {
        let (from, to) = FILLING_PARTS;
        let room = self.goal + self.parts(from)..self.goal + self.parts(to);
        self.used() >= self.goal && room.contains(&(self.used() + bytes))
    }

    fn slows_writers(&self) -> bool {
        rate_for_debt(self.debt()).is_some()
    }

    /// Bytes of the files that are not needed any more that may be kept to become new ones: what is left of the bound, but no
    /// more than are soon needed. What jobs will write is not set aside: they take it from there.
    pub fn stock_max(&self) -> u64 {
        let left = (self.goal + self.parts(STOCK_PARTS)).saturating_sub(self.used() + self.reserved);
        left.min(self.parts(STOCK_PARTS_MAX))
    }

    /// Bytes on disk but for what only waits for readers, or to become of use again.
    pub fn taken(&self) -> u64 {
        self.disk.saturating_sub(self.leaving + self.stock)
    }

    /// The same with what jobs will write.
    fn committed(&self) -> u64 {
        self.taken() + self.promised
    }

    /// Whether there is what writers are refused for if it lasts.
    pub fn calls_for(&self, refusal: Refusal) -> bool {
        match refusal {
            Refusal::Readers => self.leaving > self.live + self.slack,
            Refusal::Garbage => self.taken() >= self.filled(),
        }
    }

    /// What is filled on purpose.
    fn filled(&self) -> u64 {
        self.goal + self.parts(FILLED_PARTS) - self.parts(1) / OWED_SHARE
    }

    /// Room that collections make at most, for the sake of compactions.
    fn compactions_max(&self) -> u64 {
        let garbage = self.goal.saturating_sub(self.least);
        self.parts(COMPACTIONS_PARTS_MAX).max(garbage / COMPACTIONS_PART_OF_GARBAGE)
    }

    /// So many parts of the slack.
    fn parts(&self, count: u64) -> u64 {
        self.slack / SLACK_PARTS * count
    }

    /// Whether a collection should begin.
    pub fn calls_for_collection(&self, demand: Demand) -> bool {
        let of_compactions = (self.compacting + self.wanted).min(self.compactions_max());
        let needs_room = || self.used() + of_compactions > self.goal + self.parts(COLLECTED_FROM_PARTS);
        self.is_over_goal(demand)
            || demand == Demand::Busy && needs_room()
            || self.used() > self.goal + self.parts(COLLECTED_FROM_PARTS_SLOWED) && self.slows_writers()
    }

    /// Whether one collection at a time is too few.
    pub fn calls_for_more_collections(&self) -> bool {
        self.used() > self.goal + self.parts(COLLECTED_BY_ALL_FROM_PARTS)
    }

    /// Whether more is used than may be.
    pub fn is_over_goal(&self, demand: Demand) -> bool {
        let grace = match demand {
            Demand::Busy => self.parts(COLLECTED_FROM_PARTS),
            Demand::Idle => (self.live / LEFT_PART_OF_LIVE).min(self.parts(LEFT_PARTS_MAX)),
        };
        self.used() > self.goal + grace
    }
}

/// What `live` bytes of keys and values may take if nothing is to be done, where they take at least `least` with all that leads
/// to them.
pub fn goal(live: u64, least: u64, max_space_amplification: f64) -> u64 {
    let allowed = (live as f64 * max_space_amplification) as u64;
    allowed.max(least + least / GARBAGE_PART_OF_LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debt_begins_where_garbage_is_collected_and_grows_with_the_slack_used() {
        let space =
            |disk, reserved| Space { disk, reserved, live: 100, goal: 130, slack: 320, ..Space::default() };
        let over = |disk, demand| space(disk, 0).is_over_goal(demand);
        assert!(
            !over(133, Demand::Idle) && over(134, Demand::Idle),
            "what is little beside what is alive stays"
        );
        let large = |disk| Space { live: 10_000, ..space(disk, 0) }.is_over_goal(Demand::Idle);
        assert!(!large(160) && large(161), "but no more than a part of the slack");
        assert!(!over(370, Demand::Busy) && over(371, Demand::Busy));
        let calls = |space: Space| space.calls_for_collection(Demand::Busy);
        let waits = |disk| Space { promised: 100, ..space(disk, 0) };
        assert!(calls(waits(351)), "writers wait");
        assert!(!calls(waits(350)), "for something else");
        assert!(!calls(Space { promised: 0, ..waits(370) }), "they need not wait");
        let debt = |disk, reserved| space(disk, reserved).debt();
        assert_eq!([debt(390, 0), debt(405, 0), debt(420, 0)], [0.0, 0.5, 1.0]);
        assert_eq!(
            [debt(400, 60), debt(414, 150), debt(428, 200)],
            [0.0, 0.5, 1.0],
            "all space may take more"
        );
        let promised = |promised| Space { promised, ..space(400, 150) };
        assert!(promised(0).debt() < 0.7, "jobs write nothing more");
        assert!((promised(28).debt() - 1.0).abs() < f64::EPSILON, "they will fill the bound");
        assert!(promised(20).has_room(8) && !promised(20).has_room(9));
        let stocked = |stock| Space { removing: stock, stock, ..space(420, 50) };
        assert!(stocked(20).debt() < stocked(0).debt(), "what is made of it takes no more");
        assert!(Space { promised: 20, ..stocked(20) }.has_room(8) && !stocked(0).has_room(9));
        assert_eq!([stocked(20).stock_max(), stocked(0).stock_max()], [20, 0], "but it is there");
        assert_eq!(space(100, 0).stock_max(), 80, "more would lie idle");
        let held = Space { leaving: 20, ..promised(20) };
        assert!(held.has_room(19), "readers keep what they hold");
        assert!(
            !held.has_room(20) && promised(20).has_room(1),
            "who would slow writers down waits until something else does"
        );
        assert_eq!(Space { leaving: 170, ..space(450, 0) }.debt(), 0.0, "readers hold it");
        assert!(
            (Space { removing: 170, ..space(428, 0) }.debt() - 1.0).abs() < f64::EPSILON,
            "it is there yet"
        );
        assert!(!Space { removing: 170, ..space(450, 0) }.is_over_goal(Demand::Busy), "and collected");
        let more = |disk| space(disk, 0).calls_for_more_collections();
        assert!(!more(380) && more(381), "one does not keep up");
        let held = |leaving| Space { leaving, ..space(400, 0) };
        let refuses = |space: Space, refusal| space.calls_for(refusal);
        assert!(!refuses(held(420), Refusal::Readers) && refuses(held(421), Refusal::Readers));
        assert!(!refuses(space(427, 0), Refusal::Garbage) && refuses(space(428, 0), Refusal::Garbage));
        assert!(!refuses(Space { leaving: 1, ..space(428, 0) }, Refusal::Garbage), "a reader holds it");
        assert!((space(150, 0).amplification() - 1.5).abs() < f64::EPSILON);
        assert!((Space::default().amplification() - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn room_for_a_compaction_is_made_before_it_begins() {
        let space =
            |disk, reserved| Space { disk, reserved, live: 100, goal: 130, slack: 320, ..Space::default() };
        let over = |space: Space| space.calls_for_collection(Demand::Busy);
        let (wants, runs) =
            (Space { wanted: 40, ..space(330, 0) }, Space { compacting: 40, ..space(330, 0) });
        assert!(!over(wants) && !over(runs), "all of it is what garbage may take");
        assert!(over(Space { disk: 331, ..wants }) && over(Space { disk: 331, ..runs }));
        assert!(
            !Space { disk: 133, ..wants }.calls_for_collection(Demand::Idle),
            "it comes while keys are written"
        );
        assert!(
            space(360, 0).has_room_for_compaction(40, 0) && !space(360, 0).has_room_for_compaction(41, 0)
        );
        assert!(space(420, 0).has_room_for_compaction(121, 0), "none is made for one so large");
        assert!(space(420, 0).has_room_for_compaction(0, 0) && !space(420, 0).has_room_for_compaction(1, 0));
        let in_large = |bytes| {
            // A quarter of what garbage may have is 500 bytes.
            let large = Space { goal: 2130, least: 130, ..space(2420, 0) };
            [large.has_room_for_compaction(bytes, 0), large.has_room_for_compaction(bytes + 1, 0)]
        };
        assert_eq!(in_large(120), [false, false], "beside much garbage some is made for a larger one, too");
        assert_eq!(in_large(500), [false, true]);
        let two = |bytes| space(260, 0).has_room_for_compaction(bytes, 70);
        assert!(two(70) && !two(71), "one does not count as large for another beside it");
        let large = |disk| Space { compacting: 1000, wanted: 1000, ..space(disk, 0) };
        assert!(!over(large(250)) && over(large(251)), "nor is all garbage collected for it");
        let fills = |disk| space(disk, 0).is_filling(40);
        assert!(!fills(249) && fills(250) && fills(309) && !fills(310) && !fills(360));
        let fills_beside_large = |disk| space(disk, 0).is_filling(200);
        assert!(fills_beside_large(130) && !fills_beside_large(129), "a load is not garbage");

        let debt = |wanted| Space { wanted, ..space(400, 20) }.debt();
        assert_eq!([debt(0), debt(10)], [0.0, 0.0], "there is room");
        assert!((debt(19) - 0.5).abs() < 1e-9, "writers are slowed down");
        assert!((debt(1000) - DEBT_OF_WANTED.0).abs() < 1e-9, "but only so much");
        let waits = |waited| Space { wanted: 1000, waited, ..space(400, 20) }.debt();
        assert!(
            (waits(500) - 0.8).abs() < 1e-9 && (waits(5000) - DEBT_OF_WANTED.1).abs() < 1e-9,
            "by and by"
        );
        assert!(
            (Space { promised: 28, ..space(400, 20) }.debt() - 1.0).abs() < 1e-9,
            "unlike by what will be written for sure"
        );
        let going = Space { removing: 20, promised: 28, ..space(400, 20) };
        assert!(going.debt() < 0.01, "what is being removed makes room for it");
        assert!(Space { removing: 400, disk: 412, ..going }.debt() > 0.5, "but not all of it");
        assert!(!going.has_room(1), "once it has");
    }

    #[test]
    fn the_goal_is_never_less_than_can_be_reached() {
        assert_eq!(goal(1000, 1060, 1.3), 1300);
        assert_eq!(goal(1000, 1600, 1.3), 1700, "small entries");
        assert_eq!(goal(0, 0, 1.3), 0);
    }
}
