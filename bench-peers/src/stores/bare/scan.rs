//! Scans: the values of the keys from one on, in the order of these, wherever they lie.

use tamarack_bench::Cursor;

/// What a scan has read: all of it together, before its first entry is shown.
pub struct Scan {
    /// Of those that have not been shown, in the order of the keys.
    rest: std::vec::IntoIter<(Vec<u8>, Vec<u8>)>,
    /// The one that it is at.
    at: (Vec<u8>, Vec<u8>),
}

impl Scan {
    /// One of these keys and their values.
    pub fn new(entries: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        Self { rest: entries.into_iter(), at: Default::default() }
    }
}

impl Cursor for Scan {
    type Error = String;

    fn advance(&mut self) -> Result<bool, String> {
        let next = self.rest.next();
        let is_there = next.is_some();
        self.at = next.unwrap_or_default();
        Ok(is_there)
    }

    fn key(&self) -> &[u8] {
        &self.at.0
    }

    fn value(&mut self) -> Result<&[u8], String> {
        Ok(&self.at.1)
    }
}
