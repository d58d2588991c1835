//! Commands of the system and processes of our own, none of which is waited for without end.

use std::process::{Command, Output};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// More than anything here takes on a machine that is busy with other things.
const PATIENCE_SECONDS: u64 = 300;

/// Ends this process when it lives longer than allowed. The disk goes with the process that serves it, and then whoever waits
/// for the disk gets errors: nobody hangs for ever.
struct Watchdog(Option<Sender<()>>);

impl Watchdog {
    fn new(task: String) -> Self {
        let (alive, ended) = channel::<()>();
        std::thread::spawn(move || {
            if ended.recv_timeout(Duration::from_secs(PATIENCE_SECONDS)) == Err(RecvTimeoutError::Timeout) {
                eprintln!("not done after {PATIENCE_SECONDS} s: {task}");
                std::process::exit(1);
            }
        });
        Self(Some(alive))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.take();
    }
}

/// Waits for a process, and for what it says.
///
/// # Errors
/// If it does not start.
pub fn wait(command: &mut Command) -> Result<Output, String> {
    let _watchdog = Watchdog::new(format!("{command:?}"));
    command.output().map_err(|error| format!("{command:?} does not start: {error}"))
}

/// Runs a command.
///
/// # Errors
/// Why it fails: its words, or that it is not to be had.
pub fn run(command: &str, arguments: &[&str]) -> Result<(), String> {
    let output = wait(Command::new(command).args(arguments))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(format!("`{command} {}` fails: {said}", arguments.join(" ")))
}
