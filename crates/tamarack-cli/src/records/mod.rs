//! Text files of records: JSON lines, CSV and TSV. Reading gives every record its place in the file, so that
//! errors can name a line and an interrupted file can be continued; writing refuses what it cannot express.
//!
//! | format  | a record                                         | bytes that are not UTF-8                  |
//! |---------|--------------------------------------------------|-------------------------------------------|
//! | `jsonl` | `{"key":"a","value":"b"}`                        | `key_hex`, `key_base64`, `value_hex`, ... |
//! | `csv`   | key, comma, value, quoted where needed (RFC 4180) | only with `--key-format hex` or `base64`  |
//! | `tsv`   | the same with a tab in place of the comma        | likewise                                  |

mod delimited;
mod json_lines;
pub mod resume;
pub mod write;

use std::io::Read;
use std::path::Path;

use clap::{Args, ValueEnum};

use crate::failure::Result;
use crate::format::Encodings;

/// One key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

/// One record as read, or why the text is none.
#[derive(Debug)]
pub struct Item {
    /// Byte offset of the record's first byte.
    pub offset: u64,
    /// Line of the record's first byte, from 1.
    pub line: u64,
    /// The record, or what is wrong with the text.
    pub record: std::result::Result<Record, String>,
}

/// Reads records one after another.
pub trait RecordReader {
    /// The next record, `None` at the end. An error means that the file could not be read at all; a text that
    /// is no record is an [`Item`], and reading goes on behind it.
    fn read(&mut self) -> Result<Option<Item>>;
}

/// A text format for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// One JSON object per line
    Jsonl,
    /// Comma-separated values
    Csv,
    /// Tab-separated values
    Tsv,
}

/// How records are written as text, as given on the command line.
#[derive(Debug, Clone, Args)]
pub struct TextArguments {
    /// Text format; by default what the file's name ends in, else jsonl
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<TextFormat>,

    /// For csv and tsv: the first line names the columns (`key`, `value`, with `_hex` or `_base64` if encoded)
    #[arg(long)]
    pub header: bool,

    /// How keys and values are written in csv and tsv, and which field names jsonl output uses
    #[command(flatten)]
    pub encodings: Encodings,
}

/// The text form of a file of records, settled.
#[derive(Debug, Clone, Copy)]
pub struct TextForm {
    /// The format.
    pub format: TextFormat,
    /// Whether csv and tsv begin with the names of the columns.
    pub header: bool,
    /// How keys and values are written.
    pub encodings: Encodings,
}

impl TextArguments {
    /// The form for the file at `path` (`None` for a standard stream).
    pub fn form(&self, path: Option<&Path>) -> TextForm {
        let by_name = path.and_then(|path| path.extension()).and_then(|extension| extension.to_str());
        let format = self.format.unwrap_or(match by_name {
            Some("csv") => TextFormat::Csv,
            Some("tsv") => TextFormat::Tsv,
            _ => TextFormat::Jsonl,
        });
        TextForm { format, header: self.header, encodings: self.encodings }
    }
}

impl TextForm {
    /// The byte between columns, for the formats that have columns.
    fn delimiter(self) -> Option<u8> {
        match self.format {
            TextFormat::Jsonl => None,
            TextFormat::Csv => Some(b','),
            TextFormat::Tsv => Some(b'\t'),
        }
    }

