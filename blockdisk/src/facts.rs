//! What a writer may rely on, and from which moment of the disk on: it reads the position in the disk's log when a call has
//! returned, and says both on a line of its output.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::str::FromStr;

/// Something that is true from some position of the disk's log on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// The batch of that number is about to be written.
    Issued(u64),
    /// All batches up to that number are durable.
    Durable(u64),
    /// The checkpoint that holds so many batches is durable.
    Copied(u64),
}

/// A fact, and how long the log was when it became one.
pub type Noted = (u64, Fact);

const PREFIX: &str = "fact";

/// The line that tells of a fact.
pub fn line((position, fact): &Noted) -> String {
    let (word, number) = match fact {
        Fact::Issued(number) => ("issued", number),
        Fact::Durable(number) => ("durable", number),
        Fact::Copied(number) => ("copied", number),
    };
    format!("{PREFIX} {position} {word} {number}")
}

/// The fact that a line tells of, if it does.
pub fn parse(line: &str) -> Option<Noted> {
    let words: Vec<&str> = line.split(' ').collect();
    let [PREFIX, position, word, number] = words[..] else { return None };
    let number = number.parse().ok()?;
    let fact = match word {
        "issued" => Fact::Issued(number),
        "durable" => Fact::Durable(number),
        "copied" => Fact::Copied(number),
        _ => return None,
    };
    Some((position.parse().ok()?, fact))
}

/// Tells facts with the position that the disk has at that moment.
pub struct Teller(File);

impl Teller {
    /// Reads positions from the file `position`.
    pub fn new(position: &Path) -> io::Result<Self> {
        File::open(position).map(Self)
    }

    /// Tells `fact`, which is one by now.
    pub fn tell(&self, fact: Fact) {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, 0).expect("the disk is served while processes above it live");
        println!("{}", line(&(u64::from_le_bytes(bytes), fact)));
    }
}

/// What must be found on a disk, and what can be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bounds {
    /// At least so many batches.
    pub least: u64,
    /// At most so many.
    pub most: u64,
    /// The checkpoints that must be there, by the number of their batches.
    pub copies: Vec<u64>,
}

impl Bounds {
    /// What they are at `position` of a log, if they were these when it began.
    pub fn at(&self, facts: &[Noted], position: usize) -> Self {
        let mut bounds = self.clone();
        for (since, fact) in facts {
            if *since > position as u64 {
                continue;
            }
            match fact {
                Fact::Issued(number) => bounds.most = bounds.most.max(*number),
                Fact::Durable(number) => bounds.least = bounds.least.max(*number),
                Fact::Copied(number) => bounds.copies.push(*number),
            }
        }
        bounds
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.least, self.most)?;
        self.copies.iter().try_for_each(|copy| write!(f, ",{copy}"))
    }
}

impl FromStr for Bounds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().map_err(|error| format!("{text}: {error}"));
        let mut parts = text.trim().split(',');
        let range = parts.next().and_then(|range| range.split_once('-'));
        let (least, most) = range.ok_or_else(|| format!("{text} is not LEAST-MOST,COPY..."))?;
        let copies = parts.map(number).collect::<Result<_, _>>()?;
        Ok(Self { least: number(least)?, most: number(most)?, copies })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_holds_from_its_position_on() {
        let facts = [(3, Fact::Issued(1)), (5, Fact::Durable(1)), (5, Fact::Issued(2)), (9, Fact::Copied(2))];
        let at = |position| Bounds::default().at(&facts, position);
        assert_eq!(at(2), Bounds::default());
        assert_eq!(at(4), Bounds { least: 0, most: 1, copies: vec![] });
        assert_eq!(at(5), Bounds { least: 1, most: 2, copies: vec![] });
        assert_eq!(at(10), Bounds { least: 1, most: 2, copies: vec![2] });
    }

    #[test]
    fn facts_and_bounds_are_read_as_they_were_written() {
        for noted in [(7, Fact::Issued(8)), (0, Fact::Durable(1)), (5, Fact::Copied(2))] {
            assert_eq!(parse(&line(&noted)), Some(noted));
        }
        assert_eq!(parse("found 7"), None);
        let bounds = Bounds { least: 1, most: 20, copies: vec![3, 15] };
        assert_eq!(bounds.to_string().parse(), Ok(bounds));
        assert!("1".parse::<Bounds>().is_err() && "1-x".parse::<Bounds>().is_err());
    }
}
