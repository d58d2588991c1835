//! Reads of many keys at one moment.
//!
//! What a key leads to is looked for as a get does it, and all values that are in the log are read together: many reads are under way then, as
//! the device wants it. A value is read where it is known to lie, without a look into the index; should something else be there, the key is looked
//! up, and the value read once more.

use super::Cube;
use super::read::{Found, ReadSettings};
use super::reading::{Look, Reading};
use super::rows::Missing;
use super::state::ReadState;
use crate::base::error::Result;
use crate::base::ids::Sequence;
use crate::base::pointer::ValuePointer;
use crate::base::swap::Guard;
use crate::base::sync::Arc;
use crate::index::lookup::Lookup;
use crate::vlog::fetch::{Fetched, FetchedValue, How};
use crate::vlog::plan::{Wanted, lie_apart};

/// Of so many keys or more at once ...
const KEYS_APART_MIN: usize = 32;
/// ... this part comes first: its reads take the device about as long as looking up the others.
const KEYS_FIRST_PART: usize = 4;
/// So many keys are looked up at the same time: enough to keep a processor from waiting for memory. Each holds a table and a block.
const LOOKUPS_TOGETHER: usize = 32;

/// What is asked for, and at which moment.
struct Question<'a> {
    cube: &'a Cube,
    state: &'a ReadState,
    sequence: Sequence,
    settings: ReadSettings,
    keys: &'a [&'a [u8]],
}

/// What is known of a key.
struct Answer {
    /// Its value, or nothing yet.
    value: Result<Option<Vec<u8>>>,
    /// `None` if it had a row.
    missing: Option<Missing>,
    /// Its value is being read where it was known to lie.
    is_followed: bool,
}

/// Values that are to be read from the log, and their keys, one after the other.
#[derive(Default)]
struct WantedValues {
    keys: Vec<u8>,
    values: Vec<Wanted>,
}

impl WantedValues {
    fn add(&mut self, place: usize, key: &[u8], pointer: ValuePointer) {
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.values.push(Wanted { place, pointer, key: start..self.keys.len() });
    }
}

impl Cube {
    /// The values of `keys`, all at the same moment, their log reads done together. While the device is busy with those of the first keys, the
    /// others are looked up.
    pub fn multi_get(&self, keys: &[&[u8]], settings: ReadSettings) -> Vec<Result<Option<Vec<u8>>>> {
        let (state, sequence) = self.moment(settings);
        let state = Guard::into_inner(state);
        let question = Question { cube: self, state: &state, sequence, settings, keys };
        let mut answers = Vec::with_capacity(keys.len());
        let first = if keys.len() < KEYS_APART_MIN { 0 } else { keys.len() / KEYS_FIRST_PART };
        let (mut wanted, mut readings, mut look) = (WantedValues::default(), Vec::new(), Look::HereIfAny);
        question.begin(first, &mut answers, &mut wanted);
        // Those that lie together may do so with others.
        if lie_apart(&wanted.values) {
            let reading = question.read(std::mem::take(&mut wanted), look);
            look = if reading.was_here() { Look::HereIfAny } else { Look::There };
            readings.push(reading);
        }
        question.begin(keys.len(), &mut answers, &mut wanted);
        if !wanted.values.is_empty() {
            readings.push(question.read(wanted, look));
        }
        let mut lost = WantedValues::default();
        readings.into_iter().for_each(|reading| question.take(reading, &mut answers, &mut lost));
        if !lost.values.is_empty() {
            let reading = question.read(lost, Look::HereIfAny);
            question.take(reading, &mut answers, &mut WantedValues::default());
        }
        if settings.keeps_rows() {
            for (key, Answer { value, missing, .. }) in keys.iter().zip(&answers) {
                if let (Some(missing), Ok(Some(value))) = (missing, value) {
                    self.rows.keep(*missing, key, value, sequence);
                }
            }
        }
        answers.into_iter().map(|answer| answer.value).collect()
    }
}

