//! What a sealed segment looks like to who walks over keys: its key range, and whether its records lie in the order of
//! their keys.
//!
//! Read from the footer and a few records. Never writes.

use super::format::{RECORD_HEADER_BYTES, RecordHeader, RecordKind, check_head};
use super::open_segments::{OpenSegment, read_footer, read_header};
use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, SegmentId};
use crate::base::keys::KeyOrder;
use crate::env::read_exact_at;

/// So many records of a segment are looked at. In a random order, half of them have a smaller key than the one before.
const SAMPLES: usize = 32;

/// The shape of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Its smallest key.
    pub smallest: Vec<u8>,
    /// Its largest key.
    pub largest: Vec<u8>,
    /// Some of its keys, in the order of their places.
    pub samples: Vec<Vec<u8>>,
}

impl Shape {
    /// Bytes of a key, in the mean of those that are known.
    pub fn key_bytes(&self) -> u64 {
        let known = self.samples.iter().chain([&self.smallest, &self.largest]);
        known.map(|key| key.len() as u64).sum::<u64>().div_ceil(self.samples.len() as u64 + 2)
    }

    /// Reads the shape of `segment`, which is segment `id` of `cube`; of records that were `given_back` nothing is left to
    /// be looked at. `None` if it has no key, or no footer that is whole.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn read(
        segment: &OpenSegment,
        cube: CubeId,
        id: SegmentId,
        given_back: impl Fn(u32) -> bool,
    ) -> Result<Option<Self>> {
        let (file, path) = (segment.file(), segment.path());
        let header = read_header(file, path, cube, id)?;
        let len = file.len().map_err(|error| Error::io("read the length of", path, error))?;
        let Some(footer) = read_footer(file, path, &header, len)? else { return Ok(None) };
        let (Some(smallest), Some(largest)) = (footer.smallest, footer.largest) else { return Ok(None) };
        let step = footer.offsets.len().div_ceil(SAMPLES).max(1);
        let mut samples = Vec::with_capacity(SAMPLES);
        for &offset in footer.offsets.iter().step_by(step).filter(|&&offset| !given_back(offset)) {
            samples.extend(key_of_put(segment, u64::from(offset), footer.records_end)?);
        }
        Ok(Some(Self { smallest, largest, samples }))
    }

    /// About how many sorted runs follow one another in it.
    pub fn runs(&self, order: &KeyOrder) -> u32 {
        let descends = |pair: &&[Vec<u8>]| order.compare_user(&pair[0], &pair[1]).is_gt();
        1 + self.samples.windows(2).filter(descends).count() as u32
    }
}

/// The key of the record at `offset`, if it is a put.
fn key_of_put(segment: &OpenSegment, offset: u64, end: u64) -> Result<Option<Vec<u8>>> {
    let corrupt =
        |expected: String, found: String| Error::corruption(segment.path(), offset, expected, found);
    let read = |bytes: &mut [u8]| {
        let read = read_exact_at(segment.file(), bytes, offset);
        read.map_err(|error| Error::io("read", segment.path(), error))
    };
    let mut head = vec![0; RECORD_HEADER_BYTES];
    read(&mut head)?;
    let header = RecordHeader::decode(head.first_chunk().expect("that long"))
        .map_err(|found| corrupt("a record".into(), found))?;
    if header.kind != RecordKind::Put {
        return Ok(None);
    }
    head.resize(RECORD_HEADER_BYTES + usize::from(header.key_len), 0);
    if offset + head.len() as u64 > end {
        return Err(corrupt("a record that ends inside the segment".into(), "one that does not".into()));
    }
    read(&mut head)?;
    check_head(segment.seed(), offset, &head).map_err(|(stored, computed)| {
        corrupt(format!("record checksum {stored:#010x}"), format!("{computed:#010x}"))
    })?;
    Ok(Some(head.split_off(RECORD_HEADER_BYTES)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::comparator::{Bytewise, Descending};
    use crate::base::sync::Arc;

    fn shape(samples: &[&str]) -> Shape {
        let samples: Vec<Vec<u8>> = samples.iter().map(|key| key.as_bytes().to_vec()).collect();
        Shape { smallest: b"a".to_vec(), largest: b"z".to_vec(), samples }
    }

    #[test]
    fn a_run_ends_where_a_key_is_smaller_than_the_one_before() {
        let ascending = KeyOrder::new(Arc::new(Bytewise));
        let runs = |samples: &[&str]| shape(samples).runs(&ascending);
        assert_eq!(runs(&[]), 1);
        assert_eq!(runs(&["a", "b", "b", "c"]), 1, "versions of a key lie beside each other");
        assert_eq!(runs(&["a", "m", "b", "n"]), 2);
        assert_eq!(runs(&["d", "c", "b", "a"]), 4);
        assert_eq!(shape(&["d", "c", "b", "a"]).runs(&KeyOrder::new(Arc::new(Descending))), 1);
    }
}
