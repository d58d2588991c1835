//! What `gc` shows while it collects: a bar with a note on a terminal; elsewhere a line on standard error now and then.
//!
//! The engine tells a listener on the threads that collect, which must not wait; so events go through a channel to a
//! thread that shows them. [`Story`] decides what is said and does no output.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tamarack::{Db, EventListener, GcEvent};

use crate::failure::tell;
use crate::output::{self, bytes};
use crate::progress::{Progress, Unit};

/// How often a line is printed, at most, where a bar cannot be shown.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// Hands events on.
#[derive(Debug)]
struct Ear(Sender<Message>);

#[derive(Debug)]
enum Message {
    Event(GcEvent),
    Done,
}

impl EventListener for Ear {
    fn on_gc(&self, event: &GcEvent) {
        // When nobody watches any more, nobody misses it.
        self.0.send(Message::Event(event.clone())).ok();
    }
}

/// The events of a database that is about to be opened.
#[derive(Debug)]
pub struct Watch {
    sender: Sender<Message>,
    receiver: Receiver<Message>,
}

impl Watch {
    /// No events yet.
    pub fn new() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver }
    }

    /// For the database's options.
    pub fn listener(&self) -> Arc<dyn EventListener> {
        Arc::new(Ear(self.sender.clone()))
    }

    /// Shows what happens in `db` while `work` is done, which may free about `garbage` bytes.
    pub fn show<T>(self, db: &Db, garbage: u64, work: impl FnOnce() -> T) -> T {
        let Self { sender, receiver } = self;
        std::thread::scope(|scope| {
            scope.spawn(move || show(db, garbage, &receiver));
            let done = work();
            sender.send(Message::Done).ok();
            done
        })
    }
}

fn show(db: &Db, garbage: u64, messages: &Receiver<Message>) {
    let progress = Progress::start("gc", Unit::Bytes, Some(garbage.max(1)));
    let mut story = Story::default();
    let (mut shown, mut printed) = (0, None::<Instant>);
    let mut unprinted = None;
    while let Ok(Message::Event(event)) = messages.recv() {
        let Some(line) = story.tell(&event, || db.stats().space_amplification) else { continue };
        if progress.is_shown() {
            progress.advance(story.freed - shown);
            shown = story.freed;
            progress.note(|| line);
        } else if printed.is_none_or(|at| at.elapsed() >= LINE_INTERVAL) {
            (printed, unprinted) = (Some(Instant::now()), None);
            tell(&format!("gc: {line}"));
        } else {
            unprinted = Some(line);
        }
    }
    if let Some(line) = unprinted {
        tell(&format!("gc: {line}"));
    }
}

/// What has happened so far, in words.
#[derive(Debug, Default)]
struct Story {
    segments: u64,
    freed: u64,
}

impl Story {
    /// What there is to say after `event`.
    fn tell(&mut self, event: &GcEvent, amplification: impl FnOnce() -> f64) -> Option<String> {
        match event {
            GcEvent::Begun { victims, bytes: size, live_bytes, .. } => Some(format!(
                "collecting {} of {}, about {} alive",
                output::plural(victims.len() as u64, "segment"),
                bytes(*size),
                bytes(*live_bytes)
            )),
            GcEvent::Progress { bytes_done, bytes_to_do, .. } => {
                Some(format!("{} of {} done; {}", bytes(*bytes_done), bytes(*bytes_to_do), self.so_far()))
            }
            GcEvent::Ended { report, .. } => {
                self.segments += report.segments;
                self.freed += report.bytes_before.saturating_sub(report.bytes_after);
                Some(format!("{}; space amplification {:.2}", self.so_far(), amplification()))
            }
            GcEvent::Quarantined { error, .. } => {
                Some(format!("a segment is damaged and is left alone: {error}"))
            }
            // The command ends with the error itself.
            _ => None,
        }
    }

    fn so_far(&self) -> String {
        format!("{} collected, {} freed", output::plural(self.segments, "segment"), bytes(self.freed))
    }
}

#[cfg(test)]
mod tests {
    use tamarack::{GcGoal, GcPolicy, Options};

    use super::*;

    /// The lines for each event of collecting a database in which a third was overwritten.
    fn lines(story: &mut Story) -> (Vec<String>, tamarack::GcReport) {
        let watch = Watch::new();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let options = Options {
            segment_bytes_max: 8 << 20,
            gc: GcPolicy::Off,
            listener: Some(watch.listener()),
            ..Options::default()
        };
        let db = Db::open(directory.path(), options).expect("the directory is ours");
        let keys = |round: u8| (0..1500_u32).filter(move |key| round == 0 || key % 3 == 0);
        for (round, key) in (0..2).flat_map(|round| keys(round).map(move |key| (round, key))) {
            db.put(&key.to_be_bytes(), &[round; 10_000]).expect("there is room");
        }
        db.compact_range(None, None).expect("nothing fails");
        let done = db.gc(GcGoal::Until(1.0)).expect("nothing fails");
        let told = watch.receiver.try_iter().filter_map(|message| match message {
            Message::Event(event) => story.tell(&event, || 1.25),
            Message::Done => None,
        });
        (told.collect(), done)
    }

    #[test]
    fn the_story_tells_what_is_done_how_far_it_is_and_what_came_of_it() {
        let mut story = Story::default();
        let (lines, done) = lines(&mut story);
        assert!(
            lines[0].starts_with("collecting 1 segment of 8.0") && lines[0].ends_with(" alive"),
            "{lines:?}"
        );
        assert!(
            lines[1].contains(" of 5.") && lines[1].ends_with("done; 0 segments collected, 0 B freed"),
            "{lines:?}"
        );
        assert!(
            lines[2].starts_with("1 segment collected, 2.")
                && lines[2].ends_with("; space amplification 1.25")
        );
        assert!(lines.iter().any(|line| line.contains("done; 1 segment collected, 2.")), "{lines:?}");
        let freed = bytes(done.bytes_before - done.bytes_after);
        let last = format!("{} segments collected, {freed} freed; space amplification 1.25", done.segments);
        assert_eq!(lines.last(), Some(&last));
        assert_eq!((story.segments, story.freed), (done.segments, done.bytes_before - done.bytes_after));
    }
}
