//! The step that kills a writer: a child process imports the tree into a second database and is killed with
//! SIGKILL in the middle; afterwards everything it had reported as acknowledged must be there.
//!
//! The child writes in a known order, one file per write, so the promise can be checked in full: the files
//! that survived are a prefix of that order, at least as long as what was acknowledged, and all intact.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::json;
use tamarack::{Db, Options};

use super::steps::must_equal_file;
use super::{Shown, Size};
use crate::failure::{Failure, Result};
use crate::format::Encoding;
use crate::output;
use crate::progress::{Progress, Unit};
use crate::tree::collect::{Entry, Tree};

/// SIGKILL's number, the same on every Unix.
const SIGKILL: i32 = 9;

/// Kills an import of `tree`, which is under `root`, into a database at `path`, and verifies what survived.
pub fn kill_and_recover(root: &Path, tree: &Tree, path: &Path, size: Size) -> Result<Shown> {
    let files: Vec<&Entry> = tree.entries.iter().filter(|entry| entry.file_bytes.is_some()).collect();
    let acknowledged = import_until_killed(root, path, size, (files.len() as u64).div_ceil(2))?;
    let started = Instant::now();
    let db = Db::open(path, Options { create_if_missing: false, ..Options::default() })?;
    let open_seconds = started.elapsed().as_secs_f64();
    let survived = verify(&db, &files, acknowledged)?;
    let recovery = db.recovery();
    let tail = match &recovery.torn_tail {
        Some(tail) => format!("a torn tail of {} ignored", output::bytes(tail.ignored_bytes)),
        None => "no torn tail".to_owned(),
    };
    let text = format!(
        "a second import was killed with SIGKILL after {} acknowledged files;\n\
         reopened in {}, 0 of them lost, all equal to their files ({} survived)\n\
         {} replayed from {} of log, {} rewritten to be durable, {tail}",
        output::count(acknowledged),
        output::seconds(open_seconds),
        output::count(survived),
        output::plural(recovery.operations, "operation"),
        output::bytes(recovery.log_bytes),
        output::bytes(recovery.rewritten_bytes)
    );
    let figures = json!({
        "acknowledged": acknowledged, "survived": survived, "lost": 0, "open_seconds": open_seconds,
        "recovery": {
            "log_bytes": recovery.log_bytes, "batches": recovery.batches, "operations": recovery.operations,
            "rewritten_bytes": recovery.rewritten_bytes, "seconds": recovery.seconds,
            "torn_tail_bytes": recovery.torn_tail.as_ref().map(|tail| tail.ignored_bytes),
        },
    });
    db.close()?;
    Ok(Shown { name: "kill -9", field: "kill", text, figures })
}

/// Starts the child, kills it after `enough` acknowledgements, and returns how many it made in all.
fn import_until_killed(root: &Path, path: &Path, size: Size, enough: u64) -> Result<u64> {
    let failed = |action: &str| {
        let action = action.to_owned();
        move |source| Failure::Io { action, source }
    };
    let program = std::env::current_exe().map_err(failed("find this program"))?;
    let mut child = Command::new(program)
        .arg("demo-child")
        .args(size.arguments())
        .args([path, root])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed("start a child process"))?;
    let counted = count_and_kill(&mut child, enough);
    if counted.is_err() {
        // The error that matters is the first one; the child may be gone already.
        child.kill().ok();
    }
    let status = child.wait().map_err(failed("wait for the child process"))?;
    let acknowledged = counted?;
    if status.signal() != Some(SIGKILL) {
        return Err(Failure::Other(format!("the second import ended by itself: {status}")));
    }
    Ok(acknowledged)
}

/// Counts acknowledgements up to the end of the child's output. Those already in the pipe when the kill
/// strikes count like all others: the child had them acknowledged.
fn count_and_kill(child: &mut Child, enough: u64) -> Result<u64> {
    let progress = Progress::start("kill -9", Unit::Items, Some(enough));
    let mut output = BufReader::new(child.stdout.take().expect("the child's output is piped"));
    let mut acknowledged = 0;
    let mut line = String::new();
    let failed = |source| Failure::Io { action: "talk to the child process".into(), source };
    loop {
        line.clear();
        if output.read_line(&mut line).map_err(failed)? == 0 || !line.ends_with('\n') {
            return Ok(acknowledged);
        }
        if line.trim_end() != acknowledged.to_string() {
            return Err(Failure::Other(format!("the child process said {line:?}, not {acknowledged}")));
        }
        acknowledged += 1;
        progress.advance(1);
        if acknowledged == enough {
            child.kill().map_err(failed)?;
        }
    }
}

/// Demands that a prefix of `files` survived, at least the `acknowledged` ones, each intact.
fn verify(db: &Db, files: &[&Entry], acknowledged: u64) -> Result<u64> {
    let mut survived = 0;
    for (index, file) in files.iter().enumerate() {
        let value = db.get(&file.path)?;
        if (index as u64) < acknowledged || value.is_some() {
            must_equal_file(file, value.as_ref(), "after the kill, although it was acknowledged")?;
            if survived != index as u64 {
                return Err(Failure::Mismatch(format!(
                    "{} survived the kill, but something written before it did not",
                    Encoding::Utf8.line(&file.path)
                )));
            }
            survived += 1;
        }
    }
    Ok(survived)
}
