//! What no program may do ends it with a message that names the function, and not with damage.

use std::os::unix::process::ExitStatusExt as _;

use crate::compiler::{Library, MISUSE, Program, said};

/// Each deed of `misuse.c`, the function that is to end it, and part of what it says.
const DEEDS: &[(&str, &str, &str)] = &[
    ("null-database", "leveldb_put", "NULL instead of a database"),
    ("null-options", "leveldb_get", "NULL instead of read options"),
    ("null-key", "leveldb_put", "NULL instead of 1 bytes"),
    ("null-name", "leveldb_property_value", "NULL instead of a text"),
    ("null-errptr", "leveldb_open", "does not exist (create_if_missing is false)"),
    ("null-result", "leveldb_get", "NULL instead of a place for a result"),
    ("null-function", "leveldb_comparator_create", "NULL instead of a function"),
    ("another-kind", "leveldb_iter_valid", "something else instead of an iterator"),
    ("twice", "leveldb_writebatch_destroy", "destroyed before"),
    ("closed", "leveldb_put", "destroyed before"),
    ("no-durability", "tamarack_writeoptions_set_durability", "7 is no durability"),
    ("no-level", "tamarack_check", "-1 is no level"),
    ("too-long", "leveldb_put", "a length of"),
];

/// The number of the signal that `abort` raises.
const SIGABRT: i32 = 6;

#[test]
fn each_misuse_ends_the_program_with_a_message() {
    let program = Program::compile(MISUSE, Library::Shared, &[]);
    for (deed, function, message) in DEEDS {
        let output = program.command(&[]).arg(deed).output().unwrap();
        let text = said(&output);
        assert_eq!(output.status.signal(), Some(SIGABRT), "{deed}: {}\n{text}", output.status);
        assert!(
            text.starts_with(&format!("tamarack: {function}: ")) && text.contains(message),
            "{deed}: {text}"
        );
    }
}
