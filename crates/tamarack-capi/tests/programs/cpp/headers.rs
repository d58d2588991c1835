//! Each header compiles by itself, whatever the standard; what the page on LevelDB says of options is complete; and parts of a
//! process agree on the objects of which there is one.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::{compile, has_compiler, include_flag, ours, succeed};
use crate::compiler::{CRATE, built, include};

/// The headers for programs, of both directories.
pub fn public() -> Vec<String> {
    let mut names = Vec::new();
    for directory in ["leveldb", "tamarack"] {
        for entry in std::fs::read_dir(include().join(directory)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".h") {
                names.push(format!("{directory}/{name}"));
            }
        }
    }
    assert!(names.len() >= 13, "{names:?}");
    names
}

#[test]
fn each_header_stands_alone_in_every_standard() {
    if !has_compiler() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for header in public() {
        // Twice, and in a file that uses nothing of it.
        let source = directory.path().join("alone.cc");
        std::fs::write(&source, format!("#include <{header}>\n#include <{header}>\n")).unwrap();
        for standard in ["c++11", "c++14", "c++17", "c++20"] {
            let mut command = compile();
            command.args([
                "-Wconversion",
                "-Wold-style-cast",
                "-fno-exceptions",
                "-fno-rtti",
                "-fsyntax-only",
            ]);
            succeed(command.arg(format!("-std={standard}")).arg(include_flag()).arg(&source));
        }
    }
}

/// Two libraries and a program, each compiled with everything hidden, as extension modules of interpreters are: an option that
/// one makes another can open with.
#[test]
fn parts_of_a_process_have_the_same_order_and_env() {
    if !has_compiler() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let source = "#include <leveldb/db.h>\n#include <leveldb/comparator.h>\n#include <leveldb/env.h>\n\
         extern \"C\" __attribute__((visibility(\"default\"))) const void* order_of_NAME() { return leveldb::BytewiseComparator(); }\n\
         extern \"C\" __attribute__((visibility(\"default\"))) const void* env_of_NAME() { return leveldb::Env::Default(); }\n";
    let hidden = ["-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden"];
    for name in ["one", "two"] {
        std::fs::write(path(&format!("{name}.cc")), source.replace("NAME", name)).unwrap();
        let mut command = compile();
        command.args(hidden).arg("-shared").arg("-o").arg(path(&format!("lib{name}.so")));
        succeed(command.arg(path(&format!("{name}.cc"))).args(ours()));
    }
    let program = "#include <leveldb/comparator.h>\n#include <leveldb/env.h>\n\
         extern \"C\" { const void* order_of_one(); const void* order_of_two(); const void* env_of_one(); const void* env_of_two(); }\n\
         int main() { const void* order = leveldb::BytewiseComparator(); const void* env = leveldb::Env::Default();\n\
         return order == order_of_one() && order == order_of_two() && env == env_of_one() && env == env_of_two() ? 0 : 1; }\n";
    std::fs::write(path("program.cc"), program).unwrap();
    let mut command = compile();
    command.args(hidden).arg("-o").arg(path("program")).arg(path("program.cc"));
    succeed(command.arg("-L").arg(directory.path()).args(["-lone", "-ltwo"]).args(ours()));
    let libraries = format!("{}:{}", directory.path().display(), built().display());
    succeed(Command::new(path("program")).env("LD_LIBRARY_PATH", libraries));
}

/// No option is passed over without being told.
#[test]
fn the_page_has_a_row_for_every_option() {
    let header = std::fs::read_to_string(include().join("leveldb/options.h")).unwrap();
    let structs = header.split("struct LEVELDB_EXPORT ").skip(1).flat_map(|text| text.split("};").next());
    let fields: BTreeSet<String> = structs
        .flat_map(str::lines)
        .filter(|line| line.ends_with(';') && !line.contains('(') || line.contains("static_cast"))
        .filter(|line| !line.trim_start().starts_with("//"))
        .filter_map(|line| line.split('=').next()?.trim_end_matches([';', ' ']).rsplit([' ', '*']).next())
        .map(str::to_owned)
        .collect();
    assert_eq!(fields.len(), 15 + 3 + 1, "{fields:?}");
    let page = std::fs::read_to_string(Path::new(CRATE).join("../../docs/LEVELDB.md")).unwrap();
    let (_, options) = page.split_once("\n## Options\n").expect("the page has that part");
    let (options, _) = options.split_once("\n## ").expect("others follow");
    let cells = options.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let rows: BTreeSet<String> =
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect();
    let missing: Vec<_> = fields.difference(&rows).collect();
    assert!(missing.is_empty(), "missing: {missing:?}");
}
