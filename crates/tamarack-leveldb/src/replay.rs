//! Replays logs: every operation in them, in the order in which they were done.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::batch::Batch;
use crate::context::Context;
use crate::error::{Damage, Result};
use crate::log::{Item, LogReader};
use crate::loss::Covers;
use crate::remark::Remark;
use crate::sorter::Sorter;

/// Where a log ends in the middle of a record.
struct Torn {
    file: PathBuf,
    offset: u64,
    bytes: u64,
}

/// Replays some logs.
pub struct Replay<'a> {
    context: &'a mut Context,
    sorter: &'a mut Sorter,
    /// Those behind which there was no record.
    torn: Vec<Torn>,
    /// The sequence number of the next operation, if none is missing.
    next_sequence: Option<u64>,
}

/// Adds all operations of `logs` to `sorter`; `progress` hears of the bytes read.
///
/// # Errors
/// [`Damage`](crate::Error::Damage) unless it is left out; [`Io`](crate::Error::Io).
pub fn replay(
    logs: &BTreeMap<u64, PathBuf>,
    context: &mut Context,
    sorter: &mut Sorter,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let mut replay = Replay { context, sorter, torn: Vec::new(), next_sequence: None };
    for path in logs.values() {
        let opened = LogReader::open(path);
        let Some(reader) = replay.context.tolerate(opened, 0, || Covers::Operations)? else { continue };
        replay.log(reader, progress)?;
    }
    for Torn { file, offset, bytes } in replay.torn {
        replay.context.remarks.push(Remark::TornLog { file, offset, bytes });
    }
    Ok(())
}

impl Replay<'_> {
    fn log(&mut self, mut reader: LogReader, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let before = self.context.bytes_read;
        let mut record = Vec::new();
        self.context.counts.logs += 1;
        loop {
            match reader.next(&mut record)? {
                Item::Record(offset) => self.record(&reader, offset, &record)?,
                Item::Damaged(damage, bytes) => self.context.lose(damage, bytes, Covers::Operations)?,
                Item::Torn { offset, bytes } => {
                    self.torn.push(Torn { file: reader.path().to_path_buf(), offset, bytes });
                }
                Item::End => break,
            }
            self.context.bytes_read = before + reader.offset();
            progress(self.context.bytes_read);
        }
        self.context.bytes_read = before + reader.len();
        Ok(())
    }

    fn record(&mut self, reader: &LogReader, offset: u64, record: &[u8]) -> Result<()> {
        // A crash tears the last record that was written, and none before it.
        for Torn { file, offset, bytes } in self.torn.drain(..) {
            let expected = "a whole record, for a later log has records";
            let damage = Damage::new(&file, offset, expected, "the end of the file");
            self.context.lose(damage, bytes, Covers::Operations)?;
        }
        let batch = match Batch::decode(record) {
            Ok(batch) => batch,
            Err(found) => {
                let damage = Damage::new(reader.path(), offset, "a batch of operations", found);
                return self.context.lose(damage, record.len() as u64, Covers::Operations);
            }
        };
        if let Some(numbers) = self.next_sequence.and_then(|next| batch.sequence().checked_sub(next))
            && numbers > 0
        {
            self.context.remarks.push(Remark::Gap { file: reader.path().to_path_buf(), offset, numbers });
        }
        self.next_sequence = Some(batch.sequence() + u64::from(batch.count()));
        self.context.counts.log_operations += u64::from(batch.count());
        for operation in batch.operations() {
            self.sorter.add(operation.key, operation.trailer, operation.value)?;
        }
        Ok(())
    }
}
