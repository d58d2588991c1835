//! Every suite of `tests/c` passes, with the shared and the static library, under sanitizers and under valgrind.

use std::process::Command;

use crate::compiler::{LEVELDB, Library, Program, TAMARACK, can};

#[test]
fn what_is_leveldbs_holds() {
    Program::compile(LEVELDB, Library::Shared, &[]).pass(&[]);
}

#[test]
fn what_is_tamaracks_holds() {
    Program::compile(TAMARACK, Library::Shared, &[]).pass(&[]);
}

#[test]
fn the_static_library_does_the_same() {
    Program::compile(LEVELDB, Library::Static, &[]).pass(&[]);
}

#[test]
fn no_memory_is_misused_or_leaked() {
    let flags = ["-fsanitize=address,undefined"];
    // A program of one file says whether they are there and work in this place.
    let there = can("sanitizers: the C compiler has no AddressSanitizer", || {
        let small = Program::try_compile(&["misuse", "check"], Library::Shared, &flags);
        small.is_ok_and(|program| {
            program.command(&[]).output().is_ok_and(|output| output.status.code() == Some(2))
        })
    });
    if there {
        for sources in [LEVELDB, TAMARACK] {
            Program::compile(sources, Library::Shared, &flags).pass(&[]);
        }
    }
}

/// The sanitizers above look at the C programs and at what is allocated, in every run; valgrind looks into the library as well.
/// It takes a minute, so this is run by hand.
#[test]
#[ignore = "takes a minute: cargo test -p tamarack-capi --test programs -- --ignored"]
fn valgrind_finds_nothing() {
    let valgrind = [
        "valgrind",
        "--quiet",
        "--error-exitcode=99",
        "--leak-check=full",
        "--show-leak-kinds=definite",
        "--errors-for-leak-kinds=definite",
    ];
    let there = || Command::new("valgrind").arg("--version").output().is_ok();
    if can("valgrind: it is not installed", there) {
        for sources in [LEVELDB, TAMARACK] {
            Program::compile(sources, Library::Shared, &[]).pass(&valgrind);
        }
    }
}