    /// Reads records of this form from `source`; `name` names it in errors.
    pub fn reader<'a>(self, source: impl Read + 'a, name: &str) -> Result<Box<dyn RecordReader + 'a>> {
        Ok(match self.delimiter() {
            None => Box::new(json_lines::JsonLines::new(source, name)),
            Some(delimiter) => {
                Box::new(delimited::Delimited::new(source, name, delimiter, self.header, self.encodings)?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::write::RecordWriter;
    use super::*;
    use crate::format::Encoding;
    use proptest::prelude::*;

    fn field() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            any::<Vec<u8>>(),
            any::<String>().prop_map(String::into_bytes),
            "[ab\"',\t\r\n\\\\ ]{0,8}".prop_map(String::into_bytes),
        ]
    }

    fn form() -> impl Strategy<Value = TextForm> {
        let encoding = || prop_oneof![Just(Encoding::Utf8), Just(Encoding::Hex), Just(Encoding::Base64)];
        let format = prop_oneof![Just(TextFormat::Jsonl), Just(TextFormat::Csv), Just(TextFormat::Tsv)];
        (format, any::<bool>(), encoding(), encoding()).prop_map(|(format, header, key, value)| TextForm {
            format,
            header,
            encodings: Encodings { key, value },
        })
    }

    fn write(form: TextForm, records: &[Record]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut writer = RecordWriter::start(form, &mut bytes)?;
        for record in records {
            writer.write(&record.key, &record.value)?;
        }
        writer.finish()?;
        Ok(bytes)
    }

    fn read(form: TextForm, bytes: &[u8]) -> Vec<Item> {
        let mut reader = form.reader(bytes, "input").expect("a good header");
        std::iter::from_fn(|| reader.read().expect("memory can be read")).collect()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_or_was_refused(
            form in form(),
            records in proptest::collection::vec(
                (field(), field()).prop_map(|(key, value)| Record { key, value }), 0..8),
        ) {
            let all_text = |encoding: Encoding, bytes: &dyn Fn(&Record) -> &[u8]| {
                encoding != Encoding::Utf8
                    || records.iter().all(|record| std::str::from_utf8(bytes(record)).is_ok())
            };
            let expressible = form.format == TextFormat::Jsonl
                || (all_text(form.encodings.key, &|record| &record.key)
                    && all_text(form.encodings.value, &|record| &record.value));
            match write(form, &records) {
                Err(_) => prop_assert!(!expressible, "expressible records were refused"),
                Ok(bytes) => {
                    prop_assert!(expressible, "inexpressible records were written");
                    let back: Vec<Record> = read(form, &bytes)
                        .into_iter()
                        .map(|item| item.record.expect("our own output is well formed"))
                        .collect();
                    prop_assert_eq!(back, records);
                }
            }
        }

        #[test]
        fn any_text_is_read_without_a_panic(form in form(), bytes in any::<Vec<u8>>()) {
            if let Ok(mut reader) = form.reader(bytes.as_slice(), "input") {
                while reader.read().expect("memory can be read").is_some() {}
            }
        }
    }

    #[test]
    fn bad_lines_have_their_number_and_reading_goes_on() {
        let plain = Encodings::default();
        let jsonl = TextForm { format: TextFormat::Jsonl, header: false, encodings: plain };
        let text = b"{\"key\":\"a\",\"value\":\"1\"}\n\n{\"key\":\"b\"}\nnonsense\n{\"key\":\"c\",\"value\":\"3\"}\n";
        let items = read(jsonl, text);
        let seen: Vec<(u64, bool)> = items.iter().map(|item| (item.line, item.record.is_ok())).collect();
        assert_eq!(seen, [(1, true), (3, false), (4, false), (5, true)]);

        let tsv = TextForm { format: TextFormat::Tsv, header: false, encodings: plain };
        let items = read(tsv, b"a\t1\nb\nc\t3\t4\n\"d\n\"\t5\ne\t6\n");
        let seen: Vec<(u64, bool)> = items.iter().map(|item| (item.line, item.record.is_ok())).collect();
        assert_eq!(seen, [(1, true), (2, false), (3, false), (4, true), (6, true)]);
    }

    #[test]
    fn a_quote_that_is_never_closed_is_an_error() {
        let csv = TextForm { format: TextFormat::Csv, header: false, encodings: Encodings::default() };
        let items = read(csv, b"a,1\nb,\"2");
        assert!(items[0].record.is_ok());
        assert!(items[1].record.as_ref().is_err_and(|reason| reason.contains("quote")), "{items:?}");
    }

    #[test]
    fn the_header_decides_order_and_encoding() {
        let csv = TextForm { format: TextFormat::Csv, header: true, encodings: Encodings::default() };
        let items = read(csv, b"value_hex,key\nff00,a\n");
        let record = items[0].record.as_ref().expect("well formed");
        assert_eq!((record.key.as_slice(), record.value.as_slice()), (&b"a"[..], &b"\xff\0"[..]));
        assert!(csv.reader(&b"name,number\na,1\n"[..], "input").is_err());
    }

    #[test]
    fn the_format_follows_the_name() {
        let arguments = TextArguments { format: None, header: false, encodings: Encodings::default() };
        assert_eq!(arguments.form(Some(Path::new("a.csv"))).format, TextFormat::Csv);
        assert_eq!(arguments.form(Some(Path::new("a.tsv"))).format, TextFormat::Tsv);
        assert_eq!(arguments.form(Some(Path::new("a.txt"))).format, TextFormat::Jsonl);
        assert_eq!(arguments.form(None).format, TextFormat::Jsonl);
    }
}
