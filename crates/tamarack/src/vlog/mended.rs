//! Whether a relocation table of which one byte was mended may be believed.
//!
//! More damaged bytes may look like one: of a table of a million bytes, one time in sixteen
//! ([`mend_one_byte`](crate::base::checksum::mend_one_byte)). Whoever reads by a wrong place is told, for each record has its own key and checksum.
//! But compactions and collections write down where pointers lead to, and restoring the file would not mend that. So what a
//! mended table leads to is looked at before: a record's header has a checksum over the place it is at.

use super::format::{RECORD_HEADER_BYTES, check_head};
use super::open_segments::OpenSegment;
use super::reader::SegmentReader;
use super::relocation::Relocations;
use crate::base::error::{ErrorKind, Result};

/// File systems give back whole blocks, which have at least so many bytes.
const BLOCK_BYTES_MIN: u64 = 512;

impl SegmentReader {
    /// Whether a record begins wherever `relocations` lead to, or did before its range was given back.
    pub(super) fn lead_to_records(&self, segment: &OpenSegment, relocations: &Relocations) -> Result<bool> {
        relocations.present().try_fold(true, |all, offset| Ok(all && self.is_record(segment, offset.into())?))
    }

    fn is_record(&self, segment: &OpenSegment, offset: u64) -> Result<bool> {
        let mut head = vec![0; RECORD_HEADER_BYTES];
        // First what tells the length of the key.
        for _ in 0..2 {
            match self.read_bytes(segment, offset, &mut head) {
                Err(error) if error.kind() == ErrorKind::Corruption => return Ok(false),
                read => read?,
            }
            let key_len = usize::from(u16::from_le_bytes([head[12], head[13]]));
            head.resize(RECORD_HEADER_BYTES + key_len, 0);
        }
        // What was given back is whole blocks, of which some of the record's may be.
        let first = (BLOCK_BYTES_MIN - offset % BLOCK_BYTES_MIN).min(head.len() as u64);
        let end = offset + head.len() as u64;
        let last = (end - 1) % BLOCK_BYTES_MIN + 1;
        let was_given_back = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
        Ok(check_head(segment.seed(), offset, &head).is_ok()
            || was_given_back(&head[..first as usize])
            || was_given_back(&head[head.len() - (last as usize).min(head.len())..]))
    }
}
