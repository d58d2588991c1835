//! The database as a whole: opening it, and its entries in order.

use std::path::Path;

use crate::context::{Context, Counts};
use crate::error::Result;
use crate::keys::SEQUENCE_MAX;
use crate::lock::Lock;
use crate::loss::Loss;
use crate::merge::{Cursor, Merge, arrange};
use crate::options::Options;
use crate::plan::Plan;
use crate::remark::Remark;
use crate::replay::replay;
use crate::sorter::Sorter;
use crate::table_run::TableRun;

/// A LevelDB database that is open for reading. The directory stays as it is, and locked.
pub struct Database {
    plan: Plan,
    options: Options,
    context: Context,
    total_bytes: u64,
    lock: Option<Lock>,
}

/// The entries of a database in the order of their keys' bytes: of every key that is not deleted the newest value.
pub struct Entries {
    merge: Merge,
    context: Context,
    _lock: Option<Lock>,
}

impl Database {
    /// Opens the database in `directory` and reads its manifest.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked) if a program has it open; [`NotLevelDb`](crate::Error::NotLevelDb) if there is none;
    /// [`Comparator`](crate::Error::Comparator) if its keys are in an order that is not that of their bytes and
    /// [`any_comparator`](Options::any_comparator) is off; [`Damage`](crate::Error::Damage) if files are damaged or missing and
    /// [`salvage`](Options::salvage) is off; [`Io`](crate::Error::Io).
    pub fn open(directory: &Path, options: Options) -> Result<Self> {
        let lock = Lock::take(directory)?;
        let mut context = Context {
            salvage: options.salvage,
            bytewise: true,
            last_sequence: SEQUENCE_MAX,
            losses: Vec::new(),
            remarks: Vec::new(),
            counts: Counts::default(),
            bytes_read: 0,
        };
        let plan = Plan::make(directory, &options, &mut context)?;
        if lock.is_none() {
            context.remarks.push(Remark::NoLock(directory.to_path_buf()));
        }
        let tables = plan.tables.iter().fold(0_u64, |sum, table| sum.saturating_add(table.bytes));
        // A log that cannot be looked at is told of when it is read.
        let logs: u64 =
            plan.logs.values().filter_map(|path| path.metadata().ok()).map(|file| file.len()).sum();
        Ok(Self { plan, options, context, total_bytes: tables.saturating_add(logs), lock })
    }

    /// Bytes of the tables and logs that are to be read.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Replays the logs and stands before the first entry. `progress` hears, now and then, how many bytes have been read: those of
    /// the logs, and where all entries have to be sorted, of the tables.
    ///
    /// # Errors
    /// [`Damage`](crate::Error::Damage) unless it is left out; [`Io`](crate::Error::Io).
    pub fn entries(self, mut progress: impl FnMut(u64)) -> Result<Entries> {
        let Self { plan, options, mut context, lock, .. } = self;
        let mut sorter = Sorter::new(options.memory_bytes, &options.temporary_directory);
        replay(&plan.logs, &mut context, &mut sorter, &mut progress)?;
        let mut merge = Merge::default();
        if context.bytewise {
            for run in arrange(plan.tables, |table| (&table.smallest, &table.largest)) {
                merge.add(Cursor::Tables(Box::new(TableRun::new(run))), &mut context)?;
            }
        } else {
            for table in plan.tables {
                let mut run = TableRun::new([table]);
                while run.advance(&mut context)? {
                    sorter.add(run.user_key(), run.trailer(), run.value())?;
                    progress(context.bytes_read);
                }
            }
        }
        let (runs, older_versions) = sorter.finish()?;
        context.counts.older_versions += older_versions;
        for run in runs {
            merge.add(Cursor::Sorted(run), &mut context)?;
        }
        Ok(Entries { merge, context, _lock: lock })
    }
}

impl Entries {
    /// Goes to the next entry; `false` behind the last one.
    ///
    /// # Errors
    /// [`Damage`](crate::Error::Damage) unless it is left out; [`Io`](crate::Error::Io). What follows an error is undefined.
    pub fn advance(&mut self) -> Result<bool> {
        self.merge.advance(&mut self.context)
    }

    /// The entry's key.
    pub fn key(&self) -> &[u8] {
        self.merge.key()
    }

    /// The entry's value.
    pub fn value(&self) -> &[u8] {
        self.merge.value()
    }

    /// Bytes of tables and logs that have been dealt with.
    pub fn bytes_read(&self) -> u64 {
        self.context.bytes_read
    }

    /// Figures of what has been read.
    pub fn counts(&self) -> Counts {
        self.context.counts
    }

    /// What was left out, as far as it has been read.
    pub fn losses(&self) -> &[Loss] {
        &self.context.losses
    }

    /// What is worth knowing besides.
    pub fn remarks(&self) -> &[Remark] {
        &self.context.remarks
    }
}
