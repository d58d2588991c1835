//! Reads directories: those that LevelDB has written, those that a small builder makes in every shape, and damaged ones.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests are at home in the operating system"
)]

mod any_bytes;
mod builder;
mod damage;
mod golden;
mod home;
mod logs;
mod manifests;
mod model;
mod salvage;
mod tables;
