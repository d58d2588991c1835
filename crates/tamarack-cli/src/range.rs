//! The part of a database that `scan`, `dump` and `compact` work on, as given on the command line.

use clap::Args;

use crate::failure::{Failure, Result};
use crate::format::Encoding;

/// A range of keys.
#[derive(Debug, Clone, Default, Args)]
pub struct RangeArguments {
    /// First key of the range, inclusive
    #[arg(long, value_name = "KEY")]
    start: Option<String>,

    /// End of the range, exclusive
    #[arg(long, value_name = "KEY")]
    end: Option<String>,

    /// Only keys that begin with this
    #[arg(long, value_name = "KEY", conflicts_with_all = ["start", "end"])]
    prefix: Option<String>,
}

/// Keys from `start` (inclusive) to `end` (exclusive); `None` is no bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// First key.
    pub start: Option<Vec<u8>>,
    /// First key no longer in the range.
    pub end: Option<Vec<u8>>,
}

impl RangeArguments {
    /// The range these arguments mean.
    pub fn range(&self, encoding: Encoding) -> Result<KeyRange> {
        let decode = |text: &Option<String>, what: &str| {
            text.as_ref().map(|text| encoding.decode(text, what)).transpose()
        };
        if let Some(prefix) = decode(&self.prefix, "prefix")? {
            return Ok(KeyRange::of_prefix(prefix));
        }
        let range = KeyRange { start: decode(&self.start, "start")?, end: decode(&self.end, "end")? };
        match (&range.start, &range.end) {
            (Some(start), Some(end)) if start > end => {
                Err(Failure::Usage("the range ends before it starts".into()))
            }
            _ => Ok(range),
        }
    }
}

impl KeyRange {
    /// All keys that begin with `prefix`.
    pub fn of_prefix(prefix: Vec<u8>) -> Self {
        let mut end = prefix.clone();
        while let Some(last) = end.pop() {
            if last < u8::MAX {
                end.push(last + 1);
                return Self { start: Some(prefix), end: Some(end) };
            }
        }
        Self { start: Some(prefix), end: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_prefix_range_holds_exactly_the_keys_with_that_prefix(
            prefix in proptest::collection::vec(prop_oneof![Just(0u8), Just(254), Just(255), any::<u8>()], 0..4),
            key in proptest::collection::vec(prop_oneof![Just(0u8), Just(254), Just(255), any::<u8>()], 0..6),
        ) {
            let range = KeyRange::of_prefix(prefix.clone());
            let within = range.start.as_ref().is_none_or(|start| key >= *start)
                && range.end.as_ref().is_none_or(|end| key < *end);
            prop_assert_eq!(within, key.starts_with(&prefix));
        }
    }

    #[test]
    fn a_range_that_ends_before_it_starts_is_refused() {
        let arguments =
            RangeArguments { start: Some("b".into()), end: Some("a".into()), ..RangeArguments::default() };
        assert!(matches!(arguments.range(Encoding::Utf8), Err(Failure::Usage(_))));
    }
}
