//! A flip of every byte of every file, and every length: an error with the place, or the same content. Salvage gives nothing that
//! was never there, and says that something is lost.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use tamarack_leveldb::Error;

use crate::builder::{Edit, Log, Op, Shape, batch, delete, entries, put};
use crate::golden;
use crate::home::{Content, Home, model};

/// Every pair that was ever put.
type History = BTreeSet<(Vec<u8>, Vec<u8>)>;

/// A database of all kinds of files, with all that was ever in it.
fn world() -> (Home, History, Vec<Vec<Op>>) {
    let round = |round: usize, step: usize| -> Vec<Op> {
        let op = |key: usize| match (key + round) % 4 {
            0 => delete(&format!("key{key:02}")),
            _ => put(&format!("key{key:02}"), &format!("round {round} of {key}")),
        };
        (0..40).step_by(step).map(op).collect()
    };
    let tables = [round(0, 1), round(1, 2), round(2, 3)];
    let batches = vec![round(3, 7), vec![put("log", "1")], vec![delete("key01"), put("log", "2")]];
    let shapes = [
        Shape { compression: 1, filter: true, ..Shape::default() },
        Shape { compression: 0, short_successor: false, ..Shape::default() },
        Shape { compression: 2, block_bytes: 100, ..Shape::default() },
    ];
    let home = Home::new();
    let mut edits = vec![Edit::first(8, 20, 500)];
    let mut sequence = 1;
    for ((number, ops), shape) in (10..).zip(&tables).zip(shapes) {
        let table = shape.table(&entries(sequence, ops));
        home.write(&format!("{number:06}.ldb"), &table.bytes);
        edits.push(Edit::default().add(12 - number, number, &table));
        sequence += ops.len() as u64;
    }
    let mut log = Log::default();
    for ops in &batches {
        log.record(&batch(sequence, ops));
        sequence += ops.len() as u64;
    }
    home.manifest(&edits);
    home.write("000008.log", &log.bytes);
    let all: Vec<Op> = tables.concat().into_iter().chain(batches.concat()).collect();
    let pair = |op: &Op| match op {
        Op::Put(key, value) => Some((key.clone(), value.clone())),
        Op::Delete(_) => None,
    };
    let history = all.iter().filter_map(pair).collect();
    assert_eq!(home.content(), model(&all));
    // What the content is after each batch of the log.
    let prefixes =
        (0..=batches.len()).map(|count| tables.iter().chain(&batches[..count]).flatten().cloned().collect());
    (home, history, prefixes.collect())
}

/// Flips bits of one byte in place: files that are written anew are written to the device, which takes much longer.
fn flip_byte(path: &Path, at: usize, flip: u8) {
    let file = File::options().read(true).write(true).open(path).expect("it is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).expect("it can be read");
    file.write_all_at(&[byte[0] ^ flip], at as u64).expect("it can be written");
}

/// Cuts a file.
fn cut(path: &Path, len: usize) {
    let file = File::options().write(true).open(path).expect("it is there");
    file.set_len(len as u64).expect("it can be cut");
}

/// Reads a damaged database in which something is wrong with `file`: whether it gives `expected` all the same.
fn is_equal_or_refused(home: &Home, file: &Path, expected: &Content, what: &str) -> bool {
    match home.read() {
        Ok(found) => {
            assert!(found.content == *expected, "{what}: another content, and no error");
            true
        }
        Err(Error::Damage(damage)) => {
            let name = file.file_name().expect("files have names");
            // A CURRENT that names another manifest leads to a file that is not there.
            let is_named = damage.file.file_name() == Some(name) || name == "CURRENT";
            assert!(is_named, "{what}: {damage}");
            false
        }
        Err(other) => panic!("{what}: {other}"),
    }
}

/// Salvages a damaged database: all that is found has been there.
fn salvages(home: &Home, history: &History, is_damaged: bool, what: &str) {
    let found = home.salvage();
    for (key, value) in &found.content {
        assert!(history.contains(&(key.clone(), value.clone())), "{what}: {key:?} never was {value:?}");
    }
    assert_eq!(!found.losses.is_empty(), is_damaged, "{what}: {:?}", found.losses);
}

#[test]
fn every_flip_is_noticed_or_means_nothing() {
    let (home, history, _) = world();
    let expected = home.content();
    let mut meaningless = 0;
    for (path, bytes) in home.files() {
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80] {
                flip_byte(&path, at, flip);
                let what = format!("{} at {at} by {flip:02x}", path.display());
                let is_whole = is_equal_or_refused(&home, &path, &expected, &what);
                meaningless += usize::from(is_whole);
                salvages(&home, &history, !is_whole, &what);
                flip_byte(&path, at, flip);
            }
        }
    }
    // Of each of three tables: the place of the metaindex and the padding in the footer, and the blocks behind the data.
    assert!((100..700).contains(&meaningless), "{meaningless} flips meant nothing");
}

#[test]
fn every_length_of_a_file_is_noticed_or_a_prefix() {
    let (home, history, prefixes) = world();
    let expected = home.content();
    for (path, bytes) in home.files() {
        let is_log = path.extension().is_some_and(|ending| ending == "log");
        for len in (0..bytes.len()).rev() {
            cut(&path, len);
            let what = format!("{} cut to {len}", path.display());
            if is_log {
                let content = home.content();
                assert!(prefixes.iter().any(|ops| model(ops) == content), "{what}");
                salvages(&home, &history, false, &what);
            } else if path.ends_with("MANIFEST-000002") && home.read().is_ok() {
                // An edit less: a crash before it was made would look like this, and its table would be one that is not used.
                salvages(&home, &history, false, &what);
            } else {
                assert!(!is_equal_or_refused(&home, &path, &expected, &what), "{what}: nothing was noticed");
                salvages(&home, &history, true, &what);
            }
        }
        fs::write(&path, &bytes).expect("it can be written");
    }
}

#[test]
fn every_file_that_is_gone_is_noticed() {
    let (home, history, _) = world();
    for (path, bytes) in home.files() {
        fs::remove_file(&path).expect("it is there");
        let what = format!("{} is gone", path.display());
        assert!(home.read().is_err(), "{what}");
        salvages(&home, &history, true, &what);
        fs::write(&path, &bytes).expect("it can be written");
    }
}

#[test]
fn flips_in_what_leveldb_has_written_are_noticed_or_mean_nothing() {
    for name in golden::ALL {
        let home = Home::copy_of(&golden::directory(name));
        let expected = golden::content(name);
        for (path, bytes) in home.files() {
            // Where a log ends in a torn record, that record means nothing, unless its length is damaged so that it seems whole.
            for at in 0..bytes.len() {
                flip_byte(&path, at, 0x10);
                let what = format!("{} at {at}", path.display());
                let is_whole = is_equal_or_refused(&home, &path, &expected, &what);
                let found = home.salvage();
                assert_eq!(is_whole, found.losses.is_empty(), "{what}");
                assert!(found.content.len() <= expected.len() + 120, "{what}");
                flip_byte(&path, at, 0x10);
            }
        }
    }
}
