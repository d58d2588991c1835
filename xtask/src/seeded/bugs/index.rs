//! Bugs in the index: flush, manifest, compaction, tables.

use super::super::{Bug, Edit};

pub const BUGS: &[Bug] = &[
    Bug {
        name: "fingers-read-before-they-are-written",
        what: "A finger is read before it is written: each page of them takes two faults, the second on all processors.",
        edits: &[Edit {
            file: "skiplist/fingers.rs",
            find: "        if bucket.compare_exchange(0, word,",
            put: "        if (!BUG || bucket.load(Ordering::Relaxed) == 0) && bucket.compare_exchange(0, word,",
        }],
        caught_by: ("lib", "skiplist::tests::an_insert_takes_one_page_fault_for_each_page"),
    },
    Bug {
        name: "outputs-without-an-edit-kept",
        what: "What the manifest has no space for stays on disk until the database is opened again.",
        edits: &[Edit {
            file: "index/install.rs",
            find: "            if manifest.is_as_before() {",
            put: "            if manifest.is_as_before() && !BUG {",
        }],
        caught_by: ("engine", "what_an_edit_has_no_space_for_is_removed_again"),
    },
    Bug {
        name: "flush-before-the-log-is-durable",
        what: "Tables point to records that the log may still lose.",
        edits: &[Edit {
            file: "cube/maintain/flush.rs",
            find: "        self.sync_to(newest.end)?;",
            put: "        if !BUG {\n            self.sync_to(newest.end)?;\n        }",
        }],
        caught_by: ("engine", "no_table_points_to_log_that_is_not_durable"),
    },
    Bug {
        name: "log-head-moved-too-far",
        what: "A flush says that the log is in tables up to its end, not only up to the end of its memtables.",
        edits: &[Edit {
            file: "cube/maintain/flush.rs",
            find: "log_head: Some(newest.end),",
            put: "log_head: Some(if BUG { self.order.tail().0 } else { newest.end }),",
        }],
        caught_by: ("engine", "crashes_again_and_again_leave_a_prefix"),
    },
    Bug {
        name: "sizes-not-checked",
        what: "Sizes that no files can have are added up.",
        edits: &[Edit {
            file: "index/manifest/reader.rs",
            find: "    version.check_sizes().map_err(",
            put: "    version.check_sizes().or_else(|reason| if BUG { Ok(()) } else { Err(reason) }).map_err(",
        }],
        caught_by: ("lib", "index::manifest::tests::sizes_that_no_files_have_are_corruption"),
    },
    Bug {
        name: "edit-not-synced",
        what: "An edit of the manifest counts before it is durable.",
        edits: &[Edit {
            file: "index/manifest/writer.rs",
            find: "        self.file.sync_data().map_err(|error| Error::sync(&self.path(), error))",
            put: "        if BUG {\n            return Ok(());\n        }\n        self.file.sync_data().map_err(|error| Error::sync(&self.path(), error))",
        }],
        caught_by: ("engine", "crashes_again_and_again_leave_a_prefix"),
    },
    Bug {
        name: "manifest-not-synced-before-current",
        what: "`CURRENT` names a manifest that is not durable.",
        edits: &[Edit {
            file: "index/manifest/writer.rs",
            find: "        file.sync_data().map_err(|error| Error::sync(&new, error))?;",
            put: "        if !BUG {\n            file.sync_data().map_err(|error| Error::sync(&new, error))?;\n        }",
        }],
        caught_by: ("engine", "whatever_is_recovered_is_durable_wherever_the_process_died"),
    },
    Bug {
        name: "manifest-name-not-synced",
        what: "`CURRENT` names a manifest whose name is not durable.",
        edits: &[Edit {
            file: "index/manifest/writer.rs",
            find: "        fs.sync_dir(&directory).map_err(|error| Error::sync(&directory, error))?;",
            put: "        if !BUG {\n            fs.sync_dir(&directory).map_err(|error| Error::sync(&directory, error))?;\n        }",
        }],
        caught_by: ("engine", "a_database_that_was_hardly_created_can_always_be_opened"),
    },
    Bug {
        name: "failed-edit-written-again",
        what: "After an edit may or may not have been written, further ones are appended.",
        edits: &[Edit {
            file: "index/manifest/writer.rs",
            find: "            if !self.cut_off(&error) {\n                self.failure = Some(error.clone());\n            }\n            return Err(error);\n        }\n        self.end",
            put: "            if !self.cut_off(&error) && !BUG {\n                self.failure = Some(error.clone());\n            }\n            return Err(error);\n        }\n        self.end",
        }],
        caught_by: ("lib", "index::manifest::tests::a_failed_write_poisons_the_manifest"),
    },
    Bug {
        name: "edits-not-checked",
        what: "The manifest is read without looking at checksums of its edits.",
        edits: &[Edit {
            file: "index/manifest/reader.rs",
            find: "if found != header.payload_checksum {",
            put: "if found != header.payload_checksum && !BUG {",
        }],
        caught_by: ("lib", "index::manifest::tests::a_flipped_bit_is_found_wherever_it_is"),
    },
    Bug {
        name: "comparator-not-compared",
        what: "A database may be opened with another order of keys than it was written with.",
        edits: &[Edit {
            file: "index/manifest/reader.rs",
            find: "if comparator != given {",
            put: "if comparator != given && !BUG {",
        }],
        caught_by: ("lib", "index::manifest::tests::another_comparator_is_refused_by_name"),
    },
    Bug {
        name: "removed-before-the-edit-is-durable",
        what: "Files go before the manifest says durably that nobody needs them.",
        edits: &[Edit {
            file: "index/install.rs",
            find: "        let manifest = turn.manifest();",
            put: "        if BUG {\n            edit.drop_tables.iter().for_each(|&(_, id)| self.files.remove(crate::base::names::FileName::Table(id)));\n            edit.drop_segments.iter().for_each(|&id| self.files.remove(crate::base::names::FileName::Segment(id)));\n        }\n        let manifest = turn.manifest();",
        }],
        caught_by: ("engine", "nothing_is_removed_before_its_edit_is_durable"),
    },
    Bug {
        name: "removed-under-readers",
        what: "A file is unlinked although a snapshot, an iterator or a read still needs it.",
        edits: &[Edit {
            file: "index/version/files.rs",
            find: "        if !self.obsolete.swap(true, Ordering::AcqRel) {",
            put: "        if BUG && !self.is_obsolete() {\n            self.files.remove(self.name);\n        }\n        if !self.obsolete.swap(true, Ordering::AcqRel) {",
        }],
        caught_by: ("engine", "a_dead_segment_stays_while_it_can_be_reached"),
    },
    Bug {
        name: "table-not-synced",
        what: "A table counts before its bytes are durable.",
        edits: &[Edit {
            file: "index/table/writer.rs",
            find: "        self.file.sync_data().map_err(|error| Error::io(\"sync\", &self.path, error))?;",
            put: "        if !BUG {\n            self.file.sync_data().map_err(|error| Error::io(\"sync\", &self.path, error))?;\n        }",
        }],
        caught_by: ("engine", "crashes_again_and_again_leave_a_prefix"),
    },
    Bug {
        name: "table-name-not-synced",
        what: "A table counts before its name is durable.",
        edits: &[Edit {
            file: "index/output.rs",
            find: "        let directory = self.files.directory();\n        self.files.fs().sync_dir",
            put: "        let directory = self.files.directory();\n        if BUG {\n            return Ok(());\n        }\n        self.files.fs().sync_dir",
        }],
        caught_by: ("engine", "crashes_again_and_again_leave_a_prefix"),
    },
    Bug {
        name: "deletion-dropped-early",
        what: "A compaction drops a deletion although an older version lies below it.",
        edits: &[Edit {
            file: "index/compact/decide.rs",
            find: "stripe == 0 && nothing_older_outside() {",
            put: "stripe == 0 && (nothing_older_outside() || BUG) {",
        }],
        caught_by: ("lib", "index::compact::decide::tests::no_reader_can_tell"),
    },
    Bug {
        name: "versions-of-snapshots-dropped",
        what: "A compaction keeps the newest version of a key alone.",
        edits: &[Edit {
            file: "index/compact/decide.rs",
            find: "    if newer == Some(stripe) {",
            put: "    if newer == Some(stripe) || (BUG && newer.is_some()) {",
        }],
        caught_by: ("lib", "index::compact::decide::tests::no_reader_can_tell"),
    },
    Bug {
        name: "filter-misses-a-key",
        what: "The filter of a table does not know its first key.",
        edits: &[Edit {
            file: "index/table/filter.rs",
            find: "        for &hash in hashes {\n            let index",
            put: "        for &hash in hashes.iter().skip(usize::from(BUG)) {\n            let index",
        }],
        caught_by: ("lib", "index::table::filter::tests::every_key_is_found_and_few_others_are"),
    },
    Bug {
        name: "hashes-of-another-order-used",
        what: "A block's hash index is used although keys that are equal may differ.",
        edits: &[Edit {
            file: "index/table/lookups.rs",
            find: "table.hashes_keys().then_some(hash)",
            put: "(BUG || table.hashes_keys()).then_some(hash)",
        }],
        caught_by: (
            "lib",
            "index::table::order_tests::a_table_with_hashes_can_be_read_by_an_order_that_allows_none",
        ),
    },
    Bug {
        name: "block-checksum-not-checked",
        what: "Blocks of tables are used without a look at their checksums.",
        edits: &[Edit {
            file: "index/table/source.rs",
            find: "        if stored_checksum != computed {",
            put: "        if stored_checksum != computed && !BUG {",
        }],
        caught_by: ("lib", "index::table::tests::every_flipped_byte_is_found"),
    },
    Bug {
        name: "oldest-of-level0-wins",
        what: "A lookup takes the last version of a key that it meets in L0.",
        edits: &[
            Edit {
                file: "index/lookup.rs",
                find: "let is_older = self.newest.as_ref()",
                put: "let is_older = !BUG && self.newest.as_ref()",
            },
            Edit {
                file: "index/lookup.rs",
                find: "self.newest.as_ref().is_none_or(|other| other.sequence < entry.sequence)",
                put: "(BUG || self.newest.as_ref().is_none_or(|other| other.sequence < entry.sequence))",
            },
        ],
        caught_by: ("lib", "index::tests::compactions::the_newest_entry_wins_whichever_table_of_l0_it_is_in"),
    },
    Bug {
        name: "references-not-discounted",
        what: "What a dropped table referenced counts as alive for ever.",
        edits: &[Edit {
            file: "index/version/segments.rs",
            find: "    pub(super) fn subtract(&mut self, references: &[SegmentReference]) {",
            put: "    pub(super) fn subtract(&mut self, references: &[SegmentReference]) {\n        if BUG {\n            return;\n        }",
        }],
        caught_by: ("lib", "index::version::tests::liveness_follows_the_tables"),
    },
    Bug {
        name: "missing-files-not-noticed",
        what: "Opening does not look whether the files that the manifest names are there and whole.",
        edits: &[Edit {
            file: "index/open.rs",
            find: "fn check_files(fs: &dyn Fs, directory: &Path, version: &Version) -> Result<()> {",
            put: "fn check_files(fs: &dyn Fs, directory: &Path, version: &Version) -> Result<()> {\n    if BUG {\n        return Ok(());\n    }",
        }],
        caught_by: ("lib", "index::tests::files::missing_and_cut_files_are_named"),
    },
    Bug {
        name: "full-disk-asked-at-each-look",
        what: "At rest, a flush that failed because the disk is full is asked for at each look.",
        edits: &[Edit {
            file: "cube/maintain/idle.rs",
            find: "if may_flush && watch.unflushable != Some(log_bytes) {",
            put: "if BUG || (may_flush && watch.unflushable != Some(log_bytes)) {",
        }],
        caught_by: ("engine", "faults::a_full_disk_is_not_asked_over_and_over_by_background_work"),
    },
    Bug {
        name: "samples-weigh-alike",
        what: "An entry of a block with many weighs as much as one of a block with few, where what a table hides is estimated.",
        edits: &[Edit {
            file: "index/sample.rs",
            find: "        self.weight = self.entries as f64 / self.places.len() as f64;",
            put: "        self.weight = if BUG { 1.0 } else { self.entries as f64 / self.places.len() as f64 };",
        }],
        caught_by: (
            "lib",
            "index::sample::tests::of_a_large_table_few_blocks_are_read_and_no_kind_of_entry_is_favoured",
        ),
    },
    Bug {
        name: "parts-cut-by-the-number-of-marks",
        what: "A compaction is cut into parts with as many marks, whatever lies between them.",
        edits: &[Edit {
            file: "index/compact/split.rs",
            find: "    let bytes: u64 = marks.iter().map(|mark| mark.bytes).sum();",
            put: "    if BUG {\n        let all: u64 = marks.iter().map(|mark| mark.bytes).sum();\n        let alike = all / marks.len().max(1) as u64;\n        marks.iter_mut().for_each(|mark| mark.bytes = alike);\n    }\n    let bytes: u64 = marks.iter().map(|mark| mark.bytes).sum();",
        }],
        caught_by: ("lib", "index::compact::split::tests::parts_are_alike_by_bytes_wherever_these_lie"),
    },
    Bug {
        name: "orphans-removed-before-the-log-is-read",
        what: "An open removes tables that its manifest does not mention before the log tells whether that is the last one.",
        edits: &[Edit {
            file: "index/open.rs",
            find: "        let replayed = replay(cube, &version)?;",
            put: "        if BUG && !read_only {\n            remove_orphans(&unopened.files, &version, number)?;\n        }\n        let replayed = replay(cube, &version)?;",
        }],
        caught_by: ("repair", "damage::an_open_that_fails_removes_nothing"),
    },
    Bug {
        name: "records-before-the-head-not-looked-for",
        what: "A repair does not find what damaged tables have pointed to in the last segment that no manifest knows.",
        edits: &[Edit {
            file: "cube/repair/plan.rs",
            find: "                || ((!log.stays || is_damaged) && in_log(&id));",
            put: "                || ((!log.stays || (is_damaged && !BUG)) && in_log(&id));",
        }],
        caught_by: (
            "repair",
            "damage::a_flipped_bit_of_the_only_table_costs_no_value_of_the_segment_that_is_written_to",
        ),
    },
    Bug {
        name: "repaired-files-withdrawn",
        what: "What a repair has put in place is put aside by the next one, though it took effect.",
        edits: &[Edit {
            file: "cube/repair/mod.rs",
            find: "if has_effect(*number))",
            put: "if !BUG && has_effect(*number))",
        }],
        caught_by: (
            "repair",
            "interrupted::what_a_repair_leaves_that_is_cut_off_once_it_took_effect_puts_nothing_aside_later",
        ),
    },
    Bug {
        name: "replayed-operations-kept-of-damaged-tables",
        what: "A repair keeps of a damaged table what will be replayed from the log as well, as something older than the log.",
        edits: &[Edit {
            file: "cube/repair/plan.rs",
            find: "        let replayed_from = log.stays.then_some(log.begin.last);",
            put: "        let replayed_from = (!BUG && log.stays).then_some(log.begin.last);",
        }],
        caught_by: ("repair", "damage::tables_of_which_only_references_are_left_are_told_without_a_manifest"),
    },
    Bug {
        name: "block-not-filled-up",
        what: "What is left of a page is not given to the data block on it: the next ones lie on two.",
        edits: &[Edit {
            file: "index/table/block_end.rs",
            find: ".then_some(left)",
            put: ".then_some(if BUG { 0 } else { left })",
        }],
        caught_by: (
            "lib",
            "index::table::block_end::tests::data_blocks_of_small_values_and_of_pointers_are_pages",
        ),
    },
    Bug {
        name: "blocks-outlive-their-table",
        what: "The blocks of a table that a compaction has replaced stay in the cache, in the way of others.",
        edits: &[Edit {
            file: "index/cache.rs",
            find: "if let Some((_, table)) = self.tables.remove(&id) {",
            put: "if let Some((_, table)) = self.tables.remove(&id)\n            && !BUG\n        {",
        }],
        caught_by: ("lib", "index::cache::tests::the_blocks_of_a_table_go_with_it"),
    },
    Bug {
        name: "same-entries-sampled-again",
        what: "Estimates that are made anew look at the same entries, because of which segments were collected.",
        edits: &[Edit {
            file: "index/sample.rs",
            find: "            turn,\n",
            put: "            turn: if BUG { 0 } else { turn },\n",
        }],
        caught_by: (
            "lib",
            "index::sample::tests::of_a_large_table_few_blocks_are_read_and_no_kind_of_entry_is_favoured",
        ),
    },
    Bug {
        name: "pointers-looked-up-as-they-come",
        what: "A compaction goes from one relocation table to another from entry to entry.",
        edits: &[Edit {
            file: "index/compact/staged.rs",
            find: "        moved.sort_unstable_by_key(",
            put: "        (!BUG).then_some(&mut *moved).unwrap_or(&mut Vec::new()).sort_unstable_by_key(",
        }],
        caught_by: ("lib", "index::compact::staged::tests::each_relocation_table_is_asked_for_all_at_a_time"),
    },
];
