//! Reports of one or several stores, and all that a reader must know to judge them.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::report::Report;

/// What was measured on one machine. Its JSON keeps all of it, so that a [page](crate::page) can be made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub machine: Machine,
    /// When it began, in UTC: `2026-11-22T05:24:43Z`.
    pub date: String,
    /// The command line; one line for each command whose rows are here.
    pub command: String,
    pub rows: Vec<Row>,
}

/// One workload on one store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The store's name. Rows of the same name, version and options belong together; those of them that report on the same
    /// setting are runs of the same measurement, of which the page shows the one with the median throughput.
    pub store: String,
    pub version: String,
    /// Its options, as far as they matter, as text.
    pub options: String,
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was measured.
    Report(Box<Report>),
    /// It was not, for this reason.
    Missing(String),
}

impl Comparison {
    /// One without rows that begins now.
    pub fn new(machine: Machine, command: String) -> Self {
        let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        Self { machine, date, command, rows: Vec::new() }
    }

    /// Adds the rows of another one, which was made on the same machine.
    ///
    /// # Errors
    /// If it was made on another machine: figures of two machines say nothing about each other. The text says what differs.
    pub fn join(&mut self, other: Self) -> Result<(), String> {
        if let Some(difference) = self.machine.difference(&other.machine) {
            return Err(format!("not of one machine: {difference}"));
        }
        if !self.command.lines().eq(other.command.lines()) {
            self.command = format!("{}\n{}", self.command, other.command);
        }
        self.date = self.date.clone().min(other.date);
        self.rows.extend(other.rows);
        Ok(())
    }
}

impl Row {
    /// The report, if it was measured.
    pub fn report(&self) -> Option<&Report> {
        if let Outcome::Report(report) = &self.outcome { Some(report) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(cpu: &str, command: &str, date: &str) -> Comparison {
        let machine = Machine { cpu: Some(cpu.to_owned()), ..Machine::default() };
        let row = Row {
            store: "a".into(),
            version: "1".into(),
            options: String::new(),
            outcome: Outcome::Missing(format!("{command} failed")),
        };
        Comparison { machine, date: date.into(), command: command.into(), rows: vec![row] }
    }

    #[test]
    fn commands_on_one_machine_are_joined() {
        let mut all = comparison("x", "one", "2026-02-01T00:00:00Z");
        assert_eq!(all.join(comparison("x", "two", "2026-01-01T00:00:00Z")), Ok(()));
        assert_eq!((all.command.as_str(), all.date.as_str()), ("one\ntwo", "2026-01-01T00:00:00Z"));
        assert_eq!(all.rows.len(), 2);
        let refused =
            all.join(comparison("y", "three", "2026-01-01T00:00:00Z")).expect_err("another machine");
        assert!(refused.contains("cpu: x, y"), "{refused}");
        assert_eq!(all.rows.len(), 2);
    }

    #[test]
    fn the_date_is_in_utc() {
        let date = Comparison::new(Machine::default(), String::new()).date;
        assert!(date.len() == 20 && date.ends_with('Z') && date.starts_with("20"), "{date}");
    }
}
