//! Bugs in garbage collection: copying, moving, holes.

use super::super::{Bug, Edit};

pub const BUGS: &[Bug] = &[
    Bug {
        name: "damage-stops-replacing",
        what: "A compaction that rewrites tables for their pointers alone fails at a damaged relocation table, and all others stop.",
        edits: &[Edit {
            file: "index/compact/run.rs",
            find: "            Err(error) if error.kind() == ErrorKind::Corruption => {",
            put: "            Err(error) if error.kind() == ErrorKind::Corruption && !(BUG && self.plan.level == self.plan.output_level) => {",
        }],
        caught_by: ("engine", "pointers_are_replaced_around_a_damaged_relocation_table"),
    },
    Bug {
        name: "damage-met-over-and-over",
        what: "Tables are rewritten for pointers that a damaged relocation table keeps as they are, again and again.",
        edits: &[Edit {
            file: "index/compact/dissolve.rs",
            find: "filter(|id| !options.unreadable.contains(id))",
            put: "filter(|id| BUG || !options.unreadable.contains(id))",
        }],
        caught_by: (
            "lib",
            "index::compact::tests::nothing_is_rewritten_for_pointers_that_damage_keeps_as_they_are",
        ),
    },
    Bug {
        name: "copies-not-held-by-compactions",
        what: "The copies of sorted values may be dropped while a compaction is about to point to them.",
        edits: &[Edit {
            file: "cube/collect/sort/copies.rs",
            find: "    _collection: Collection,\n}\n\nimpl HeldCopies {\n    /// The copies that `collection` has added.\n    pub fn new(copies: Copies, collection: Collection) -> Self {\n        Self { copies, _collection: collection }",
            put: "    _collection: Option<Collection>,\n}\n\nimpl HeldCopies {\n    /// The copies that `collection` has added.\n    pub fn new(copies: Copies, collection: Collection) -> Self {\n        Self { copies, _collection: if BUG { None } else { Some(collection) } }",
        }],
        caught_by: ("engine", "what_a_compaction_points_to_stays_when_another_fails"),
    },
    Bug {
        name: "copies-not-synced",
        what: "Originals may go before their copies are durable.",
        edits: &[Edit {
            file: "vlog/cold.rs",
            find: "        self.file.sync_data().map_err(|error| Error::sync(&self.path, error))?;",
            put: "        if !BUG {\n            self.file.sync_data().map_err(|error| Error::sync(&self.path, error))?;\n        }",
        }],
        caught_by: ("engine", "a_collection_takes_its_steps_in_an_order_that_survives_a_power_failure"),
    },
    Bug {
        name: "name-of-copies-not-synced",
        what: "Originals may go before the name of the file with the copies is durable.",
        edits: &[Edit {
            file: "vlog/cold.rs",
            find: "        sync_parent(self.fs, &self.path)?;",
            put: "        if !BUG {\n            sync_parent(self.fs, &self.path)?;\n        }",
        }],
        caught_by: ("engine", "a_collection_takes_its_steps_in_an_order_that_survives_a_power_failure"),
    },
    Bug {
        name: "hidden-from-snapshots-too",
        what: "A collection leaves behind what a newer version hides, though a snapshot still sees it.",
        edits: &[Edit {
            file: "index/hidden_among.rs",
            find: "        let stripe = stripe(self.snapshots, entry.sequence);\n",
            put: "        if BUG {\n            return Sequence::MAX;\n        }\n        let stripe = stripe(self.snapshots, entry.sequence);\n",
        }],
        caught_by: ("engine", "a_snapshot_alone_keeps_what_it_sees_from_being_left_behind"),
    },
    Bug {
        name: "log-behind-the-head-collected",
        what: "A collection takes segments into which memtables still point.",
        edits: &[Edit {
            file: "index/version/mod.rs",
            find: "        id.is_cold() || id < self.numbers.log_head.segment",
            put: "        BUG || id.is_cold() || id < self.numbers.log_head.segment",
        }],
        caught_by: ("engine", "crashes_again_and_again_leave_a_prefix"),
    },
    Bug {
        name: "damaged-records-dropped",
        what: "A collection goes on without a record that it cannot read.",
        edits: &[Edit {
            file: "cube/collect/job.rs",
            find: "            let now = output\n                .copy(&self.cube.reader, original)\n                .inspect_err(|error| self.cube.quarantine(self.progress.job(), error, victim.meta.id))?;",
            put: "            let now = match output.copy(&self.cube.reader, original) {\n                Err(_) if BUG => continue,\n                copied => copied.inspect_err(|error| self.cube.quarantine(self.progress.job(), error, victim.meta.id))?,\n            };",
        }],
        caught_by: (
            "engine",
            "a_victim_that_is_damaged_where_it_is_alive_is_kept_and_the_others_are_collected",
        ),
    },
    Bug {
        name: "relocations-not-joined",
        what: "When records move for the second time, pointers from before the first are led to the first place.",
        edits: &[Edit {
            file: "cube/collect/job.rs",
            find: "&relocations.then(&onward))?;",
            put: "&if BUG { Relocations::clone(relocations) } else { relocations.then(&onward) })?;",
        }],
        caught_by: ("engine", "without_a_compaction_pointers_are_followed_through_many_collections"),
    },
    Bug {
        name: "home-dropped-before-what-moved-there",
        what: "A segment goes although pointers under an old id still lead into it.",
        edits: &[Edit {
            file: "index/version/mod.rs",
            find: "entry.live.is_none() && !homes.contains(&id);",
            put: "entry.live.is_none() && (BUG || !homes.contains(&id));",
        }],
        caught_by: ("engine", "outputs_are_collected_in_turn_and_every_pointer_is_followed"),
    },
    Bug {
        name: "leases-not-served",
        what: "A compaction that began before a collection does not get the relocation tables that go with it.",
        edits: &[Edit {
            file: "cube/collect/job.rs",
            find: "        self.leases.retire(&retired);",
            put: "        if !BUG {\n            self.leases.retire(&retired);\n        }",
        }],
        caught_by: ("engine", "a_compaction_may_write_pointers_to_what_has_moved_on_since"),
    },
    Bug {
        name: "reach-of-compactions-forgotten",
        what: "A segment goes although a running compaction writes pointers into it.",
        edits: &[Edit {
            file: "index/install.rs",
            find: "version.droppable_segments(|id| compactions.reaches(id) || collections.holds(id))",
            put: "version.droppable_segments(|id| (!BUG && compactions.reaches(id)) || collections.holds(id))",
        }],
        caught_by: ("engine", "a_compaction_may_write_pointers_to_what_has_moved_on_since"),
    },
    Bug {
        name: "hidden-entries-dropped-unproved",
        what: "A compaction drops an entry whose record is not there without seeing what hides it.",
        edits: &[Edit {
            file: "index/compact/run.rs",
            find: "        if is_hidden(&self.tables, version, Above::Everything, user_key, sequence, &self.snapshots)? {",
            put: "        if BUG || is_hidden(&self.tables, version, Above::Everything, user_key, sequence, &self.snapshots)? {",
        }],
        caught_by: (
            "lib",
            "index::tests::failures::an_entry_whose_record_was_left_behind_goes_only_if_it_is_hidden",
        ),
    },
    Bug {
        name: "hole-under-readers",
        what: "A hole is punched although a reader that began before may still want what was there.",
        edits: &[Edit {
            file: "index/version/files.rs",
            find: "        self.files.leaving_bytes.fetch_add(bytes, Ordering::Relaxed);\n        *self.superseded",
            put: "        if BUG && let FileName::Segment(id) = self.name {\n            self.files.holes.release(id, ranges.clone(), bytes);\n        }\n        self.files.leaving_bytes.fetch_add(bytes, Ordering::Relaxed);\n        *self.superseded",
        }],
        caught_by: ("engine", "whoever_began_to_read_before_goes_on"),
    },
    Bug {
        name: "hole-in-a-shared-file",
        what: "A hole is punched into a file that a checkpoint has, too.",
        edits: &[
            Edit {
                file: "index/version/holes.rs",
                find: "if file.links()? > 1 {",
                put: "if file.links()? > 1 && !BUG {",
            },
            Edit {
                file: "cube/collect/punch.rs",
                find: "victim.segment.path(), error))? > 1 {",
                put: "victim.segment.path(), error))? > 1 && !BUG {",
            },
        ],
        caught_by: ("engine", "files_that_a_checkpoint_shares_get_no_holes_as_long_as_it_is_there"),
    },
    Bug {
        name: "recycled-before-it-is-blank",
        what: "A segment that is not needed any more gets its new name before it is durably empty.",
        edits: &[Edit {
            file: "index/version/stock.rs",
            find: "        file.sync_data()?;\n        self.fs().rename(",
            put: "        if !BUG {\n            file.sync_data()?;\n        }\n        self.fs().rename(",
        }],
        caught_by: (
            "lib",
            "index::version::stock::tests::under_its_new_name_no_crash_leaves_a_byte_of_before",
        ),
    },
    Bug {
        name: "recycled-although-let-go",
        what: "A segment that was to make room is kept after all, to become another.",
        edits: &[Edit {
            file: "index/version/files.rs",
            find: "if !may_stay ||",
            put: "if (!BUG && !may_stay) ||",
        }],
        caught_by: ("lib", "index::version::files::tests::what_was_let_go_is_not_kept_again"),
    },
    Bug {
        name: "kept-on-a-full-disk",
        what: "Segments that are not needed any more stay although a memtable finds no room on the disk.",
        edits: &[Edit {
            file: "cube/maintain/flush.rs",
            find: "if self.give_up_stock_after(&flushed) {",
            put: "if !BUG && self.give_up_stock_after(&flushed) {",
        }],
        caught_by: ("engine", "recycle::a_full_disk_gets_what_is_kept"),
    },
    Bug {
        name: "recycled-although-shared",
        what: "A segment that a checkpoint has, too, is emptied to become another.",
        edits: &[Edit {
            file: "index/version/stock.rs",
            find: "if file.links()? > 1 ||",
            put: "if (!BUG && file.links()? > 1) ||",
        }],
        caught_by: ("lib", "index::version::stock::tests::what_somebody_else_has_is_left_alone"),
    },
    Bug {
        name: "holes-taken-for-data",
        what: "A pointer into a hole is followed.",
        edits: &[Edit {
            file: "cube/read.rs",
            find: "        let Some(dead) = version.segments().dead_ranges(pointer.segment) else { return Ok(()) };",
            put: "        if BUG {\n            return Ok(());\n        }\n        let Some(dead) = version.segments().dead_ranges(pointer.segment) else { return Ok(()) };",
        }],
        caught_by: ("lib", "cube::collect::punch_tests::a_record_in_a_dead_range_is_damage_and_never_zeros"),
    },
    Bug {
        name: "holes-not-punched-after-a-crash",
        what: "What a crash has kept from being given back is never given back.",
        edits: &[Edit {
            file: "index/version/holes.rs",
            find: "        if allocated > whole.saturating_sub(holes) {",
            put: "        if allocated > whole.saturating_sub(holes) && !BUG {",
        }],
        caught_by: ("engine", "a_crash_between_any_two_steps_loses_nothing"),
    },
    Bug {
        name: "writers-outrun-collections",
        what: "Writers are not slowed down when space runs short.",
        edits: &[Edit {
            file: "cube/maintain/mod.rs",
            find: "let garbage = if bounded {",
            put: "let garbage = if bounded && !BUG {",
        }],
        caught_by: ("engine", "writers_are_refused_while_collections_fail_and_then_accepted_again"),
    },
    Bug {
        name: "writers-stop-for-what-has-not-begun",
        what: "Room that a compaction waits for slows writers down as if it were taken.",
        edits: &[Edit {
            file: "cube/space.rs",
            find: ".min(self.debt_of_wanted())",
            put: ".min(if BUG { 1.0 } else { self.debt_of_wanted() })",
        }],
        caught_by: ("lib", "cube::space::tests::room_for_a_compaction_is_made_before_it_begins"),
    },
    Bug {
        name: "running-compactions-take-no-room",
        what: "Collections make room for a compaction until it begins, and let garbage have it then.",
        edits: &[Edit {
            file: "cube/headroom.rs",
            find: "let compacts = job.claim == Claim::Compaction;",
            put: "let compacts = job.claim == Claim::Compaction && !BUG;",
        }],
        caught_by: (
            "lib",
            "cube::headroom::tests::what_compactions_write_is_known_before_they_begin_and_until_they_end",
        ),
    },
    Bug {
        name: "left-behind-counted-as-hidden",
        what: "What a compaction has dropped, because it was left behind, is subtracted from what is alive as hidden for ever.",
        edits: &[Edit {
            file: "cube/maintain/compact.rs",
            find: "self.estimate_present(&hiding.unwrap_or_default());",
            put: "if !BUG {\n            self.estimate_present(&hiding.unwrap_or_default());\n        }",
        }],
        caught_by: ("engine", "what_was_left_behind_is_not_taken_for_hidden_any_more"),
    },
    Bug {
        name: "room-for-small-compactions-alone",
        what: "In a large database no room is made for its compactions, which are large beside the slack.",
        edits: &[Edit {
            file: "cube/space.rs",
            find: ".max(garbage / COMPACTIONS_PART_OF_GARBAGE)",
            put: ".max(if BUG { 0 } else { garbage / COMPACTIONS_PART_OF_GARBAGE })",
        }],
        caught_by: ("lib", "cube::space::tests::room_for_a_compaction_is_made_before_it_begins"),
    },
    Bug {
        name: "compactions-wait-for-ever",
        what: "A compaction waits for room for as long as collections do not make enough.",
        edits: &[Edit {
            file: "cube/maintain/compact.rs",
            find: "jobs_ended < JOBS_WAITED_FOR_MAX",
            put: "(jobs_ended < JOBS_WAITED_FOR_MAX || BUG)",
        }],
        caught_by: ("lib", "cube::maintain::compact::tests::compactions_wait_for_room_but_not_for_ever"),
    },
    Bug {
        name: "writers-sleep-for-little",
        what: "Writers sleep for every microsecond that they should wait, and for fifty more.",
        edits: &[Edit {
            file: "cube/throttle.rs",
            find: "if owed < WAIT_MIN {",
            put: "if owed < WAIT_MIN && (!BUG || owed.is_zero()) {",
        }],
        caught_by: ("lib", "cube::throttle::tests::small_writes_owe_what_is_not_worth_a_sleep"),
    },
    Bug {
        name: "stuck-collections-refuse-nobody",
        what: "Writers go on when all is taken and nothing is freed.",
        edits: &[Edit {
            file: "cube/maintain/idle.rs",
            find: "let stuck = taken &&",
            put: "let stuck = taken && !BUG &&",
        }],
        caught_by: ("engine", "writers_are_refused_while_collections_fail_and_then_accepted_again"),
    },
    Bug {
        name: "failed-collections-end-all",
        what: "After one failure nothing is collected until the database is opened again.",
        edits: &[Edit {
            file: "cube/maintain/stopped.rs",
            find: "if self.holds && self.retry_at",
            put: "if !BUG && self.holds && self.retry_at",
        }],
        caught_by: ("engine", "collections_that_failed_for_a_moment_are_tried_again_by_themselves"),
    },
    Bug {
        name: "newest-segment-collected",
        what: "The newest segment is collected like any other.",
        edits: &[Edit {
            file: "cube/collect/choose.rs",
            find: "if worthwhile.len() > 1 {",
            put: "if !BUG && worthwhile.len() > 1 {",
        }],
        caught_by: (
            "lib",
            "cube::collect::choose::tests::the_newest_of_all_waits_as_long_as_another_is_worth_it",
        ),
    },
    Bug {
        name: "pace-not-kept",
        what: "Copies are made as fast as they can be, whatever pace was asked for.",
        edits: &[Edit {
            file: "cube/collect/job.rs",
            find: "while !left.is_zero() &&",
            put: "while !BUG && !left.is_zero() &&",
        }],
        caught_by: ("engine", "copies_take_as_long_as_the_pace_that_was_asked_for"),
    },
    Bug {
        name: "manifest-not-held-against-tables",
        what: "A check does not compare what the manifest says of a table with the table.",
        edits: &[Edit {
            file: "cube/check.rs",
            find: "report.problems.extend(contradictions);",
            put: "if !BUG {\n                report.problems.extend(contradictions);\n            }",
        }],
        caught_by: ("lib", "cube::check::tests::a_manifest_that_is_wrong_about_what_is_alive_does_not_pass"),
    },
    Bug {
        name: "sorting-waits-for-compactions-that-stopped",
        what: "Values that were copied wait for compactions which damage has stopped.",
        edits: &[Edit {
            file: "cube/maintain/sort.rs",
            find: "if state.closing || state.compaction_stopped.stays() {",
            put: "if state.closing || !BUG && state.compaction_stopped.stays() {",
        }],
        caught_by: ("engine", "a_compaction_that_meets_damage_while_values_are_copied_ends_it"),
    },
    Bug {
        name: "any-success-ends-a-stop",
        what: "A job that ends well has another one, which has met damage, begun again.",
        edits: &[Edit {
            file: "cube/maintain/stopped.rs",
            find: "Ok(()) if self.holds => {}",
            put: "Ok(()) if self.holds && !BUG => {}",
        }],
        caught_by: ("lib", "those_that_were_under_way_say_nothing_of_a_failure"),
    },
    Bug {
        name: "long-keys-count-as-short-ones",
        what: "The keys of values that are sorted take more memory than they may.",
        edits: &[Edit {
            file: "cube/collect/sort/survey.rs",
            find: "(NOTED_BYTES + 2 * shape.key_bytes())",
            put: "(NOTED_BYTES + if BUG { 32 } else { 2 * shape.key_bytes() })",
        }],
        caught_by: ("engine", "keys_that_do_not_fit_into_memory_are_not_sorted_at_once"),
    },
];
