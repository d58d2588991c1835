//! `tamarack/c.h`: durability, space, copies, checks and figures of an open database.

use std::ffi::c_int;

use serde_json::Value;
use tamarack::{CheckLevel, Db, GcGoal};

use crate::boundary::arguments::{Bytes, ErrorPointer, Results, Text};
use crate::boundary::guard::{contained, misuse, reported};
use crate::boundary::handle::Given;
use crate::boundary::memory::Allocated;
use crate::database::Database;
use crate::report;

/// Makes everything acknowledged so far safe against a failure of the machine.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_sync(db: Given<Database>, errptr: ErrorPointer) {
    reported("tamarack_sync", errptr, (), || Ok(db.get().db().sync()?));
}

/// Turns every memtable into tables.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_flush(db: Given<Database>, errptr: ErrorPointer) {
    reported("tamarack_flush", errptr, (), || Ok(db.get().db().flush()?));
}

/// Waits until flushes and compactions have nothing left to do.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_wait_idle(db: Given<Database>, errptr: ErrorPointer) {
    reported("tamarack_wait_idle", errptr, (), || Ok(db.get().db().wait_idle()?));
}

/// `leveldb_compact_range`, and tells errors.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_compact_range(
    db: Given<Database>,
    start: Bytes,
    startlen: usize,
    limit: Bytes,
    limitlen: usize,
    errptr: ErrorPointer,
) {
    reported("tamarack_compact_range", errptr, (), || {
        let (start, limit) = (start.slice_if_any(startlen), limit.slice_if_any(limitlen));
        Ok(db.get().db().compact_range(start, limit)?)
    });
}

/// Collects garbage until the database takes at most `until` bytes on disk for each live byte; with 0, once.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_gc(db: Given<Database>, until: f64, errptr: ErrorPointer) -> Allocated {
    reported("tamarack_gc", errptr, Allocated::NONE, || {
        let goal = if until == 0.0 { GcGoal::Once } else { GcGoal::Until(until) };
        Ok(text(&report::gc(&db.get().db().gc(goal)?)))
    })
}

/// Keeps garbage collection from beginning in the background.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_gc_pause(db: Given<Database>) {
    contained("tamarack_gc_pause", || db.get().db().pause_gc());
}

/// Ends a pause of garbage collection.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_gc_resume(db: Given<Database>, errptr: ErrorPointer) {
    reported("tamarack_gc_resume", errptr, (), || Ok(db.get().db().resume_gc()?));
}

/// Changes how many bytes a second garbage collection may copy; 0 is no limit.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_set_gc_bytes_per_second(db: Given<Database>, bytes: u64) {
    contained("tamarack_set_gc_bytes_per_second", || db.get().db().set_gc_bytes_per_second(bytes));
}

/// Sorts values by key, so that scans read them one after another.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_sort_values(db: Given<Database>, errptr: ErrorPointer) {
    reported("tamarack_sort_values", errptr, (), || Ok(db.get().db().sort_values()?));
}

/// Copies the database into the directory `path`, sharing files where it can.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_checkpoint(db: Given<Database>, path: Text, errptr: ErrorPointer) -> Allocated {
    reported("tamarack_checkpoint", errptr, Allocated::NONE, || {
        Ok(text(&report::checkpoint(&db.get().db().checkpoint(path.path())?)))
    })
}

/// Checks what is on disk: 0 structure, 1 checksums, 2 what is alive, 3 every value too.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_check(db: Given<Database>, level: c_int) -> Allocated {
    contained("tamarack_check", || {
        let level = match level {
            0 => CheckLevel::Structure,
            1 => CheckLevel::Checksums,
            2 => CheckLevel::Liveness,
            3 => CheckLevel::Values,
            _ => misuse(format!("{level} is no level of a check")),
        };
        text(&report::check(&db.get().db().check(level)))
    })
}

/// Figures about the database.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_stats(db: Given<Database>) -> Allocated {
    contained("tamarack_stats", || text(&figures(db.get().db())))
}

/// One figure by its name; whether there is one.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_stats_number(db: Given<Database>, name: Text, value: Results<f64>) -> u8 {
    contained("tamarack_stats_number", || {
        let name = std::str::from_utf8(name.bytes()).ok();
        let found = name.and_then(|name| report::number(&figures(db.get().db()), name));
        found.inspect(|found| value.set(*found)).is_some().into()
    })
}

/// What opening found in the log.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_recovery(db: Given<Database>) -> Allocated {
    contained("tamarack_recovery", || text(&report::recovery(db.get().db().recovery())))
}

fn figures(db: &Db) -> Value {
    report::stats(&db.stats())
}

fn text(report: &Value) -> Allocated {
    Allocated::text(&report.to_string())
}
