//! The records of a log (`db/write_batch.cc`): a sequence number, a count, and so many operations, the first of which has
//! that number.

use crate::coding::Input;
use crate::keys::{Kind, SEQUENCE_MAX, Trailer};

/// Bytes in front of the operations.
const HEADER: usize = 12;

/// A batch that is whole.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    sequence: u64,
    count: u32,
    operations: &'a [u8],
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation<'a> {
    /// The user's key.
    pub key: &'a [u8],
    /// Its place in the order of all operations, and what it was.
    pub trailer: Trailer,
    /// The value; empty for a deletion.
    pub value: &'a [u8],
}

impl<'a> Batch<'a> {
    /// The batch in `record`, after a look at every operation.
    ///
    /// # Errors
    /// What was found in place of a batch.
    pub fn decode(record: &'a [u8]) -> Result<Self, String> {
        let mut input = Input::new(record);
        let (Some(sequence), Some(count)) = (input.fixed64(), input.fixed32()) else {
            return Err(format!("{} bytes, fewer than the {HEADER} in front of one", record.len()));
        };
        let batch = Self { sequence, count, operations: input.rest() };
        if sequence.checked_add(u64::from(count)).is_none_or(|end| end > SEQUENCE_MAX) {
            return Err(format!("the sequence number {sequence}"));
        }
        for number in 0..count {
            if take(&mut input).is_none() {
                return Err(format!("one of which operation {number} of {count} is not whole"));
            }
        }
        if !input.is_empty() {
            return Err(format!("{} bytes behind its {count} operations", input.rest().len()));
        }
        Ok(batch)
    }

    /// The number of the first operation.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The number of operations.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The operations in their order.
    pub fn operations(&self) -> impl Iterator<Item = Operation<'a>> {
        let mut input = Input::new(self.operations);
        (self.sequence..).map_while(move |sequence| {
            let (key, value) = take(&mut input)?;
            let kind = if value.is_some() { Kind::Value } else { Kind::Deletion };
            Some(Operation { key, trailer: Trailer::new(sequence, kind), value: value.unwrap_or_default() })
        })
    }
}

/// The next key, with its value unless the operation is a deletion.
fn take<'a>(input: &mut Input<'a>) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    match input.byte()? {
        0 => Some((input.text()?, None)),
        1 => Some((input.text()?, Some(input.text()?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts `a`, deletes the empty key, puts `b` with an empty value, from sequence number 5 on.
    const BATCH: &[u8] = b"\x05\0\0\0\0\0\0\0\x03\0\0\0\x01\x01a\x02va\x00\x00\x01\x01b\x00";

    #[test]
    fn operations_have_numbers_of_their_own() {
        let batch = Batch::decode(BATCH).expect("whole");
        assert_eq!((batch.sequence(), batch.count()), (5, 3));
        let operations: Vec<_> = batch.operations().map(|one| (one.key, one.trailer, one.value)).collect();
        assert_eq!(
            operations,
            [
                (&b"a"[..], Trailer::new(5, Kind::Value), &b"va"[..]),
                (b"", Trailer::new(6, Kind::Deletion), b""),
                (b"b", Trailer::new(7, Kind::Value), b""),
            ]
        );
    }

    #[test]
    fn a_batch_is_whole_or_none() {
        for len in 0..BATCH.len() {
            assert!(Batch::decode(&BATCH[..len]).is_err(), "{len} bytes");
        }
        assert!(Batch::decode(&[BATCH, b"\x00"].concat()).is_err(), "bytes behind");
        for (at, byte) in [(8, 2), (8, 4), (12, 2), (7, 0xff)] {
            let mut bytes = BATCH.to_vec();
            bytes[at] = byte;
            assert!(Batch::decode(&bytes).is_err(), "byte {at} is {byte}");
        }
        assert_eq!(Batch::decode(&[0; 12]).expect("no operations").operations().count(), 0);
    }
}
