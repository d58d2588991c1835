//! The real world, on top of the operating system.
