//! The layers of the engine, of the C interface and of the reader of LevelDB's directories, strictly downward: a module uses itself and modules of a lower
//! rank, nothing else.
//!
//! Paths are resolved from the syntax tree, so that an upward dependency is found in every form it can take. A second
//! rule, a net below clippy's: in the engine only `env` reaches for files, threads and clocks of the operating system.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::mentions::{Mention, mentions};
use crate::tree::{Source, Tree};

/// Where the engine's modules lie.
pub const ENGINE: &str = "crates/tamarack/src/";

/// Where the modules of the C interface lie.
pub const C_INTERFACE: &str = "crates/tamarack-capi/src/";

/// Where the modules of the reader of LevelDB's directories lie.
const LEVELDB_READER: &str = "crates/tamarack-leveldb/src/";

/// Every module at a crate's root with its rank. Modules of one rank are siblings and must not meet.
type Ranks = &'static [(&'static str, u32)];

const ENGINE_RANKS: Ranks = &[
    ("base", 0),
    ("env", 1),
    ("skiplist", 1),
    ("index", 2),
    ("vlog", 2),
    ("cube", 3),
    ("db", 4),
    ("fuzz", 5),
];

const C_INTERFACE_RANKS: Ranks = &[
    ("status", 0),
    ("boundary", 1),
    ("directory", 1),
    ("order_name", 1),
    ("report", 1),
    ("settings", 1),
    ("batch", 2),
    ("iterator", 2),
    ("options", 2),
    ("reads", 2),
    ("database", 3),
    ("exports", 4),
];

const LEVELDB_READER_RANKS: Ranks = &[
    ("checksum", 0),
    ("coding", 0),
    ("compression", 0),
    ("error", 0),
    ("keys", 0),
    ("options", 0),
    ("remark", 0),
    ("batch", 1),
    ("block", 1),
    ("edit", 1),
    ("file", 1),
    ("loss", 1),
    ("names", 1),
    ("sorter", 1),
    ("context", 2),
    ("lock", 2),
    ("log", 2),
    ("manifest", 3),
    ("replay", 3),
    ("table", 4),
    ("walk", 5),
    ("table_run", 6),
    ("merge", 7),
    ("survey", 7),
    ("plan", 8),
    ("entries", 9),
];

/// What only `env` may name outside tests.
const OPERATING_SYSTEM: &[&[&str]] =
    &[&["std", "fs"], &["std", "thread"], &["std", "time", "Instant"], &["std", "time", "SystemTime"]];

/// Every path in one of these crates that points upward or sideways, and in the engine past `env`.
pub fn check(tree: &Tree) -> Vec<Finding> {
    [
        check_crate(tree, ENGINE, ENGINE_RANKS),
        check_crate(tree, C_INTERFACE, C_INTERFACE_RANKS),
        check_crate(tree, LEVELDB_READER, LEVELDB_READER_RANKS),
    ]
    .concat()
}

fn check_crate(tree: &Tree, root: &str, ranks: Ranks) -> Vec<Finding> {
    let root_names = root_names(tree, root, ranks);
    let mut findings = Vec::new();
    for source in &tree.sources {
        let Some(path) = source.path.strip_prefix(root) else { continue };
        let module = module_path(path);
        let layer = module.first().cloned();
        if layer.as_deref().is_some_and(|layer| rank(ranks, layer).is_none()) {
            findings.push(Finding::new(
                &source.path,
                1,
                format!("`{path}` belongs to no layer: give it a rank"),
            ));
            continue;
        }
        for mention in mentions(&source.syntax, module) {
            let broken = [
                layer.as_deref().and_then(|layer| break_order(ranks, layer, &mention, &root_names)),
                (root == ENGINE).then(|| break_env(layer.as_deref(), source, &mention)).flatten(),
            ];
            let report =
                |rule| Finding::new(&source.path, mention.line, format!("`{}`: {rule}", mention.written()));
            findings.extend(broken.into_iter().flatten().map(report));
        }
    }
    findings
}

/// The rule of the order that `mention`, in a module of `layer`, breaks.
fn break_order(
    ranks: Ranks,
    layer: &str,
    mention: &Mention,
    root_names: &BTreeMap<String, String>,
) -> Option<String> {
    let path = mention.resolve()?;
    let Some(&name) = path.first() else {
        return Some("brings the crate root into scope, and with it every layer".to_owned());
    };
    let target = match rank(ranks, name) {
        Some(_) => name,
        None => match root_names.get(name) {
            Some(target) => target,
            None => {
                return Some(format!("`{name}` belongs to no layer: use it by the module that defines it"));
            }
        },
    };
    if target == layer || rank(ranks, target) < rank(ranks, layer) {
        return None;
    }
    let siblings = rank(ranks, target) == rank(ranks, layer);
    let direction = if siblings { "a sibling it must not know" } else { "a layer above it" };
    Some(format!("`{layer}` uses `{target}`, {direction}"))
}

/// The rule about the operating system that `mention` breaks.
fn break_env(layer: Option<&str>, source: &Source, mention: &Mention) -> Option<String> {
    if layer == Some("env") || source.is_test(mention.line) {
        return None;
    }
    let names: Vec<&str> = mention.names.iter().map(String::as_str).filter(|name| *name != "self").collect();
    let reached = OPERATING_SYSTEM.iter().find(|forbidden| {
        // Importing a parent of the forbidden path is a way round it.
        names.starts_with(forbidden) || (mention.import && forbidden.starts_with(&names))
    })?;
    Some(format!("`{}` is for `env` alone", reached.join("::")))
}

fn rank(ranks: Ranks, layer: &str) -> Option<u32> {
    ranks.iter().find(|(name, _)| *name == layer).map(|(_, rank)| *rank)
}

/// The module path of a file, given relative to the crate's `src/`.
fn module_path(file: &str) -> Vec<String> {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    if stem == "lib" { Vec::new() } else { stem.split('/').map(str::to_owned).collect() }
}

/// The names that `lib.rs` re-exports, with the layer that each comes from.
fn root_names(tree: &Tree, root: &str, ranks: Ranks) -> BTreeMap<String, String> {
    let Some(root) = tree.sources.iter().find(|source| source.path == format!("{root}lib.rs")) else {
        return BTreeMap::new();
    };
    let from_layer = |mention: Mention| {
        let path: Vec<&String> =
            mention.names.iter().filter(|name| *name != "crate" && *name != "self").collect();
        let (first, last) = (path.first()?, path.last()?);
        (mention.import && rank(ranks, first).is_some()).then(|| ((*last).clone(), (*first).clone()))
    };
    mentions(&root.syntax, Vec::new()).into_iter().filter_map(from_layer).collect()
}

#[cfg(test)]
mod tests;
