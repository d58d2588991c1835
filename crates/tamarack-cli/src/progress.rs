//! Progress of long work on standard error, shown only when a person can see it: when standard error is a
//! terminal. Everything here is safe to call from several threads. [`Notices`] tell of what was left out.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::failure::tell;
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
        Self::counted(what, unit, total, target())
    }

    /// Starts showing `what`, which counts items and goes on for so long.
    pub fn start_for(what: &str, duration: Duration) -> Self {
        Self::timed(what, duration, target())
    }

    fn counted(what: &str, unit: Unit, total: Option<u64>, target: ProgressDrawTarget) -> Self {
        let counts = match (unit, total) {
            (Unit::Items, Some(_)) => "{bar:32} {human_pos}/{human_len}  {rate}  eta {eta}",
            (Unit::Items, None) => "{spinner} {human_pos}  {rate}  {elapsed}",
            (Unit::Bytes, Some(_)) => "{bar:32} {bytes}/{total_bytes}  {bytes_per_sec}  eta {eta}",
            (Unit::Bytes, None) => "{spinner} {bytes}  {bytes_per_sec}  {elapsed}",
        };
        Self::shown(what, total, style(counts), target)
    }

    fn timed(what: &str, duration: Duration, target: ProgressDrawTarget) -> Self {
        let style = style("{spinner} {human_pos}  {rate}  {elapsed} of {whole}  {left} left");
        let style = style.with_key("whole", move |_: &ProgressState, text: &mut dyn std::fmt::Write| {
            write!(text, "{}", HumanDuration(duration)).ok();
        });
        let style = style.with_key("left", move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            write!(text, "{}", HumanDuration(duration.saturating_sub(state.elapsed()))).ok();
        });
        Self::shown(what, None, style, target)
    }

    fn shown(what: &str, total: Option<u64>, style: ProgressStyle, target: ProgressDrawTarget) -> Self {
        let bar = ProgressBar::with_draw_target(total, target);
        bar.set_style(style);
        bar.set_prefix(what.to_owned());
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
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
        self.bar.suspend(|| tell(&line));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Standard error, if a person sees it.
fn target() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(10)
    } else {
        ProgressDrawTarget::hidden()
    }
}

/// A line that shows `counts` between what is done and a note.
fn style(counts: &str) -> ProgressStyle {
    let template = format!("{{prefix}}  {counts}  {{msg}}");
    let style = ProgressStyle::with_template(&template).expect("the template is a constant and parses");
    let style = style.with_key("rate", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        // Writing to the line that is being put together cannot fail, and a missing rate harms nobody.
        write!(text, "{}/s", output::count(state.per_sec() as u64)).ok();
    });
    style.progress_chars("=> ")
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
            tell(&format!("tamarack: and {} more like these", output::count(self.total - Self::PRINTED_MAX)));
        }
        self.texts
    }
}

#[cfg(test)]
mod tests {
    use indicatif::InMemoryTerm;

    use super::*;

    /// What a person sees.
    fn seen(start: impl FnOnce(ProgressDrawTarget) -> Progress) -> String {
        let terminal = InMemoryTerm::new(5, 160);
        let progress = start(ProgressDrawTarget::term_like(Box::new(terminal.clone())));
        progress.advance(1234);
        progress.bar.tick();
        progress.bar.force_draw();
        terminal.contents()
    }

    #[test]
    fn operations_their_rate_and_the_time_left_are_seen() {
        let counted = seen(|target| Progress::counted("fillseq", Unit::Items, Some(5000), target));
        for part in ["fillseq", "1,234/5,000", "/s", "eta "] {
            assert!(counted.contains(part), "{counted}");
        }
        let timed = seen(|target| Progress::timed("readrandom", Duration::from_secs(7200), target));
        for part in ["readrandom", "1,234 ", "/s", "of 2 hours", " left"] {
            assert!(timed.contains(part), "{timed}");
        }
    }
}
