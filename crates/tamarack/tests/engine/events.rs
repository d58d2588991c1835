//! What a listener hears of garbage collection: each collection from its beginning to its end, how far it is, why it
//! failed, and which segments are damaged; that a listener may look at the database while it listens, and that its own
//! failures stay its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use crate::common::garbage::{
    Content, Gate, KEYS, assert_holds, compact, fill, half_dead, key, quiet, wait_for_close,
};
use crate::common::place::Place;
use crate::common::{PATIENCE_SECONDS, Watchdog, fast_directory, open, tiny};
use tamarack::testing::{Call, EIO, Fault};
use tamarack::{CollectionStats, Db, ErrorKind, EventListener, GcEvent, GcGoal, GcPolicy, GcReport, Options};

/// Remembers every event with the thread that it came on, and what `Stats` said at that moment.
#[derive(Debug, Default)]
struct Recorder {
    heard: Mutex<Vec<Heard>>,
    /// The database, for a look during each event.
    db: Mutex<Option<Db>>,
}

#[derive(Debug, Clone)]
struct Heard {
    event: GcEvent,
    thread: ThreadId,
    running: Vec<CollectionStats>,
    collections: u64,
}

impl EventListener for Recorder {
    fn on_gc(&self, event: &GcEvent) {
        let db = self.db.lock().unwrap().clone();
        if let Some(db) = &db {
            db.get(&key(1)).unwrap();
        }
        let stats = db.map(|db| db.stats()).unwrap_or_default();
        let heard = Heard {
            event: event.clone(),
            thread: std::thread::current().id(),
            running: stats.running_collections,
            collections: stats.collections,
        };
        self.heard.lock().unwrap().push(heard);
    }
}

impl Recorder {
    fn take(&self) -> Vec<Heard> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }

    /// Lets each event look at `db` while `work` is done.
    fn looking_at<T>(&self, db: &Db, work: impl FnOnce() -> T) -> T {
        *self.db.lock().unwrap() = Some(db.clone());
        let done = work();
        // It must not keep the database open.
        self.db.lock().unwrap().take();
        done
    }
}

/// `options` with somebody who listens.
fn heard(options: Options) -> (Options, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    (Options { listener: Some(recorder.clone()), ..options }, recorder)
}

/// One word for each event.
fn words(heard: &[Heard]) -> Vec<&'static str> {
    heard.iter().map(|heard| word(&heard.event)).collect()
}

fn word(event: &GcEvent) -> &'static str {
    match event {
        GcEvent::Begun { .. } => "begun",
        GcEvent::Progress { .. } => "progress",
        GcEvent::Ended { .. } => "ended",
        GcEvent::Failed { .. } => "failed",
        GcEvent::Quarantined { .. } => "quarantined",
        _ => "unknown",
    }
}

#[test]
fn each_collection_tells_of_its_beginning_and_its_end() {
    let directory = fast_directory();
    let (options, recorder) = heard(quiet());
    let db = open(directory.path(), &options).unwrap();
    let model = half_dead(&db);
    assert!(recorder.take().is_empty(), "nothing was collected");
    let done = recorder.looking_at(&db, || db.gc(GcGoal::Until(1.0))).unwrap();
    let events = recorder.take();
    assert!(events.len() >= 4, "{events:?}");
    let mut total = GcReport::default();
    for (number, pair) in events.chunks(2).enumerate() {
        assert_eq!(words(pair), ["begun", "ended"], "{events:?}");
        let GcEvent::Begun { job, ref victims, bytes, live_bytes, .. } = pair[0].event else {
            unreachable!()
        };
        let GcEvent::Ended { job: ended, report, .. } = pair[1].event else { unreachable!() };
        assert_eq!((job, ended), (number as u64 + 1, number as u64 + 1));
        assert_eq!((victims.len() as u64, bytes), (report.segments, report.bytes_before));
        assert!(0 < live_bytes && live_bytes < bytes && report.records > 0, "{events:?}");
        total.add(&report);
        // What `Stats` said: it runs while it runs, and counts once it has ended.
        let [running] = &pair[0].running[..] else { panic!("one runs: {events:?}") };
        assert_eq!((running.job, &running.victims, running.bytes), (job, victims, bytes));
        assert_eq!((running.live_bytes, running.bytes_done), (live_bytes, 0));
        assert!(running.bytes_to_do >= live_bytes, "{running:?}");
        assert_eq!((pair[0].collections, pair[1].collections), (job - 1, job));
        assert_eq!(pair[1].running, []);
    }
    assert_eq!(total, done);
    assert!(
        events.iter().all(|heard| heard.thread == std::thread::current().id()),
        "the caller's own thread"
    );
    assert_holds(&db, &model, "collected");
}

