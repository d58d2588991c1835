//! The process of a store: what it says until it ends or its time is up, and why it has failed if it has.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A process that has ended.
pub struct Ended {
    /// All that it printed.
    pub said: String,
    /// Why it has not done all it was to do.
    pub failure: Option<String>,
}

/// How often it is looked whether a process has ended whose time is limited.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// The signal that the kernel ends processes with.
const KILL: i32 = 9;

/// Runs `command` until it ends, and ends it after `time_max`.
pub fn run(mut command: Command, time_max: Option<Duration>) -> io::Result<Ended> {
    // Files, for nobody reads while the process runs.
    let (mut said, mut complained) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let child = command.stdout(said.try_clone()?).stderr(complained.try_clone()?).spawn()?;
    let failure = match (wait(child, time_max)?, time_max) {
        (None, time_max) => time_max.map(|time| format!("ended: not done after {} s", time.as_secs())),
        (Some(status), _) if status.success() => None,
        (Some(status), _) => Some(reason(status, &text(&mut complained)?)),
    };
    Ok(Ended { said: text(&mut said)?, failure })
}

/// Waits until a process ends, or ends it when its time is up: then there is no status.
fn wait(mut child: Child, time_max: Option<Duration>) -> io::Result<Option<ExitStatus>> {
    let Some(time_max) = time_max else { return child.wait().map(Some) };
    let started = Instant::now();
    while started.elapsed() < time_max {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        sleep(LOOK_INTERVAL);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Why a process failed that complained like this.
fn reason(status: ExitStatus, complained: &str) -> String {
    if status.signal() == Some(KILL) {
        return "killed, as the kernel does when memory does not suffice".to_owned();
    }
    let last = complained.lines().last().map(|line| line.trim_start_matches("error: ").to_owned());
    last.unwrap_or_else(|| status.to_string())
}

/// What was written to a file.
fn text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(script: &str, time_max: Option<Duration>) -> (String, Option<String>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let ended = run(command, time_max).expect("there is a shell");
        (ended.said, ended.failure)
    }

    #[test]
    fn what_it_said_is_there_and_why_it_failed() {
        let minute = Some(Duration::from_secs(60));
        for time_max in [None, minute] {
            assert_eq!(ended("echo a; echo b >&2", time_max), ("a\n".to_owned(), None));
            let failed = ended("echo a; echo first >&2; echo error: last >&2; exit 1", time_max);
            assert_eq!(failed, ("a\n".to_owned(), Some("last".to_owned())));
            let (said, failure) = ended("echo a; kill -9 $$", time_max);
            assert_eq!(said, "a\n");
            assert!(failure.is_some_and(|failure| failure.starts_with("killed")));
            assert_eq!(ended("exit 3", time_max).1.as_deref(), Some("exit status: 3"));
        }
    }

    #[test]
    fn what_does_not_end_is_ended() {
        let (said, failure) = ended("echo a; exec sleep 1000", Some(Duration::from_secs(1)));
        assert_eq!((said.as_str(), failure.as_deref()), ("a\n", Some("ended: not done after 1 s")));
    }
}
