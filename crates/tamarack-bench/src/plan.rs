//! How much of what is done: the arguments that all programs that measure have in common.

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::value_size::ValueSize;
use crate::workload::Workload;

/// How keys are drawn that are not taken in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// All keys alike
    #[default]
    Uniform,
    /// A few keys often (Zipf's law, exponent 0.99), spread over all of them
    Zipfian,
    /// The same law over how lately keys were inserted: the newest one most often, whether or not others were overwritten since
    Latest,
}

impl Distribution {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipfian => "zipfian",
            Self::Latest => "latest",
        }
    }
}

/// Bytes of the longest value that a store may be asked to take.
const VALUE_MAX: u64 = u32::MAX as u64;

/// Of each key a byte is kept while a run lasts.
const KEYS_MAX: u64 = 1 << 36;

/// What all workloads of a run have in common.
#[derive(Debug, Clone, Args)]
pub struct Plan {
    /// Number of keys
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=KEYS_MAX))]
    pub num: u64,

    /// Operations of workloads that are not fills [default: NUM; of readseq and readreverse all entries]
    #[arg(long, value_name = "N")]
    pub ops: Option<u64>,

    /// End workloads that are not fills after so many seconds, or after --ops operations if those are done before
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seconds: Option<u64>,

    /// Operations a second, of all threads together: each is due at its time, and its latency counts from then, also if it has to wait for
    /// others; that of several at once from when the last of them is due. With --seconds those are done that are due until then, however long
    /// they take [default: each thread begins one when the one before has ended]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub rate: Option<u64>,

    /// Open the database anew for each workload, with its files out of the page cache
    #[arg(long)]
    pub cold: bool,

    /// Read all of the database before each workload that reads, which is not measured: what can be kept in memory then is
    #[arg(long, conflicts_with = "cold")]
    pub warm: bool,

    /// After each workload that does nothing but write, leave the database alone for so many seconds before stock is taken: some work is only
    /// done while nothing is written
    #[arg(long, default_value_t = 0, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub idle_seconds: u64,

    /// Bytes per value: a number, also of KiB or MiB, as 64K or 64KiB; a range whose sizes are equally likely, as 100..10000; or `pareto`, the skewed sizes of
    /// ZippyDB's values (Cao et al., FAST 2020), or pareto:SHAPE,SCALE or pareto:SHAPE,SCALE,MAX
    #[arg(long, default_value = "1024", value_name = "BYTES")]
    pub value_size: ValueSize,

    /// Bytes per key
    #[arg(long, default_value_t = 16, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub key_size: u16,

    /// Threads that share the operations of a workload
    #[arg(long, default_value_t = 1, value_name = "T", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub threads: u64,

    /// Sync every write
    #[arg(long)]
    pub sync: bool,

    /// Sync each N-th write of a thread, and with it all before it; 1 is --sync
    #[arg(long, conflicts_with = "sync", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub sync_every: Option<u64>,

    /// Operations per write; latencies are then those of whole batches
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub batch_size: u32,

    /// Keys that multireadrandom reads at once; latencies are those of such a read
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub keys_per_read: u32,

    /// Entries that seekrandom reads from where it is
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub entries_per_seek: u32,

    /// Percent of the keys that fillbesidegarbage and fillwhilecollecting find deleted
    #[arg(long, default_value_t = 50, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub dead_percent: u8,

    /// How workloads draw their keys that do not take them in a fixed order [default: uniform; YCSB's: zipfian, and latest for D]
    #[arg(long, value_enum, value_name = "DISTRIBUTION")]
    pub distribution: Option<Distribution>,

    /// Seed of everything random
    #[arg(long, default_value_t = 42, value_name = "SEED")]
    pub seed: u64,

    /// Compare every value read with what this run wrote under its key
    #[arg(long)]
    pub verify: bool,
}

impl Plan {
    /// How many keys there may be, if `workloads` are run: those that insert may insert as many as there were.
    pub fn keys_max(&self, workloads: &[Workload]) -> u64 {
        let inserts = workloads.iter().any(|workload| workload.is_ycsb() || workload.is_beside_garbage());
        if inserts { self.num.saturating_mul(2) } else { self.num }
    }

    /// Of how many writes of a thread one is synced; `None` if none is.
    pub fn writes_per_sync(&self) -> Option<u64> {
        if self.sync { Some(1) } else { self.sync_every }
    }

    /// How many of the keys are deleted before workloads that are beside garbage.
    pub(crate) fn dead_keys(&self) -> u64 {
        (u128::from(self.num) * u128::from(self.dead_percent) / 100) as u64
    }

    /// Refuses a plan whose keys do not fit into their length or whose values are too long, and workloads that do not fit to each other or to
    /// the plan.
    ///
    /// # Errors
    /// The text says what would do.
    pub fn check(&self, workloads: &[Workload]) -> Result<(), String> {
        let digits = (self.keys_max(workloads) - 1).to_string().len();
        if digits > self.key_size.into() {
            return Err(format!("{} keys need --key-size {digits} at least", self.num));
        }
        if self.value_size.largest() as u64 > VALUE_MAX {
            return Err(format!(
                "values have up to {VALUE_MAX} bytes: --value-size {} is too much",
                self.value_size
            ));
        }
        if workloads.contains(&Workload::Recover) {
            if workloads.len() > 1 {
                return Err("recover stands alone: it works on a database of its own".into());
            }
            if self.cold || self.warm || self.seconds.is_some() || self.rate.is_some() || self.ops.is_some() {
                return Err("recover writes all keys and opens the database once: leave --ops, --seconds, --rate, --cold and --warm out".into());
            }
        }
        let loads = |workload: &Workload| *workload == Workload::Ycsbload;
        if let Some(at) = workloads.iter().position(|workload| workload.works_on_records())
            && workloads[0].is_fill()
            && !workloads[..at].iter().any(loads)
        {
            return Err(format!("{} needs the records of ycsbload: begin with that", workloads[at].name()));
        }
        if let Some(late) = workloads.iter().skip(1).find(|workload| workload.is_beside_garbage()) {
            return Err(format!(
                "{} must be the first workload: it makes the garbage by itself, in a new database",
                late.name()
            ));
        }
        Ok(())
    }
}
