//! Bugs in checkpoints.

use super::super::{Bug, Edit};

pub const BUGS: &[Bug] = &[
    Bug {
        name: "checkpoint-without-memtables",
        what: "A checkpoint leaves out what is not in tables yet.",
        edits: &[Edit {
            file: "cube/checkpoint/mod.rs",
            find: "        if !self.options.read_only {\n            self.flush()?;",
            put: "        if !self.options.read_only && !BUG {\n            self.flush()?;",
        }],
        caught_by: ("engine", "databases_with_little_in_them_can_be_copied"),
    },
    Bug {
        name: "checkpoint-shares-the-active-segment",
        what: "A checkpoint has the segment that is being written as its own.",
        edits: &[Edit {
            file: "cube/checkpoint/mod.rs",
            find: "                target.copy(&self.directory, FileName::Segment(head.segment), head.offset)?;",
            put: "                if BUG {\n                    target.share(&self.directory, FileName::Segment(head.segment), head.offset)?;\n                    return Ok(Vec::new());\n                }\n                target.copy(&self.directory, FileName::Segment(head.segment), head.offset)?;",
        }],
        caught_by: ("engine", "original_and_copy_never_change_each_other"),
    },
    Bug {
        name: "checkpoint-forgets-what-its-log-has",
        what: "A checkpoint of a database that was opened read-only says nothing of the log that it has copied.",
        edits: &[Edit {
            file: "index/checkpoint.rs",
            find: "        snapshot.add_segments.extend(log);",
            put: "        snapshot.add_segments.extend(log.into_iter().filter(|_| !BUG));",
        }],
        caught_by: ("engine", "a_database_opened_read_only_can_be_copied"),
    },
    Bug {
        name: "checkpoint-not-synced",
        what: "The copies in a checkpoint are not durable when it is put in force.",
        edits: &[Edit {
            file: "cube/checkpoint/target.rs",
            find: "        file.sync_data().map_err(|error| Error::sync(&to, error))?;",
            put: "        if !BUG {\n            file.sync_data().map_err(|error| Error::sync(&to, error))?;\n        }",
        }],
        caught_by: ("engine", "failures::everything_is_synced_before_a_copy_is_in_force"),
    },
    Bug {
        name: "names-of-a-checkpoint-not-synced",
        what: "The names in a checkpoint are not durable when it is put in force.",
        edits: &[Edit {
            file: "cube/checkpoint/target.rs",
            find: "        self.fs.sync_dir(self.path).map_err(|error| Error::sync(self.path, error))",
            put: "        if BUG {\n            return Ok(());\n        }\n        self.fs.sync_dir(self.path).map_err(|error| Error::sync(self.path, error))",
        }],
        caught_by: ("engine", "failures::everything_is_synced_before_a_copy_is_in_force"),
    },
    Bug {
        name: "directory-of-a-checkpoint-not-synced",
        what: "The name of a checkpoint's directory is not durable when the call returns.",
        edits: &[Edit {
            file: "cube/checkpoint/target.rs",
            find: "        sync_directory_name(fs, path)?;",
            put: "        if !BUG {\n            sync_directory_name(fs, path)?;\n        }",
        }],
        caught_by: ("engine", "failures::everything_is_synced_before_a_copy_is_in_force"),
    },
    Bug {
        name: "failed-checkpoint-left-behind",
        what: "A checkpoint that fails leaves files.",
        edits: &[Edit {
            file: "cube/checkpoint/target.rs",
            find: "        if self.finished {\n            return;",
            put: "        if self.finished || BUG {\n            return;",
        }],
        caught_by: ("engine", "failures::every_call_may_fail"),
    },
];
