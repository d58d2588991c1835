//! `import-dir` and `export-dir`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::world::World;

/// A tree with everything that is hard to keep.
fn awkward_tree(root: &Path) {
    for name in ["plain", "plain/deep er", "plain/deep er/ünïcödé", "empty", "empty/nested", "locked"] {
        fs::create_dir_all(root.join(name)).expect("the directory is ours");
    }
    let files: [(&[u8], &[u8], u32); 8] = [
        (b"plain/file.txt", b"text\n", 0o644),
        (b"plain/empty file", b"", 0o644),
        (b"plain/run", b"#!/bin/sh\n", 0o755),
        (b"plain/secret", b"s", 0o600),
        ("plain/deep er/ünïcödé/日本語".as_bytes(), b"unicode", 0o644),
        (b"not utf-8 \xff\xfe", b"\x00\xff", 0o644),
        (b"new\nline\ttab", b"odd", 0o640),
        (b"locked/inside", b"in a directory nobody may write to", 0o444),
    ];
    for (name, bytes, mode) in files {
        let path = root.join(OsStr::from_bytes(name));
        fs::write(&path, bytes).expect("the directory is ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("the file is ours");
    }
    let large: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_le_bytes).collect();
    fs::write(root.join("large"), large).expect("the directory is ours");
    symlink("plain/file.txt", root.join("link")).expect("the directory is ours");
    symlink("../nowhere/\u{fc}", root.join("plain/dangling")).expect("the directory is ours");
    symlink("deep er", root.join("plain/to directory")).expect("the directory is ours");
    fs::set_permissions(root.join("empty"), fs::Permissions::from_mode(0o700)).expect("it is ours");
    fs::set_permissions(root.join("locked"), fs::Permissions::from_mode(0o555)).expect("it is ours");
}

/// Everything under `root` by path: kind, permissions, and bytes or target.
fn listing(root: &Path) -> BTreeMap<PathBuf, (char, u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in walkdir::WalkDir::new(root).min_depth(1) {
        let entry = entry.expect("the tree can be read");
        let mode = entry.metadata().expect("the tree can be read").mode() & 0o777;
        let path = entry.path();
        let described = if entry.file_type().is_dir() {
            ('d', mode, Vec::new())
        } else if entry.file_type().is_symlink() {
            let target = fs::read_link(path).expect("it is a link");
            ('l', 0, target.as_os_str().as_bytes().to_vec())
        } else {
            ('f', mode, fs::read(path).expect("the file can be read"))
        };
        found.insert(path.strip_prefix(root).expect("it is below the root").to_path_buf(), described);
    }
    found
}

#[test]
fn a_tree_comes_back_bit_for_bit() {
    let world = World::new();
    awkward_tree(&world.path("tree"));
    for prefix in ["", "backup/today/"] {
        let (db, out) = (format!("db{}", prefix.len()), format!("out{}", prefix.len()));
        let imported = world.ok(&["import-dir", &db, "tree", "--prefix", prefix, "--json"]).json();
        assert_eq!((&imported["files"], &imported["symlinks"]), (&json!(9), &json!(3)), "{imported}");
        world.ok(&["export-dir", &db, &out, "--prefix", prefix]);
        assert_eq!(listing(&world.path(&out)), listing(&world.path("tree")));
        let again = world.ok(&["export-dir", &db, &out, "--prefix", prefix, "--json"]).json();
        assert_eq!((&again["files"], &again["unchanged"]), (&json!(0), &json!(12)), "{again}");
    }
    assert_eq!(world.ok(&["get", "db0", "plain/file.txt", "--raw"]).text(), "text\n");
    assert_eq!(world.ok(&["get", "db13", "backup/today/plain/file.txt", "--raw"]).text(), "text\n");
}

#[test]
fn an_import_is_continued_and_follows_changes() {
    let world = World::new();
    let tree = world.path("tree");
    awkward_tree(&tree);
    world.ok(&["import-dir", "db", "tree"]);
    let resumed = world.ok(&["import-dir", "db", "tree", "--resume", "--json"]).json();
    assert_eq!((&resumed["files"], &resumed["bytes"]), (&json!(0), &json!(0)), "{resumed}");

    fs::set_permissions(tree.join("plain/run"), fs::Permissions::from_mode(0o644)).expect("it is ours");
    fs::write(tree.join("plain/file.txt"), "changed").expect("it is ours");
    fs::remove_file(tree.join("plain/secret")).expect("it is ours");
    symlink("run", tree.join("plain/secret")).expect("the directory is ours");
    fs::remove_file(tree.join("link")).expect("it is ours");
    fs::write(tree.join("link"), "a file now").expect("the directory is ours");
    fs::set_permissions(tree.join("link"), fs::Permissions::from_mode(0o644)).expect("it is ours");
    let resumed = world.ok(&["import-dir", "db", "tree", "--resume", "--json"]).json();
    assert_eq!((&resumed["files"], &resumed["symlinks"]), (&json!(3), &json!(1)), "{resumed}");
    world.ok(&["export-dir", "db", "out"]);
    assert_eq!(listing(&world.path("out")), listing(&tree));
}

