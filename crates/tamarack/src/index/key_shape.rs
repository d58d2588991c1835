//! What the keys of a memtable look like, so that the next one can tell keys apart by a number of 32 bits.
//!
//! A shape is the prefix that all keys share, and for each of some positions behind it the range of bytes that
//! stand there. With that, the bytes at those positions are the digits of a number in a mixed radix: decimal keys
//! give nine of their digits, random keys four of their bytes. Pure; the memtable is the only user.

/// The shape of a set of keys; see the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyShape {
    prefix: Box<[u8]>,
    digits: Box<[Digit]>,
}

/// The bytes at one position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digit {
    min: u8,
    max: u8,
    /// What a step of one is worth.
    weight: u32,
}

/// Codes of keys with the prefix lie in `1..=CODE_MAX`.
const CODE_MAX: u32 = u32::MAX - 1;

/// Bytes behind the prefix that are looked at.
const POSITIONS_MAX: usize = 16;

impl Default for KeyShape {
    /// Any bytes.
    fn default() -> Self {
        Self::new(&[], &[(0, u8::MAX); 4])
    }
}

impl KeyShape {
    /// The shape of `keys`, of which there is at least one.
    pub fn of(keys: &[&[u8]]) -> Self {
        let first = keys.first().expect("a shape is that of some keys");
        let shared = |key: &&[u8]| first.iter().zip(*key).take_while(|(a, b)| a == b).count();
        let prefix = keys.iter().map(shared).min().unwrap_or(0);
        let ranges: Vec<(u8, u8)> = (prefix..prefix + POSITIONS_MAX)
            .map_while(|position| {
                let bytes = || keys.iter().filter_map(|key| key.get(position).copied());
                Some((bytes().min()?, bytes().max()?))
            })
            .collect();
        Self::new(&first[..prefix], &ranges)
    }

    /// As many of `ranges` as fit a code, and weights that spread the codes over all of its range.
    fn new(prefix: &[u8], ranges: &[(u8, u8)]) -> Self {
        let radix = |&(min, max): &(u8, u8)| u64::from(max - min) + 1;
        let mut product = 1;
        let fitting = ranges.iter().take_while(|range| {
            product *= radix(range);
            product <= u64::from(CODE_MAX)
        });
        let used: Vec<_> = fitting.copied().collect();
        let numbers: u64 = used.iter().map(radix).product();
        let mut weight = u64::from(CODE_MAX) / numbers;
        let mut digits: Vec<Digit> = Vec::with_capacity(used.len());
        for range in used.iter().rev() {
            digits.push(Digit { min: range.0, max: range.1, weight: weight as u32 });
            weight *= radix(range);
        }
        digits.reverse();
        Self { prefix: prefix.into(), digits: digits.into() }
    }

    /// A number that never decreases from a key to a greater one, in the order of bytes: 0 before all keys with
    /// the prefix, the largest number after them.
    pub fn code(&self, key: &[u8]) -> u32 {
        let (front, rest) = key.split_at(self.prefix.len().min(key.len()));
        match front.cmp(&self.prefix) {
            std::cmp::Ordering::Less => return 0,
            std::cmp::Ordering::Greater => return u32::MAX,
            std::cmp::Ordering::Equal => {}
        }
        let mut code = 1;
        for (digit, &byte) in self.digits.iter().zip(rest) {
            if byte < digit.min {
                return code;
            }
            if byte > digit.max {
                // Behind every key that has the same bytes up to here and a byte of the range next.
                return code + (u32::from(digit.max - digit.min) + 1) * digit.weight - 1;
            }
            code += u32::from(byte - digit.min) * digit.weight;
        }
        code
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(b'a'..=b'e', 0..8),
            prop::collection::vec(any::<u8>(), 0..8),
            Just(vec![u8::MAX; 20]),
        ]
    }

    proptest! {
        #[test]
        fn codes_never_decrease(
            a in key(), b in key(), sample in prop::option::of(prop::collection::vec(key(), 1..6)),
        ) {
            let shape = sample.map_or_else(KeyShape::default, |sample| {
                KeyShape::of(&sample.iter().map(Vec::as_slice).collect::<Vec<_>>())
            });
            let (low, high) = if a <= b { (a, b) } else { (b, a) };
            prop_assert!(shape.code(&low) <= shape.code(&high));
        }
    }

    #[test]
    fn decimal_keys_are_told_apart_by_nine_digits() {
        let keys: Vec<String> =
            (0..1000_u64).map(|n| format!("user{:012}", n * 1_999_999_999 % 1_000_000_000)).collect();
        let shape = KeyShape::of(&keys.iter().map(String::as_bytes).collect::<Vec<_>>());
        assert_eq!(&*shape.prefix, b"user000");
        let code = |key: &str| shape.code(key.as_bytes());
        assert!(code("user000123456780") < code("user000123456781"));
        assert_eq!((code("use"), code("usez"), code("user000")), (0, u32::MAX, 1));
        assert!(code("user000999999999") > u32::MAX / 10 * 9, "codes use all of their range");
    }

    #[test]
    fn keys_outside_of_the_range_keep_their_place() {
        let shape = KeyShape::of(&[b"k3", b"k7"]);
        assert_eq!(shape.code(b"k1"), 1);
        assert!(shape.code(b"k8") >= shape.code(b"k7zzz"));
        assert!(shape.code(b"k9") < shape.code(b"l"));
    }
}
