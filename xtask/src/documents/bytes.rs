//! The table of persisted bytes is complete: it names every format page and every `format.rs` of the engine,
//! and none that does not exist.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::layers::ENGINE;
use crate::tree::Tree;

const TABLE: &str = "docs/BYTES.md";
const FORMATS: &str = "docs/formats/";

/// Everything that the table lacks, or has too much.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let format_pages: BTreeSet<String> =
        tree.pages.iter().map(|page| page.path.clone()).filter(|path| path.starts_with(FORMATS)).collect();
    let format_files: BTreeSet<String> = tree
        .sources
        .iter()
        .map(|source| source.path.clone())
        .filter(|path| path.starts_with(ENGINE) && path.ends_with("/format.rs"))
        .collect();
    let existing = &format_pages | &format_files;
    let Some(table) = tree.page(TABLE) else {
        return vec![Finding::new(TABLE, 1, "the table of persisted bytes is missing")];
    };

    let mut findings = Vec::new();
    let mut named = BTreeSet::new();
    for (index, line) in table.text.lines().enumerate() {
        for path in
            line.split(|c: char| !(c.is_ascii_alphanumeric() || "_-./".contains(c))).filter_map(full_path)
        {
            if !existing.contains(&path) {
                findings.push(Finding::new(TABLE, index + 1, format!("`{path}` does not exist")));
            }
            named.insert(path);
        }
    }
    let unnamed = existing.difference(&named);
    findings.extend(unnamed.map(|path| Finding::new(TABLE, 1, format!("`{path}` is not in the table"))));
    findings
}

/// The path from the root that a word of the table means, if it names a format page or a `format.rs`.
fn full_path(word: &str) -> Option<String> {
    if word.ends_with(".md") {
        word.split_once("formats/").map(|(_, page)| format!("{FORMATS}{page}"))
    } else if word.ends_with("/format.rs") {
        let file = word.split_once("src/").map_or(word, |(_, file)| file);
        Some(format!("{ENGINE}{file}"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    fn findings(table: &str) -> Vec<String> {
        let (_directory, tree) = tree(&[
            ("docs/BYTES.md", table),
            ("docs/formats/segment.md", ""),
            ("docs/formats/table.md", ""),
            ("crates/tamarack/src/vlog/format.rs", ""),
            ("crates/tamarack/src/index/table/format.rs", ""),
            ("crates/tamarack/src/index/table/block.rs", ""),
        ]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_complete_table_passes() {
        let linked = "| `NNNNNN.vlog` | [segment](formats/segment.md) | [vlog/format.rs](../crates/tamarack/src/vlog/format.rs) |\n\
                      | `NNNNNN.table` | `docs/formats/table.md` | `index/table/format.rs` |\n";
        assert_eq!(findings(linked), [""; 0]);
    }

    #[test]
    fn what_is_not_listed_is_found() {
        let short = "| [segment](formats/segment.md) | `table/format.rs` | `vlog/format.rs` |\n";
        assert_eq!(
            findings(short),
            [
                "docs/BYTES.md:1: `crates/tamarack/src/table/format.rs` does not exist",
                "docs/BYTES.md:1: `crates/tamarack/src/index/table/format.rs` is not in the table",
                "docs/BYTES.md:1: `docs/formats/table.md` is not in the table",
            ]
        );
    }

    #[test]
    fn what_is_listed_must_exist() {
        let long =
            "formats/segment.md formats/table.md vlog/format.rs index/table/format.rs\n\nformats/gone.md\n";
        assert_eq!(findings(long), ["docs/BYTES.md:3: `docs/formats/gone.md` does not exist"]);
    }

    #[test]
    fn the_table_itself_must_exist() {
        let (_directory, tree) = tree(&[]);
        assert_eq!(check(&tree).len(), 1);
    }
}
