//! Checkpoints: a copy is the database of one moment, whatever goes on meanwhile, and a database of its own from then
//! on; a failure leaves nothing, an interruption something that is refused and can be destroyed.

#[path = "checkpoint/failures.rs"]
mod failures;

use std::cmp::Ordering as KeyOrdering;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::place::Place;
use crate::common::{PATIENCE_SECONDS, Random, Watchdog, assert_clean, content, file_names, open, tiny};
use tamarack::testing::Call;
use tamarack::{CheckpointReport, Comparator, Db, ErrorKind, GcGoal, Options, WriteBatch, WriteOptions};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

impl Place {
    /// Opens the copy `name` as it is, and once more after it was closed.
    fn assert_copy(&self, name: &str, expected: &Model) {
        let options = Options { create_if_missing: false, ..self.options.clone() };
        for _ in 0..2 {
            let copy = open(&self.beside(name), &options).unwrap();
            assert!(content(&copy) == *expected, "{name} holds something else than was there");
            assert_clean(&copy);
            copy.close().unwrap();
        }
    }
}

/// Overwrites and deletes among few keys, with values that stay inline and values that do not.
fn churn(db: &Db, model: &mut Model, random: &mut Random, operations: usize) {
    for _ in 0..operations {
        let key = format!("key{:03}", random.below(120)).into_bytes();
        if random.one_in(8) {
            db.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let len = random.pick(&[3, 60, 300]);
            let value = random.bytes(len);
            db.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

/// Leaves segments that were collected, tables that still point to them by their old names, and records that are not
/// in tables yet.
fn churn_and_collect(db: &Db, model: &mut Model, random: &mut Random) {
    churn(db, model, random, 600);
    db.flush().unwrap();
    db.gc(GcGoal::Until(1.0)).unwrap();
    churn(db, model, random, 20);
}

/// What was written, in the order of its commits: puts and deletes of one batch each.
type History = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The database that the first `count` batches leave.
fn replay(history: &History, count: usize) -> Model {
    let mut model = Model::new();
    for (index, (key, value)) in history.iter().take(count).enumerate() {
        match value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(key),
        };
        model.insert(b"count".to_vec(), (index as u64 + 1).to_be_bytes().to_vec());
    }
    model
}

fn count_in(db: &Db) -> usize {
    db.get(b"count").unwrap().map_or(0, |count| u64::from_be_bytes(count.try_into().unwrap()) as usize)
}

#[test]
fn a_copy_holds_a_prefix_of_what_threads_are_writing() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "checkpoints while threads write");
    let place = Place::new(tiny());
    let db = place.open();
    let history: Mutex<History> = Mutex::new(Vec::new());
    let (stop, history) = (&AtomicBool::new(false), &history);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let db = db.clone();
            scope.spawn(move || {
                let mut random = Random::new(thread);
                while !stop.load(Ordering::Relaxed) {
                    let mut history = history.lock().unwrap();
                    let key = format!("key{:03}", random.below(200)).into_bytes();
                    let len = random.pick(&[3, 60, 300]);
                    let value = (!random.one_in(6)).then(|| random.bytes(len));
                    let mut batch = WriteBatch::new();
                    match &value {
                        Some(value) => batch.put(&key, value).unwrap(),
                        None => batch.delete(&key).unwrap(),
                    }
                    batch.put(b"count", &(history.len() as u64 + 1).to_be_bytes()).unwrap();
                    db.write(&batch, &WriteOptions::default()).unwrap();
                    history.push((key, value));
                }
            });
        }
        for round in 0..8 {
            // Every copy is made of more than the one before.
            let acknowledged = loop {
                let acknowledged = history.lock().unwrap().len();
                if acknowledged > round * 400 {
                    break acknowledged;
                }
                std::thread::yield_now();
            };
            let name = format!("copy{round}");
            db.checkpoint(place.beside(&name)).unwrap();
            let copy = open(&place.beside(&name), &tiny()).unwrap();
            let count = count_in(&copy);
            assert!(count >= acknowledged, "{count} batches, but {acknowledged} were acknowledged before");
            let expected = replay(&history.lock().unwrap(), count);
            assert!(content(&copy) == expected, "{name} is not what the first {count} batches leave");
            assert_clean(&copy);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let history = history.lock().unwrap();
    assert!(content(&db) == replay(&history, history.len()));
    assert_clean(&db);
}

