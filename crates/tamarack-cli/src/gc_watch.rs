//! What `gc` shows while it collects: a bar with a note on a terminal; elsewhere a line on standard error now and then.
//!
//! The engine tells a listener on the threads that collect, which must not wait; so events go through a channel to a
//! thread that shows them. [`Story`] decides what is said and does no output.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tamarack::{Db, EventListener, GcEvent};

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
            eprintln!("gc: {line}");
        } else {
            unprinted = Some(line);
        }
    }
    if let Some(line) = unprinted {
        eprintln!("gc: {line}");
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
