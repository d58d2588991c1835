//! Every form that a forbidden path can take is found, and every allowed one is let through.

use super::*;
use crate::tree::tests::tree;

const ROOT: &str = "mod base; mod cube; mod db; mod env; mod index; mod skiplist; mod vlog;\n\
                    pub use base::error::{Error, Result};\npub use db::Db;";

/// What is found in a tree whose only other file than `lib.rs` is `path`.
fn findings(path: &str, text: &str) -> Vec<String> {
    let (root, path) = (format!("{ENGINE}lib.rs"), format!("{ENGINE}{path}"));
    let (_directory, tree) = tree(&[(&root, ROOT), (&path, text)]);
    check(&tree).iter().map(|finding| finding.to_string().replace(ENGINE, "")).collect()
}

fn assert_found(path: &str, text: &str, expected: &str) {
    let found = findings(path, text);
    assert!(found.iter().any(|finding| finding.contains(expected)), "{text}\ngave {found:?}, not {expected}");
}

#[test]
fn an_upward_path_is_found_in_every_form() {
    let upward = "`vlog` uses `db`, a layer above it";
    for text in [
        "use crate::db::Db;",
        "use crate::{base::error::Error, db::{self, Db}};",
        "use crate::{base, db as store};",
        "use crate::r#db::Db;",
        "pub use crate::db::Db;",
        "pub(crate) use crate::db::*;",
        "use super::super::db::Db;",
        "use super::{super::db::Db, segment};",
        "use self::super::super::db::Db;",
        "use crate::Db;",
        "mod inner { use super::super::super::db::Db; }",
        "fn f() { use crate::db::Db; }",
        "fn f() { let db = crate::db::Db::open(); }",
        "fn f() { let size = size_of::<crate::db::Db>(); }",
        "fn f(db: &crate::db::Db) {}",
        "fn f(db: Vec<Option<super::super::db::Db>>) {}",
        "fn f<T: crate::db::Trait>() {}",
        "impl crate::db::Trait for u8 {}",
        "fn f() { <u8 as crate::db::Trait>::call(); }",
        "fn f() { match 1 { crate::db::ONE => {} _ => {} } }",
        "fn f() { assert_eq!(1, crate::db::ONE, \"one\"); }",
        "fn f() { vec![vec![super::super::db::one()]]; }",
        "macro_rules! m { () => { $crate::db::Db::open() }; }",
        "macro_rules! m { () => { use crate::{base, db::Db}; }; }",
        "macro_rules! m { ($t:ident) => { use crate::db::{$t}; }; }",
        "fn f() { crate::db::m!(); }",
        "#[derive(crate::db::Derive)] struct S;",
        "#[cfg(test)] mod tests { use crate::db::Db; }",
    ] {
        assert_found("vlog/writer.rs", text, upward);
    }
}

#[test]
fn siblings_must_not_meet() {
    assert_found("vlog/mod.rs", "use crate::index::Table;", "`vlog` uses `index`, a sibling");
    assert_found("index/table/mod.rs", "use super::super::vlog::Log;", "`index` uses `vlog`, a sibling");
    assert_found("skiplist/mod.rs", "use super::env::Fs;", "`skiplist` uses `env`, a sibling");
    assert_found("env/mod.rs", "fn f() { crate::skiplist::f() }", "`env` uses `skiplist`, a sibling");
}

#[test]
fn the_crate_root_must_not_be_imported_whole() {
    for text in [
        "use crate as engine;",
        "use crate::*;",
        "use crate::{self as engine};",
        "use super::super as engine;",
        "use super::super::*;",
        "extern crate self as engine;",
        "macro_rules! m { () => { use crate as engine; }; }",
        "macro_rules! m { ($t:ident) => { use crate::{$t}; }; }",
    ] {
        assert_found("vlog/writer.rs", text, "the crate root");
    }
    assert_found("vlog/mod.rs", "use super::*;", "the crate root");
    assert_found("vlog/mod.rs", "use crate::unheard_of;", "belongs to no layer");
    assert_found("extra/mod.rs", "", "belongs to no layer");
}

#[test]
fn a_finding_names_file_line_path_and_rule() {
    let text = "//! A file.\n\nuse crate::{\n    base::error::Error,\n    cube::Cube,\n};\n";
    let expected = "vlog/writer.rs:5: `crate::cube::Cube`: `vlog` uses `cube`, a layer above it";
    assert_eq!(findings("vlog/writer.rs", text), [expected]);
}

#[test]
fn downward_and_own_paths_pass() {
    let text = "use crate::base::error::{Error, Result};\nuse crate::env::{self, Fs};\n\
        use super::segment::*;\nuse super::super::base;\nuse std::{fmt, io, time::Duration};\n\
        pub(crate) use self::inner::One;\n\
        mod inner { use super::*; pub(in crate::vlog) struct One; pub(crate) struct Two; }\n\
        fn f(&self) -> crate::Result<()> { assert!(crate::skiplist::f() == crate::vlog::g(self)); }\n\
        #[cfg(test)]\nmod tests {\n    use super::*;\n    fn f() { std::thread::spawn(|| std::fs::read(\"x\")); }\n}\n";
    assert_eq!(findings("vlog/writer.rs", &text.replace("&self", "x: u8").replace("(self)", "(x)")), [""; 0]);
    assert_eq!(findings("cube/mod.rs", "use crate::{base, env, index, skiplist, vlog};"), [""; 0]);
    assert_eq!(findings("db/mod.rs", "use crate::{base, cube, env, index, skiplist, vlog};"), [""; 0]);
}

#[test]
fn only_env_reaches_the_operating_system() {
    for text in [
        "use std::fs;",
        "use std::fs::File;",
        "use std::{fmt, time::{Duration, Instant}};",
        "use std::time;",
        "use std::time::{self as clock};",
        "use std::time::*;",
        "use std as standard;",
        "fn f() { ::std::thread::sleep(d); }",
        "fn f() { let now = std::time::SystemTime::now(); }",
        "fn f() { assert!(std::time::Instant::now() > then); }",
    ] {
        assert_found("index/mod.rs", text, "is for `env` alone");
        assert_eq!(findings("env/posix.rs", text), [""; 0]);
    }
    assert_found("lib.rs", "use std::thread;", "`std::thread` is for `env` alone");
}

#[test]
fn the_c_interface_has_layers_of_its_own_and_the_operating_system() {
    let found = |path: &str, text: &str| -> Vec<String> {
        let path = format!("{C_INTERFACE}{path}");
        let (_directory, tree) = tree(&[(&path, text)]);
        check(&tree).iter().map(ToString::to_string).collect()
    };
    for (path, text, expected) in [
        ("boundary/guard.rs", "use crate::database::Database;", "a layer above it"),
        ("batch.rs", "use crate::exports::f;", "a layer above it"),
        ("batch.rs", "use crate::options::OpenOptions;", "a sibling it must not know"),
        ("novelty.rs", "", "belongs to no layer"),
    ] {
        let found = found(path, text);
        assert!(found.iter().any(|finding| finding.contains(expected)), "{path}: {text} gave {found:?}");
    }
    assert_eq!(
        found("exports/batch.rs", "use crate::batch::Batch; use crate::boundary::handle::Given;"),
        [""; 0]
    );
    assert_eq!(found("directory.rs", "fn f() { std::fs::create_dir(path) }"), [""; 0]);
}
