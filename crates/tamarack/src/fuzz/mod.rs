//! What fuzzers run: a target for each decoder, one that opens a whole hostile directory, and one that compares the
//! database with a model. `fuzz/` of the repository drives them with libFuzzer, `tests/fuzz.rs` with what is kept of that
//! and with mutations of its own.
//!
//! A target takes any bytes and returns. It panics when something is wrong: a decoder that panics, walks in circles, or
//! takes for whole what is not. What bytes mean is told at each target. None of this is for users of the database.

mod directory;
mod golden;
mod operations;

use crate::base::codec::Codec;
use crate::base::error::Result;
use crate::env::Env;
use crate::env::sim::{SimDisk, SimOptions};
use crate::{index, vlog};

/// Something that takes any bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, and that of its directory among the corpora.
    pub name: &'static str,
    /// Runs it.
    pub run: fn(&[u8]),
    /// Bytes to begin with: whole files, and their like.
    pub seeds: fn() -> Vec<(&'static str, Vec<u8>)>,
    /// How many times as long as most an input takes, about.
    pub weight: u64,
    /// The largest piece of memory that an input may ask for, in bytes for each of its own, beside what
    /// [`MEMORY_BYTES`] allows.
    pub memory_per_byte: usize,
}

/// What a target may ask for at once however small its input is: buffers of a fixed size, of which the largest are
/// windows over a log, and the tables of caches.
pub const MEMORY_BYTES: usize = 2 << 20;

/// All of them.
pub const TARGETS: &[Target] = &[
    // An LZ4 byte is at most 255 raw ones, and a Zstandard block of 4 bytes at most 128 KiB.
    Target { name: "codec", run: codec, seeds: golden::codec_seeds, weight: 1, memory_per_byte: 1 << 15 },
    Target {
        name: "segment",
        run: segment,
        seeds: golden::segment_seeds,
        weight: 1,
        memory_per_byte: 1 << 15,
    },
    Target {
        name: "segment_footer",
        run: vlog::fuzz::footer,
        seeds: golden::footer_seeds,
        weight: 1,
        memory_per_byte: 8,
    },
    Target {
        name: "relocations",
        run: vlog::fuzz::relocations,
        seeds: golden::relocation_seeds,
        weight: 1,
        memory_per_byte: 8,
    },
    Target { name: "log", run: log, seeds: golden::log_seeds, weight: 1, memory_per_byte: 8 },
    Target { name: "table", run: table, seeds: golden::table_seeds, weight: 1, memory_per_byte: 1 << 15 },
    Target {
        name: "table_part",
        run: index::fuzz::table_part,
        seeds: golden::table_part_seeds,
        weight: 1,
        memory_per_byte: 64,
    },
    Target { name: "manifest", run: manifest, seeds: golden::manifest_seeds, weight: 1, memory_per_byte: 64 },
    Target { name: "directory", run: directory::run, seeds: directory::seeds, weight: 8, memory_per_byte: 0 },
    Target {
        name: "operations",
        run: operations::run,
        seeds: operations::seeds,
        weight: 40,
        memory_per_byte: 0,
    },
];

/// Runs the target of that name.
///
/// # Panics
/// If there is none, or something is wrong.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("there is no target {name}")).run)(data);
}

/// A world with an empty disk.
fn world() -> Env {
    SimDisk::new(&SimOptions { block_bytes: 512, ..SimOptions::default() }).env()
}

/// An error is an answer, if it is one that bytes can cause.
fn accept(outcome: Result<()>) {
    use crate::base::error::ErrorKind::{Corruption, InvalidArgument, Unsupported};
    if let Err(error) = outcome {
        let kind = error.kind();
        assert!(matches!(kind, Corruption | InvalidArgument | Unsupported), "{kind}: {error}");
    }
}

fn segment(data: &[u8]) {
    accept(vlog::fuzz::segment(&world(), data));
}

fn log(data: &[u8]) {
    accept(vlog::fuzz::log(&world(), data));
}

fn table(data: &[u8]) {
    accept(index::fuzz::table(&world(), data));
}

fn manifest(data: &[u8]) {
    accept(index::fuzz::manifest(&world(), data));
}

/// Stored bytes of the codec that the first byte names; and bytes that are compressed and come back.
fn codec(data: &[u8]) {
    let Some((&which, bytes)) = data.split_first() else { return };
    let codec = Codec::from_byte(which % 3).expect("there are three codecs");
    let mut raw = b"kept".to_vec();
    if which < 128 {
        // What is announced is not more than the bytes can hold.
        if codec.decompress_into(bytes, &mut raw).is_ok() {
            assert_eq!(Some(raw.len() as u64 - 4), codec.raw_len(bytes), "as many bytes as were announced");
        }
    } else if let Some(stored) = codec.compress(bytes).expect("compressing does not fail") {
        codec.decompress_into(&stored, &mut raw).expect("what was compressed decodes");
        assert_eq!(&raw[4..], bytes, "bytes come back");
    }
}