#[test]
fn progress_grows_up_to_what_there_is_to_do() {
    let directory = fast_directory();
    let (options, recorder) =
        heard(Options { segment_bytes_max: 32 << 20, recovery_log_max: 1 << 30, ..quiet() });
    let db = open(directory.path(), &options).unwrap();
    // One segment of 30 MB, of which two thirds are alive, and the next, so that the first is behind the log head.
    // Values are so small that no holes are punched.
    let value = vec![7; 10_000];
    for round in 0..4 {
        (0..1000).filter(|number| round == 0 || number % 3 == 0).for_each(|number| {
            db.put(&key(number), &value).unwrap();
        });
    }
    (0..2000).for_each(|number| db.put(&key(10_000 + number), &value).unwrap());
    compact(&db);
    recorder.looking_at(&db, || db.gc(GcGoal::Once)).unwrap();
    let events = recorder.take();
    let [_, steps @ .., last] = &events[..] else { panic!("{events:?}") };
    assert_eq!([words(&events)[0], words(&events)[events.len() - 1]], ["begun", "ended"]);
    let mut before = 0;
    for step in steps {
        let GcEvent::Progress { bytes_done, bytes_to_do, job, .. } = step.event else { panic!("{step:?}") };
        assert!(bytes_done >= before + (3 << 20) && bytes_done <= bytes_to_do, "after {before}: {step:?}");
        assert_eq!((step.running[0].bytes_done, step.running[0].job), (bytes_done, job));
        before = bytes_done;
    }
    assert!(steps.len() as u64 >= 1, "{events:?}");
    let GcEvent::Ended { report, .. } = last.event else { unreachable!() };
    let copied_mib = report.bytes_after >> 20;
    assert!(steps.len() as u64 <= copied_mib / 4 + 1, "{} events for {copied_mib} MiB", steps.len());
}

#[test]
fn others_see_what_runs() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a collection that is held");
    let place = Place::new(quiet());
    let db = place.open();
    let model = half_dead(&db);
    assert_eq!(db.stats().running_collections, []);
    let gate = Gate::at(&place.faults, Call::SyncData, ".cold");
    std::thread::scope(|scope| {
        let collection = scope.spawn(|| db.gc(GcGoal::Once));
        gate.wait();
        let running = db.stats().running_collections;
        assert_eq!(running.len(), 1, "{running:?}");
        assert!(!running[0].victims.is_empty() && running[0].bytes > running[0].live_bytes, "{running:?}");
        // Everything is copied; it is about to be synced.
        assert!(running[0].bytes_done > 0, "{running:?}");
        assert_eq!(running[0].bytes_done, running[0].bytes_to_do, "{running:?}");
        drop(gate);
        collection.join().unwrap().unwrap();
    });
    assert_eq!(db.stats().running_collections, []);
    assert_holds(&db, &model, "collected");
}

#[test]
fn a_collection_that_fails_says_why() {
    let (options, recorder) = heard(quiet());
    let place = Place::new(options);
    let db = place.open();
    let model = half_dead(&db);
    place.faults.inject(Fault::on(Call::SyncData).path_ending(".cold").errno(EIO));
    let error = db.gc(GcGoal::Once).unwrap_err();
    let events = recorder.take();
    assert_eq!(words(&events), ["begun", "failed"]);
    let GcEvent::Failed { job: 1, error: ref told, .. } = events[1].event else { panic!("{events:?}") };
    assert_eq!((told.kind(), told.to_string()), (ErrorKind::Io, error.to_string()));
    assert_eq!(db.stats().running_collections, []);
    place.faults.heal();
    assert_holds(&db, &model, "failed");
}

