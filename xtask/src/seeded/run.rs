//! Builds the copy and has its tests look for the bugs.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::copy::{self, VARIABLE};
use super::{Bug, bugs};
use crate::loom;
use crate::programs::{self, Programs};
use crate::steps::cargo;

/// A test that is still running after this long hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// One that takes this long is named, for it may hang on a slower machine.
const SLOW: Duration = Duration::from_secs(60);

/// What the program of the models is called.
const MODELS: &str = "loom";

/// What became of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// No test of that name has run.
    Absent,
    Hung,
}

/// Looks for all bugs, or for those of these names.
///
/// # Errors
/// Those of files and processes; `InvalidInput` for an unknown name.
pub fn run(root: &Path, names: &[&str]) -> io::Result<ExitCode> {
    if let Some(unknown) = names.iter().find(|name| bugs::all().all(|bug| bug.name != **name)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no bug {unknown}")));
    }
    let chosen: Vec<&Bug> = bugs::all().filter(|bug| names.is_empty() || names.contains(&bug.name)).collect();
    let started = Instant::now();
    let programs = build(root, &copy::make(root)?, &chosen)?;
    println!(
        "built {} test programs with {} bugs ({:.0} s)",
        programs.len(),
        bugs::all().count(),
        started.elapsed().as_secs_f64()
    );

    let tests: BTreeSet<(&str, &str)> = chosen.iter().map(|bug| bug.caught_by).collect();
    let sound = each(tests.into_iter().collect(), |&test| look(&programs, test, None))?;
    let mut wrong: Vec<String> = Vec::new();
    for ((program, test), outcome) in sound {
        if outcome != Outcome::Passed {
            wrong.push(format!("{program} {test}: {outcome:?} without any bug"));
        }
    }
    let caught = each(chosen, |bug| look(&programs, bug.caught_by, Some(bug.name)))?;
    let total = caught.len();
    for (bug, outcome) in caught {
        if outcome != Outcome::Failed {
            wrong.push(format!("{}: {outcome:?} in {} {}", bug.name, bug.caught_by.0, bug.caught_by.1));
        }
    }
    wrong.iter().for_each(|line| println!("  NOT CAUGHT: {line}"));
    println!(
        "{} of {total} bugs were caught ({:.0} s)",
        total.saturating_sub(wrong.len()),
        started.elapsed().as_secs_f64()
    );
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the test programs that the bugs need.
fn build(root: &Path, copy: &Path, chosen: &[&Bug]) -> io::Result<Programs> {
    let mut names: BTreeSet<&str> = chosen.iter().map(|bug| bug.caught_by.0).collect();
    let mut programs = Programs::new();
    if names.remove(MODELS) {
        let mut built = programs::build(loom::tests(copy, root).arg("--offline"), copy, &["lib"])?;
        programs.extend(built.remove("lib").map(|program| (MODELS.to_owned(), program)));
    }
    if !names.is_empty() {
        let mut command = cargo(copy, &["test", "-p", "tamarack", "--offline"]);
        // What comes from elsewhere is built already.
        command.env("CARGO_TARGET_DIR", root.join("target"));
        programs.append(&mut programs::build(&mut command, copy, &names.into_iter().collect::<Vec<_>>())?);
    }
    Ok(programs)
}

/// Runs `program`'s tests whose names have `test` in them, with `bug` in force.
fn look(programs: &Programs, (program, test): (&str, &str), bug: Option<&str>) -> io::Result<Outcome> {
    let mut command = Command::new(&programs[program]);
    command.arg(test).stdout(Stdio::piped()).stderr(Stdio::null()).env_remove(VARIABLE);
    command.envs(bug.map(|bug| (VARIABLE, bug)));
    let mut child = command.spawn()?;
    let reader = child.stdout.take().expect("it is piped");
    let output = std::thread::spawn(move || io::read_to_string(reader));
    let started = Instant::now();
    let Some(passed) = programs::wait(&mut child, PATIENCE)? else { return Ok(Outcome::Hung) };
    if started.elapsed() >= SLOW {
        println!(
            "  slow: {program} {test} with {} ({:.0} s)",
            bug.unwrap_or("no bug"),
            started.elapsed().as_secs_f64()
        );
    }
    let output = output.join().expect("reading does not panic")?;
    Ok(match passed {
        true if output.contains("running 0 tests") => Outcome::Absent,
        true => Outcome::Passed,
        false => Outcome::Failed,
    })
}

/// `work` on each of `items`, as many at a time as there are processors, in their order.
fn each<T: Sync, R: Send>(
    items: Vec<T>,
    work: impl Fn(&T) -> io::Result<R> + Sync,
) -> io::Result<Vec<(T, R)>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let take = || {
        let place = next.fetch_add(1, Ordering::Relaxed);
        items.get(place).map(|item| (place, work(item)))
    };
    let mut done = BTreeMap::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| std::iter::from_fn(take).collect::<Vec<_>>())).collect();
        workers.into_iter().for_each(|worker| done.extend(worker.join().expect("no worker panics")));
    });
    items.into_iter().zip(done.into_values()).map(|(item, result)| Ok((item, result?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_on_each_item_and_given_in_their_order() {
        let squares = each((0..100).collect(), |number: &i32| Ok(number * number)).expect("no errors");
        assert!(squares.iter().zip(0..).all(|((number, square), at)| *number == at && *square == at * at));
    }
}
