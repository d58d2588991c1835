//! Reads records from CSV and TSV, quoted as RFC 4180 says. The `csv` crate splits the text; it takes a file
//! that ends within quotes for complete, so the bytes are watched on their way to it.

use std::io::Read;

use super::json_lines::decode;
use super::{Item, Record, RecordReader};
use crate::failure::{Failure, Result};
use crate::format::{Encoding, Encodings};

/// A reader of delimited text.
pub struct Delimited<R> {
    reader: csv::Reader<QuoteWatch<R>>,
    name: String,
    columns: Columns,
    row: csv::ByteRecord,
}

/// Where key and value are in a row, and how they are encoded.
#[derive(Debug, Clone, Copy)]
struct Columns {
    key: usize,
    value: usize,
    encodings: Encodings,
}

impl<R: Read> Delimited<R> {
    /// Reads from `source`, which errors call `name`. With `header` the first row names the columns.
    pub fn new(source: R, name: &str, delimiter: u8, header: bool, encodings: Encodings) -> Result<Self> {
        let reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(256 * 1024)
            .from_reader(QuoteWatch { source, delimiter, state: QuoteState::FieldStart, ended: false });
        let columns = Columns { key: 0, value: 1, encodings };
        let mut this = Self { reader, name: name.to_owned(), columns, row: csv::ByteRecord::new() };
        if header && this.read_row()? {
            this.columns = Columns::named(&this.row).ok_or_else(|| {
                Failure::Other(format!(
                    "{name}:1: the header names the columns `key` and `value`, each with `_hex` or `_base64` \
                     if it is encoded"
                ))
            })?;
        }
        Ok(this)
    }

    fn read_row(&mut self) -> Result<bool> {
        self.reader
            .read_byte_record(&mut self.row)
            .map_err(|error| Failure::Io { action: format!("read {}", self.name), source: error.into() })
    }
}

impl<R: Read> RecordReader for Delimited<R> {
    fn read(&mut self) -> Result<Option<Item>> {
        if !self.read_row()? {
            return Ok(None);
        }
        let position = self.row.position().expect("a row that was read has a position");
        let watch = self.reader.get_ref();
        let unclosed = watch.ended && watch.state == QuoteState::Quoted;
        let record = if unclosed {
            Err("a quote is opened and never closed".to_owned())
        } else {
            self.columns.record(&self.row)
        };
        Ok(Some(Item { offset: position.byte(), line: position.line(), record }))
    }
}

impl Columns {
    /// The columns that `header` names.
    fn named(header: &csv::ByteRecord) -> Option<Self> {
        let find = |name: &str| {
            header.iter().enumerate().find_map(|(index, field)| {
                let field = std::str::from_utf8(field).ok()?;
                Some((index, Encoding::of_field(field, name)?))
            })
        };
        let ((key, key_encoding), (value, value_encoding)) = (find("key")?, find("value")?);
        let encodings = Encodings { key: key_encoding, value: value_encoding };
        (header.len() == 2).then_some(Self { key, value, encodings })
    }

    fn record(&self, row: &csv::ByteRecord) -> std::result::Result<Record, String> {
        if row.len() != 2 {
            return Err(format!("a row of {} columns where there should be 2", row.len()));
        }
        let bytes = |index: usize, encoding: Encoding, name: &str| {
            let text = std::str::from_utf8(&row[index]).map_err(|_| {
                format!("the {name} is not UTF-8 (such keys and values are given as hex or base64)")
            })?;
            decode(encoding, text, name)
        };
        Ok(Record {
            key: bytes(self.key, self.encodings.key, "key")?,
            value: bytes(self.value, self.encodings.value, "value")?,
        })
    }
}

/// Follows the quotes in the bytes that pass through.
struct QuoteWatch<R> {
    source: R,
    delimiter: u8,
    state: QuoteState,
    /// Whether the end of the source was met: the row that is being read is then the last.
    ended: bool,
}

/// Where in a field the last byte was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    /// At the beginning; a quote here opens a quoted field.
    FieldStart,
    /// In a field without quotes.
    Plain,
    /// Between quotes.
    Quoted,
    /// Behind a quote that closes the field, unless another one follows.
    QuoteInQuoted,
}

impl<R> QuoteWatch<R> {
    fn follow(&mut self, byte: u8) {
        let ends_field = byte == self.delimiter || byte == b'\n' || byte == b'\r';
        self.state = match (self.state, byte) {
            (QuoteState::FieldStart, b'"') | (QuoteState::QuoteInQuoted, b'"') => QuoteState::Quoted,
            (QuoteState::Quoted, b'"') => QuoteState::QuoteInQuoted,
            (QuoteState::Quoted, _) => QuoteState::Quoted,
            _ if ends_field => QuoteState::FieldStart,
            _ => QuoteState::Plain,
        };
    }
}

impl<R: Read> Read for QuoteWatch<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.source.read(buffer)?;
        self.ended = length == 0;
        for byte in &buffer[..length] {
            self.follow(*byte);
        }
        Ok(length)
    }
}
