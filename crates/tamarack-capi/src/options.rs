//! How a database is opened: LevelDB's options on Tamarack's.
//!
//! What a client sets is honoured where Tamarack has a counterpart; what it leaves alone has Tamarack's default, except
//! where LevelDB's is behaviour that clients rely on: a database is not created unasked, and values are compressed.
//! `docs/LEVELDB.md` lists every option.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tamarack::{Codec, Options};

use crate::boundary::callbacks::{ClientOrder, NamedOrder, Owner};
use crate::boundary::handle::Kind;
use crate::order_name;
use crate::settings;
use crate::status::Status;

/// Ranges that LevelDB brings values into, as far as Tamarack takes them.
const WRITE_BUFFER_BYTES: (usize, usize) = (64 << 10, 1 << 30);
const BLOCK_BYTES: (usize, usize) = (1 << 10, 1 << 20);
const FILE_BYTES: (usize, usize) = (1 << 20, 1 << 30);
const OPEN_FILES: (usize, usize) = (74, 50_000);
/// Most bits for each key that Tamarack's filters have.
const FILTER_BITS_MAX: u32 = 32;

/// `leveldb_options_t`.
pub struct OpenOptions {
    chosen: Mutex<Chosen>,
}

/// What has been chosen so far.
#[derive(Clone)]
struct Chosen {
    options: Options,
    /// The order of keys; `None`: by bytes. It belongs to the client, who may destroy it when no database is open with
    /// it.
    order: Option<Weak<ClientOrder>>,
    /// Why no database can be opened with these, because a setter had no way to say so.
    refused: Option<Status>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        let options = Options {
            create_if_missing: false,
            // LevelDB compresses by default, with Snappy; this is its like.
            value_codec: Codec::Lz4,
            block_codec: Codec::Lz4,
            ..Options::default()
        };
        Self { chosen: Mutex::new(Chosen { options, order: None, refused: None }) }
    }
}

impl OpenOptions {
    /// What Tamarack is to open with.
    ///
    /// # Errors
    /// What a setter could not say, and an order that is gone.
    pub fn to_options(&self) -> Result<Options, Status> {
        let Chosen { mut options, order, refused } = self.chosen.lock().clone();
        if let Some(refused) = refused {
            return Err(refused);
        }
        if let Some(order) = order {
            let order = order
                .upgrade()
                .ok_or_else(|| Status::invalid_argument("the comparator of these options was destroyed"))?;
            let name = order.name();
            if name != order_name::OF_BYTES {
                options.comparator = Arc::new(NamedOrder::new(order, order_name::stored(&name)));
            }
        }
        Ok(options)
    }

    /// Changes something by Tamarack's own names.
    pub fn change(&self, change: impl FnOnce(&mut Options)) {
        change(&mut self.chosen.lock().options);
    }

    /// Sets the option `name` to what `value` says.
    ///
    /// # Errors
    /// If there is no such option, or it does not take the value.
    pub fn set(&self, name: &str, value: &str) -> Result<(), Status> {
        settings::set(&mut self.chosen.lock().options, name, value)
    }

    /// Sets the order of keys; `None` is that of bytes.
    pub fn set_comparator(&self, comparator: Option<&Comparator>) {
        self.chosen.lock().order = comparator.map(|comparator| Arc::downgrade(&comparator.0));
    }

    /// Sets the filter. Tamarack has its own kind, so of a client's policy only bits for each key count.
    pub fn set_filter_policy(&self, policy: Option<&FilterPolicy>) {
        let default = Options::default().filter_bits_per_key;
        let bits = match policy {
            None => 0,
            Some(FilterPolicy::Bloom { bits_per_key }) => *bits_per_key,
            Some(FilterPolicy::Client { .. }) => default,
        };
        self.change(|options| options.filter_bits_per_key = bits);
    }

    /// Sets the size of a memtable, in bytes.
    pub fn set_write_buffer_size(&self, bytes: usize) {
        self.change(|options| options.memtable_bytes = within(bytes, WRITE_BUFFER_BYTES));
    }

    /// Sets how many files may be open.
    pub fn set_max_open_files(&self, files: i32) {
        let files = within(usize::try_from(files).unwrap_or(0), OPEN_FILES);
        self.change(|options| options.open_files_max = files);
    }

    /// Sets the cache of index blocks, and lowers that of rows to as much; `None` is Tamarack's default.
    pub fn set_cache(&self, cache: Option<&Cache>) {
        let usual = Options::default();
        let bytes = cache.map_or(usual.block_cache_bytes, |cache| cache.capacity_bytes);
        self.change(|options| {
            options.block_cache_bytes = bytes;
            options.row_cache_bytes = bytes.min(usual.row_cache_bytes);
        });
    }

    /// Sets the size of an index block, in bytes.
    pub fn set_block_size(&self, bytes: usize) {
        self.change(|options| options.block_bytes = within(bytes, BLOCK_BYTES));
    }

    /// Sets the size of a table, in bytes.
    pub fn set_max_file_size(&self, bytes: usize) {
        self.change(|options| options.table_bytes_max = within(bytes, FILE_BYTES) as u64);
    }

    /// Sets compression, by LevelDB's numbers.
    pub fn set_compression(&self, number: i32) {
        let codec = match number {
            0 => Codec::None,
            1 => Codec::Lz4,
            2 => Codec::Zstd,
            _ => {
                let why = format!("compression {number}: there are 0 (none), 1 (Snappy) and 2 (Zstandard)");
                self.chosen.lock().refused = Some(Status::invalid_argument(&why));
                return;
            }
        };
        let mut chosen = self.chosen.lock();
        chosen.refused = None;
        (chosen.options.value_codec, chosen.options.block_codec) = (codec, codec);
    }
}

