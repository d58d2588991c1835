//! The order of user keys.

use std::cmp::Ordering;
use std::fmt;

/// A total order of user keys. Its name is stored in the database, and opening with another name fails.
///
/// An implementation must be a total order that never changes for a given name, must not panic, and must not
/// block: it is called for every step of every search.
///
/// ```
/// #[derive(Debug)]
/// struct Descending;
///
/// impl tamarack::Comparator for Descending {
///     fn name(&self) -> &str {
///         "example.Descending"
///     }
///     fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
///         right.cmp(left)
///     }
/// }
///
/// let options = tamarack::Options { comparator: std::sync::Arc::new(Descending), ..Default::default() };
/// # let directory = tempfile::tempdir()?;
/// let db = tamarack::Db::open(directory.path(), options)?;
/// db.put(b"a", b"")?;
/// db.put(b"b", b"")?;
/// let mut iter = db.iter(&tamarack::IterOptions::default())?;
/// iter.seek_to_first()?;
/// assert_eq!(iter.key(), b"b");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Comparator: Send + Sync + fmt::Debug {
    /// The name stored in the database, at most 255 bytes. Change it whenever the order changes.
    fn name(&self) -> &str;

    /// The order of two user keys.
    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering;

    /// Whether [`compare`](Self::compare) is the order of unsigned bytes, which lets searches compare
    /// prefixes as integers. Only [`Bytewise`] should say so.
    fn is_bytewise(&self) -> bool {
        false
    }

    /// Whether keys that compare equal always have equal bytes. Filters and hash indexes work on bytes and
    /// are left out unless this holds.
    fn equal_means_identical(&self) -> bool {
        false
    }

    /// Some key `k` with `left <= k < right`, shorter than `left` if possible, written over `left`. Used for
    /// index entries. Leaving `left` as it is is always right.
    fn shorten_between(&self, left: &mut Vec<u8>, right: &[u8]) {
        let _unchanged = (left, right);
    }
}

/// The order of unsigned bytes, the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bytewise;

impl Comparator for Bytewise {
    fn name(&self) -> &str {
        "tamarack.Bytewise"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        left.cmp(right)
    }

    fn is_bytewise(&self) -> bool {
        true
    }

    fn equal_means_identical(&self) -> bool {
        true
    }

    fn shorten_between(&self, left: &mut Vec<u8>, right: &[u8]) {
        let shared = left.iter().zip(right).take_while(|(a, b)| a == b).count();
        if shared >= left.len() || shared >= right.len() {
            return;
        }
        // left < right, so left[shared] < right[shared]. Raising that byte by one keeps the result below
        // right unless the two are neighbours; then a later byte of left is raised instead.
        if left[shared] + 1 < right[shared] {
            left[shared] += 1;
            left.truncate(shared + 1);
            return;
        }
        if let Some(at) = (shared + 1..left.len()).find(|&at| left[at] < 0xff) {
            left[at] += 1;
            left.truncate(at + 1);
        }
    }
}

/// Bytes in descending order, for tests.
#[cfg(test)]
#[derive(Debug)]
pub struct Descending;

#[cfg(test)]
impl Comparator for Descending {
    fn name(&self) -> &str {
        "test.Descending"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        right.cmp(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shortened_keys_stay_between(a: Vec<u8>, b: Vec<u8>) {
            prop_assume!(a != b);
            let (left, right) = if a < b { (a, b) } else { (b, a) };
            let mut short = left.clone();
            Bytewise.shorten_between(&mut short, &right);
            prop_assert!(left <= short && short < right);
            prop_assert!(short.len() <= left.len());
        }
    }
}
