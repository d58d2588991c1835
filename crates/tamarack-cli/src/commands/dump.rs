//! `dump`: writes the entries of a database as a text file of records, in key order.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde_json::json;
use tamarack::{Db, Iter, IterOptions};

use crate::failure::{Failure, Outcome, Result};
use crate::open::Database;
use crate::output::{self, Output};
use crate::progress::{Progress, Unit};
use crate::range::RangeArguments;
use crate::records::resume::{Continuation, continuation};
use crate::records::write::RecordWriter;
use crate::records::{TextArguments, TextForm};

/// Write the entries of a database as a text file
#[derive(Debug, Args)]
pub struct Dump {
    #[command(flatten)]
    database: Database,

    /// File to write; `-` is standard output
    #[arg(default_value = "-")]
    file: PathBuf,

    #[command(flatten)]
    text: TextArguments,

    #[command(flatten)]
    range: RangeArguments,

    /// Go on with an interrupted dump to the same file, behind its last complete record
    #[arg(long)]
    resume: bool,
}

impl Dump {
    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let to_stdout = self.file.as_os_str() == "-";
        if to_stdout && self.resume {
            return Err(Failure::Usage("--resume needs a file to go on with".into()));
        }
        // Before the file is emptied.
        let range = self.range.range(self.text.encodings.key)?;
        let range = IterOptions { start: range.start, end: range.end, ..IterOptions::default() };
        let db = self.database.open_for_reading()?;
        if to_stdout {
            let form = self.text.form(None);
            let sink = BufWriter::new(std::io::stdout().lock());
            copy(&db, &range, RecordWriter::start(form, sink)?, None)?;
        } else {
            self.dump_to_file(&db, &range, json)?;
        }
        db.close()?;
        Ok(Outcome::Done)
    }

    fn dump_to_file(&self, db: &Db, range: &IterOptions, json: bool) -> Result<()> {
        let form = self.text.form(Some(&self.file));
        let started = Instant::now();
        let (file, from) = self.open_file(form)?;
        let sink = BufWriter::with_capacity(256 * 1024, &file);
        let writer =
            if from.at_start { RecordWriter::start(form, sink)? } else { RecordWriter::resume(form, sink) };
        let records = copy(db, range, writer, from.last_key.as_deref())
            .map_err(|failure| named(failure, &self.file))?;
        file.sync_all().map_err(|error| Failure::io("sync", &self.file, error))?;
        let seconds = started.elapsed().as_secs_f64();
        let mut output = Output::new();
        if json {
            output.json(&json!({ "dumped": records, "already_there": from.records, "seconds": seconds }))?;
        } else {
            let already = match from.records {
                0 => String::new(),
                number => format!("; {} already there", output::count(number)),
            };
            output.line(&format!(
                "dumped {} in {}{already}",
                output::plural(records, "record"),
                output::seconds(seconds)
            ))?;
        }
        output.finish()
    }

    /// The file, positioned where writing begins.
    fn open_file(&self, form: TextForm) -> Result<(File, Continuation)> {
        let failed = |verb: &str, error| Failure::io(verb, &self.file, error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(!self.resume)
            .open(&self.file)
            .map_err(|error| failed("open", error))?;
        let from = continuation(form, &mut file, &self.file)?;
        file.set_len(from.length).map_err(|error| failed("shorten", error))?;
        file.seek(SeekFrom::Start(from.length)).map_err(|error| failed("seek in", error))?;
        Ok((file, from))
    }
}

/// Writes every entry of `range` behind `after`, and returns how many there were.
fn copy<W: Write>(
    db: &Db,
    range: &IterOptions,
    mut writer: RecordWriter<W>,
    after: Option<&[u8]>,
) -> Result<u64> {
    let mut iter = db.iter(range)?;
    seek_behind(&mut iter, after)?;
    let progress = Progress::start("dump", Unit::Items, None);
    let mut records = 0;
    let mut key = Vec::new();
    while iter.valid() {
        key.clear();
        key.extend_from_slice(iter.key());
        writer.write(&key, iter.value()?)?;
        records += 1;
        progress.advance(1);
        iter.next()?;
    }
    writer.finish()?;
    Ok(records)
}

fn seek_behind(iter: &mut Iter, after: Option<&[u8]>) -> Result<()> {
    let Some(after) = after else { return Ok(iter.seek_to_first()?) };
    iter.seek(after)?;
    if iter.valid() && iter.key() == after {
        iter.next()?;
    }
    Ok(())
}

/// The writer knows only of standard output; says which file it really was.
fn named(failure: Failure, path: &Path) -> Failure {
    match failure {
        Failure::Io { source, .. } => Failure::io("write", path, source),
        other => other,
    }
}
