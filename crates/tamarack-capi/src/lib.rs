//! LevelDB's C interface over Tamarack: every function of `leveldb/c.h` as of LevelDB 1.23, and those of
//! `tamarack/c.h`, which give what LevelDB lacks. C programs include the headers in `include`; nothing here is meant
//! for Rust programs, which have the crate `tamarack`.
//!
//! Layers, downward:
//!
//! - `exports`: the functions under their C names. Each takes its arguments apart, calls one method and hands over
//!   what comes of it. Nothing is decided there.
//! - The objects behind the pointers: `database`, `iterator`, `batch`, `options`, `reads`, over `settings` (options by
//!   name), `order_name` (of comparators), `report` (figures as JSON) and `directory` (of tests). Safe Rust over the public interface of `tamarack`.
//! - `boundary`: the only unsafe code. Types for what C passes and takes: handles, bytes, texts, memory from `malloc`,
//!   callbacks; and the guard that no panic passes.
//! - `status`: errors as LevelDB's clients know them.
//!
//! What the interface promises beyond LevelDB's: a `NULL` where an object must be, an object of another kind and, as a
//! rule, one that has been destroyed end the process with a message that names the function. Every object may be used
//! from several threads. Snapshots, comparators and options may be released in any order; an iterator goes on when its
//! database has been closed, and holds the directory until it is destroyed.
#![expect(
    clippy::disallowed_methods,
    reason = "the test directory of LevelDB's Env is made here; the engine does its I/O through its environment"
)]

mod batch;
mod boundary;
mod database;
mod directory;
mod exports;
mod iterator;
mod options;
mod order_name;
mod reads;
mod report;
mod settings;
mod status;
