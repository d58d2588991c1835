//! `tamarack/c.h`: options, reads and writes beyond LevelDB's.

use std::ffi::c_int;

use tamarack::PinnedValue;

use crate::boundary::arguments::{Bytes, ErrorPointer, Lengths, Lent, ManyBytes, Results, Text};
use crate::boundary::guard::{contained, misuse, reported};
use crate::boundary::handle::{Given, New, Returned};
use crate::boundary::memory::Allocated;
use crate::database::Database;
use crate::iterator::Walk;
use crate::options::OpenOptions;
use crate::reads::{Moment, Reading, Writing};
use crate::status::Status;

/// The version of this library with a zero behind it.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The version of this library.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_version() -> Lent {
    Lent::bytes(VERSION.as_bytes())
}

/// Sets an option of Tamarack's by its name.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_options_set(
    options: Given<OpenOptions>,
    name: Text,
    value: Text,
    errptr: ErrorPointer,
) {
    reported("tamarack_options_set", errptr, (), || options.get().set(&words(&name)?, &words(&value)?));
}

/// What writes survive when they return: 0 the process, 1 the machine.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_writeoptions_set_durability(options: Given<Writing>, durability: c_int) {
    contained("tamarack_writeoptions_set_durability", || match durability {
        0 => options.get().set_sync(false),
        1 => options.get().set_sync(true),
        _ => misuse(format!("{durability} is no durability")),
    });
}

/// Closes a database and tells what went wrong. The pointer is not valid any more, in either case.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_close(db: Returned<Database>, errptr: ErrorPointer) {
    reported("tamarack_close", errptr, (), || db.take().map_or(Ok(()), Database::close));
}

/// Puts the value of `key` into a buffer, if it is large enough; whether there is a value. Its length is told in
/// either case.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_get_into(
    db: Given<Database>,
    options: Given<Reading>,
    key: Bytes,
    keylen: usize,
    buffer: Results<u8>,
    capacity: usize,
    vallen: Results<usize>,
    errptr: ErrorPointer,
) -> u8 {
    reported("tamarack_get_into", errptr, 0, || {
        vallen.set(0);
        let Some(value) = db.get().get(options.get(), key.slice(keylen))? else { return Ok(0) };
        vallen.set(value.len());
        if value.len() <= capacity {
            buffer.fill(&value);
        }
        Ok(1)
    })
}

/// The value of `key` where it is in memory; `NULL` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_get_pinned(
    db: Given<Database>,
    options: Given<Reading>,
    key: Bytes,
    keylen: usize,
    errptr: ErrorPointer,
) -> New<PinnedValue> {
    reported("tamarack_get_pinned", errptr, New::none(), || {
        let value = db.get().get(options.get(), key.slice(keylen))?;
        Ok(value.map_or_else(New::none, New::of))
    })
}

/// The bytes of a pinned value.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_pinned_value(pinned: Given<PinnedValue>, vallen: Results<usize>) -> Lent {
    contained("tamarack_pinned_value", || {
        let value = pinned.get();
        vallen.set(value.len());
        Lent::bytes(value)
    })
}

/// Lets go of a pinned value.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_pinned_destroy(pinned: Returned<PinnedValue>) {
    contained("tamarack_pinned_destroy", || pinned.destroy());
}

/// The values of many keys at one moment, each with a length and an error of its own.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_multi_get(
    db: Given<Database>,
    options: Given<Reading>,
    num_keys: usize,
    keys: ManyBytes,
    keylens: Lengths,
    vals: Results<Allocated>,
    vallens: Results<usize>,
    errs: Results<Allocated>,
) {
    contained("tamarack_multi_get", || {
        let keys = keys.slices(&keylens, num_keys);
        let values: Vec<_> = match options.get().to_options() {
            Ok(reading) => {
                let values = db.get().db().multi_get(&keys, &reading);
                values.into_iter().map(|value| value.map_err(Status::from)).collect()
            }
            Err(status) => keys.iter().map(|_| Err(status.clone())).collect(),
        };
        for (index, value) in values.into_iter().enumerate() {
            let (value, length, error) = match value {
                Ok(Some(value)) => (Allocated::bytes(&value), value.len(), Allocated::NONE),
                Ok(None) => (Allocated::NONE, 0, Allocated::NONE),
                Err(status) => (Allocated::NONE, 0, Allocated::text(status.text())),
            };
            vals.set_at(index, value);
            vallens.set_at(index, length);
            errs.set_at(index, error);
        }
    });
}

/// Holds the present moment under a name, by which statistics call it.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_create_snapshot_named(db: Given<Database>, name: Text) -> New<Moment> {
    contained("tamarack_create_snapshot_named", || {
        let name = String::from_utf8_lossy(name.bytes());
        New::of(Moment::new(db.get().db().snapshot_named(&name)))
    })
}

/// Says how many entries an iterator that is made with `options` will be asked for; 0 takes that back.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_readoptions_set_expected_entries(options: Given<Reading>, entries: usize) {
    contained("tamarack_readoptions_set_expected_entries", || options.get().set_expected_entries(entries));
}

/// An iterator over the keys from `start` up to but not including `limit`; `NULL` is before or behind all.
#[unsafe(no_mangle)]
pub extern "C" fn tamarack_create_iterator_range(
    db: Given<Database>,
    options: Given<Reading>,
    start: Bytes,
    startlen: usize,
    limit: Bytes,
    limitlen: usize,
    keys_only: u8,
) -> New<Walk> {
    contained("tamarack_create_iterator_range", || {
        let (start, limit) = (start.slice_if_any(startlen), limit.slice_if_any(limitlen));
        New::of(db.get().walk(options.get(), start, limit, keys_only != 0))
    })
}

fn words(text: &Text) -> Result<String, Status> {
    String::from_utf8(text.bytes().to_vec()).map_err(|_| Status::invalid_argument("a text that is not UTF-8"))
}