#[test]
fn a_damaged_victim_is_named() {
    let (options, recorder) = heard(quiet());
    let place = Place::new(options);
    let db = place.open();
    half_dead(&db);
    db.close().unwrap();
    // The value of the first key that is alive, wherever it is: odd ones were written once.
    let needle = crate::common::garbage::value(1, 0);
    let (file, at) = crate::common::file_names(&place.path())
        .into_iter()
        .find_map(|name| {
            let bytes = std::fs::read(place.path().join(&name)).unwrap();
            let at = bytes.windows(needle.len()).position(|window| window == needle)?;
            Some((place.path().join(name), at))
        })
        .unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let db = place.open();
    let error = db.gc(GcGoal::Until(1.0)).unwrap_err();
    let events = recorder.take();
    let words = words(&events);
    assert_eq!(words[words.len() - 3..], ["begun", "quarantined", "failed"], "{events:?}");
    let GcEvent::Begun { job, ref victims, .. } = events[events.len() - 3].event else { unreachable!() };
    let GcEvent::Quarantined { job: quarantining, segment, error: ref told, .. } =
        events[events.len() - 2].event
    else {
        unreachable!()
    };
    assert_eq!(job, quarantining);
    assert!(victims.contains(&segment), "{events:?}");
    assert_eq!([segment][..], db.stats().quarantined_segments);
    assert_eq!(told.as_corruption().map(|place| &place.file), Some(&file));
    assert_eq!(told.to_string(), error.to_string());
    recorder.take();
    db.gc(GcGoal::Until(1.0)).unwrap();
    assert!(!self::words(&recorder.take()).contains(&"failed"), "the others are collected");
}

#[test]
fn collections_in_the_background_tell_on_their_own_threads() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "collections in the background");
    let directory = fast_directory();
    let (options, recorder) =
        heard(Options { max_space_amplification: 1.05, background_threads: 2, ..tiny() });
    let db = open(directory.path(), &options).unwrap();
    let mut model = Content::new();
    recorder.looking_at(&db, || {
        (0..20).for_each(|round| fill(&db, &mut model, 0..KEYS, round));
        compact(&db);
    });
    let events = recorder.take();
    let words = words(&events);
    let count = |wanted| words.iter().filter(|&&word| word == wanted).count();
    assert!(count("begun") > 0, "{:?}", db.stats());
    assert_eq!((count("begun"), count("failed")), (count("ended"), 0));
    assert!(events.iter().all(|heard| heard.thread != std::thread::current().id()));
    assert_eq!(count("ended") as u64, db.stats().collections);
    assert_holds(&db, &model, "collected");
}

/// Holds each collection that begins until it is let go.
#[derive(Debug, Default)]
struct Holding {
    words: Mutex<Vec<&'static str>>,
    begun: AtomicBool,
    let_go: AtomicBool,
}

impl EventListener for Holding {
    fn on_gc(&self, event: &GcEvent) {
        self.words.lock().unwrap().push(word(event));
        if matches!(event, GcEvent::Begun { .. }) {
            self.begun.store(true, Ordering::SeqCst);
            while !self.let_go.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }
    }
}

/// In the background and for a caller: the close waits for the listener, which hears the end, and nothing after it.
#[test]
fn a_listener_hears_the_end_of_what_a_close_ends() {
    for in_background in [true, false] {
        let what = format!("in the background: {in_background}");
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, format!("a close while a listener is told, {what}"));
        let directory = fast_directory();
        let db = open(directory.path(), &quiet()).unwrap();
        let model = half_dead(&db);
        db.close().unwrap();
        let gc = if in_background { GcPolicy::CostBenefit } else { GcPolicy::Off };
        let max_space_amplification = if in_background { 1.05 } else { 1000.0 };
        let holding = Arc::new(Holding::default());
        let listener: Option<Arc<dyn EventListener>> = Some(holding.clone());
        let db =
            open(directory.path(), &Options { listener, gc, max_space_amplification, ..quiet() }).unwrap();
        std::thread::scope(|scope| {
            let [waiting, closing] = [db.clone(), db.clone()];
            let work = scope.spawn(move || {
                if in_background { waiting.wait_idle().err() } else { waiting.gc(GcGoal::Once).err() }
            });
            while !holding.begun.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            let close = scope.spawn(move || closing.close());
            wait_for_close(&db);
            (0..10_000).for_each(|_| std::thread::yield_now());
            let early = close.is_finished();
            holding.let_go.store(true, Ordering::SeqCst);
            assert!(!early, "{what}: the close has not waited");
            close.join().unwrap().unwrap();
            let words = std::mem::take(&mut *holding.words.lock().unwrap());
            assert!(matches!(words[..], ["begun", .., "failed" | "ended"]), "{what}: {words:?}");
            if let Some(error) = work.join().unwrap() {
                assert_eq!(error.kind(), ErrorKind::Closed, "{what}: {error}");
            }
        });
        drop(db);
        assert!(holding.words.lock().unwrap().is_empty(), "{what}: nothing is told after the close");
        assert_eq!(Arc::strong_count(&holding), 1, "{what}: nobody keeps the listener");
        assert_holds(&open(directory.path(), &quiet()).unwrap(), &model, &what);
    }
}

