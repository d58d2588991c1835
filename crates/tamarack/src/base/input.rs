//! Choices made from the bytes that a fuzzer gives. Whatever the bytes are, they mean something; when they are used up,
//! every choice is the first. For the targets of `fuzz` alone.

/// Bytes that decide.
#[derive(Debug, Clone)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Decisions by `bytes`, from the front.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether they are used up.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// At most `len` bytes.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        front
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// A number of two bytes.
    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A number of eight bytes.
    pub fn number(&mut self) -> u64 {
        let mut bytes = [0; 8];
        let taken = self.take(8);
        bytes[..taken.len()].copy_from_slice(taken);
        u64::from_le_bytes(bytes)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.short()) % bound
    }

    /// Bytes behind a length of one byte.
    pub fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte());
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_and_then_nothing_does() {
        let mut input = Input::new(&[1, 2, 0, 2, 7, 8, 9]);
        assert_eq!((input.byte(), input.below(5), input.bytes()), (1, 2, &[7, 8][..]));
        assert_eq!((input.rest(), input.short(), input.is_empty()), (&[9][..], 9, true));
        assert_eq!((input.byte(), input.short(), input.number(), input.bytes()), (0, 0, 0, &[][..]));
    }
}
