//! `demo`.

use std::fs;

use crate::world::World;

fn small_tree(world: &World, files: u32) {
    for number in 0..files {
        let directory = world.path("tree").join(format!("directory {}", number % 7));
        fs::create_dir_all(&directory).expect("the directory is ours");
        let bytes: Vec<u8> = (0..number * 13 % 5000).flat_map(u32::to_le_bytes).collect();
        fs::write(directory.join(format!("file {number}")), bytes).expect("the directory is ours");
    }
}

#[test]
fn everything_holds_on_a_small_tree() {
    let world = World::new();
    small_tree(&world, 300);
    let run = world.ok(&["demo", "tree", "--json"]);
    let figures = run.json();
    assert_eq!(figures["import"]["files"], 300);
    assert_eq!(figures["read_back"]["values"], 300);
    assert_eq!(figures["kill"]["lost"], 0);
    let acknowledged = figures["kill"]["acknowledged"].as_u64().expect("a number");
    assert!((150..=300).contains(&acknowledged), "{figures}");
    assert_eq!(figures["snapshot"]["deleted"], 100);
    assert_eq!(figures["scan"]["entries"].as_u64().expect("a number") / 300, 1);
}

#[test]
fn people_see_each_step() {
    let world = World::new();
    small_tree(&world, 20);
    let run = world.ok(&["demo", "tree", "--max-files", "10"]);
    for word in
        ["10 files", "import", "read back", "kill -9", "scan", "snapshot", "compact", "everything held"]
    {
        assert!(run.text().contains(word), "{word} is missing in:\n{}", run.text());
    }
}

#[test]
fn what_cannot_be_stored_is_left_out() {
    let world = World::new();
    small_tree(&world, 20);
    let long = fs::File::create(world.path("tree").join("directory 0/long")).expect("the directory is ours");
    long.set_len(1 << 32).expect("it has holes alone");
    let run = world.ok(&["demo", "tree", "--max-mib", "8192", "--json"]);
    let figures = run.json();
    assert_eq!((&figures["import"]["files"], &figures["import"]["skipped"]), (&20.into(), &1.into()));
    assert_eq!(figures["kill"]["lost"], 0);
    let world = World::new();
    small_tree(&world, 1);
    world.run(&["demo", "tree", "--max-mib", "17592186044416"]).expect_status(2);
}

#[test]
fn a_tree_without_files_is_refused() {
    let world = World::new();
    fs::create_dir(world.path("tree")).expect("the directory is ours");
    world.run(&["demo", "tree"]).expect_status(2);
}
