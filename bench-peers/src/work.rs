//! What is done on every store: the arguments that commands have in common.

use clap::error::ErrorKind;
use clap::{Args, Parser};
use tamarack_bench::{Memory, Plan, Workload};

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

    /// Read past the kernel's cache of files, which Tamarack (values), RocksDB, BlobDB and bare and records (values that are asked for; device always does)
    /// can; for the others it is an error
    #[arg(long)]
    pub direct: bool,
}

/// Arguments that are nothing else.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Given {
    #[command(flatten)]
    work: Work,
}

impl Work {
    /// What `arguments` say.
    ///
    /// # Errors
    /// If they cannot be understood, or do not fit together.
    pub fn parse(arguments: &[String]) -> Result<Self, clap::Error> {
        let Given { work } = Given::try_parse_from(arguments)?;
        let unfit = |text| clap::Error::raw(ErrorKind::ValueValidation, format!("{text}\n"));
        work.plan.check(&work.workloads).map_err(unfit)?;
        Ok(work)
    }
}
