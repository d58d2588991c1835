//! Little-endian integers and LEB128 varints. Every decoder takes bytes off the front of a slice and returns
//! `None` instead of reading past its end; format modules turn that into a corruption error with a place.

/// Appends a varint: seven bits a byte, low bits first, the high bit set on all but the last byte.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes of a varint.
pub fn varint_len(value: u64) -> usize {
    (value | 1).ilog2() as usize / 7 + 1
}

/// Takes a varint off the front. `None` if the bytes end early, or encode more than 64 bits.
pub fn take_varint(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for (index, &byte) in input.iter().take(10).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if index == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            *input = &input[index + 1..];
            return Some(value);
        }
    }
    None
}

/// Takes a varint that must fit 32 bits.
#[inline]
pub fn take_varint_u32(input: &mut &[u8]) -> Option<u32> {
    // Short ones without a look at how long they may be: walks take several for each entry.
    let mut value = 0;
    for index in 0..4 {
        let byte = *input.get(index)?;
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            *input = &input[index + 1..];
            return Some(value);
        }
    }
    take_varint(input)?.try_into().ok()
}

/// Appends a length as a varint, then the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes bytes written by [`put_bytes`].
pub fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take_varint(input)?).ok()?;
    take(input, len)
}

/// Takes exactly `len` bytes.
pub fn take<'a>(input: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (front, rest) = input.split_at_checked(len)?;
    *input = rest;
    Some(front)
}

/// Takes one byte.
pub fn take_u8(input: &mut &[u8]) -> Option<u8> {
    take(input, 1).map(|bytes| bytes[0])
}

/// Takes a little-endian `u32`.
pub fn take_u32(input: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(input, 4)?.try_into().ok()?))
}

/// Takes a little-endian `u64`.
pub fn take_u64(input: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(take(input, 8)?.try_into().ok()?))
}

/// The little-endian `u32` at `at`. The caller has checked that it lies inside `bytes`.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The little-endian `u64` at `at`. The caller has checked that it lies inside `bytes`.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_round_trip(value: u64) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut input = &out[..];
            prop_assert_eq!(take_varint(&mut input), Some(value));
            prop_assert!(input.is_empty());
            prop_assert_eq!(take_varint(&mut &out[..out.len() - 1]), None);
        }
    }

    #[test]
    fn overlong_varints_are_refused() {
        assert_eq!(take_varint(&mut &[0xff; 11][..]), None);
        assert_eq!(take_varint(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]), None);
    }

    #[test]
    fn lengths_past_the_end_are_refused() {
        assert_eq!(take_bytes(&mut &[5, 1, 2][..]), None);
        assert_eq!(take_u64(&mut &[0; 7][..]), None);
    }
}
