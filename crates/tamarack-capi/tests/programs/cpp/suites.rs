//! Every suite of `tests/cpp` passes, whatever the compiler's flags are; those of LevelDB's semantics with LevelDB, too.

use tamarack::Options;

use super::{LEVELDB, TAMARACK, has_compiler, include_flag, joined, ours, program, try_program};
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
        // It is told that there is no such suite, so it runs.
        let program = try_program(TAMARACK, &flags);
        program.is_ok_and(|program| {
            let output = program.command(&[]).arg("none").output().unwrap();
            String::from_utf8_lossy(&output.stderr).contains("there is no such suite")
        })
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
