//! Functions on a directory rather than an open database: LevelDB's `destroy` and `repair`, and Tamarack's `repair`.

use tamarack::{Db, RepairOptions};

use crate::boundary::arguments::{ErrorPointer, Text};
use crate::boundary::guard::reported;
use crate::boundary::handle::Given;
use crate::boundary::memory::Allocated;
use crate::options::OpenOptions;
use crate::report;
use crate::status::Status;

/// Removes a database. That there is none is no error.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_destroy_db(options: Given<OpenOptions>, name: Text, errptr: ErrorPointer) {
    reported("leveldb_destroy_db", errptr, (), || {
        options.get();
        Ok(Db::destroy(name.path())?)
    });
}

/// Makes a database out of what is whole of a damaged one. `tamarack_repair` tells what was lost.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_repair_db(options: Given<OpenOptions>, name: Text, errptr: ErrorPointer) {
    reported("leveldb_repair_db", errptr, (), || {
        // The report is kept in the directory as well.
        repair(options.get(), &name, RepairOptions::default()).map(drop)
    });
}

/// Repairs a database, or with `dry_run` only tells what a repair would do; the report is JSON that the client frees.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_repair(
    options: Given<OpenOptions>,
    name: Text,
    dry_run: u8,
    errptr: ErrorPointer,
) -> Allocated {
    reported("tamarack_repair", errptr, Allocated::NONE, || {
        let how = RepairOptions { dry_run: dry_run != 0, ..RepairOptions::default() };
        let repaired = repair(options.get(), &name, how)?;
        Ok(Allocated::text(&report::repair(&repaired).to_string()))
    })
}

fn repair(options: &OpenOptions, name: &Text, how: RepairOptions) -> Result<tamarack::RepairReport, Status> {
    Ok(Db::repair_with(name.path(), &options.to_options()?, how)?)
}
