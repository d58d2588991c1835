//! The command line of Tamarack.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the command line is outside of the engine and talks to the system itself"
)]

fn main() {}
