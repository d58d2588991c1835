//! CRC-32C, and how LevelDB stores it (`util/crc32c.h` of LevelDB 1.23).

use crc_fast::{CrcAlgorithm, Digest};

/// The CRC-32C of `bytes` behind bytes that have `crc`: behind none, that is 0.
pub fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    digest.finalize() as u32
}

/// CRC-32C as LevelDB stores it: turned and shifted, so that a checksum of bytes which hold checksums is a good one.
pub fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_checksum_of_the_standard_in_one_piece_or_in_many() {
        let bytes: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(0, &bytes), 0x46dd_794e, "RFC 3720, B.4");
        assert_eq!(bytes.iter().fold(0, |crc, byte| crc32c(crc, &[*byte])), 0x46dd_794e);
        assert_eq!(crc32c(crc32c(0, &[]), b"123456789"), 0xe306_9283);
    }

    #[test]
    fn checksums_are_masked() {
        assert_eq!(masked(0), 0xa282_ead8);
        assert_eq!(masked(1), 0xa282_ead8 + (1 << 17));
    }
}
