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
mod measuring;
mod records;
mod repair;
mod space;
mod trees;
mod world;
