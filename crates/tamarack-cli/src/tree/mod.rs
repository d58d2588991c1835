//! Directory trees as keys and values: how a tree is laid out in a database, how it gets in and out again.
//!
//! A regular file is one entry: its path relative to the tree, components joined by `/`, behind the prefix
//! that was asked for, and its bytes. That is all there is to an ordinary tree. What bytes under a path cannot say has a
//! companion under `NUL meta/`, prefix and path; see [`layout`] for the few cases. No path contains a
//! NUL byte, so companions never collide with files, and they sort before every path.

pub mod collect;
pub mod layout;
pub mod restore;
pub mod store;
