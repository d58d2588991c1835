//! Tamarack.

use std::path::Path;

use tamarack::{Db, Options};
use tamarack_bench::Tamarack;

use super::Setting;

/// Opens a database, which need not be there.
pub fn open(path: &Path, setting: Setting) -> Result<Tamarack, String> {
    let mut options = Options { direct_reads: setting.direct, ..Options::default() };
    if let Some(bytes) = setting.cache_bytes {
        // Most of it for values: those of the other stores are in their caches of blocks.
        options.block_cache_bytes = bytes / 8;
        options.row_cache_bytes = bytes - options.block_cache_bytes;
    }
    Db::open(path, options).map(Tamarack).map_err(|error| error.to_string())
}
