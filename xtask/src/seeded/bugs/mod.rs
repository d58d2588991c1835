//! The bugs. Every one is a mistake that an engine of this kind has had or could have; each leaves the tests that do
//! not look for it as they are.

mod collection;
mod copies;
mod index;
mod log;
mod ordering;
mod reading;

use super::Bug;

/// All bugs, by area.
pub fn all() -> impl Iterator<Item = &'static Bug> {
    [log::BUGS, index::BUGS, collection::BUGS, copies::BUGS, reading::BUGS, ordering::BUGS]
        .into_iter()
        .flatten()
}
