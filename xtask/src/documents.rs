//! The documents agree with each other and with the code.

use crate::finding::Finding;
use crate::tree::Tree;

mod bytes;
mod invariants;
mod links;
mod prose;

/// Everything in which a document contradicts another or the code.
pub fn check(tree: &Tree) -> Vec<Finding> {
    [links::check(tree), bytes::check(tree), invariants::check(tree), prose::check(tree)].concat()
}
