//! Sorting by key, with the first bytes that differ at hand: most comparisons are one of two integers, and fetch no key.

use super::ids::Sequence;
use super::keys::KeyOrder;

/// The places below `count` in the order of the keys that are there, and where these are equal from the newest to the
/// oldest. `at` tells key and sequence number of a place.
pub fn places_by_key<'a>(
    order: &KeyOrder,
    count: u32,
    at: impl Fn(u32) -> (&'a [u8], Sequence),
) -> impl ExactSizeIterator<Item = u32> {
    let shared =
        if order.is_bytewise() { shared_prefix((0..count).map(|place| at(place).0)) } else { usize::MAX };
    let rank = |place| Rank { digits: digits(at(place).0, shared), place };
    let mut ranks: Vec<Rank> = (0..count).map(rank).collect();
    ranks.sort_unstable_by(|left, right| {
        left.digits.cmp(&right.digits).then_with(|| {
            let [(left_key, left_sequence), (right_key, right_sequence)] = [at(left.place), at(right.place)];
            order.compare_user(left_key, right_key).then(right_sequence.cmp(&left_sequence))
        })
    });
    ranks.into_iter().map(|rank| rank.place)
}

/// Bytes of memory that sorting takes for each place.
pub const SORT_BYTES: usize = size_of::<Rank>();

/// A place, as far as some bytes of its key tell where it comes.
#[derive(Debug, Clone, Copy)]
struct Rank {
    digits: u64,
    place: u32,
}

/// How many bytes all of `keys` begin with alike.
fn shared_prefix<'a>(mut keys: impl Iterator<Item = &'a [u8]>) -> usize {
    let Some(first) = keys.next() else { return 0 };
    keys.fold(first.len(), |shared, key| {
        let both = first[..shared].iter().zip(key);
        both.take_while(|(left, right)| left == right).count()
    })
}

/// The bytes of `key` from `start` on as a number, zeros behind its end: in the order of bytes it never decreases from a
/// key to a greater one.
fn digits(key: &[u8], start: usize) -> u64 {
    let rest = key.get(start..).unwrap_or_default();
    let mut bytes = [0; 8];
    let len = rest.len().min(bytes.len());
    bytes[..len].copy_from_slice(&rest[..len]);
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::comparator::{Bytewise, Descending};
    use crate::base::sync::Arc;

    proptest! {
        #[test]
        fn places_are_sorted_by_key_and_then_newest_first(
            prefix in proptest::collection::vec(any::<u8>(), 0..4),
            keys in proptest::collection::vec(proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(255)], 0..11), 0..50),
            descending: bool,
        ) {
            let order = if descending { KeyOrder::new(Arc::new(Descending)) } else { KeyOrder::new(Arc::new(Bytewise)) };
            let keys: Vec<Vec<u8>> = keys.into_iter().map(|key| [&prefix[..], &key].concat()).collect();
            let at = |place: u32| (&keys[place as usize][..], Sequence(u64::from(place)));
            let sorted: Vec<u32> = places_by_key(&order, keys.len() as u32, at).collect();
            let mut expected: Vec<u32> = (0..keys.len() as u32).collect();
            expected.sort_by(|&left, &right| {
                let [left_key, right_key] = [left, right].map(|place| at(place).0);
                order.compare_user(left_key, right_key).then(right.cmp(&left))
            });
            prop_assert_eq!(sorted, expected);
        }
    }
}
