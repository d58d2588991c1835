//! LevelDB itself, where the machine has it: our idea of what it does is right, and our header says what its header
//! says.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::compiler::{LEVELDB, Library, Program, can, compiler, include};
use crate::names::{declared, listed};

const HEADER: &str = "/usr/include/leveldb/c.h";

/// Whether it is there.
pub fn has_leveldb() -> bool {
    can("comparison with LevelDB: it is not installed (Debian: libleveldb-dev)", || {
        std::path::Path::new(HEADER).exists()
    })
}

#[test]
fn leveldb_passes_the_same_program() {
    if has_leveldb() {
        Program::compile(LEVELDB, Library::LevelDb, &[]).pass(&[]);
    }
}

#[test]
fn its_header_declares_what_our_list_names() {
    if has_leveldb() {
        assert_eq!(declared(&std::fs::read_to_string(HEADER).unwrap(), "leveldb_"), listed());
    }
}

/// Two declarations of a function in one C program must agree.
#[test]
fn its_declarations_and_ours_agree() {
    if !has_leveldb() {
        return;
    }
    let ours = include().join("leveldb/c.h").display().to_string();
    // The constants cannot be declared twice, so ours get other names.
    let source = format!(
        "#include \"{HEADER}\"\n#define leveldb_no_compression our_no_compression\n\
         #define leveldb_snappy_compression our_snappy_compression\n#include \"{ours}\"\n\
         _Static_assert(leveldb_no_compression == 0 && leveldb_snappy_compression == 1, \"constants\");\n"
    );
    assert_eq!(compile(&source), Ok(()));
    let wrong = format!("{source}\nint leveldb_put(void);\n");
    assert!(compile(&wrong).is_err(), "a declaration that differs is an error");
}

fn compile(source: &str) -> Result<(), String> {
    let mut cc = Command::new(compiler());
    cc.args(["-std=c11", "-fsyntax-only", "-x", "c", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = cc.spawn().unwrap();
    child.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
