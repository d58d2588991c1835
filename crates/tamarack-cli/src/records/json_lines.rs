//! Reads records from JSON lines: one object per line with a key and a value field, nothing else. A field's
//! name tells how its text is encoded, so each record can choose what suits its bytes.

use std::io::{BufRead, BufReader, Read};

use serde::Deserialize;

use super::{Item, Record, RecordReader};
use crate::failure::{Failure, Result};
use crate::format::Encoding;

/// A reader of JSON lines.
pub struct JsonLines<R> {
    source: BufReader<R>,
    name: String,
    offset: u64,
    line: u64,
    text: Vec<u8>,
}

/// The fields an object may have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    key: Option<String>,
    key_hex: Option<String>,
    key_base64: Option<String>,
    value: Option<String>,
    value_hex: Option<String>,
    value_base64: Option<String>,
}

impl<R: Read> JsonLines<R> {
    /// Reads from `source`, which errors call `name`.
    pub fn new(source: R, name: &str) -> Self {
        let source = BufReader::with_capacity(256 * 1024, source);
        Self { source, name: name.to_owned(), offset: 0, line: 0, text: Vec::new() }
    }
}

impl<R: Read> RecordReader for JsonLines<R> {
    fn read(&mut self) -> Result<Option<Item>> {
        loop {
            let offset = self.offset;
            self.text.clear();
            let length = self
                .source
                .read_until(b'\n', &mut self.text)
                .map_err(|source| Failure::Io { action: format!("read {}", self.name), source })?;
            if length == 0 {
                return Ok(None);
            }
            self.offset += length as u64;
            self.line += 1;
            let text = self.text.trim_ascii();
            if !text.is_empty() {
                return Ok(Some(Item { offset, line: self.line, record: parse(text) }));
            }
        }
    }
}

fn parse(text: &[u8]) -> std::result::Result<Record, String> {
    let fields: Fields = serde_json::from_slice(text).map_err(|error| format!("not a record: {error}"))?;
    let key = one("key", fields.key, fields.key_hex, fields.key_base64)?;
    let value = one("value", fields.value, fields.value_hex, fields.value_base64)?;
    Ok(Record { key, value })
}

/// The bytes of the one form of `name` that is there.
fn one(
    name: &str,
    text: Option<String>,
    hex: Option<String>,
    base64: Option<String>,
) -> std::result::Result<Vec<u8>, String> {
    match (text, hex, base64) {
        (Some(text), None, None) => Ok(text.into_bytes()),
        (None, Some(digits), None) => decode(Encoding::Hex, &digits, name),
        (None, None, Some(text)) => decode(Encoding::Base64, &text, name),
        (None, None, None) => Err(format!("there is no {name}")),
        _ => Err(format!("there is more than one {name}")),
    }
}

/// Decodes a field; what would be a usage error on the command line is a bad record here.
pub(super) fn decode(encoding: Encoding, text: &str, name: &str) -> std::result::Result<Vec<u8>, String> {
    encoding.decode(text, name).map_err(|failure| failure.to_string())
}
