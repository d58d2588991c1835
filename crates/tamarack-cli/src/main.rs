//! The command line of Tamarack.
fn main() {}
