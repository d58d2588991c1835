//! The rows of a comparison by what they measure: series, settings, and one report for each pair of them.

use std::collections::BTreeMap;

use clap::ValueEnum;

use crate::comparison::{Comparison, Outcome, Row};
use crate::plan::Distribution;
use crate::report::Report;
use crate::workload::Workload;

use super::number;

/// What a comparison has.
pub struct Results<'a> {
    /// Stores with their options, in the order of the rows.
    pub series: Vec<Series<'a>>,
    /// Settings in the order of the rows, each with its measurements by the size of values.
    pub settings: Vec<(Setting<'a>, Sizes<'a>)>,
}

/// Measurements by the size of values and the number of keys, and by series.
pub type Sizes<'a> = BySize<Measured<'a>>;

/// Things by the size of values and the number of keys, and by series.
pub type BySize<T> = BTreeMap<Size, BySeries<T>>;

/// Bytes of values, and the number of keys.
pub type Size = (usize, u64);

/// Things by the number of their series.
pub type BySeries<T> = BTreeMap<usize, T>;

/// A store with its options.
pub struct Series<'a> {
    /// Its name, with the options if another one has the same name.
    pub label: String,
    pub store: &'a str,
    pub version: &'a str,
    pub options: &'a str,
    /// How many reports it has.
    pub reports: usize,
    /// Why there are not more.
    pub missing: Vec<&'a str>,
}

/// All that must be the same in reports that are compared, but for the size of values and the number of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<'a> {
    pub workload: &'a str,
    threads: u64,
    rate: Option<u64>,
    key_size: u16,
    value_sizes: Option<&'a str>,
    batch_size: u32,
    sync: bool,
    sync_every: Option<u64>,
    cold: bool,
    warm: bool,
    memory_limit_bytes: Option<u64>,
    /// The fill that has written the keys.
    loaded_by: Option<&'a str>,
    /// If it is not the one that the workload has by itself.
    distribution: Option<Distribution>,
    /// Percent of dead values beside which keys were written.
    dead_percent: Option<u8>,
    /// Keys at once, or entries from a key on.
    reads: Option<u32>,
    /// How often the workload has been run on the same database, this time included.
    pass: u32,
}

/// What was measured of one series in one setting with values of one size.
#[derive(Clone, Copy)]
pub struct Measured<'a> {
    /// The run with the median throughput; of an even number, the slower one of the two in the middle.
    pub report: &'a Report,
    /// How many runs there were.
    pub runs: usize,
    /// Operations per second of the slowest and of the fastest one.
    pub range: (f64, f64),
}

impl<'a> Results<'a> {
    /// Of these rows.
    pub fn of(comparison: &'a Comparison) -> Self {
        let mut series: Vec<Series<'a>> = Vec::new();
        let mut settings: Vec<(Setting<'a>, BTreeMap<_, BTreeMap<_, Vec<&'a Report>>>)> = Vec::new();
        for row in &comparison.rows {
            let index = position(&mut series, |known| known.is_of(row), || Series::of(row));
            match &row.outcome {
                Outcome::Missing(reason) => series[index].missing.push(reason),
                Outcome::Report(report) => {
                    series[index].reports += 1;
                    let setting = Setting::of(report);
                    let place = position(
                        &mut settings,
                        |(known, _)| *known == setting,
                        || (setting.clone(), BTreeMap::new()),
                    );
                    let sizes = settings[place].1.entry((report.value_size, report.num)).or_default();
                    sizes.entry(index).or_default().push(report);
                }
            }
        }
        label(&mut series);
        let measured = |(setting, sizes): (Setting<'a>, BTreeMap<_, BTreeMap<_, Vec<&'a Report>>>)| {
            let of_series = |runs: BTreeMap<_, Vec<&'a Report>>| {
                runs.into_iter().map(|(index, runs)| (index, Measured::of(runs))).collect()
            };
            (setting, sizes.into_iter().map(|(size, runs)| (size, of_series(runs))).collect())
        };
        Self { settings: settings.into_iter().map(measured).collect(), series }
    }
}

