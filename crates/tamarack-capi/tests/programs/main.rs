//! The interface as C and C++ programs see it: those in `tests/c` and `tests/cpp`, compiled by the machine's compilers and run
//! against the library.
//!
//! What a machine may lack (sanitizers, valgrind, a C++ compiler, LevelDB itself) is skipped with a line that says so;
//! `cargo test -p tamarack-capi --test programs -- --nocapture` shows those lines.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests compile and run programs in the real world"
)]

mod compiler;
mod cpp;
mod documents;
mod install;
mod leveldb;
mod misuse;
mod names;
mod suites;