#[test]
fn a_copy_holds_whole_batches_of_threads_that_write_at_once() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "checkpoints beside unordered writers");
    const THREADS: usize = 4;
    let place = Place::new(tiny());
    let db = place.open();
    let (stop, acknowledged) = (&AtomicBool::new(false), &[const { AtomicU64::new(0) }; THREADS]);
    std::thread::scope(|scope| {
        for (thread, acknowledged) in acknowledged.iter().enumerate() {
            let db = db.clone();
            scope.spawn(move || {
                for count in 1_u64.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let mut batch = WriteBatch::new();
                    for part in 0..3 {
                        let mut value = count.to_be_bytes().to_vec();
                        value.resize([8, 40, 200][part], thread as u8);
                        batch.put(format!("{thread}/{part}").as_bytes(), &value).unwrap();
                    }
                    batch.put(format!("{thread}/log/{count:08}").as_bytes(), &count.to_be_bytes()).unwrap();
                    db.write(&batch, &WriteOptions::default()).unwrap();
                    acknowledged.store(count, Ordering::Release);
                }
            });
        }
        for round in 1..6 {
            while acknowledged.iter().any(|count| count.load(Ordering::Acquire) < round * 40) {
                std::thread::yield_now();
            }
            let before = acknowledged.each_ref().map(|count| count.load(Ordering::Acquire));
            let path = place.beside(&format!("copy{round}"));
            db.checkpoint(&path).unwrap();
            let copy = open(&path, &tiny()).unwrap();
            for (thread, before) in before.into_iter().enumerate() {
                let count = |part: usize| {
                    let value = copy.get(format!("{thread}/{part}").as_bytes()).unwrap().unwrap();
                    u64::from_be_bytes(value[..8].try_into().unwrap())
                };
                let counts = [0, 1, 2].map(count);
                assert!(
                    counts[0] >= before,
                    "thread {thread} had {before} acknowledged, {counts:?} are there"
                );
                assert_eq!(counts, [counts[0]; 3], "a batch of thread {thread} is there in part");
                let prefix = format!("{thread}/log/");
                let logged =
                    content(&copy).into_keys().filter(|key| key.starts_with(prefix.as_bytes())).count();
                assert_eq!(logged as u64, counts[0], "earlier batches of thread {thread} are missing");
            }
            assert_clean(&copy);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Gives every file that `copy` shares with its original one more name, in `to`; returns what is in them.
fn witness(copy: &Path, to: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::create_dir(to).unwrap();
    let mut names = file_names(copy);
    names.retain(|name| name != "CURRENT" && !name.starts_with("MANIFEST"));
    // The log head lies in the last segment of the log, which is no shared file.
    let head = names.iter().rposition(|name| name.ends_with(".vlog")).unwrap();
    names.remove(head);
    let link = |name: String| {
        std::fs::hard_link(copy.join(&name), to.join(&name)).unwrap();
        let bytes = std::fs::read(to.join(&name)).unwrap();
        (name, bytes)
    };
    names.into_iter().map(link).collect()
}

/// Makes checkpoints until one has everything that it may share: tables that point to collected segments by their old
/// names, which compactions in the background may just have replaced, cold segments, and segments of the log.
fn checkpoint_of_everything(
    place: &Place,
    db: &Db,
    model: &mut Model,
    random: &mut Random,
) -> BTreeMap<String, Vec<u8>> {
    for _ in 0..50 {
        churn_and_collect(db, model, random);
        let done = db.checkpoint(place.beside("copy")).unwrap();
        let shared = witness(&place.beside("copy"), &place.beside("witness"));
        assert_eq!(shared.len() as u64, done.linked_files);
        assert_eq!(shared.values().map(|bytes| bytes.len() as u64).sum::<u64>(), done.linked_bytes);
        let has = |ending: &str| shared.keys().any(|name| name.ends_with(ending));
        let copy = open(&place.beside("copy"), &Options { read_only: true, ..tiny() }).unwrap();
        if copy.stats().moved_segments > 0 && has(".cold") && has(".vlog") && has(".table") {
            return shared;
        }
        drop(copy);
        std::fs::remove_dir_all(place.beside("copy")).unwrap();
        std::fs::remove_dir_all(place.beside("witness")).unwrap();
    }
    panic!("no checkpoint has moved segments");
}

/// I-12.
#[test]
fn original_and_copy_never_change_each_other() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "two databases that share files");
    let place = Place::new(tiny());
    let (mut model, mut random) = (Model::new(), Random::new(3));
    let db = place.open();
    let shared = checkpoint_of_everything(&place, &db, &mut model, &mut random);

    // The original goes on, drops everything that it shares, crashes and is recovered.
    let copied = model.clone();
    churn(&db, &mut model, &mut random, 800);
    db.compact_range(None, None).unwrap();
    db.gc(GcGoal::Until(1.0)).unwrap();
    churn(&db, &mut model, &mut random, 30);
    place.crash(db);
    let db = open(&place.path(), &tiny()).unwrap();
    assert!(content(&db) == model);

    // The copy is what it was, and goes on in another way.
    place.assert_copy("copy", &copied);
    let copy = open(&place.beside("copy"), &tiny()).unwrap();
    let mut copied = copied;
    churn(&copy, &mut copied, &mut random, 800);
    copy.compact_range(None, None).unwrap();
    copy.gc(GcGoal::Until(1.0)).unwrap();
    churn(&copy, &mut copied, &mut random, 30);
    assert!(content(&copy) == copied);
    assert_clean(&copy);
    assert!(content(&db) == model, "the copy has changed the original");
    assert_clean(&db);
    for (name, bytes) in &shared {
        assert!(std::fs::read(place.beside("witness").join(name)).unwrap() == *bytes, "{name} was changed");
    }

    // A copy of the copy outlives both.
    copy.checkpoint(place.beside("second")).unwrap();
    copy.close().unwrap();
    db.close().unwrap();
    Db::destroy(place.path()).unwrap();
    Db::destroy(place.beside("copy")).unwrap();
    place.assert_copy("second", &copied);
}