/// Where the element is that `is` what is looked for; it is added if there is none.
fn position<T>(list: &mut Vec<T>, is: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> usize {
    list.iter().position(is).unwrap_or_else(|| {
        list.push(new());
        list.len() - 1
    })
}

/// Names each series as shortly as tells it from the others: by the store, by its version where there are several, and by a
/// number where only options differ.
fn label(series: &mut [Series<'_>]) {
    let stores: Vec<(&str, &str)> = series.iter().map(|one| (one.store, one.version)).collect();
    for (index, one) in series.iter_mut().enumerate() {
        let count = |stores: &[(&str, &str)]| {
            stores.iter().filter(|store| **store == (one.store, one.version)).count()
        };
        one.label = one.store.to_owned();
        if stores.iter().any(|(store, version)| *store == one.store && *version != one.version) {
            one.label += &format!(" {}", one.version);
        }
        if count(&stores) > 1 {
            one.label += &format!(" ({})", count(&stores[..=index]));
        }
    }
}

impl<'a> Series<'a> {
    fn of(row: &'a Row) -> Self {
        let Row { store, version, options, .. } = row;
        Self { label: String::new(), store, version, options, reports: 0, missing: Vec::new() }
    }

    fn is_of(&self, row: &Row) -> bool {
        (self.store, self.version, self.options) == (&row.store, &row.version, &row.options)
    }

    /// Why it has no report on something, if a reason is known; else nobody has asked for it.
    pub fn reason(&self) -> Option<String> {
        (!self.missing.is_empty()).then(|| self.missing.join("; "))
    }
}

impl<'a> Setting<'a> {
    fn of(report: &'a Report) -> Self {
        let reads = match report.workload.as_str() {
            "multireadrandom" => Some(report.keys_per_read),
            "seekrandom" => Some(report.entries_per_seek),
            _ => None,
        };
        Self {
            workload: &report.workload,
            threads: report.threads,
            rate: report.rate,
            key_size: report.key_size,
            value_sizes: report.value_sizes.as_deref(),
            batch_size: report.batch_size,
            sync: report.sync,
            sync_every: report.sync_every,
            cold: report.cold,
            warm: report.warm,
            memory_limit_bytes: report.memory_limit_bytes,
            loaded_by: report.loaded_by.as_deref(),
            dead_percent: report.dead_percent,
            distribution: Some(report.distribution).filter(|drawn| *drawn != usual(&report.workload)),
            reads,
            pass: report.pass.max(1),
        }
    }

    /// The workload, and in what its setting is not the usual one: `readrandom after fillseq, 8 threads, cold`.
    pub fn label(&self) -> String {
        let mut label = self.workload.to_owned();
        if let Some(fill) = self.loaded_by.filter(|_| !self.is_ycsb()) {
            label += &format!(" after {fill}");
        }
        let mut add = |condition: bool, text: String| {
            if condition {
                label += ", ";
                label += &text;
            }
        };
        if let Some(percent) = self.dead_percent {
            add(true, format!("{percent} % dead"));
        }
        add(self.threads > 1, format!("{} threads", self.threads));
        if let Some(rate) = self.rate {
            add(true, format!("{rate} due each second"));
        }
        add(self.batch_size > 1, format!("batches of {}", self.batch_size));
        let per = if self.workload == "seekrandom" { "entries" } else { "keys" };
        let reads = self.reads.unwrap_or(1);
        add(reads > 1, format!("{reads} {per} each"));
        add(self.sync && self.workload != "fillsync", "synced".to_owned());
        add(self.sync_every.is_some(), format!("one of {} writes synced", self.sync_every.unwrap_or(1)));
        add(self.cold, "cold".to_owned());
        add(self.warm, "warm".to_owned());
        if let Some(distribution) = self.distribution {
            add(true, distribution.name().to_owned());
        }
        add(self.pass > 1, format!("pass {}", self.pass));
        add(self.key_size != 16, format!("keys of {} B", self.key_size));
        if let Some(limit) = self.memory_limit_bytes {
            add(true, format!("in {} of memory", number::size(limit as f64)));
        }
        if let Some(sizes) = self.value_sizes {
            add(true, format!("values of {sizes}"));
        }
        label
    }

    /// Whether it is one of YCSB's.
    pub fn is_ycsb(&self) -> bool {
        self.workload.starts_with("ycsb")
    }

    /// Whether keys were written beside dead values.
    pub fn is_beside_garbage(&self) -> bool {
        self.dead_percent.is_some()
    }

    /// The same beside no dead values, and so equal for all parts of them.
    pub fn without_garbage(&self) -> Self {
        Self { dead_percent: None, ..self.clone() }
    }

    /// Whether it is the setting of `other` but for the workload and what came before.
    pub fn is_like(&self, other: &Self) -> bool {
        let Self { workload, loaded_by, reads, pass, warm, .. } = *other;
        Self { workload, loaded_by, reads, pass, warm, ..self.clone() } == *other
    }
}

/// The distribution that a workload of that name has by itself.
fn usual(workload: &str) -> Distribution {
    Workload::from_str(workload, false).map(Workload::own_distribution).unwrap_or_default()
}

impl<'a> Measured<'a> {
    fn of(mut runs: Vec<&'a Report>) -> Self {
        runs.sort_by(|a, b| a.ops_per_second.total_cmp(&b.ops_per_second));
        let rate = |report: Option<&&Report>| report.map_or(0.0, |report| report.ops_per_second);
        let range = (rate(runs.first()), rate(runs.last()));
        Self { report: runs[(runs.len() - 1) / 2], runs: runs.len(), range }
    }

    /// How many runs, and how far they lie apart: `3 (−4 to +7 %)`.
    pub fn describe_runs(&self) -> String {
        if self.runs == 1 {
            return "1".to_owned();
        }
        let percent = |rate: f64| 100.0 * (rate / self.report.ops_per_second - 1.0);
        format!("{} (−{:.0} to +{:.0} %)", self.runs, -percent(self.range.0), percent(self.range.1))
    }
}

/// The sizes at which most series were measured, and of those the one that is nearest to 1 KiB.
pub fn usual_size<T>(sizes: &BySize<T>) -> Option<(Size, &BySeries<T>)> {
    let distance = |size: usize| ((size.max(1) as f64).log2() - 10.0).abs();
    let usual = sizes.iter().max_by(|(a, left), (b, right)| {
        left.len().cmp(&right.len()).then(distance(b.0).total_cmp(&distance(a.0)))
    });
    usual.map(|(size, things)| (*size, things))
}

/// Values of that size and so many keys, in words.
pub fn describe_size((value_size, num): Size) -> String {
    format!("{} values, {} keys", number::size(value_size as f64), number::whole(num))
}
