//! `leveldb/c.h`: how a database is opened.

use std::ffi::c_int;

use crate::boundary::guard::contained;
use crate::boundary::handle::{Given, New, Returned};
use crate::options::{Cache, Comparator, Env, FilterPolicy, Logger, OpenOptions};

/// LevelDB's defaults where clients rely on them, Tamarack's elsewhere.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_create() -> New<OpenOptions> {
    contained("leveldb_options_create", || New::of(OpenOptions::default()))
}

/// Destroys options. Databases opened with them go on.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_destroy(options: Returned<OpenOptions>) {
    contained("leveldb_options_destroy", || options.destroy());
}

/// The order of keys; `NULL`: by bytes.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_comparator(options: Given<OpenOptions>, comparator: Given<Comparator>) {
    contained("leveldb_options_set_comparator", || {
        options.get().set_comparator(comparator.get_if_any());
    });
}

/// The filter; `NULL`: none.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_filter_policy(
    options: Given<OpenOptions>,
    policy: Given<FilterPolicy>,
) {
    contained("leveldb_options_set_filter_policy", || {
        options.get().set_filter_policy(policy.get_if_any());
    });
}

/// Whether a database is created where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_create_if_missing(options: Given<OpenOptions>, on: u8) {
    contained("leveldb_options_set_create_if_missing", || {
        options.get().change(|options| options.create_if_missing = on != 0);
    });
}

/// Whether a database that exists is an error.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_error_if_exists(options: Given<OpenOptions>, on: u8) {
    contained("leveldb_options_set_error_if_exists", || {
        options.get().change(|options| options.error_if_exists = on != 0);
    });
}

/// Whether everything on disk is checked when the database is opened.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_paranoid_checks(options: Given<OpenOptions>, on: u8) {
    contained("leveldb_options_set_paranoid_checks", || {
        options.get().change(|options| options.paranoid_checks = on != 0);
    });
}

/// The env, of which there is one.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_env(options: Given<OpenOptions>, env: Given<Env>) {
    contained("leveldb_options_set_env", || {
        // There is nothing to choose, but what is no env should not pass for one.
        env.get_if_any();
        options.get();
    });
}

/// The logger, of which there is none: only `NULL` can be passed.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_info_log(options: Given<OpenOptions>, logger: Given<Logger>) {
    contained("leveldb_options_set_info_log", || {
        logger.get_if_any();
        options.get();
    });
}

/// Bytes of a memtable.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_write_buffer_size(options: Given<OpenOptions>, bytes: usize) {
    contained("leveldb_options_set_write_buffer_size", || options.get().set_write_buffer_size(bytes));
}

/// How many files may be open.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_max_open_files(options: Given<OpenOptions>, files: c_int) {
    contained("leveldb_options_set_max_open_files", || options.get().set_max_open_files(files));
}

/// The cache of index blocks; `NULL`: one of Tamarack's default size.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_cache(options: Given<OpenOptions>, cache: Given<Cache>) {
    contained("leveldb_options_set_cache", || options.get().set_cache(cache.get_if_any()));
}

/// Bytes of an index block.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_size(options: Given<OpenOptions>, bytes: usize) {
    contained("leveldb_options_set_block_size", || options.get().set_block_size(bytes));
}

/// Nothing: Tamarack's blocks choose their restart points themselves.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_restart_interval(options: Given<OpenOptions>, _keys: c_int) {
    contained("leveldb_options_set_block_restart_interval", || {
        options.get();
    });
}

/// Bytes of a table.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_max_file_size(options: Given<OpenOptions>, bytes: usize) {
    contained("leveldb_options_set_max_file_size", || options.get().set_max_file_size(bytes));
}

/// Compression of values and index blocks.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_compression(options: Given<OpenOptions>, number: c_int) {
    contained("leveldb_options_set_compression", || options.get().set_compression(number));
}
