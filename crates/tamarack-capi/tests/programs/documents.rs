//! The page on moving from LevelDB names every function, every option, and nothing that there is not.

use std::collections::BTreeSet;
use std::path::Path;

use crate::compiler::CRATE;
use crate::names::ours;

#[test]
fn the_page_has_a_row_for_every_function() {
    let page = std::fs::read_to_string(Path::new(CRATE).join("../../docs/LEVELDB.md")).unwrap();
    let cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let rows: BTreeSet<String> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .filter(|name| name.starts_with("leveldb_") || name.starts_with("tamarack_"))
        .map(str::to_owned)
        .collect();
    let functions = &ours("leveldb/c.h", "leveldb_") | &ours("tamarack/c.h", "tamarack_");
    let missing: Vec<_> = functions.difference(&rows).collect();
    let unknown: Vec<_> = rows.difference(&functions).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing: {missing:?}; unknown: {unknown:?}");
}
