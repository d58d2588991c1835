//! How a database is opened: plyvel's keyword arguments and Tamarack's on the engine's options.
//!
//! What a program sets is honoured where Tamarack has a counterpart; what it leaves alone has Tamarack's default, except
//! that nothing is created unasked and values are compressed, as in plyvel. The package's README lists every option.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tamarack::{Codec, GcPolicy, LogMode, Options};

use crate::errors::{keywords, unknown_keyword};
use crate::listener::PythonListener;
use crate::order::PythonOrder;

/// Ranges that LevelDB brings values into, as far as Tamarack takes them.
const WRITE_BUFFER_BYTES: (usize, usize) = (64 << 10, 1 << 30);
const BLOCK_BYTES: (usize, usize) = (1 << 10, 1 << 20);
const FILE_BYTES: (usize, usize) = (1 << 20, 1 << 30);
const OPEN_FILES: (usize, usize) = (74, 50_000);
/// Most bits for each key that Tamarack's filters have.
const FILTER_BITS_MAX: usize = 32;

const GC: &[(&str, GcPolicy)] =
    &[("cost-benefit", GcPolicy::CostBenefit), ("tail", GcPolicy::Tail), ("off", GcPolicy::Off)];
const LOG_MODES: &[(&str, LogMode)] =
    &[("auto", LogMode::Auto), ("mapped", LogMode::Mapped), ("plain", LogMode::Plain)];
const CODECS: &[(&str, Codec)] = &[("none", Codec::None), ("lz4", Codec::Lz4), ("zstd", Codec::Zstd)];
/// What plyvel's `compression` may be.
const COMPRESSIONS: &[(&str, Codec)] =
    &[("snappy", Codec::Lz4), ("lz4", Codec::Lz4), ("zstd", Codec::Zstd), ("none", Codec::None)];

/// What the keyword arguments of a call said.
pub struct Chosen {
    /// For the engine.
    pub options: Options,
    /// The order of keys, if it is written in Python.
    pub order: Option<Arc<PythonOrder>>,
    /// Whether writes survive the machine unless they say otherwise.
    pub synced: bool,
}

