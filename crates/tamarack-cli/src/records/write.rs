//! Writes records as text in any of the formats.

use std::io::Write;

use serde_json::Map;

use super::TextForm;
use crate::failure::{Failure, Result};
use crate::format::{Encoding, Encodings};

/// A writer of records. Nothing is complete before [`RecordWriter::finish`].
pub struct RecordWriter<W: Write> {
    target: Target<W>,
    encodings: Encodings,
}

enum Target<W: Write> {
    JsonLines(W),
    Delimited(Box<csv::Writer<W>>),
}

impl<W: Write> RecordWriter<W> {
    /// Begins a file of records: writes the header if the form has one.
    pub fn start(form: TextForm, sink: W) -> Result<Self> {
        let mut this = Self::resume(form, sink);
        if let (true, Target::Delimited(writer)) = (form.header, &mut this.target) {
            let names = [form.encodings.key.field_name("key"), form.encodings.value.field_name("value")];
            writer.write_record(&names).map_err(csv_failure)?;
        }
        Ok(this)
    }

    /// Goes on behind records that are already there.
    pub fn resume(form: TextForm, sink: W) -> Self {
        let target = match form.delimiter() {
            None => Target::JsonLines(sink),
            Some(delimiter) => Target::Delimited(Box::new(
                csv::WriterBuilder::new().delimiter(delimiter).has_headers(false).from_writer(sink),
            )),
        };
        Self { target, encodings: form.encodings }
    }

    /// Writes one record.
    pub fn write(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match &mut self.target {
            Target::JsonLines(sink) => {
                let mut object = Map::new();
                self.encodings.key.insert_json(&mut object, "key", key);
                self.encodings.value.insert_json(&mut object, "value", value);
                let mut line = serde_json::to_vec(&object).expect("a map of strings serialises");
                line.push(b'\n');
                sink.write_all(&line).map_err(Failure::output)
            }
            Target::Delimited(writer) => {
                let key_text = column(self.encodings.key, key, key, "key")?;
                let value_text = column(self.encodings.value, value, key, "value")?;
                writer.write_record([key_text, value_text]).map_err(csv_failure)
            }
        }
    }

    /// Hands everything written to the sink and flushes it.
    pub fn finish(self) -> Result<()> {
        match self.target {
            Target::JsonLines(mut sink) => sink.flush().map_err(Failure::output),
            Target::Delimited(mut writer) => writer.flush().map_err(Failure::output),
        }
    }
}

/// The text of one column. Columns cannot say that they are encoded differently from the rest, so bytes that
/// the encoding cannot express are refused.
fn column(encoding: Encoding, bytes: &[u8], key: &[u8], name: &str) -> Result<String> {
    encoding.encode_exact(bytes).ok_or_else(|| {
        Failure::Other(format!(
            "the {name} of record {} is not UTF-8: use --{name}-format hex or base64, or --format jsonl",
            Encoding::Utf8.line(key)
        ))
    })
}

fn csv_failure(error: csv::Error) -> Failure {
    Failure::output(error.into())
}
