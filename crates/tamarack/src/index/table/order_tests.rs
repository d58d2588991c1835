//! Tables in other orders of keys than that of their bytes.

use std::cmp::Ordering;

use super::TableOptions;
use super::tests::{assert_holds, build, entries, lookup, open, options};
use crate::base::comparator::Comparator;
use crate::base::error::{ErrorKind, Result};
use crate::base::keys::KeyOrder;
use crate::base::sync::Arc;

/// Orders keys backwards and ignores case, so that equal keys may differ in their bytes.
#[derive(Debug)]
struct BackwardsIgnoringCase;

impl Comparator for BackwardsIgnoringCase {
    fn name(&self) -> &str {
        "test.BackwardsIgnoringCase"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        right.to_ascii_lowercase().cmp(&left.to_ascii_lowercase())
    }
}

#[test]
fn other_orders_of_keys_work_without_hashing() -> Result<()> {
    let order = KeyOrder::new(Arc::new(BackwardsIgnoringCase));
    let custom = TableOptions { order: order.clone(), block_bytes: 128, ..options() };
    let mut entries = entries(300);
    entries.sort_by(|(a, _), (b, _)| order.compare(a, b));
    let (_, file) = build(&entries, &custom)?;
    let table = open(file.clone(), &custom, 1 << 20)?;
    assert!(table.filter().is_none());
    assert_holds(&table, &entries, &order)?;
    assert!(lookup(&table, b"USER000002", 1 << 40)?.is_some());
    let error = open(file, &options(), 0).expect_err("another order of keys");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    Ok(())
}

/// An order of bytes that says, or does not, that keys which are equal are identical.
#[derive(Debug)]
struct Declaring(bool);

impl Comparator for Declaring {
    fn name(&self) -> &str {
        "test.Declaring"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        left.cmp(right)
    }

    fn equal_means_identical(&self) -> bool {
        self.0
    }
}

/// Only the name of an order of keys is kept with a table. What was hashed by one that said more is not looked for by hashes.
#[test]
fn a_table_with_hashes_can_be_read_by_an_order_that_allows_none() -> Result<()> {
    let of = |declared| TableOptions {
        order: KeyOrder::new(Arc::new(Declaring(declared))),
        block_bytes: 512,
        ..options()
    };
    let entries = entries(300);
    let (_, file) = build(&entries, &of(true))?;
    for declared in [true, false] {
        let table = open(file.clone(), &of(declared), 1 << 20)?;
        assert_eq!(table.filter().is_some(), declared);
        assert_holds(&table, &entries, &of(declared).order)?;
    }
    Ok(())
}