#[test]
fn a_copy_outlives_an_original_that_goes_at_once() {
    let place = Place::new(tiny());
    let (mut model, mut random) = (Model::new(), Random::new(4));
    let db = place.open();
    churn_and_collect(&db, &mut model, &mut random);
    db.checkpoint(place.beside("copy")).unwrap();
    place.crash(db);
    place.assert_copy("copy", &model);
    let db = open(&place.path(), &tiny()).unwrap();
    assert!(content(&db) == model);
    db.close().unwrap();
    std::fs::remove_dir_all(place.path()).unwrap();
    place.assert_copy("copy", &model);
}

#[test]
fn where_files_cannot_be_linked_they_are_copied() {
    let place = Place::new(tiny());
    let (mut model, mut random) = (Model::new(), Random::new(8));
    let db = place.open();
    churn_and_collect(&db, &mut model, &mut random);
    let linked = db.checkpoint(place.beside("linked")).unwrap();
    assert_eq!(linked.copied_files, 1, "the segment in which the log head lies");
    place.faults.set_unsupported(Call::Link, true);
    let copied = db.checkpoint(place.beside("copied")).unwrap();
    let mut names = file_names(&place.beside("copied"));
    names.retain(|name| name != "CURRENT" && !name.starts_with("MANIFEST"));
    let bytes = |name: &String| std::fs::metadata(place.beside("copied").join(name)).unwrap().len();
    let expected = CheckpointReport {
        linked_files: 0,
        linked_bytes: 0,
        copied_files: names.len() as u64,
        copied_bytes: names.iter().map(bytes).sum(),
    };
    assert_eq!(copied, expected);
    db.close().unwrap();
    Db::destroy(place.path()).unwrap();
    place.assert_copy("linked", &model);
    place.assert_copy("copied", &model);
}

#[test]
fn a_copy_may_be_on_another_file_system() {
    let place = Place::new(tiny());
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Not by the device's number: two mounts of one file system refuse links, too.
    std::fs::write(place.beside("probe"), b"").unwrap();
    let other = std::fs::hard_link(place.beside("probe"), elsewhere.path().join("probe")).is_err();
    let (mut model, mut random) = (Model::new(), Random::new(9));
    let db = place.open();
    churn(&db, &mut model, &mut random, 200);
    let done = db.checkpoint(elsewhere.path().join("copy")).unwrap();
    assert_eq!(done.linked_files == 0, other, "{done:?}");
    let copy = open(&elsewhere.path().join("copy"), &tiny()).unwrap();
    assert!(content(&copy) == model);
}

