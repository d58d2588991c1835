//! Finds the place at which an interrupted file of records can be continued.
//!
//! The last record of the file may be cut short without looking so (a quoted field ends at any byte), so it is
//! never trusted: the file is cut before it, and writing goes on behind the record before that.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::TextForm;
use crate::failure::{Failure, Result};

/// Where to go on.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Continuation {
    /// Length of the file up to which it is complete.
    pub length: u64,
    /// Whether the header is missing.
    pub at_start: bool,
    /// Key of the last record within that length.
    pub last_key: Option<Vec<u8>>,
    /// Records within that length.
    pub records: u64,
}

/// Reads `file` from its beginning and finds where to go on.
pub fn continuation(form: TextForm, file: &mut File, path: &Path) -> Result<Continuation> {
    if !first_line_is_complete(file).map_err(|error| Failure::io("read", path, error))? {
        return Ok(Continuation { at_start: true, ..Continuation::default() });
    }
    let name = path.display().to_string();
    let mut reader = form.reader(&mut *file, &name)?;
    let mut found = Continuation::default();
    let mut pending: Option<super::Item> = None;
    while let Some(item) = reader.read()? {
        if let Some(before) = pending.replace(item) {
            let record = before.record.map_err(|reason| {
                Failure::Other(format!("{name}:{}: cannot continue this file: {reason}", before.line))
            })?;
            found.last_key = Some(record.key);
            found.records += 1;
        }
    }
    drop(reader);
    found.length = match pending {
        Some(last) => last.offset,
        None => file.metadata().map_err(|error| Failure::io("read", path, error))?.len(),
    };
    found.at_start = found.length == 0;
    Ok(found)
}

/// Whether there is a whole first line: a header that was cut short cannot be told from a wrong one.
fn first_line_is_complete(file: &mut File) -> std::io::Result<bool> {
    let mut byte = [0; 4096];
    loop {
        let length = file.read(&mut byte)?;
        let complete = byte[..length].contains(&b'\n');
        if complete || length == 0 {
            file.seek(SeekFrom::Start(0))?;
            return Ok(complete);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Encodings;
    use crate::records::TextFormat;
    use crate::records::write::RecordWriter;

    /// Cuts a file at every byte, continues it, and expects the whole file again.
    fn continues_from_every_cut(format: TextFormat, header: bool) {
        let form = TextForm { format, header, encodings: Encodings::default() };
        let records: Vec<(String, String)> =
            (0..6).map(|number| (format!("k{number}"), format!("line\n\"{number}\",\tend\n"))).collect();
        let mut whole = Vec::new();
        let mut writer = RecordWriter::start(form, &mut whole).expect("memory takes it");
        for (key, value) in &records {
            writer.write(key.as_bytes(), value.as_bytes()).expect("memory takes it");
        }
        writer.finish().expect("memory takes it");

        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("dump");
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).expect("the file is ours");
            let mut file = File::open(&path).expect("it was just written");
            let found = continuation(form, &mut file, &path).expect("our own output");
            assert!(found.length <= cut as u64);
            let mut bytes = whole[..found.length as usize].to_vec();
            let mut writer = if found.at_start {
                RecordWriter::start(form, &mut bytes).expect("memory takes it")
            } else {
                RecordWriter::resume(form, &mut bytes)
            };
            let rest = records.iter().filter(|(key, _)| {
                found.last_key.as_ref().is_none_or(|last| key.as_bytes() > last.as_slice())
            });
            for (key, value) in rest {
                writer.write(key.as_bytes(), value.as_bytes()).expect("memory takes it");
            }
            writer.finish().expect("memory takes it");
            assert_eq!(bytes, whole, "cut at {cut}");
        }
    }

    #[test]
    fn json_lines_continue_from_every_cut() {
        continues_from_every_cut(TextFormat::Jsonl, false);
    }

    #[test]
    fn delimited_text_continues_from_every_cut() {
        for header in [false, true] {
            continues_from_every_cut(TextFormat::Csv, header);
            continues_from_every_cut(TextFormat::Tsv, header);
        }
    }

    #[test]
    fn a_file_of_something_else_is_not_cut() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("letter");
        std::fs::write(&path, "Dear reader,\nthis is no dump.\nYours\n").expect("the directory is ours");
        let form = TextForm { format: TextFormat::Jsonl, header: false, encodings: Encodings::default() };
        let mut file = File::open(&path).expect("it was just written");
        assert!(continuation(form, &mut file, &path).is_err());
    }
}