impl Kind for OpenOptions {
    const NAME: &'static str = "options";
    const TAG: u64 = u64::from_le_bytes(*b"options.");
}

fn within(value: usize, (least, most): (usize, usize)) -> usize {
    value.clamp(least, most)
}

/// `leveldb_comparator_t`. Its destructor runs when it is destroyed, or when the last database that uses it is closed
/// if that is later.
pub struct Comparator(Arc<ClientOrder>);

impl Comparator {
    /// A client's order.
    pub fn new(order: ClientOrder) -> Self {
        Self(Arc::new(order))
    }
}

impl Kind for Comparator {
    const NAME: &'static str = "a comparator";
    const TAG: u64 = u64::from_le_bytes(*b"comparer");
}

/// `leveldb_filterpolicy_t`.
pub enum FilterPolicy {
    /// Tamarack's own filter, with so many bits for each key.
    Bloom {
        /// 0 to 32.
        bits_per_key: u32,
    },
    /// One of a client: held for its destructor, and never asked. A filter only spares reads, and Tamarack's does.
    Client {
        /// Its state and destructor.
        _owner: Owner,
    },
}

impl FilterPolicy {
    /// A Bloom filter with so many bits for each key.
    pub fn bloom(bits_per_key: i32) -> Self {
        let bits = u32::try_from(bits_per_key).unwrap_or(0);
        Self::Bloom { bits_per_key: bits.min(FILTER_BITS_MAX) }
    }
}

impl Kind for FilterPolicy {
    const NAME: &'static str = "a filter policy";
    const TAG: u64 = u64::from_le_bytes(*b"filterpo");
}

/// `leveldb_cache_t`: how large the cache of a database is that is opened with it. Each database has its own.
pub struct Cache {
    /// In bytes.
    pub capacity_bytes: usize,
}

impl Kind for Cache {
    const NAME: &'static str = "a cache";
    const TAG: u64 = u64::from_le_bytes(*b"cache...");
}

/// `leveldb_env_t`. There is one, of the operating system.
pub struct Env;

impl Kind for Env {
    const NAME: &'static str = "an env";
    const TAG: u64 = u64::from_le_bytes(*b"env.....");
}

/// `leveldb_logger_t`. There is no function that makes one.
pub struct Logger;

impl Kind for Logger {
    const NAME: &'static str = "a logger";
    const TAG: u64 = u64::from_le_bytes(*b"logger..");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(choose: impl FnOnce(&OpenOptions)) -> Options {
        let options = OpenOptions::default();
        choose(&options);
        options.to_options().expect("they can be opened with")
    }

    #[test]
    fn what_is_left_alone_is_tamaracks_but_for_creation_and_compression() {
        let (ours, theirs) = (chosen(|_| ()), Options::default());
        assert!(!ours.create_if_missing && !ours.error_if_exists && !ours.paranoid_checks);
        assert_eq!((ours.value_codec, ours.block_codec), (Codec::Lz4, Codec::Lz4));
        assert_eq!(
            (ours.memtable_bytes, ours.block_cache_bytes, ours.filter_bits_per_key, ours.table_bytes_max),
            (
                theirs.memtable_bytes,
                theirs.block_cache_bytes,
                theirs.filter_bits_per_key,
                theirs.table_bytes_max
            )
        );
    }

    #[test]
    fn sizes_are_brought_into_leveldbs_ranges_and_pass_tamaracks_checks() {
        for extreme in [0, usize::MAX] {
            let options = chosen(|options| {
                options.set_write_buffer_size(extreme);
                options.set_block_size(extreme);
                options.set_max_file_size(extreme);
                options.set_max_open_files(if extreme == 0 { -1 } else { i32::MAX });
                options.set_filter_policy(Some(&FilterPolicy::bloom(if extreme == 0 {
                    -1
                } else {
                    i32::MAX
                })));
            });
            options.check().expect("every value lies in its range");
        }
        let small = chosen(|options| options.set_write_buffer_size(100_000));
        assert_eq!(small.memtable_bytes, 100_000);
        assert_eq!(chosen(|options| options.set_write_buffer_size(1)).memtable_bytes, 65_536);
        assert_eq!(chosen(|options| options.set_max_open_files(10)).open_files_max, 74);
        assert_eq!(chosen(|options| options.set_block_size(1 << 30)).block_bytes, 1 << 20);
        assert_eq!(chosen(|options| options.set_max_file_size(5 << 20)).table_bytes_max, 5 << 20);
    }

    #[test]
    fn filters_caches_and_compressions_have_counterparts() {
        let bits = |policy: Option<FilterPolicy>| {
            chosen(|options| options.set_filter_policy(policy.as_ref())).filter_bits_per_key
        };
        assert_eq!(bits(None), 0);
        assert_eq!(bits(Some(FilterPolicy::bloom(7))), 7);
        let cache = chosen(|options| options.set_cache(Some(&Cache { capacity_bytes: 12_345 })));
        assert_eq!(cache.block_cache_bytes, 12_345);
        for (number, codec) in [(0, Codec::None), (1, Codec::Lz4), (2, Codec::Zstd)] {
            let options = chosen(|options| options.set_compression(number));
            assert_eq!((options.value_codec, options.block_codec), (codec, codec));
        }
    }

    #[test]
    fn a_compression_that_is_none_is_refused_at_open_and_forgiven_when_set_again() {
        let options = OpenOptions::default();
        options.set_compression(7);
        let refused = options.to_options().expect_err("there is no such compression");
        assert!(refused.text().starts_with("Invalid argument: compression 7"), "{refused:?}");
        options.set_compression(0);
        assert!(options.to_options().is_ok());
    }
}
