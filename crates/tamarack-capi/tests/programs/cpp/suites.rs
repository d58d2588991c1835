//! Every suite of `tests/cpp` passes, whatever the compiler's flags are; those of LevelDB's semantics with LevelDB, too.

use std::process::Command;

use tamarack::Options;

use super::{LEVELDB, TAMARACK, compile, has_compiler, include_flag, joined, ours, program};
use crate::compiler::{Program, built, can};
use crate::leveldb::has_leveldb;

#[test]
fn what_is_leveldbs_holds_without_exceptions_and_type_information() {
    if has_compiler() {
        let flags = ours();
        program(LEVELDB, &joined(&["-std=c++11", "-fno-exceptions", "-fno-rtti"], &flags)).pass(&[]);
    }
}

#[test]
fn what_is_tamaracks_holds_with_the_static_library() {
    if has_compiler() {
        let archive = built().join("libtamarack_capi.a").display().to_string();
        let flags = [include_flag(), archive];
        let first = ["-std=c++17", "-O2", "-DNDEBUG", "-fno-exceptions", "-fno-rtti"];
        let flags = [joined(&first, &flags), vec!["-lgcc_s", "-lrt", "-lm", "-ldl"]].concat();
        let program = program(TAMARACK, &flags);
        program.pass(&[]);
        defaults_are_tamaracks(&program);
    }
}

/// The headers repeat them, so that programs can read them and change what they read.
fn defaults_are_tamaracks(program: &Program) {
    let output = program.command(&[]).arg("default").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let Options { memtable_bytes, open_files_max, block_bytes, table_bytes_max, .. } = Options::default();
    let expected = format!(
        "defaults: write_buffer_size {memtable_bytes} max_open_files {open_files_max} block_size {block_bytes} \
         max_file_size {table_bytes_max}\n"
    );
    assert!(said.starts_with(&expected), "{said} instead of {expected}");
}

#[test]
fn no_memory_is_misused_or_leaked() {
    if !has_compiler() {
        return;
    }
    let own = ours();
    let flags =
        joined(&["-std=c++20", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"], &own);
    let there = can("sanitizers: the C++ compiler has no AddressSanitizer", || {
        let directory = tempfile::tempdir().unwrap();
        let (source, small) = (directory.path().join("small.cc"), directory.path().join("small"));
        std::fs::write(&source, "int main() { return 0; }\n").unwrap();
        let mut command = compile();
        let made = command.arg(source).args(&flags).arg("-o").arg(&small).output().unwrap().status.success();
        // It may compile and not work in this place.
        let runs =
            |mut command: Command| command.env("LD_LIBRARY_PATH", built()).output().unwrap().status.success();
        made && runs(Command::new(small))
    });
    if there {
        for sources in [LEVELDB, TAMARACK] {
            program(sources, &flags).pass(&[]);
        }
    }
}

#[test]
fn leveldb_passes_the_same_program() {
    if has_compiler() && has_leveldb() {
        program(LEVELDB, &["-std=c++17", "-lleveldb"]).pass(&[]);
    }
}
