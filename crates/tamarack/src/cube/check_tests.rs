//! What a check makes of a manifest that is whole, and wrong about what is alive.

use std::path::Path;

use super::CheckLevel;
use crate::base::batch::Operation;
use crate::base::comparator::Bytewise;
use crate::base::error::Error;
use crate::base::ids::{CubeId, Sequence};
use crate::base::keys::KeyOrder;
use crate::base::options::{GcPolicy, Options, WriteOptions};
use crate::base::sync::Arc;
use crate::cube::Cube;
use crate::cube::open::Shared;
use crate::env::pool::WorkerPool;
use crate::env::posix::posix_env;
use crate::index::manifest;
use crate::index::repair::{files_in, put_in_force};
use crate::index::version::{TableMeta, VersionEdit};

fn open(directory: &Path) -> Arc<Cube> {
    let env = posix_env();
    let mut options = Options { segment_bytes_max: 64 << 10, gc: GcPolicy::Off, ..Options::default() };
    let workers = WorkerPool::new(&env, "test", 2).expect("threads can be started");
    let shared = Shared::new(workers, &mut options);
    Cube::open(env, directory, options, shared).expect("a whole manifest").0
}

/// Fills a cube of one table and a few segments, has its manifest changed, and checks it.
fn problems(change: impl Fn(&mut VersionEdit)) -> Vec<Error> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cube = open(directory.path());
    for number in 0..100_u8 {
        let put = Operation::Put { key: &[number], value: &[number; 3000] };
        cube.write_one(put, &WriteOptions::default()).expect("there is room");
    }
    cube.write_one(Operation::Delete { key: &[50] }, &WriteOptions::default()).expect("there is room");
    cube.flush().expect("there is room");
    cube.wait_idle().expect("nothing fails");
    let id: CubeId = cube.id;
    cube.close().expect("nothing fails");
    drop(cube);

    let (fs, order) = (posix_env().fs, KeyOrder::new(Arc::new(Bytewise)));
    let recovered = manifest::read(&files_in(&fs, directory.path()), &order).expect("is whole");
    let mut edit = recovered.version.snapshot(id);
    change(&mut edit);
    put_in_force(&fs, directory.path(), id, &order, recovered.number + 1, &edit).expect("fits together");

    let cube = open(directory.path());
    let problems = cube.check(CheckLevel::Checksums).problems;
    cube.close().expect("nothing fails");
    problems
}

/// Changes what the manifest says of the only table.
fn of_table(change: impl Fn(&mut TableMeta)) -> impl Fn(&mut VersionEdit) {
    move |edit| {
        let (_, table) = &mut edit.add_tables[0];
        let mut wrong = TableMeta::clone(table);
        change(&mut wrong);
        *table = Arc::new(wrong);
    }
}

#[test]
fn a_manifest_that_is_wrong_about_what_is_alive_does_not_pass() {
    assert!(problems(|_| {}).is_empty());
    let one_of = |what: &str, problems: Vec<Error>| {
        let [problem] = &problems[..] else { panic!("{what}: {problems:?}") };
        assert!(problem.is_corruption() && problem.message().contains("as the manifest says"), "{problem}");
        assert!(problem.message().contains(what), "{what}: {problem}");
    };
    one_of("entries", problems(of_table(|table| table.entries += 1)));
    one_of("deletions", problems(of_table(|table| table.deletes = 0)));
    one_of(
        "sequence numbers",
        problems(of_table(|table| table.sequences.1 = Sequence(table.sequences.1.0 - 1))),
    );
    one_of("largest internal key", problems(of_table(|table| table.largest[0] += 1)));
    one_of(
        "references",
        problems(of_table(|table| {
            table.references[0].values -= 1;
            table.references[0].bytes -= 3000;
            table.referenced_value_bytes -= 3000;
        })),
    );
    one_of("references", problems(of_table(|table| table.references.truncate(1))));
    one_of("values and their bytes", problems(|edit| edit.add_segments[0].value_records += 1));
    one_of("values and their bytes", problems(|edit| edit.add_segments[0].value_record_bytes += 1));
}
