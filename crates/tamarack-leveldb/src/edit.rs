//! The records of a manifest (`db/version_edit.cc`): fields behind tags, each of which changes what the database consists of.

use crate::coding::Input;
use crate::keys;

/// One field of an edit.
#[derive(Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// The comparator's name.
    Comparator(&'a [u8]),
    /// Logs from this number on have not become tables.
    LogNumber(u64),
    /// The number of a log that has not become a table either, in databases of early versions; 0 is none.
    PreviousLogNumber(u64),
    /// Files from this number on were not made when the edit was.
    NextFileNumber(u64),
    /// No operation in a table has a higher sequence number.
    LastSequence(u64),
    /// Where compactions of a level go on, which is nothing to a reader.
    CompactionPointer,
    /// A table that a level has no more.
    DeletedTable {
        /// The level.
        level: u32,
        /// The table's number.
        number: u64,
    },
    /// A table that a level has now.
    NewTable(NewTable),
}

/// A table as an edit describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTable {
    /// The level.
    pub level: u32,
    /// The table's number.
    pub number: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its first internal key.
    pub smallest: Vec<u8>,
    /// Its last internal key.
    pub largest: Vec<u8>,
}

/// A field that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub struct BadEdit {
    /// Its tag; 0 if that cannot be read.
    pub tag: u64,
    /// Whether it has a tag that RocksDB has given to a field.
    pub is_of_rocksdb: bool,
}

/// LevelDB's tags end before this one, and RocksDB's begin.
const ROCKSDB_TAGS: u64 = 10;

/// Takes the fields of an edit apart.
///
/// # Errors
/// [`BadEdit`] for the first that is not whole.
pub fn decode(record: &[u8]) -> Result<Vec<Field<'_>>, BadEdit> {
    let mut input = Input::new(record);
    let mut fields = Vec::new();
    while !input.is_empty() {
        let tag = input.varint64().unwrap_or_default();
        let bad = BadEdit { tag, is_of_rocksdb: tag >= ROCKSDB_TAGS };
        fields.push(field(tag, &mut input).ok_or(bad)?);
    }
    Ok(fields)
}

fn field<'a>(tag: u64, input: &mut Input<'a>) -> Option<Field<'a>> {
    Some(match tag {
        1 => Field::Comparator(input.text()?),
        2 => Field::LogNumber(input.varint64()?),
        3 => Field::NextFileNumber(input.varint64()?),
        4 => Field::LastSequence(input.varint64()?),
        5 => {
            input.varint32()?;
            internal_key(input)?;
            Field::CompactionPointer
        }
        6 => Field::DeletedTable { level: input.varint32()?, number: input.varint64()? },
        7 => Field::NewTable(NewTable {
            level: input.varint32()?,
            number: input.varint64()?,
            bytes: input.varint64()?,
            smallest: internal_key(input)?,
            largest: internal_key(input)?,
        }),
        9 => Field::PreviousLogNumber(input.varint64()?),
        _ => return None,
    })
}

fn internal_key(input: &mut Input<'_>) -> Option<Vec<u8>> {
    let key = input.text()?;
    keys::split(key)?;
    Some(key.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"\x09a\x01\x05\0\0\0\0\0\0";

    #[test]
    fn every_field_is_read() {
        let record = [
            &b"\x01\x03cmp\x02\x06\x09\x05\x03\x07\x04\x80\x01\x05\x02"[..],
            KEY,
            b"\x06\x03\x08\x07\x01\x0a\xe8\x07",
            KEY,
            KEY,
        ]
        .concat();
        let key = KEY[1..].to_vec();
        assert_eq!(
            decode(&record).expect("a whole edit"),
            [
                Field::Comparator(b"cmp"),
                Field::LogNumber(6),
                Field::PreviousLogNumber(5),
                Field::NextFileNumber(7),
                Field::LastSequence(128),
                Field::CompactionPointer,
                Field::DeletedTable { level: 3, number: 8 },
                Field::NewTable(NewTable {
                    level: 1,
                    number: 10,
                    bytes: 1000,
                    smallest: key.clone(),
                    largest: key
                }),
            ]
        );
        assert_eq!(decode(b""), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_edit_is_told() {
        assert_eq!(decode(b"\x02"), Err(BadEdit { tag: 2, is_of_rocksdb: false }));
        assert_eq!(decode(b"\x02\x06\x67\x00"), Err(BadEdit { tag: 103, is_of_rocksdb: true }));
        assert_eq!(decode(b"\x08\x00"), Err(BadEdit { tag: 8, is_of_rocksdb: false }));
        assert_eq!(decode(b"\x80"), Err(BadEdit { tag: 0, is_of_rocksdb: false }));
        // A key too short to be an internal one.
        assert_eq!(decode(b"\x05\x01\x03abc"), Err(BadEdit { tag: 5, is_of_rocksdb: false }));
    }
}
