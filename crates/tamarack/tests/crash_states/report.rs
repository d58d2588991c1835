//! What was tried, in numbers.

use std::fmt::Write as _;

use super::explore::COMBINATIONS_MAX;
use super::oracle::Outcome;

/// States of one scenario, enumerated or sampled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Those that were built.
    pub generated: u64,
    /// Those of them that were new, and passed.
    pub distinct: u64,
    durable_alone: u64,
    part: u64,
    nothing: u64,
}

impl Tally {
    /// One of so many that were built.
    pub fn of(generated: u64) -> Self {
        Self { generated, ..Self::default() }
    }

    /// Counts a new state that has passed.
    pub fn count(&mut self, outcome: Outcome) {
        self.distinct += 1;
        *match outcome {
            Outcome::DurableAlone => &mut self.durable_alone,
            Outcome::Part => &mut self.part,
            Outcome::Nothing => &mut self.nothing,
        } += 1;
    }

    pub fn add(&mut self, other: &Self) {
        self.generated += other.generated;
        self.distinct += other.distinct;
        self.durable_alone += other.durable_alone;
        self.part += other.part;
        self.nothing += other.nothing;
    }
}

/// One scenario, or several together.
#[derive(Debug, Clone, Default)]
pub struct Row {
    pub name: String,
    pub operations: u64,
    pub moments: u64,
    pub in_flight_max: u64,
    pub sampled_moments: u64,
    pub exhaustive: Tally,
    pub sampled: Tally,
}

impl Row {
    fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.moments += other.moments;
        self.in_flight_max = self.in_flight_max.max(other.in_flight_max);
        self.sampled_moments += other.sampled_moments;
        self.exhaustive.add(&other.exhaustive);
        self.sampled.add(&other.sampled);
    }

    fn line(&self) -> String {
        let Self { name, operations, moments, in_flight_max, sampled_moments, exhaustive, sampled } = self;
        let all = |part: fn(&Tally) -> u64| part(exhaustive) + part(sampled);
        format!(
            "| {name} | {operations} | {moments} | {in_flight_max} | {} | {} | {sampled_moments} | {} | {} | {} / {} / {} |",
            exhaustive.generated,
            exhaustive.distinct,
            sampled.generated,
            sampled.distinct,
            all(|tally| tally.durable_alone),
            all(|tally| tally.part),
            all(|tally| tally.nothing),
        )
    }
}

/// All scenarios.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds a scenario; the random ones share a row.
    pub fn add(&mut self, row: Row) {
        println!("{}", row.line());
        let name = row.name.split('-').next().expect("split gives something").to_owned();
        match self.rows.iter_mut().find(|known| known.name == name) {
            Some(known) => known.add(&row),
            None => self.rows.push(Row { name, ..row }),
        }
    }

    /// All together.
    pub fn total(&self) -> Row {
        let mut total = Row { name: "**all**".into(), ..Row::default() };
        self.rows.iter().for_each(|row| total.add(row));
        total
    }

    /// Shows the table, and writes it where the environment says.
    pub fn publish(&self) {
        let mut table = format!(
            "Granularity: sectors of 512 bytes, lengths, names. All combinations up to {COMBINATIONS_MAX}.\n\n\
             | scenario | operations | crash points | in flight at most | enumerated | of them distinct \
             | crash points sampled | samples | of them distinct | lost all in flight / a part / no batch |\n\
             |---|---|---|---|---|---|---|---|---|---|\n"
        );
        for row in self.rows.iter().chain([&self.total()]) {
            writeln!(table, "{}", row.line()).expect("a string takes everything");
        }
        println!("{table}");
        if let Ok(file) = std::env::var("TAMARACK_TABLE") {
            std::fs::write(file, table).unwrap();
        }
    }
}
