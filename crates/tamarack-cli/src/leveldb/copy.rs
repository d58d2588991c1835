//! Writes the entries of a LevelDB database into one of ours.

use tamarack::{Db, KEY_BYTES_MAX, VALUE_BYTES_MAX, WriteBatch, WriteOptions};
use tamarack_leveldb::Entries;

use super::digest::{Content, Digest};
use crate::failure::{Failure, Result};
use crate::format::Encoding;
use crate::output;
use crate::progress::{Notices, Progress};

/// A batch is written when it has this many bytes or operations.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_OPERATIONS: usize = 4096;

/// So many entries that cannot be stored are named when the import is refused.
const NAMED_MAX: usize = 20;

/// A key is shown up to so many bytes.
const SHOWN_BYTES: usize = 60;

/// One run of the copying.
pub struct Copy<'a> {
    /// Where the entries go.
    pub db: &'a Db,
    /// Shown meanwhile; counts bytes of the source.
    pub progress: &'a Progress,
    /// Hears of entries that are left out.
    pub notices: &'a mut Notices,
    /// Whether entries that cannot be stored are left out; otherwise they end the import.
    pub skip_too_long: bool,
    /// Bytes of the source that the progress shows.
    pub bytes_shown: u64,
}

impl Copy<'_> {
    /// Copies all entries, and gives what was written.
    ///
    /// # Errors
    /// Those of reading and writing; and an entry that is too long, after a look for all others that are.
    pub fn run(mut self, entries: &mut Entries) -> Result<Content> {
        let mut digest = Digest::default();
        let mut batch = WriteBatch::new();
        let mut refused: Vec<String> = Vec::new();
        let mut refused_total = 0_u64;
        while entries.advance()? {
            let (key, value) = (entries.key(), entries.value());
            if let Some(reason) = too_long(key, value) {
                if self.skip_too_long {
                    self.notices.add(self.progress, reason);
                } else {
                    refused_total += 1;
                    if refused.len() < NAMED_MAX {
                        refused.push(reason);
                    }
                }
            } else if refused.is_empty() {
                digest.add(key, value);
                batch.put(key, value)?;
            }
            self.show(entries.bytes_read());
            if batch.user_bytes() >= BATCH_BYTES || batch.len() >= BATCH_OPERATIONS {
                self.write(&mut batch)?;
                self.progress.note(|| output::plural(digest.content().entries, "entry"));
            }
        }
        if !refused.is_empty() {
            return Err(refusal(&refused, refused_total));
        }
        self.write(&mut batch)?;
        Ok(digest.content())
    }

    fn write(&self, batch: &mut WriteBatch) -> Result<()> {
        if !batch.is_empty() {
            self.db.write(batch, &WriteOptions::default())?;
            batch.clear();
        }
        Ok(())
    }

    fn show(&mut self, bytes_read: u64) {
        if bytes_read > self.bytes_shown {
            self.progress.advance(bytes_read - self.bytes_shown);
            self.bytes_shown = bytes_read;
        }
    }
}

/// Why an entry cannot be stored, if it cannot.
fn too_long(key: &[u8], value: &[u8]) -> Option<String> {
    let shown = &key[..key.len().min(SHOWN_BYTES)];
    let more = if shown.len() < key.len() { "..." } else { "" };
    let name = format!("{}{more}", Encoding::Utf8.line(shown));
    if key.len() > KEY_BYTES_MAX {
        return Some(format!(
            "the key {name} has {} bytes, more than the {KEY_BYTES_MAX} of a key",
            key.len()
        ));
    }
    let is_long = value.len() as u64 > VALUE_BYTES_MAX;
    is_long.then(|| {
        format!("the value of {name} has {} bytes, more than the {VALUE_BYTES_MAX} of a value", value.len())
    })
}

fn refusal(named: &[String], total: u64) -> Failure {
    let more = match total - named.len() as u64 {
        0 => String::new(),
        more => format!("; and {} more like these", output::count(more)),
    };
    Failure::Other(format!(
        "{}{more}; nothing was imported (--skip-too-long imports the others)",
        named.join("; ")
    ))
}
