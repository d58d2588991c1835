//! Tamarack's options by name, for `tamarack_options_set`: each field of [`tamarack::Options`] that a text can say.

use std::fmt::Display;
use std::str::FromStr;

use tamarack::{Codec, GcPolicy, LogMode, Options};

use crate::status::Status;

/// How a value is put into options.
type Setter = fn(&mut Options, &str) -> Result<(), Status>;

/// Every option that can be set by name.
const SETTINGS: &[(&str, Setter)] = &[
    ("create_if_missing", |options, value| truth(value).map(|on| options.create_if_missing = on)),
    ("error_if_exists", |options, value| truth(value).map(|on| options.error_if_exists = on)),
    ("read_only", |options, value| truth(value).map(|on| options.read_only = on)),
    ("paranoid_checks", |options, value| truth(value).map(|on| options.paranoid_checks = on)),
    ("memtable_bytes", |options, value| number(value).map(|number| options.memtable_bytes = number)),
    ("memtables_max", |options, value| number(value).map(|number| options.memtables_max = number)),
    ("segment_bytes_max", |options, value| number(value).map(|number| options.segment_bytes_max = number)),
    ("recovery_log_max", |options, value| number(value).map(|number| options.recovery_log_max = number)),
    ("max_space_amplification", |options, value| {
        number(value).map(|number| options.max_space_amplification = number)
    }),
    ("gc", |options, value| {
        let policies =
            [("cost-benefit", GcPolicy::CostBenefit), ("tail", GcPolicy::Tail), ("off", GcPolicy::Off)];
        one_of(value, &policies).map(|policy| options.gc = policy)
    }),
    ("gc_bytes_per_second", |options, value| {
        number(value).map(|number| options.gc_bytes_per_second = number)
    }),
    ("value_runs_max", |options, value| number(value).map(|number| options.value_runs_max = number)),
    ("memory_max", |options, value| number(value).map(|number| options.memory_max = Some(number))),
    ("reserved_bytes", |options, value| number(value).map(|number| options.reserved_bytes = Some(number))),
    ("log_mode", |options, value| {
        let modes = [("auto", LogMode::Auto), ("mapped", LogMode::Mapped), ("plain", LogMode::Plain)];
        one_of(value, &modes).map(|mode| options.log_mode = mode)
    }),
    ("inline_value_max", |options, value| number(value).map(|number| options.inline_value_max = number)),
    ("value_codec", |options, value| codec(value).map(|codec| options.value_codec = codec)),
    ("block_codec", |options, value| codec(value).map(|codec| options.block_codec = codec)),
    ("block_bytes", |options, value| number(value).map(|number| options.block_bytes = number)),
    ("filter_bits_per_key", |options, value| {
        number(value).map(|number| options.filter_bits_per_key = number)
    }),
    ("table_bytes_max", |options, value| number(value).map(|number| options.table_bytes_max = number)),
    ("level_bytes_base", |options, value| number(value).map(|number| options.level_bytes_base = number)),
    ("block_cache_bytes", |options, value| number(value).map(|number| options.block_cache_bytes = number)),
    ("row_cache_bytes", |options, value| number(value).map(|number| options.row_cache_bytes = number)),
    ("direct_reads", |options, value| truth(value).map(|truth| options.direct_reads = truth)),
    ("relocation_cache_bytes", |options, value| {
        number(value).map(|number| options.relocation_cache_bytes = number)
    }),
    ("open_files_max", |options, value| number(value).map(|number| options.open_files_max = number)),
    ("background_threads", |options, value| number(value).map(|number| options.background_threads = number)),
];

/// Sets the option `name` to what `value` says. Whether the value lies in the option's range is seen when a database is
/// opened: some ranges depend on other options.
///
/// # Errors
/// `Invalid argument` if there is no such option, or the value is of another kind.
pub fn set(options: &mut Options, name: &str, value: &str) -> Result<(), Status> {
    let Some((_, setter)) = SETTINGS.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
        return Err(Status::invalid_argument(&format!(
            "there is no option {name:?}; there are {}",
            names.join(", ")
        )));
    };
    setter(options, value).map_err(|status| {
        let why = status.text().trim_start_matches("Invalid argument: ").to_owned();
        Status::invalid_argument(&format!("option {name}: {why}"))
    })
}

fn number<T: FromStr<Err: Display>>(value: &str) -> Result<T, Status> {
    value.parse().map_err(|error| Status::invalid_argument(&format!("{value:?}: {error}")))
}