/// The options that `given` says, to the function of this name.
///
/// # Errors
/// `TypeError` for an unknown name or a value of the wrong kind, `ValueError` and `OverflowError` for one out of range.
pub fn parse(function: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Chosen> {
    let options = Options {
        create_if_missing: false,
        // LevelDB compresses by default, with Snappy; this is its like.
        value_codec: Codec::Lz4,
        block_codec: Codec::Lz4,
        ..Options::default()
    };
    let mut chosen = Chosen { options, order: None, synced: false };
    let given = keywords(given)?;
    // Tamarack's own names count where both are given.
    for (name, value) in &given {
        set_by_plyvel(&mut chosen.options, name, value)?;
    }
    for (name, value) in &given {
        if !is_plyvels(name) && !set_by_tamarack(&mut chosen, name, value)? {
            return Err(unknown_keyword(function, name));
        }
    }
    set_order(&mut chosen, &given)?;
    Ok(chosen)
}

const PLYVELS: &[&str] = &[
    "write_buffer_size",
    "max_open_files",
    "lru_cache_size",
    "block_size",
    "block_restart_interval",
    "max_file_size",
    "compression",
    "bloom_filter_bits",
    "comparator",
    "comparator_name",
];

fn is_plyvels(name: &str) -> bool {
    PLYVELS.contains(&name)
}

fn set_by_plyvel(options: &mut Options, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if name == "compression" {
        let codec = if value.is_none() { Codec::None } else { one_of(name, value, COMPRESSIONS)? };
        (options.value_codec, options.block_codec) = (codec, codec);
        return Ok(());
    }
    if value.is_none() {
        return Ok(());
    }
    match name {
        "write_buffer_size" => options.memtable_bytes = within(value.extract()?, WRITE_BUFFER_BYTES),
        "max_open_files" => options.open_files_max = within(value.extract()?, OPEN_FILES),
        "lru_cache_size" => {
            options.block_cache_bytes = value.extract()?;
            options.row_cache_bytes = options.block_cache_bytes.min(Options::default().row_cache_bytes);
        }
        "block_size" => options.block_bytes = within(value.extract()?, BLOCK_BYTES),
        "max_file_size" => options.table_bytes_max = within(value.extract()?, FILE_BYTES) as u64,
        "bloom_filter_bits" => {
            options.filter_bits_per_key = within(value.extract()?, (0, FILTER_BITS_MAX)) as u32;
        }
        // Tamarack's blocks choose their restart points themselves; a number it must be.
        "block_restart_interval" => drop(value.extract::<usize>()?),
        _ => {}
    }
    Ok(())
}

/// Whether there is an option `name`.
fn set_by_tamarack(chosen: &mut Chosen, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let options = &mut chosen.options;
    if name == "durability" {
        chosen.synced = one_of(name, value, &[("process", false), ("machine", true)])?;
        return Ok(true);
    }
    // The default, for every option of Tamarack's.
    let given = !value.is_none();
    macro_rules! set {
        ($($field:ident),*; $($special:literal => $set:expr),* $(,)?) => {
            match name {
                $(stringify!($field) if given => options.$field = value.extract()?,)*
                $($special if given => $set,)*
                $(stringify!($field))|* $(| $special)* => {}
                _ => return Ok(false),
            }
        };
    }
    set!(
        create_if_missing, error_if_exists, read_only, paranoid_checks, memtable_bytes, memtables_max,
        segment_bytes_max, recovery_log_max, max_space_amplification, gc_bytes_per_second, value_runs_max,
        inline_value_max, block_bytes, filter_bits_per_key, table_bytes_max, level_bytes_base, block_cache_bytes,
        row_cache_bytes, direct_reads, relocation_cache_bytes, open_files_max, background_threads;
        "gc" => options.gc = one_of(name, value, GC)?,
        "log_mode" => options.log_mode = one_of(name, value, LOG_MODES)?,
        "value_codec" => options.value_codec = one_of(name, value, CODECS)?,
        "block_codec" => options.block_codec = one_of(name, value, CODECS)?,
        "memory_max" => options.memory_max = Some(value.extract()?),
        "reserved_bytes" => options.reserved_bytes = Some(value.extract()?),
        "listener" => options.listener = Some(Arc::new(listener(value)?)),
    );
    Ok(true)
}

fn set_order(chosen: &mut Chosen, given: &[(String, Bound<'_, PyAny>)]) -> PyResult<()> {
    let find = |wanted: &str| {
        given.iter().find(|(name, _)| name == wanted).map(|(_, value)| value).filter(|value| !value.is_none())
    };
    match (find("comparator"), find("comparator_name")) {
        (None, None) => Ok(()),
        (Some(compare), Some(name)) => {
            let order = Arc::new(PythonOrder::new(compare, name)?);
            chosen.options.comparator = Arc::<PythonOrder>::clone(&order);
            chosen.order = Some(order);
            Ok(())
        }
        _ => Err(PyValueError::new_err("comparator and comparator_name must be given together")),
    }
}

fn listener(value: &Bound<'_, PyAny>) -> PyResult<PythonListener> {
    if !value.is_callable() {
        return Err(PyTypeError::new_err("listener must be callable with a dict"));
    }
    Ok(PythonListener::new(value.clone().unbind()))
}

fn within(value: usize, (least, most): (usize, usize)) -> usize {
    value.clamp(least, most)
}

/// What the text `value` means among `known`.
///
/// # Errors
/// `TypeError` if it is no text, `ValueError` if it is none of them.
pub fn one_of<T: Copy>(name: &str, value: &Bound<'_, PyAny>, known: &[(&str, T)]) -> PyResult<T> {
    let text: String = match value.cast::<PyBytes>() {
        Ok(bytes) => String::from_utf8_lossy(bytes.as_bytes()).into_owned(),
        Err(_) => value.extract().map_err(|_| PyTypeError::new_err(format!("{name} must be a str")))?,
    };
    let found = known.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        PyValueError::new_err(format!("{name} is {text:?}: it takes {}", words.join(", ")))
    })
}

fn name_of<T: PartialEq>(value: T, known: &[(&'static str, T)]) -> &'static str {
    known.iter().find(|(_, meaning)| *meaning == value).map_or("unknown", |(word, _)| word)
}

/// The word for a policy.
pub fn gc_name(policy: GcPolicy) -> &'static str {
    name_of(policy, GC)
}

/// The word for a mode.
pub fn log_mode_name(mode: LogMode) -> &'static str {
    name_of(mode, LOG_MODES)
}

/// The word for a codec.
pub fn codec_name(codec: Codec) -> &'static str {
    name_of(codec, CODECS)
}
