//! What the manifests of a damaged cube still say, for repair. Writes nothing.
//!
//! The manifest in force counts if every byte of it does. Where `CURRENT` cannot be read, the manifest with the highest
//! number does, if it is whole: one that was not put in force yet says nothing else. Of manifests that are damaged,
//! whole edits tell which tables had been dropped; as numbers of tables are not used again, that stays true whatever
//! the lost edits said.

use std::collections::HashSet;

use super::super::version::{Files, Version};
use super::format::{self, HEADER_BYTES, RECORD_HEADER_BYTES};
use super::reader::{read_current, read_number};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::ids::{CubeId, TableId};
use crate::base::keys::KeyOrder;
use crate::base::names::FileName;
use crate::base::sync::Arc;
use crate::env::read_file;

/// What is left of the manifests.
#[derive(Debug, Default)]
pub struct Survey {
    /// The highest number of a manifest that is there; 0 if there is none.
    pub number_max: u64,
    /// The number of the one in force; where nothing tells, the same.
    pub in_force: u64,
    /// The cube, if a manifest tells.
    pub cube: Option<CubeId>,
    /// What is wrong.
    pub damage: Vec<Error>,
    /// What the manifest in force says, if it is whole.
    pub version: Option<Version>,
    /// Tables that some whole edit has dropped.
    pub dropped_tables: HashSet<TableId>,
}

/// Reads all manifests in the directory of `files`.
///
/// # Errors
/// `InvalidArgument` if there is no cube, or its keys are in another order; `Unsupported`, `Io`.
pub fn survey(files: &Arc<Files>, order: &KeyOrder) -> Result<Survey> {
    let (fs, directory) = (&**files.fs(), files.directory());
    let names = fs.list(directory).map_err(|error| Error::io("list", directory, error))?;
    let mut numbers: Vec<u64> = names
        .iter()
        .filter_map(|name| match FileName::parse(name) {
            Some(FileName::Manifest(number)) => Some(number),
            _ => None,
        })
        .collect();
    numbers.sort_unstable();
    let mut survey = Survey { number_max: numbers.last().copied().unwrap_or(0), ..Survey::default() };
    let in_force = match read_current(fs, directory) {
        Ok(number) => Some(number),
        Err(error) if error.kind() == ErrorKind::Corruption => {
            survey.damage.push(error);
            numbers.last().copied()
        }
        Err(error) => return Err(error),
    };
    survey.in_force = in_force.unwrap_or(0);
    if let Some(number) = in_force {
        match read_number(files, order, number) {
            Ok(recovered) => {
                survey.cube = Some(recovered.cube);
                survey.version = Some(recovered.version);
                return Ok(survey);
            }
            Err(error) if error.kind() == ErrorKind::Corruption => survey.damage.push(error),
            Err(error) => return Err(error),
        }
    }
    for number in numbers {
        survey.remains_of(files, number)?;
    }
    Ok(survey)
}

impl Survey {
    fn remains_of(&mut self, files: &Arc<Files>, number: u64) -> Result<()> {
        let path = FileName::Manifest(number).path(files.directory());
        let bytes = read_file(&**files.fs(), &path).map_err(|error| Error::io("read", &path, error))?;
        let header = format::decode_header(&bytes)
            .filter(|header| header.magic == format::MAGIC && header.checksums.0 == header.checksums.1);
        let Some(header) = header.filter(|header| header.number == number) else { return Ok(()) };
        self.cube = Some(header.cube);
        let seed = format::seed(header.cube, number);
        let mut at = HEADER_BYTES;
        while at < bytes.len() {
            let Some(record) = format::decode_record_header(&bytes[at..], seed, at as u64) else {
                at += 1;
                continue;
            };
            let start = at + RECORD_HEADER_BYTES;
            let payload = bytes.get(start..start + record.payload_len as usize);
            let whole = payload.filter(|payload| {
                format::payload_checksum(payload, seed, at as u64) == record.payload_checksum
            });
            if let Some(Ok(edit)) = whole.map(|payload| format::decode_edit(payload, files)) {
                // A table that leaves one level and joins another in the same edit is moved.
                let stays = |id: &TableId| edit.add_tables.iter().any(|(_, table)| table.id == *id);
                let dropped = edit.drop_tables.iter().map(|&(_, id)| id).filter(|id| !stays(id));
                self.dropped_tables.extend(dropped);
            }
            at = start.saturating_add(payload.map_or(0, <[u8]>::len)).max(at + 1);
        }
        Ok(())
    }
}
