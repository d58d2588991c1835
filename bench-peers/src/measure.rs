//! `measure`: one store in this process.

use std::path::PathBuf;

use clap::Args;
use tamarack_bench::{Memory, Plan, Workload};

use crate::stores::{Peer, Setting};

/// Runs workloads on one store
#[derive(Debug, Args)]
pub struct Measure {
    /// The store
    #[arg(long, value_enum)]
    store: Peer,

    /// An empty directory for it
    #[arg(long, value_name = "DIR")]
    db: PathBuf,

    #[command(flatten)]
    pub work: Work,
}

/// What is done on every store.
#[derive(Debug, Clone, Args)]
pub struct Work {
    /// Workloads, run in this order on the same database
    #[arg(required = true, value_enum, value_name = "WORKLOAD")]
    pub workloads: Vec<Workload>,

    #[command(flatten)]
    pub plan: Plan,

    #[command(flatten)]
    pub memory: Memory,

    /// Memory for what was read, blocks and values, in MiB [default: what each store takes by itself]
    #[arg(long, value_name = "MIB")]
    pub cache_mib: Option<usize>,
}

impl Measure {
    /// Runs the command.
    pub fn run(self) -> Result<(), String> {
        let Work { workloads, plan, memory, cache_mib } = self.work;
        plan.check(&workloads)?;
        let _limit = memory.limit(&self.db)?;
        let setting = Setting { cache_bytes: cache_mib.map(|mib| mib << 20) };
        self.store.measure(&self.db, &plan, &workloads, setting, &mut |report| {
            println!("{}", serde_json::to_string(report).expect("reports are plain data"));
        })
    }
}
