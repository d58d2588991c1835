//! A life in which every path of the engine is taken, over and over, each time with another call of the operating system
//! failing: the first, the second, and so on until there are no more; once, or from then on; because the device fails, or
//! because it is full, or half-way through a write. Errors are clean, what was acknowledged stays, reads go on, nothing
//! hangs, nothing is left open, and after a failed sync of the log nothing is written or synced any more.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests prepare and inspect their world"
)]
#![cfg(not(shuttle))]

mod common;
#[path = "error_sweep/ledger.rs"]
mod ledger;
#[path = "error_sweep/life.rs"]
mod life;
#[path = "error_sweep/log_syncs.rs"]
mod log_syncs;

use common::time::{Threads, counted};
use common::{PATIENCE_SECONDS, Watchdog};
use ledger::Ledger;
use life::{Life, assert_complete, live, options, prepare};
use log_syncs::LogSyncs;
use tamarack::testing::{Call, EIO, ENOSPC, Fault, FaultEnv, SimDisk};
use tamarack::{Db, ErrorKind, LogMode, Options};

/// A way to fail.
type Failing = (&'static str, fn(u64) -> Fault);

const WAYS: [Failing; 5] = [
    ("a call fails", |nth| Fault::on_any().nth(nth).errno(EIO)),
    ("a call finds no space", |nth| Fault::on_any().nth(nth).errno(ENOSPC)),
    ("a write is done by half", |nth| Fault::on(Call::Write).nth(nth).short_write()),
    ("all changes fail from then on", |nth| Fault::on_mutating().nth(nth).for_ever().errno(EIO)),
    ("no change finds space from then on", |nth| Fault::on_mutating().nth(nth).for_ever().errno(ENOSPC)),
];

/// What a sweep came to.
#[derive(Default)]
struct Tally {
    runs: u64,
    failed_opens: u64,
    /// Runs in which a call of the interface gave an error.
    with_errors: u64,
    /// Runs in which writes were refused.
    read_only: u64,
}

/// Fails each call in one way.
fn sweep(log_mode: LogMode, (way, fault): Failing) -> Tally {
    let options = options(log_mode);
    let (prepared, ledger) = prepare(&options);
    let mut tally = Tally::default();
    for nth in 1.. {
        let what = format!("{log_mode:?}, {way}, number {nth}");
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, what.clone());
        if !run(&prepared.kill(), &options, ledger.clone(), fault(nth), &what, &mut tally) {
            break;
        }
    }
    tally
}

/// One life. Returns whether the fault has struck.
fn run(
    disk: &SimDisk,
    options: &Options,
    mut ledger: Ledger,
    fault: Fault,
    what: &str,
    tally: &mut Tally,
) -> bool {
    let (env, threads) = counted(disk.env());
    let (env, faults) = FaultEnv::new(env);
    let log_syncs = LogSyncs::watch(&faults);
    faults.inject(fault);
    let mut life = Life {
        env: &env,
        options,
        ledger: &mut ledger,
        faults: &faults,
        errors: Vec::new(),
        log_syncs: &log_syncs,
        what,
    };
    let opened = live(&mut life);
    let errors = std::mem::take(&mut life.errors);
    let struck = faults.triggered() > 0;
    assert!(struck || errors.is_empty(), "{what}: {errors:?} without a fault");
    for error in &errors {
        let clean = [ErrorKind::Io, ErrorKind::NoSpace, ErrorKind::ReadOnly].contains(&error.kind());
        assert!(clean, "{what}: {error}");
    }
    assert_nothing_left(disk, &threads, what);
    if !struck {
        assert_complete(&faults);
        return false;
    }
    tally.runs += 1;
    tally.with_errors += u64::from(!errors.is_empty());
    tally.failed_opens += u64::from(!opened);
    tally.read_only += u64::from(errors.iter().any(|error| error.kind() == ErrorKind::ReadOnly));
    // With all that the kernel has; and with what is durable alone.
    for (after, durable) in [(disk.kill(), false), (disk.crash_to_durable(), true)] {
        let what = format!("{what}, opened again (durable alone: {durable})");
        assert_recovers(&after, options, ledger.clone(), durable, &what);
    }
    true
}

fn assert_nothing_left(disk: &SimDisk, threads: &Threads, what: &str) {
    assert_eq!(threads.running(), 0, "{what}: threads");
    assert_eq!(disk.open_handles(), 0, "{what}: open files");
}

/// Opens the database in a world without faults: what must be there is, and it works.
fn assert_recovers(disk: &SimDisk, options: &Options, mut ledger: Ledger, durable: bool, what: &str) {
    let env = common::time::unwatched(disk.env());
    let db = Db::open_with_env(life::DATABASE, options.clone(), &env);
    let db = db.unwrap_or_else(|error| panic!("{what}: {error}"));
    if durable {
        ledger.assert_durable(&db, what);
    } else {
        ledger.assert_reads(&db, what).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    common::assert_clean(&db);
    ledger.put(&db, 1, 300, true).unwrap();
    db.flush().unwrap();
    ledger.assert_key(&db, 1, what);
    db.close().unwrap();
}

fn sweep_all(log_mode: LogMode) {
    for failing in WAYS {
        let Tally { runs, failed_opens, with_errors, read_only } = sweep(log_mode, failing);
        println!(
            "{log_mode:?}, {}: {runs} calls; {with_errors} lives with errors, {read_only} of them read-only for a while, \
             {failed_opens} in which the database could not be opened",
            failing.0
        );
        assert!(runs > 30 && with_errors > 10, "hardly anything has failed");
    }
}

#[test]
fn every_call_may_fail_with_a_mapped_log() {
    sweep_all(LogMode::Mapped);
}

#[test]
fn every_call_may_fail_with_plain_writes() {
    sweep_all(LogMode::Plain);
}
