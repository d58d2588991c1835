//! `suite`: the trials of `docs/PERFORMANCE.md`, one after the other. It goes on when one fails, and keeps what each came to as soon as
//! it is over.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tamarack_bench::{Comparison, Outcome, page};

use crate::compare::{save, write};
use crate::stores::Peer;
use crate::summary;
use crate::trial::{Conditions, Run, Trial};

/// A trial: its name, the stores, and what they do.
type Entry = (&'static str, &'static str, &'static str);

/// All of them.
const TRIALS: [Entry; 41] = [
    (
        "overwrite",
        "tamarack,rocksdb,blobdb,fjall,fjall-blobs,lmdb,bare",
        "fillrandom overwrite --num 2000000 --ops 4000000 --value-size 1024",
    ),
    (
        "overwrite-at-a-rate",
        "tamarack,rocksdb",
        "fillrandom overwrite --num 2000000 --ops 4000000 --value-size 1024 --rate 150000",
    ),
    (
        "in-memory",
        "tamarack,rocksdb,leveldb,fjall,lmdb,badger,bare",
        "fillrandom readrandom multireadrandom readseq --num 1000000 --ops 500000 --value-size 1024",
    ),
    (
        "other-work-in-memory",
        "tamarack,rocksdb,blobdb,leveldb,fjall,lmdb,badger",
        "fillrandom readmissing seekrandom readreverse readwhilewriting deleterandom --num 1000000 --ops 500000 --value-size 1024",
    ),
    (
        "in-caches",
        "tamarack,rocksdb,blobdb,fjall,lmdb",
        "fillrandom readrandom readrandom --num 1000000 --ops 4000000 --value-size 1024 --cache-mib 2048",
    ),
    (
        "in-caches-2-threads",
        "tamarack,rocksdb,blobdb,fjall,lmdb",
        "fillrandom readrandom readrandom --num 1000000 --ops 4000000 --value-size 1024 --cache-mib 2048 --threads 2",
    ),
    (
        "ycsb-1-thread",
        "tamarack,rocksdb,blobdb,fjall,fjall-blobs,lmdb,bare,records",
        "ycsbload ycsba ycsbb ycsbc ycsbd ycsbf --num 1000000 --ops 600000 --value-size 1024 --memory-max 512 --threads 1",
    ),
    (
        "ycsb-4-threads",
        "tamarack,rocksdb,blobdb,fjall,fjall-blobs,lmdb,bare,records",
        "ycsbload ycsba ycsbb ycsbc ycsbd ycsbf --num 1000000 --ops 600000 --value-size 1024 --memory-max 512 --threads 4",
    ),
    (
        "ycsb-past-the-cache-1-thread",
        "tamarack,blobdb",
        "ycsbload ycsba ycsbb ycsbc ycsbd ycsbf --num 1000000 --ops 600000 --value-size 1024 --memory-max 512 --threads 1 --cache-mib 352 --direct",
    ),
    (
        "ycsb-past-the-cache-4-threads",
        "tamarack,blobdb",
        "ycsbload ycsba ycsbb ycsbc ycsbd ycsbf --num 1000000 --ops 600000 --value-size 1024 --memory-max 512 --threads 4 --cache-mib 352 --direct",
    ),
    (
        "ycsb-e",
        "tamarack,rocksdb,blobdb,fjall,bare,records",
        "ycsbload ycsbe --num 1000000 --ops 20000 --value-size 1024 --memory-max 512",
    ),
    (
        "ycsb-e-after-idling",
        "tamarack,rocksdb,blobdb,leveldb,fjall,lmdb",
        "ycsbload ycsbe --idle-seconds 15 --num 1000000 --ops 60000 --value-size 1024 --memory-max 512",
    ),
    (
        "scan-after-fillseq",
        "tamarack,rocksdb,blobdb,leveldb,bare",
        "fillseq readseq --cold --num 1000000 --value-size 1024",
    ),
    (
        "scan-after-fillrandom",
        "tamarack,rocksdb,blobdb,leveldb,fjall,fjall-blobs,lmdb,bare",
        "fillrandom readseq --cold --num 1000000 --value-size 1024",
    ),
    (
        "scan-after-idling",
        "tamarack,rocksdb,leveldb,fjall,fjall-blobs,lmdb,bare",
        "fillrandom readseq --cold --idle-seconds 8 --num 1000000 --value-size 1024",
    ),
    (
        "scan-of-4-kib",
        "tamarack,rocksdb,blobdb,fjall-blobs,bare",
        "fillrandom readseq --cold --num 300000 --value-size 4096",
    ),
    (
        "scan-of-64-kib",
        "tamarack,rocksdb,blobdb,fjall-blobs,bare",
        "fillrandom readseq --cold --num 25000 --value-size 65536",
    ),
    (
        "cold-gets",
        "tamarack,rocksdb,blobdb,leveldb,fjall-blobs,lmdb,badger-vlog,bare,records,device",
        "fillrandom readrandom --num 1000000 --ops 600000 --value-size 1024 --memory-max 256 --cold --threads 8",
    ),
    (
        "cold-gets-of-256-b",
        "tamarack,blobdb,bare,device",
        "fillrandom readrandom --num 4194304 --ops 150000 --value-size 256 --memory-max 256 --cold --threads 8",
    ),
    (
        "cold-gets-of-4-kib",
        "tamarack,blobdb,bare,device",
        "fillrandom readrandom --num 262144 --ops 150000 --value-size 4096 --memory-max 256 --cold --threads 8",
    ),
    (
        "cold-gets-of-16-kib",
        "tamarack,blobdb,bare,device",
        "fillrandom readrandom --num 65536 --ops 60000 --value-size 16384 --memory-max 256 --cold --threads 8",
    ),
    (
        "cold-gets-of-64-kib",
        "tamarack,blobdb,fjall-blobs,bare,device",
        "fillrandom readrandom --num 16384 --ops 16384 --value-size 65536 --memory-max 256 --cold --threads 8",
    ),
    (
        "cold-gets-1-thread",
        "tamarack,rocksdb,blobdb,lmdb,badger-vlog,bare,records,device",
        "fillrandom readrandom --num 1000000 --ops 400000 --value-size 1024 --memory-max 256 --cold",
    ),
    (
        "cold-gets-of-256-b-1-thread",
        "tamarack,blobdb,bare,device",
        "fillrandom readrandom --num 4194304 --ops 150000 --value-size 256 --memory-max 256 --cold",
    ),
    (
        "cold-gets-of-4-kib-1-thread",
        "tamarack,blobdb,bare,device",
        "fillrandom readrandom --num 262144 --ops 150000 --value-size 4096 --memory-max 256 --cold",
    ),
    (
        "cold-gets-of-16-kib-1-thread",
        "tamarack,blobdb,bare,device",
        "fillrandom readrandom --num 65536 --ops 60000 --value-size 16384 --memory-max 256 --cold",
    ),
    (
        "cold-gets-of-64-kib-1-thread",
        "tamarack,blobdb,fjall-blobs,bare,device",
        "fillrandom readrandom --num 16384 --ops 16384 --value-size 65536 --memory-max 256 --cold",
    ),
    (
        "many-keys-at-once",
        "tamarack,rocksdb,blobdb,fjall-blobs,lmdb,bare,records,device",
        "fillrandom multireadrandom --cold --num 2000000 --ops 300000 --value-size 1024",
    ),
    (
        "32-keys-at-once",
        "tamarack,records,device",
        "fillrandom multireadrandom --cold --num 2000000 --ops 300000 --value-size 1024 --keys-per-read 32",
    ),
    (
        "sync-8-threads",
        "tamarack,rocksdb,leveldb,fjall,lmdb,badger-vlog,bare",
        "fillsync --num 20000000 --value-size 1024 --threads 8",
    ),
    (
        "sync-1-thread",
        "tamarack,rocksdb,leveldb,fjall,lmdb,badger-vlog,bare",
        "fillsync --num 20000000 --value-size 1024",
    ),
    (
        "values-of-1-kib",
        "tamarack,rocksdb,blobdb,leveldb,fjall,fjall-blobs,lmdb,badger,badger-vlog,bare",
        "fillrandom --num 2000000 --value-size 1024",
    ),
    (
        "values-of-1-kib-in-batches",
        "tamarack,rocksdb,blobdb,leveldb,fjall,fjall-blobs,lmdb,bare",
        "fillrandom --num 2000000 --value-size 1024 --batch-size 100",
    ),
    ("values-of-64-b", "tamarack,rocksdb,blobdb,fjall,lmdb,bare", "fillrandom --num 8000000 --value-size 64"),
    (
        "values-of-256-b",
        "tamarack,rocksdb,blobdb,fjall,fjall-blobs,lmdb,bare",
        "fillrandom --num 4000000 --value-size 256",
    ),
    (
        "values-of-4-kib",
        "tamarack,rocksdb,blobdb,fjall-blobs,badger-vlog,bare",
        "fillrandom --num 400000 --value-size 4096",
    ),
    (
        "values-of-16-kib",
        "tamarack,rocksdb,blobdb,fjall-blobs,badger-vlog,bare",
        "fillrandom --num 100000 --value-size 16384",
    ),
    (
        "values-of-64-kib",
        "tamarack,rocksdb,blobdb,fjall-blobs,badger-vlog,bare",
        "fillrandom --num 25000 --value-size 65536",
    ),
    (
        "values-of-256-kib",
        "tamarack,rocksdb,blobdb,fjall-blobs,badger-vlog,bare",
        "fillrandom --num 8000 --value-size 262144",
    ),
    (
        "2-million",
        "tamarack,bare",
        "fillrandom readrandom --cold --num 2000000 --ops 300000 --value-size 1024 --memory-max 512",
    ),
    (
        "20-million",
        "tamarack,bare",
        "fillrandom readrandom --cold --num 20000000 --ops 300000 --value-size 1024 --memory-max 5120",
    ),
];

/// Run all comparisons of docs/PERFORMANCE.md
///
/// DIR gets a JSON file for each of them, of which `tamarack bench-page` makes pages, `page.html` with tables and plots of all, and
/// `tables.md` with the median and the range of each figure. A store, or a whole comparison, that fails has a row that says why.
#[derive(Debug, Args)]
pub struct Suite {
    /// Where results go; made if it is not there
    #[arg(value_name = "DIR")]
    results: PathBuf,

    /// How often each store runs
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// Only the comparisons of these names
    #[arg(long, value_delimiter = ',', value_name = "NAME", value_parser = TRIALS.map(|(name, ..)| name))]
    only: Vec<String>,

    /// Only these stores, of those that a comparison has
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STORE")]
    stores: Vec<Peer>,

    /// Divide keys and operations by N, to try it out
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    divide: u64,

    /// Read past the kernel's cache of files; a store that cannot has a row that says so
    #[arg(long)]
    direct: bool,

    #[command(flatten)]
    conditions: Conditions,
}

impl Suite {
    /// Runs the command.
    pub fn run(self) -> Result<(), String> {
        std::fs::create_dir_all(&self.results)
            .map_err(|error| format!("{}: {error}", self.results.display()))?;
        let mut all: Option<Comparison> = None;
        let mut tables = "# Comparisons\n".to_owned();
        let wanted = |name: &str| self.only.is_empty() || self.only.iter().any(|only| only == name);
        for (number, entry) in TRIALS.iter().enumerate().filter(|(_, (name, ..))| wanted(name)) {
            let trial = self.trial(entry).map_err(|error| error.to_string())?;
            let trial = Trial { first: number, ..trial };
            if trial.stores.is_empty() {
                continue;
            }
            eprintln!("{}: {}", entry.0, trial.command());
            let (comparison, runs) = self.make(entry.0, &trial)?;
            tables += &format!("\n## {}\n\n```sh\n{}\n```\n", entry.0, trial.command());
            tables += &summary::markdown(&trial, &runs);
            match &mut all {
                None => all = Some(comparison),
                Some(all) => all.join(comparison)?,
            }
            write(&self.results.join("tables.md"), &tables)?;
            all.iter().try_for_each(|all| write(&self.results.join("page.html"), &page(all)))?;
        }
        all.map(|_| ()).ok_or_else(|| "no comparison has these stores".to_owned())
    }

    /// Makes a trial. If that fails, each store that has no run says why.
    fn make(&self, name: &str, trial: &Trial) -> Result<(Comparison, Vec<Run>), String> {
        let file = self.results.join(format!("{name}.json"));
        let mut comparison = trial.comparison();
        let made = trial.make(&mut comparison, &mut |comparison| save(&file, comparison));
        let runs = made.unwrap_or_else(|why| {
            eprintln!("{name}: {why}");
            comparison
                .rows
                .extend(trial.stores.iter().map(|&store| trial.row(store, Outcome::Missing(why.clone()))));
            let failed = |&store| Run { store, reports: Vec::new(), failure: Some(why.clone()) };
            trial.stores.iter().map(failed).collect()
        });
        save(&file, &comparison)?;
        Ok((comparison, runs))
    }

    fn trial(&self, (_, stores, work): &Entry) -> Result<Trial, clap::Error> {
        let asked = |store: &Peer| self.stores.is_empty() || self.stores.contains(store);
        let stores = stores.split(',').map(peer).filter(asked).collect();
        let mut arguments = divided(work, self.divide);
        if self.direct && !arguments.iter().any(|argument| argument == "--direct") {
            arguments.push("--direct".to_owned());
        }
        Trial::new(stores, self.rounds, self.conditions.clone(), arguments)
    }
}

fn peer(name: &str) -> Peer {
    Peer::from_str(name, false).expect("the list has names of stores")
}

/// The arguments of `work`, with fewer keys and operations.
fn divided(work: &str, by: u64) -> Vec<String> {
    const LEAST: u64 = 100;
    let mut counts = false;
    let argument = |argument: &str| {
        let count = argument.parse::<u64>().ok().filter(|_| counts && by > 1);
        counts = matches!(argument, "--num" | "--ops");
        count.map_or_else(|| argument.to_owned(), |count| (count / by).max(LEAST).to_string())
    };
    work.split_whitespace().map(argument).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_trials_are_those_of_the_document() {
        let document = include_str!("../../docs/PERFORMANCE.md").replace("\\\n", " ");
        let commands = document.lines().filter(|line| line.starts_with("tamarack-bench-peers compare "));
        let documented: Vec<(Vec<&str>, String)> = commands
            .map(|command| {
                let (own, work) = command.split_once(" -- ").expect("work follows");
                let mut words = own.split_whitespace();
                let mut stores = Vec::new();
                while let Some(word) = words.next() {
                    if word == "--stores" {
                        stores.extend(words.next().into_iter().flat_map(|names| names.split(',')));
                    }
                }
                (stores, work.split_whitespace().collect::<Vec<_>>().join(" "))
            })
            .collect();
        let listed = TRIALS.iter().map(|(_, stores, work)| (stores.split(',').collect(), (*work).to_owned()));
        assert_eq!(listed.collect::<Vec<(Vec<&str>, String)>>(), documented);
    }

    fn suite(arguments: &str) -> Suite {
        use clap::Parser;
        #[derive(Parser)]
        struct Command {
            #[command(flatten)]
            suite: Suite,
        }
        Command::parse_from(arguments.split(' ')).suite
    }

    #[test]
    fn each_trial_can_be_made_and_has_a_name_of_its_own() {
        let suite = suite("suite results --stores fjall,tamarack");
        for entry in &TRIALS {
            let trial = suite.trial(entry).unwrap_or_else(|error| panic!("{}: {error}", entry.0));
            assert_eq!(trial.stores[0], Peer::Tamarack);
            assert!(trial.command().ends_with(entry.2), "{}", trial.command());
        }
        assert_eq!(TRIALS.iter().map(|(name, ..)| name).collect::<BTreeSet<_>>().len(), TRIALS.len());
    }

    #[test]
    fn all_trials_can_read_directly() {
        let suite = suite("suite results --direct");
        for entry in &TRIALS {
            let trial = suite.trial(entry).unwrap_or_else(|error| panic!("{}: {error}", entry.0));
            assert!(trial.work.direct && trial.command().ends_with(" --direct"), "{}", trial.command());
        }
    }

    #[test]
    fn only_counts_are_divided() {
        let arguments =
            |by| divided("readseq --num 5000 --ops 200 --value-size 65536 --threads 8", by).join(" ");
        assert_eq!(arguments(1), "readseq --num 5000 --ops 200 --value-size 65536 --threads 8");
        assert_eq!(arguments(10), "readseq --num 500 --ops 100 --value-size 65536 --threads 8");
    }
}
