//! What could not be read, and what it covered.

use crate::error::Damage;

/// One place at which bytes were lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The damage.
    pub damage: Damage,
    /// How many bytes were left out because of it.
    pub bytes: u64,
    /// What was in them, as far as is known.
    pub covers: Covers,
}

/// What lost bytes were about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Covers {
    /// Nothing: all that they led to was found without them.
    Nothing,
    /// Entries with keys in a range of the order of keys. What was there may be missing; and since it may have been a
    /// newer value, or a deletion, what is older may be there in its place.
    Keys {
        /// Keys before this one are not affected; `None` if nothing is known. The key itself may be.
        from: Option<Vec<u8>>,
        /// Keys behind this one are not affected; `None` if nothing is known.
        up_to: Option<Vec<u8>>,
    },
    /// Operations on unknown keys, which may have been deletions too.
    Operations,
    /// Which tables and logs make up the database. All that were found are taken, and what had been deleted or overwritten may
    /// be back from files that were out of use.
    Files,
}
