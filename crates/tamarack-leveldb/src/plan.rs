//! Which files make up a database, and what is known of them before they are read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::context::Context;
use crate::error::{Damage, Error, Result};
use crate::keys::SEQUENCE_MAX;
use crate::loss::Covers;
use crate::manifest::{self, BYTEWISE, Manifest};
use crate::names::{self, Listing};
use crate::options::Options;
use crate::remark::Remark;
use crate::survey;
use crate::table_run::TableFile;

/// What is to be read.
#[derive(Debug, Default)]
pub struct Plan {
    /// The tables.
    pub tables: Vec<TableFile>,
    /// The logs that are to be replayed, by number.
    pub logs: BTreeMap<u64, PathBuf>,
}

impl Plan {
    /// Makes a plan for `directory`.
    ///
    /// # Errors
    /// [`Error::NotLevelDb`], [`Error::Comparator`]; [`Error::Damage`] unless it is left out; [`Error::Io`].
    pub fn make(directory: &Path, options: &Options, context: &mut Context) -> Result<Self> {
        let listing = Listing::read(directory)?;
        if let Some(name) = &listing.of_rocksdb {
            return Err(manifest::of_rocksdb(&directory.join(name)));
        }
        let current = manifest::current(directory);
        let has_data = !listing.tables.is_empty() || !listing.logs.is_empty();
        if listing.is_empty() || !has_data && matches!(current, Err(Error::Damage(_))) {
            let text = format!("there is no LevelDB database in {}", directory.display());
            return Err(Error::NotLevelDb(text));
        }
        match manifest_in_force(current, &listing, context)? {
            Some(manifest) => Self::by_manifest(directory, &manifest, listing, options, context),
            None => Self::of_everything(listing, options, context),
        }
    }

    /// What the manifest names.
    fn by_manifest(
        directory: &Path,
        manifest: &Manifest,
        mut listing: Listing,
        options: &Options,
        context: &mut Context,
    ) -> Result<Self> {
        let name = manifest.comparator.as_deref().unwrap_or(BYTEWISE);
        if name != BYTEWISE {
            if !options.any_comparator {
                return Err(Error::Comparator { directory: directory.to_path_buf(), name: name.to_owned() });
            }
            context.bytewise = false;
            context.remarks.push(Remark::OtherOrder(name.to_owned()));
        }
        context.remarks.extend(manifest.torn.clone());
        context.last_sequence = manifest.last_sequence;
        let mut plan = Self::default();
        for (number, table) in &manifest.tables {
            let about = TableFile::of(table, listing.tables.remove(number).unwrap_or_default());
            if !about.path.as_os_str().is_empty() {
                plan.tables.push(about);
                continue;
            }
            let damage = Damage::new(&names::table(directory, *number), 0, "a file", "none");
            context.lose(damage, table.bytes, about.all_keys())?;
        }
        if !listing.tables.is_empty() {
            context.remarks.push(Remark::UnusedTables(listing.tables.len() as u64));
        }
        if manifest.log_number != 0 && !listing.logs.contains_key(&manifest.log_number) {
            let damage = Damage::new(&names::log(directory, manifest.log_number), 0, "a file", "none");
            context.lose(damage, 0, Covers::Operations)?;
        }
        listing.logs.retain(|number, _| {
            *number >= manifest.log_number
                || *number == manifest.previous_log_number && manifest.previous_log_number != 0
        });
        plan.logs = listing.logs;
        Ok(plan)
    }

    /// All that there is, where no manifest says what counts.
    fn of_everything(listing: Listing, options: &Options, context: &mut Context) -> Result<Self> {
        context.bytewise = !options.any_comparator;
        context.last_sequence = SEQUENCE_MAX;
        let mut plan = Self { tables: Vec::new(), logs: listing.logs };
        for path in listing.tables.into_values() {
            plan.tables.extend(survey::survey(path, context)?);
        }
        Ok(plan)
    }
}

/// The manifest in force; none if there is none that is whole, and that is left out.
fn manifest_in_force(
    current: Result<PathBuf>,
    listing: &Listing,
    context: &mut Context,
) -> Result<Option<Manifest>> {
    let (path, damage) = match current {
        Ok(path) => (Some(path), None),
        // The manifest with the highest number is the one that `CURRENT` named, or would have named next.
        Err(Error::Damage(damage)) if context.salvage => {
            (listing.manifests.last_key_value().map(|(_, path)| path.clone()), Some(damage))
        }
        Err(error) => return Err(error),
    };
    let read = path.map(|path| Manifest::read(&path)).transpose();
    let manifest = context.tolerate(read, 0, || Covers::Files)?.flatten();
    if let Some(damage) = damage {
        let covers = if manifest.is_some() { Covers::Nothing } else { Covers::Files };
        context.lose(damage, 0, covers)?;
    }
    Ok(manifest)
}
