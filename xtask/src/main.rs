//! The project's own checks.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "xtask works on the source tree, not on a store"
)]

fn main() {}
