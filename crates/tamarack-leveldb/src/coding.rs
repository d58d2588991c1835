//! How LevelDB writes numbers and texts: little-endian integers, varints of seven bits a byte, texts behind their lengths
//! (`doc/table_format.md` and `util/coding.cc` of LevelDB 1.23). Takes any bytes: what is too short is `None`.

/// Bytes that are taken from the front.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// All of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been taken.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been taken.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// One byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    /// Four bytes.
    pub fn fixed32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    /// Eight bytes.
    pub fn fixed64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    /// One to ten bytes.
    pub fn varint64(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// One to five bytes.
    pub fn varint32(&mut self) -> Option<u32> {
        u32::try_from(self.varint64()?).ok()
    }

    /// A length and so many bytes.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.varint32()?;
        self.bytes(len as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length() {
        for (bytes, value) in [
            (&[0][..], Some(0)),
            (&[0x7f], Some(127)),
            (&[0x80, 1], Some(128)),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], Some(u64::from(u32::MAX))),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], Some(u64::MAX)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], None),
            (&[0x80], None),
            (&[], None),
        ] {
            assert_eq!(Input::new(bytes).varint64(), value, "{bytes:?}");
        }
        assert_eq!(Input::new(&[0x80, 0x80, 0x80, 0x80, 0x10]).varint32(), None);
        assert_eq!(Input::new(&[1, 2, 3, 4, 5]).fixed32(), Some(0x0403_0201));
        assert_eq!(Input::new(&[1, 2, 3, 4, 5]).fixed64(), None);
    }

    #[test]
    fn texts_end_where_their_lengths_say() {
        let mut input = Input::new(b"\x03abc\x00\x05abc");
        assert_eq!(input.text(), Some(&b"abc"[..]));
        assert_eq!(input.text(), Some(&b""[..]));
        assert_eq!(input.text(), None);
    }
}
