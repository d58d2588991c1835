//! Runs the built program as a script would: exit statuses, standard output, standard error.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests are at home in the operating system"
)]

mod bench;
mod demo;
mod entries;
mod failures;
mod import_leveldb;
#[path = "../../../tamarack-leveldb/tests/reader/builder.rs"]
#[allow(dead_code, reason = "the tests of the reader use all of it")]
mod leveldb_builder;
mod measuring;
mod real_leveldb;
mod records;
mod repair;
mod space;
mod trees;
mod world;
