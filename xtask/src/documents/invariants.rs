//! Every invariant is listed once, asserted in code and tried by a test; no code speaks of one that is not
//! listed.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::tree::Tree;

const LIST: &str = "docs/INVARIANTS.md";

/// Every invariant that is listed and not kept, or kept and not listed.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(list) = tree.page(LIST) else {
        return vec![Finding::new(LIST, 1, "the list of invariants is missing")];
    };
    let mut findings = Vec::new();
    let mut listed = BTreeMap::new();
    for (index, line) in list.text.lines().enumerate() {
        let first_cell = line.strip_prefix('|').and_then(|row| row.split('|').next());
        for id in first_cell.into_iter().flat_map(ids) {
            if listed.insert(id, index + 1).is_some() {
                findings.push(Finding::new(LIST, index + 1, format!("{id} is listed twice")));
            }
        }
    }

    let mut asserted: BTreeSet<&str> = BTreeSet::new();
    let mut tested: BTreeSet<&str> = BTreeSet::new();
    for source in &tree.sources {
        for (index, line) in source.text.lines().enumerate() {
            let line_ids: Vec<&str> = ids(line).collect();
            if !line_ids.is_empty() {
                if source.is_test(index + 1) { &mut tested } else { &mut asserted }.extend(&line_ids);
                findings.extend(unlisted(&source.path, index + 1, &line_ids, &listed));
            }
        }
    }
    for page in &tree.pages {
        for (index, line) in page.text.lines().enumerate() {
            let line_ids: Vec<&str> = ids(line).collect();
            findings.extend(unlisted(&page.path, index + 1, &line_ids, &listed));
        }
    }

    for (id, line) in &listed {
        if !asserted.contains(id) {
            findings.push(Finding::new(LIST, *line, format!("no code names {id} where it asserts it")));
        }
        if !tested.contains(id) {
            findings.push(Finding::new(LIST, *line, format!("no test names {id}")));
        }
    }
    findings
}

fn unlisted(path: &str, line: usize, ids: &[&str], listed: &BTreeMap<&str, usize>) -> Vec<Finding> {
    let unlisted = ids.iter().filter(|id| !listed.contains_key(*id));
    unlisted.map(|id| Finding::new(path, line, format!("{id} is not in {LIST}"))).collect()
}

/// The invariants that a text names: a capital I, a hyphen and two digits, standing alone.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.split(move |c| !is_word(c)).filter(|word| {
        matches!(word.as_bytes(), [b'I', b'-', tens, ones] if tens.is_ascii_digit() && ones.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    /// Built from its number, so that this file itself names no invariant.
    fn id(number: u32) -> String {
        format!("I-{number:02}")
    }

    fn findings(list: &str, code: &str, test: &str) -> Vec<String> {
        let (_directory, tree) =
            tree(&[("docs/INVARIANTS.md", list), ("a/src/lib.rs", code), ("a/tests/it.rs", test)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn asserted_and_tested_invariants_pass() {
        let list = format!("| {} | first |\n| `{}` | second |\n", id(1), id(2));
        let code = format!(
            "//! Keeps {}, and API-07.\n// {}: why.\n#[cfg(test)]\nmod tests {{\n    // {}\n}}\n",
            id(1),
            id(2),
            id(2)
        );
        assert_eq!(findings(&list, &code, &format!("//! Tries {}.\n", id(1))), [""; 0]);
    }

    #[test]
    fn neglected_invariants_are_found() {
        let list = format!("# List\n| {} | first |\n", id(1));
        let naming = format!("//! {}\n", id(1));
        assert_eq!(
            findings(&list, &naming, "//! A.\n"),
            [format!("docs/INVARIANTS.md:2: no test names {}", id(1))]
        );
        assert_eq!(
            findings(&list, "//! A.\n", &naming),
            [format!("docs/INVARIANTS.md:2: no code names {} where it asserts it", id(1))]
        );
    }

    #[test]
    fn unlisted_and_repeated_invariants_are_found() {
        let naming = format!("//! {}\n", id(1));
        assert_eq!(
            findings("", &naming, ""),
            [format!("a/src/lib.rs:1: {} is not in docs/INVARIANTS.md", id(1))]
        );
        let list = format!("| {0} | a |\n| {0} | b |\n", id(1));
        let expected = format!("docs/INVARIANTS.md:2: {} is listed twice", id(1));
        assert_eq!(findings(&list, &naming, &naming), [expected]);
    }
}
