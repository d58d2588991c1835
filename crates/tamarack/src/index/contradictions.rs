//! What a manifest says of a table that the table does not say of itself.
//!
//! What is alive is summed from what the manifest says, and segments are dropped by these sums: a manifest that is
//! whole but wrong must not pass a check. Pure but for reading the directory of the table's references.

use std::fmt::Debug;

use super::table::reader::TableReader;
use super::version::TableMeta;
use crate::base::error::{Error, Result};

/// The contradictions between `meta` and `table`, which may have passed its own check: one `Corruption` of the table's
/// file for each.
///
/// # Errors
/// `Io`, `Corruption` of the references' directory.
pub fn contradictions(meta: &TableMeta, table: &TableReader) -> Result<Vec<Error>> {
    let properties = table.properties();
    let mut found = Vec::new();
    let mut compare = |what: &str, said: &dyn Debug, is: &dyn Debug| {
        let (said, is) = (format!("{said:?}"), format!("{is:?}"));
        if said != is {
            let expected = format!("{what} {said}, as the manifest says");
            found.push(Error::corruption(table.path(), 0, expected, is));
        }
    };
    compare("file bytes", &meta.file_bytes, &table.file_bytes());
    compare("entries", &meta.entries, &properties.entries);
    compare("deletions", &meta.deletes, &properties.deletes);
    compare("smallest internal key", &meta.smallest, &properties.smallest);
    compare("largest internal key", &meta.largest, &properties.largest);
    compare("sequence numbers", &meta.sequences, &properties.sequences);
    let references = table.references()?;
    compare("references", &meta.references, &references.summary());
    Ok(found)
}