fn truth(value: &str) -> Result<bool, Status> {
    one_of(value, &[("true", true), ("false", false)])
}

fn codec(value: &str) -> Result<Codec, Status> {
    one_of(value, &[("none", Codec::None), ("lz4", Codec::Lz4), ("zstd", Codec::Zstd)])
}

fn one_of<T: Copy>(value: &str, known: &[(&str, T)]) -> Result<T, Status> {
    let found = known.iter().find(|(name, _)| *name == value).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Status::invalid_argument(&format!("{value:?} is none of {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value for each option that is not its default, and what `Debug` shows of it.
    const VALUES: &[(&str, &str, &str)] = &[
        ("create_if_missing", "false", "create_if_missing: false"),
        ("error_if_exists", "true", "error_if_exists: true"),
        ("read_only", "true", "read_only: true"),
        ("paranoid_checks", "true", "paranoid_checks: true"),
        ("memtable_bytes", "65536", "memtable_bytes: 65536"),
        ("memtables_max", "9", "memtables_max: 9"),
        ("segment_bytes_max", "8192", "segment_bytes_max: 8192"),
        ("recovery_log_max", "123456", "recovery_log_max: 123456"),
        ("max_space_amplification", "2.5", "max_space_amplification: 2.5"),
        ("gc", "tail", "gc: Tail"),
        ("gc_bytes_per_second", "77", "gc_bytes_per_second: 77"),
        ("value_runs_max", "3", "value_runs_max: 3"),
        ("memory_max", "67108864", "memory_max: Some(67108864)"),
        ("reserved_bytes", "0", "reserved_bytes: Some(0)"),
        ("log_mode", "plain", "log_mode: Plain"),
        ("inline_value_max", "99", "inline_value_max: 99"),
        ("value_codec", "zstd", "value_codec: Zstd"),
        ("block_codec", "lz4", "block_codec: Lz4"),
        ("block_bytes", "1024", "block_bytes: 1024"),
        ("filter_bits_per_key", "3", "filter_bits_per_key: 3"),
        ("table_bytes_max", "70000", "table_bytes_max: 70000"),
        ("level_bytes_base", "80000", "level_bytes_base: 80000"),
        ("block_cache_bytes", "90000", "block_cache_bytes: 90000"),
        ("row_cache_bytes", "92000", "row_cache_bytes: 92000"),
        ("direct_reads", "true", "direct_reads: true"),
        ("relocation_cache_bytes", "91000", "relocation_cache_bytes: 91000"),
        ("open_files_max", "64", "open_files_max: 64"),
        ("background_threads", "5", "background_threads: 5"),
    ];

    #[test]
    fn each_name_sets_the_option_of_that_name() {
        for (name, value, shown) in VALUES {
            let mut options = Options::default();
            assert!(!format!("{options:?}").contains(shown), "{name}: {value} is the default");
            set(&mut options, name, value).expect("is taken");
            let all = format!("{options:?}");
            assert!(all.contains(shown), "{name} = {value} gave {all}");
        }
        assert_eq!(VALUES.len(), SETTINGS.len(), "each setting is tried");
    }

    #[test]
    fn every_option_of_tamarack_has_a_name_here_but_those_that_are_objects() {
        let all = format!("{:?}", Options::default());
        let fields =
            all.trim_start_matches("Options {").split(", ").filter_map(|field| field.split_once(':'));
        let fields: Vec<&str> = fields.map(|(name, _)| name.trim()).collect();
        assert!(fields.len() > 20, "{fields:?}");
        for field in fields.into_iter().filter(|field| !["comparator", "listener"].contains(field)) {
            assert!(SETTINGS.iter().any(|(name, _)| *name == field), "{field}");
        }
    }

    #[test]
    fn names_and_values_that_are_none_are_refused() {
        let refused = |name, value| {
            set(&mut Options::default(), name, value).expect_err("is refused").text().to_owned()
        };
        assert!(refused("memtable", "1").starts_with("Invalid argument: there is no option \"memtable\""));
        assert_eq!(
            refused("gc", "never"),
            "Invalid argument: option gc: \"never\" is none of cost-benefit, tail, off"
        );
        assert!(refused("block_bytes", "4k").starts_with("Invalid argument: option block_bytes: \"4k\": "));
        assert!(refused("read_only", "1").contains("true, false"));
    }
}