impl Question<'_> {
    /// Adds the answers for the keys before `end` that have none yet. Values in the log are left to be read: they are added to `wanted`.
    fn begin(&self, end: usize, answers: &mut Vec<Answer>, wanted: &mut WantedValues) {
        let mut lookups = Vec::new();
        for keys in self.keys[answers.len()..end].chunks(LOOKUPS_TOGETHER) {
            keys.iter().for_each(|key| self.cube.rows.prefetch(key));
            keys.iter().for_each(|key| self.begin_one(key, answers, wanted, &mut lookups));
            self.cube.index.look_up_all(&mut lookups, |place, entry| {
                let value = entry.and_then(|entry| self.taken(place, Found::in_tables(entry), wanted));
                answers[place].value = value;
            });
        }
    }

    /// Adds the answer for the next key. If that needs a look into tables, it is added to `lookups`.
    fn begin_one<'a>(
        &'a self,
        key: &'a [u8],
        answers: &mut Vec<Answer>,
        wanted: &mut WantedValues,
        lookups: &mut Vec<(usize, Lookup<'a>)>,
    ) {
        let Self { cube, state, sequence, settings, .. } = *self;
        let place = answers.len();
        answers.push(match cube.rows.get(key, sequence) {
            Ok(value) => Answer { value: Ok(Some(value.to_vec())), missing: None, is_followed: false },
            Err(missing) => {
                let known = if settings.verify { cube.known_place(state, missing) } else { None };
                let mut value = Ok(None);
                if let Some(pointer) = known {
                    wanted.add(place, key, pointer);
                } else if let Some(found) = Found::in_memtables(state, key, sequence) {
                    value = self.taken(place, found, wanted);
                } else {
                    let lookup = Lookup::new(&state.version, key, sequence, settings.fill_cache);
                    lookups.push((place, lookup));
                }
                Answer { value, missing: Some(missing), is_followed: known.is_some() }
            }
        });
    }

    /// What the index says of the key in `place`.
    fn look_up(&self, place: usize, wanted: &mut WantedValues) -> Result<Option<Vec<u8>>> {
        let Self { cube, state, sequence, settings, keys } = *self;
        self.taken(place, cube.find(state, keys[place], sequence, settings.fill_cache)?, wanted)
    }

    /// The value of the key in `place`, of which the index says what was `found`, if that is not to be read first.
    fn taken(&self, place: usize, found: Found<'_>, wanted: &mut WantedValues) -> Result<Option<Vec<u8>>> {
        Ok(match found {
            Found::Absent => None,
            Found::Inline(value) => Some(value.as_ref().to_vec()),
            Found::Pointer(pointer) => {
                let pointer = self.cube.present_place(&self.state.version, pointer)?;
                wanted.add(place, self.keys[place], pointer);
                None
            }
        })
    }

    /// Begins to read `wanted`.
    fn read(&self, wanted: WantedValues, look: Look<'_>) -> Reading {
        // It is no walk, however near its keys are to each other.
        let how = How { fill_cache: true, ..self.settings.how() };
        let WantedValues { keys, values } = wanted;
        self.cube.read_values(Arc::new(keys), values, how, &mut Vec::new(), look)
    }

    /// Waits for the values of `reading`. Those that did not lie where they were followed to are looked up, and added to `lost` if they are to be read again.
    fn take(&self, reading: Reading, answers: &mut [Answer], lost: &mut WantedValues) {
        let Self { cube, sequence, settings, .. } = *self;
        for Fetched { bytes, found, mut failed } in reading.finish().0 {
            for FetchedValue { place, pointer, stored } in found {
                let mut value = Vec::with_capacity(stored.range.len());
                if let Err(error) =
                    cube.reader.unpack(pointer, stored.codec, &bytes[stored.range], &mut value)
                {
                    failed.push((place, error));
                    continue;
                }
                let answer = &mut answers[place];
                answer.value = Ok(Some(value));
                if let Some(missing) = answer.missing.filter(|_| settings.fill_cache && !answer.is_followed) {
                    cube.rows.note_place(missing, sequence, pointer);
                }
            }
            for (place, error) in failed {
                let was_followed = std::mem::take(&mut answers[place].is_followed);
                answers[place].value = if was_followed { self.look_up(place, lost) } else { Err(error) };
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::base::batch::Operation;
    use crate::base::ids::SegmentId;
    use crate::base::options::{GcPolicy, Options, WriteOptions};
    use crate::cube::open::Shared;
    use crate::env::pool::WorkerPool;
    use crate::env::posix::posix_env;

    const KEYS: u8 = 50;

    fn key(number: u8) -> Vec<u8> {
        // Of several lengths.
        vec![number; 1 + usize::from(number % 3)]
    }

    fn value(number: u8, bytes: usize) -> Vec<u8> {
        vec![number; bytes]
    }

    /// A cube of so many values, all in tables, but for key 1, which was deleted, and key 2, whose value is in the index.
    fn cube(directory: &std::path::Path, bytes: usize) -> Arc<Cube> {
        let env = posix_env();
        let mut options = Options {
            row_cache_bytes: 256 << 10,
            gc: GcPolicy::Off,
            inline_value_max: 8,
            ..Options::default()
        };
        let workers = WorkerPool::new(&env, "test", 3).expect("threads can be started");
        let shared = Shared::new(workers, &mut options);
        let (cube, _lock) = Cube::open(env, directory, options, shared).expect("an empty directory");
        let write = |operation: Operation<'_>| {
            cube.write_one(operation, &WriteOptions::default()).expect("there is room")
        };
        for number in 0..KEYS {
            write(Operation::Put { key: &key(number), value: &value(number, bytes) });
        }
        write(Operation::Delete { key: &key(1) });
        write(Operation::Put { key: &key(2), value: b"2" });
        cube.flush().expect("there is room");
        cube
    }

    fn expected(number: u8, bytes: usize) -> Option<Vec<u8>> {
        match number {
            1 => None,
            2 => Some(b"2".to_vec()),
            _ => Some(value(number, bytes)),
        }
    }

    /// What is known of a key that has no row.
    fn missing(cube: &Cube, number: u8) -> Missing {
        cube.rows.get(&key(number), cube.publisher.visible()).expect_err("nothing was read yet")
    }

    /// Has `place` be known of a key.
    fn mislead(cube: &Cube, number: u8, place: ValuePointer) {
        cube.rows.note_place(missing(cube, number), cube.publisher.visible(), place);
        assert_eq!(missing(cube, number).place(), Some(place));
    }

    fn assert_all_are_found(cube: &Cube, bytes: usize, verify: bool) {
        let settings = ReadSettings { sequence: None, verify, fill_cache: true };
        let numbers: Vec<u8> = (0..KEYS).chain([0, 1, 2, 3]).collect();
        for numbers in [&numbers[..], &numbers[..5]] {
            let keys: Vec<Vec<u8>> = numbers.iter().map(|&number| key(number)).collect();
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            for (value, &number) in cube.multi_get(&keys, settings).into_iter().zip(numbers) {
                assert!(value.expect("nothing is damaged") == expected(number, bytes), "{number}");
            }
        }
    }

    /// I-16. Values of which all become rows, ones that are too large for that, and ones of which each needs a read of its own.
    #[test]
    fn a_value_that_lies_elsewhere_is_found_all_the_same() {
        for (bytes, verify) in [(500, true), (500, false), (9000, true), (30_000, true)] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let cube = cube(directory.path(), bytes);
            let of_other = missing(&cube, 40).place().expect("the write told");
            mislead(&cube, 0, of_other);
            mislead(&cube, 1, of_other);
            mislead(&cube, 2, ValuePointer { stored_len: of_other.stored_len / 2, ..of_other });
            mislead(&cube, 3, ValuePointer { offset: of_other.offset + 100, ..of_other });
            mislead(&cube, 4, ValuePointer { offset: u32::MAX - 10, ..of_other });
            mislead(&cube, 5, ValuePointer { segment: SegmentId(77), ..of_other });
            assert_all_are_found(&cube, bytes, verify);
            for number in [0, 3, 4, 5].into_iter().filter(|_| bytes > 500) {
                let place = missing(&cube, number).place().expect("the look told");
                assert!(place.segment == of_other.segment && place.offset < of_other.offset, "{number}");
            }
            assert_all_are_found(&cube, bytes, verify);
            cube.reader.scarcity().note(true);
            (0..1000).for_each(|_| cube.reader.scarcity().note(false));
            assert!(cube.reader.scarcity().is_high());
            assert_all_are_found(&cube, bytes, verify);
        }
    }
}