#[test]
fn a_database_within_the_tree_is_left_out() {
    let world = World::new();
    fs::create_dir(world.path("tree")).expect("the directory is ours");
    world.write("tree/file", "x");
    world.ok(&["import-dir", "tree/db", "tree"]);
    assert_eq!(world.ok(&["scan", "tree/db"]).text(), "file\tx\n");
}

#[test]
fn nothing_leaves_the_directory() {
    let world = World::new();
    fs::create_dir(world.path("victim")).expect("the directory is ours");
    world.write("victim/file", "precious");
    let absolute = world.path("victim/absolute");
    let absolute = absolute.to_str().expect("temporary directories have plain names");
    for key in ["../victim/file", "a/../../victim/file", absolute, "a//b", "./c", "good"] {
        world.ok(&["put", "db", key, "evil"]);
    }
    // A link that an attacker stored, and a file behind it.
    let link = hex::encode("\0meta/link");
    world.ok(&[
        "put",
        "db",
        &link,
        &hex::encode("symlink ../victim"),
        "--key-format",
        "hex",
        "--value-format",
        "hex",
    ]);
    world.ok(&["put", "db", "link/file", "evil"]);
    let run = world.run(&["export-dir", "db", "out", "--json"]).expect_status(1);
    assert_eq!(run.json()["files"], json!(2), "{}", run.text());
    assert_eq!(world.read("victim/file"), b"precious");
    assert_eq!(fs::read_dir(world.path("victim")).expect("it is there").count(), 1);
    assert_eq!(world.read("out/good"), b"evil");
    assert_eq!(world.read("out/link/file"), b"evil", "the name is a directory, and stays one");

    // A link that was in the target directory before.
    fs::create_dir(world.path("out2")).expect("the directory is ours");
    symlink("../victim", world.path("out2/link")).expect("the directory is ours");
    world.run(&["export-dir", "db", "out2", "--overwrite"]).expect_status(1);
    assert_eq!(world.read("victim/file"), b"precious");
}

#[test]
fn files_that_are_there_stay_unless_overwriting_was_asked_for() {
    let world = World::new();
    world.ok(&["put", "db", "file", "stored"]);
    fs::create_dir(world.path("out")).expect("the directory is ours");
    world.write("out/file", "mine");
    let refused = world.run(&["export-dir", "db", "out"]).expect_status(1);
    assert!(
        refused.stderr.contains("file: ") && refused.stderr.contains("--overwrite"),
        "{}",
        refused.stderr
    );
    assert_eq!(world.read("out/file"), b"mine");
    world.ok(&["export-dir", "db", "out", "--overwrite"]);
    assert_eq!(world.read("out/file"), b"stored");
}

#[test]
fn what_cannot_be_stored_is_reported() {
    let world = World::new();
    fs::create_dir(world.path("tree")).expect("the directory is ours");
    world.write("tree/file", "x");
    let _socket = std::os::unix::net::UnixListener::bind(world.path("tree/socket")).expect("a short path");
    let run = world.run(&["import-dir", "db", "tree"]).expect_status(1);
    assert!(run.stderr.contains("socket: neither file, directory nor symbolic link"), "{}", run.stderr);
    assert_eq!(world.ok(&["get", "db", "file"]).text(), "x\n");
}

#[test]
fn what_a_directory_was_before_is_forgotten() {
    let world = World::new();
    let at = |name: &str| world.path("tree").join(name);
    fs::create_dir_all(at("mode")).expect("the directory is ours");
    fs::set_permissions(at("mode"), fs::Permissions::from_mode(0o700)).expect("it is ours");
    fs::write(at("file"), "a file").expect("the directory is ours");
    symlink("mode", at("link")).expect("the directory is ours");
    world.ok(&["import-dir", "db", "tree"]);
    for name in ["file", "link"] {
        fs::remove_file(at(name)).expect("it is ours");
    }
    for name in ["mode", "file", "link"] {
        fs::create_dir_all(at(name)).expect("the directory is ours");
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).expect("it is ours");
        fs::write(at(name).join("inside"), name).expect("the directory is ours");
        fs::set_permissions(at(name).join("inside"), fs::Permissions::from_mode(0o644)).expect("it is ours");
    }
    world.ok(&["import-dir", "db", "tree"]);
    world.ok(&["export-dir", "db", "out"]);
    assert_eq!(listing(&world.path("out")), listing(&world.path("tree")));
}