/// Has a handle, and lets go of it in a collection, once it is the last.
#[derive(Debug, Default)]
struct Owner {
    db: Mutex<Option<Db>>,
    has_the_last: AtomicBool,
    refused: Mutex<Option<String>>,
}

impl EventListener for Owner {
    fn on_gc(&self, _event: &GcEvent) {
        while !self.has_the_last.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let Some(db) = self.db.lock().unwrap().take() else { return };
        *self.refused.lock().unwrap() = db.clone().close().err().map(|error| error.to_string());
        assert!(db.contains(&key(1)).unwrap(), "a refused close closes nothing");
        drop(db);
        // Until it returns nobody else may have the directory.
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_listener_may_drop_the_last_handle() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a listener that drops the last handle");
    let directory = fast_directory();
    let db = open(directory.path(), &quiet()).unwrap();
    let model = half_dead(&db);
    db.close().unwrap();
    let owner = Arc::new(Owner::default());
    let listener: Option<Arc<dyn EventListener>> = Some(owner.clone());
    let gc = GcPolicy::CostBenefit;
    let options = Options { listener, gc, max_space_amplification: 1.05, ..quiet() };
    let db = open(directory.path(), &options).unwrap();
    drop(options);
    *owner.db.lock().unwrap() = Some(db.clone());
    // What is at rest is collected, as soon as it may be.
    db.pause_gc();
    db.wait_idle().unwrap();
    db.resume_gc().unwrap();
    drop(db);
    owner.has_the_last.store(true, Ordering::SeqCst);
    let again = loop {
        match open(directory.path(), &quiet()) {
            Ok(db) => break db,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Locked, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(Arc::strong_count(&owner), 1, "who was closed is gone");
    let refused = owner.refused.lock().unwrap().take().expect("it was refused");
    assert!(refused.contains("another thread"), "{refused}");
    assert_holds(&again, &model, "closed by another thread");
}

/// Fails whenever it is told of anything.
#[derive(Debug)]
struct Broken;

impl EventListener for Broken {
    fn on_gc(&self, event: &GcEvent) {
        panic!("no ear for {event:?}");
    }
}

#[test]
fn a_panic_in_a_listener_harms_nobody() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a panic in a listener");
    let directory = fast_directory();
    let options = Options { max_space_amplification: 1.05, listener: Some(Arc::new(Broken)), ..tiny() };
    let db = open(directory.path(), &options).unwrap();
    let mut model = Content::new();
    (0..20).for_each(|round| fill(&db, &mut model, 0..KEYS, round));
    compact(&db);
    db.gc(GcGoal::Once).unwrap();
    let stats = db.stats();
    assert!(stats.collections > 1, "{stats:?}");
    let warnings: Vec<_> = stats.warnings.iter().filter(|warning| warning.contains("no ear for")).collect();
    assert_eq!((warnings.len(), stats.warnings.len()), (1, 1), "{:?}", stats.warnings);
    assert!(warnings[0].contains("listener"), "{warnings:?}");
    fill(&db, &mut model, 0..KEYS, 99);
    assert_holds(&db, &model, "after the panic");
    db.close().unwrap();
}