/// The files of the log in `path` that are in no other database.
fn log_segments(path: &Path) -> Vec<String> {
    let only_here = |name: &String| std::fs::metadata(path.join(name)).unwrap().nlink() == 1;
    let names = file_names(path).into_iter().filter(|name| name.ends_with(".vlog"));
    names.filter(only_here).collect()
}

#[test]
fn a_database_opened_read_only_can_be_copied() {
    for crashed in [false, true] {
        let place = Place::new(Options { memtable_bytes: 1 << 20, recovery_log_max: 4 << 20, ..tiny() });
        let (mut model, mut random) = (Model::new(), Random::new(10));
        let db = place.open();
        churn_and_collect(&db, &mut model, &mut random);
        churn(&db, &mut model, &mut random, 200);
        if crashed {
            place.crash(db);
        } else {
            db.close().unwrap();
        }
        let path = place.path();
        let read_only = Options { read_only: true, ..place.options.clone() };
        let db = Db::open(&path, read_only.clone()).unwrap();
        assert!(db.recovery().operations > 200, "there is a log to copy");
        let read = |file: &String| std::fs::read(path.join(file)).unwrap();
        let before: Vec<_> = file_names(&path).into_iter().map(|file| (read(&file), file)).collect();
        let done = db.checkpoint(place.beside("copy")).unwrap();
        assert!(done.copied_files > 1 && done.linked_files > 1, "{done:?}");
        assert!(content(&db) == model);
        for segment in log_segments(&place.beside("copy")) {
            let name = format!("without-{segment}");
            db.checkpoint(place.beside(&name)).unwrap();
            let file = std::fs::File::options().write(true).open(place.beside(&name).join(&segment)).unwrap();
            file.set_len(file.metadata().unwrap().len() / 2).unwrap();
            let error = open(&place.beside(&name), &place.options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{segment}: {error}");
        }
        db.close().unwrap();
        place.assert_copy("copy", &model);
        let after: Vec<_> = file_names(&path).into_iter().map(|file| (read(&file), file)).collect();
        assert!(before == after, "the original was changed");
    }
}

#[test]
fn databases_with_little_in_them_can_be_copied() {
    let place = Place::new(tiny());
    let db = place.open();
    assert_eq!(db.checkpoint(place.beside("empty")).unwrap(), CheckpointReport::default());
    place.assert_copy("empty", &Model::new());
    db.put(b"key", b"short").unwrap();
    db.checkpoint(place.beside("inline")).unwrap();
    place.assert_copy("inline", &Model::from([(b"key".to_vec(), b"short".to_vec())]));
    db.delete(b"key").unwrap();
    db.compact_range(None, None).unwrap();
    db.checkpoint(place.beside("deleted")).unwrap();
    place.assert_copy("deleted", &Model::new());
    // A copy that was never written to is copied again, also after it was opened.
    let copy = open(&place.beside("inline"), &tiny()).unwrap();
    copy.checkpoint(place.beside("again")).unwrap();
    place.assert_copy("again", &content(&copy));
}

/// Keys from the last to the first.
#[derive(Debug)]
struct Backwards;

impl Comparator for Backwards {
    fn name(&self) -> &str {
        "test.Backwards"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> KeyOrdering {
        right.cmp(left)
    }
}

#[test]
fn a_copy_keeps_the_order_of_keys() {
    let place = Place::new(Options { comparator: Arc::new(Backwards), ..tiny() });
    let (mut model, mut random) = (Model::new(), Random::new(11));
    let db = place.open();
    churn_and_collect(&db, &mut model, &mut random);
    db.checkpoint(place.beside("copy")).unwrap();
    place.assert_copy("copy", &model);
    let copy = open(&place.beside("copy"), &place.options).unwrap();
    let mut iter = copy.iter(&tamarack::IterOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    assert_eq!(Some(iter.key()), model.keys().next_back().map(Vec::as_slice));
    drop(iter);
    copy.close().unwrap();
    let error = open(&place.beside("copy"), &tiny()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}
