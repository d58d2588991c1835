//! What commands print on standard output: lines, JSON lines, tables, and numbers a person can read.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde::Serialize;

use crate::failure::{Failure, Result};

/// Buffered standard output. Call [`Output::finish`] at the end: a failure to write must not go unseen.
#[derive(Debug)]
pub struct Output {
    writer: BufWriter<StdoutLock<'static>>,
}

impl Output {
    /// Standard output, until the command ends.
    pub fn new() -> Self {
        Self { writer: BufWriter::with_capacity(64 * 1024, io::stdout().lock()) }
    }

    /// Prints by `write` what a command has done, of which its exit status says the same: nobody has to read that.
    pub fn answer(write: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let mut output = Self::new();
        match write(&mut output).and_then(|()| output.finish()) {
            Err(Failure::OutputClosed) => Ok(()),
            written => written,
        }
    }

    /// One line.
    pub fn line(&mut self, text: &str) -> Result<()> {
        self.bytes(text.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Bytes exactly as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.write_all(bytes).map_err(Failure::output)
    }

    /// One JSON object on one line.
    pub fn json(&mut self, object: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(object).expect("our own types serialise to JSON");
        self.line(&text)
    }

    /// Makes everything written so far visible.
    pub fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(Failure::output)
    }

    /// Writes what is buffered.
    pub fn finish(mut self) -> Result<()> {
        self.flush()
    }
}

/// How a column of a [`Table`] is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table of text: a heading, a rule, rows; columns as wide as their widest cell.
#[derive(Debug)]
pub struct Table {
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column headings.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let heading = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        Self { align: columns.iter().map(|(_, align)| *align).collect(), rows: vec![heading] }
    }

    /// Adds a row; it has one cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.align.len(), "a row has one cell per column");
        self.rows.push(cells);
    }

    /// The table as lines, each indented by two spaces.
    pub fn render(&self) -> String {
        let widths: Vec<usize> = (0..self.align.len())
            .map(|column| self.rows.iter().map(|row| width(&row[column])).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::from(" ");
            for ((cell, align), wide) in row.iter().zip(&self.align).zip(&widths) {
                let padding = " ".repeat(wide - width(cell));
                line.push(' ');
                match align {
                    Align::Left => line.extend([cell.as_str(), &padding]),
                    Align::Right => line.extend([padding.as_str(), cell]),
                }
                line.push(' ');
            }
            text.push_str(line.trim_end());
            text.push('\n');
            if index == 0 {
                let rule: Vec<String> = widths.iter().map(|wide| "─".repeat(*wide)).collect();
                text.push_str(&format!("  {}\n", rule.join("  ")));
            }
        }
        text
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Bytes in binary units: `17 B`, `3.4 KiB`, `1.20 GiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut amount = count as f64 / 1024.0;
    let mut unit = 0;
    while amount >= 1023.5 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    let decimals = if amount < 10.0 { 2 } else { usize::from(amount < 100.0) };
    format!("{amount:.decimals$} {}", UNITS[unit])
}

/// A count with its thousands apart: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count and its noun: `1 file`, `2 files`, `3 entries`.
pub fn plural(number: u64, noun: &str) -> String {
    let number_text = count(number);
    match noun.strip_suffix("ry") {
        _ if number == 1 => format!("{number_text} {noun}"),
        Some(stem) => format!("{number_text} {stem}ries"),
        None => format!("{number_text} {noun}s"),
    }
}

/// A time: `3.2 µs`, `17.0 ms`, `2.41 s`.
pub fn seconds(time: f64) -> String {
    if time < 0.001 {
        format!("{:.1} µs", time * 1e6)
    } else if time < 1.0 {
        format!("{:.1} ms", time * 1e3)
    } else {
        format!("{time:.2} s")
    }
}

/// `part` of `whole`, or a dash when there is no whole to compare with.
pub fn ratio(part: u64, whole: u64) -> String {
    if whole == 0 { "–".into() } else { format!("{:.2}", part as f64 / whole as f64) }
}

/// `part` of `whole` as a percentage, or a dash.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "–".into() } else { format!("{:.1} %", 100.0 * part as f64 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes(1024 * 1024 - 1), "1.00 MiB");
        assert_eq!(bytes(150 * 1024 * 1024), "150 MiB");
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(plural(1, "file"), "1 file");
        assert_eq!(plural(2000, "file"), "2,000 files");
        assert_eq!(ratio(3, 2), "1.50");
        assert_eq!(ratio(3, 0), "–");
        assert_eq!(percent(1, 8), "12.5 %");
    }

    #[test]
    fn tables_align_their_columns() {
        let mut table = Table::new(&[("name", Align::Left), ("bytes", Align::Right)]);
        table.row(vec!["größe".into(), "7".into()]);
        table.row(vec!["x".into(), "123456".into()]);
        let expected = "  name    bytes\n  ─────  ──────\n  größe       7\n  x      123456\n";
        assert_eq!(table.render(), expected);
    }
}
