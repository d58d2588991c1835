//! Progress of long work on standard error, shown only when a person can see it: when standard error is a
//! terminal. Everything here is safe to call from several threads. [`Notices`] tell of what was left out.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::output;

/// What the bar counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Records, operations, files.
    Items,
    /// Bytes, shown in binary units.
    Bytes,
}

/// A progress bar, or nothing at all if nobody watches. It clears its line when dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Starts showing `what`, counted in `unit`, of `total` if that is known.
    pub fn start(what: &str, unit: Unit, total: Option<u64>) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden() };
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
        let counts = match (unit, total) {
            (Unit::Items, Some(_)) => "{bar:32} {human_pos}/{human_len}  {rate}  eta {eta}",
            (Unit::Items, None) => "{spinner} {human_pos}  {rate}  {elapsed}",
            (Unit::Bytes, Some(_)) => "{bar:32} {bytes}/{total_bytes}  {bytes_per_sec}  eta {eta}",
            (Unit::Bytes, None) => "{spinner} {bytes}  {bytes_per_sec}  {elapsed}",
        };
        let template = format!("{{prefix}}  {counts}  {{msg}}");
        let style = ProgressStyle::with_template(&template).expect("the template is a constant and parses");
        let style = style.with_key("rate", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            // Writing to the line that is being put together cannot fail, and a missing rate harms nobody.
            write!(text, "{}/s", output::count(state.per_sec() as u64)).ok();
        });
        bar.set_style(style.progress_chars("=> "));
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }

    /// Whether a person sees it.
    pub fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Counts `amount` more.
    pub fn advance(&self, amount: u64) {
        self.bar.inc(amount);
    }

    /// Shows `text` behind the bar.
    pub fn note(&self, text: impl FnOnce() -> String) {
        if self.is_shown() {
            self.bar.set_message(text());
        }
    }

    /// Prints a line on standard error without disturbing the bar.
    pub fn print(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Tells of things left out as they are met: the first few on standard error, all of them counted. Under
/// `--json` nothing is printed; the texts become part of the command's answer.
#[derive(Debug)]
pub struct Notices {
    json: bool,
    total: u64,
    texts: Vec<String>,
}

impl Notices {
    /// More lines than this on a terminal help nobody.
    const PRINTED_MAX: u64 = 20;

    /// More than this in one JSON object help nobody either.
    const KEPT_MAX: usize = 1000;

    /// None yet.
    pub fn new(json: bool) -> Self {
        Self { json, total: 0, texts: Vec::new() }
    }

    /// Tells of one more.
    pub fn add(&mut self, progress: &Progress, text: String) {
        self.total += 1;
        if self.json {
            if self.texts.len() < Self::KEPT_MAX {
                self.texts.push(text);
            }
        } else if self.total <= Self::PRINTED_MAX {
            progress.print(&format!("tamarack: {text}"));
        }
    }

    /// How many there were.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Ends the telling: says how many lines were not printed, and returns the texts kept for JSON.
    pub fn finish(self) -> Vec<String> {
        if !self.json && self.total > Self::PRINTED_MAX {
            eprintln!("tamarack: and {} more like these", output::count(self.total - Self::PRINTED_MAX));
        }
        self.texts
    }
}
