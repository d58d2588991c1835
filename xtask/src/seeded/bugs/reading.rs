//! Bugs in what readers see.

use super::super::{Bug, Edit};

pub const BUGS: &[Bug] = &[
    Bug {
        name: "value-checksum-not-checked",
        what: "A value is returned whatever its checksum says.",
        edits: &[Edit {
            file: "vlog/reader.rs",
            find: "        if computed != header.value_checksum {",
            put: "        if computed != header.value_checksum && !BUG {",
        }],
        caught_by: ("engine", "no_value_is_returned_unchecked"),
    },
    Bug {
        name: "value-of-another-key",
        what: "The key that stands beside a value is not compared with the one that was asked for.",
        edits: &[Edit {
            file: "vlog/reader.rs",
            find: "    if written_key != key && order",
            put: "    if !BUG && written_key != key && order",
        }],
        caught_by: ("lib", "vlog::reader::tests::a_value_is_given_to_its_own_key_alone"),
    },
    Bug {
        name: "mended-relocations-written-down",
        what: "Who writes down where pointers lead follows relocation tables of which a byte was mended.",
        edits: &[Edit {
            file: "vlog/reader.rs",
            find: "        self.mended.map_or(Ok(self.relocations), Err)",
            put: "        self.mended.filter(|_| !BUG).map_or(Ok(self.relocations), Err)",
        }],
        caught_by: ("lib", "vlog::reader::tests::a_mended_relocation_table_is_for_readers_alone"),
    },
    Bug {
        name: "snapshots-not-registered",
        what: "Compactions and collections do not know of snapshots.",
        edits: &[Edit {
            file: "cube/snapshot.rs",
            find: "        let mut list: Vec<_> = self.live",
            put: "        if BUG {\n            return Vec::new();\n        }\n        let mut list: Vec<_> = self.live",
        }],
        caught_by: ("engine", "random_operations_agree_with_the_model"),
    },
    Bug {
        name: "deleted-keys-shown-backward",
        what: "A walk backward takes an older version for the newest when that is a deletion.",
        edits: &[Edit {
            file: "cube/visible.rs",
            find: "                if found {\n                    out.pop();\n                }\n                found = out.push(key, trailer, payload)?;",
            put: "                if found && !(BUG && payload.is_empty()) {\n                    out.pop();\n                }\n                found = out.push(key, trailer, payload)? || (BUG && found);",
        }],
        caught_by: ("engine", "random_operations_agree_with_the_model"),
    },
    Bug {
        name: "deleted-keys-shown-forward",
        what: "A walk forward shows the version below a deletion.",
        edits: &[Edit {
            file: "cube/visible.rs",
            find: "            if out.push(key, trailer, payload)? {\n                return Ok(true);\n            }",
            put: "            if out.push(key, trailer, payload)? {\n                return Ok(true);\n            }\n            if BUG {\n                self.decided.forget();\n                self.inner.next()?;\n            }",
        }],
        caught_by: ("engine", "random_operations_agree_with_the_model"),
    },
    Bug {
        name: "memory-of-walks-kept",
        what: "Windows of a walk take all memory that is not in use along, and it keeps all that comes back.",
        edits: &[
            Edit {
                file: "cube/iter.rs",
                find: "            let is_kept = fits ||",
                put: "            let is_kept = BUG || fits ||",
            },
            Edit {
                file: "vlog/fetch.rs",
                find: "        let lacking = self",
                put: "        let lacking = if BUG { usize::MAX / 2 } else { 0 } + self",
            },
        ],
        caught_by: ("memory", "a_walk_over_values_of_changing_sizes_holds_no_more_and_more"),
    },
    Bug {
        name: "version-left-by-an-error",
        what: "A walk backward that fails between the versions of a key leaves the last one it met, which may not be the newest.",
        edits: &[Edit {
            file: "cube/visible.rs",
            find: "                if found {\n                    out.pop();\n                }\n            })?;",
            put: "                if found && !BUG {\n                    out.pop();\n                }\n            })?;",
        }],
        caught_by: ("engine", "no_older_version_is_shown_before_an_error_of_the_index"),
    },
    Bug {
        name: "merge-loses-its-place",
        what: "A cursor that turns round skips entries of the tables that it does not stand in.",
        edits: &[Edit {
            file: "index/merge.rs",
            find: "Direction::Reverse if child.valid() => child.prev(),",
            put: "Direction::Reverse if child.valid() => if BUG { Ok(()) } else { child.prev() },",
        }],
        caught_by: ("lib", "index::merge"),
    },
    Bug {
        name: "failed-reads-taken-for-absence",
        what: "A table that cannot be read counts as one without the key.",
        edits: &[
            Edit {
                file: "index/lookup.rs",
                find: "let table = tables.get(table.id)?;",
                put: "let table = match tables.get(table.id) {\n                    Err(_) if BUG => return Ok(false),\n                    table => table?,\n                };",
            },
            Edit {
                file: "index/lookup.rs",
                find: ".into_block(self.user_key, self.sequence)?;",
                put: ".into_block(self.user_key, self.sequence).or_else(|error| if BUG { Ok(None) } else { Err(error) })?;",
            },
        ],
        caught_by: ("engine", "a_failed_read_is_an_error_and_not_an_absent_key"),
    },
    Bug {
        name: "row-served-behind-a-write",
        what: "A row is served although its key was written since.",
        edits: &[Edit {
            file: "cube/rows.rs",
            find: "self.buckets.last_write(hash) <= as_of {",
            put: "(BUG || self.buckets.last_write(hash) <= as_of) {",
        }],
        caught_by: ("loom", "loom_no_row_is_served_behind_a_write_of_its_key"),
    },
    Bug {
        name: "row-of-a-later-moment",
        what: "A row is served to readers of earlier moments.",
        edits: &[Edit {
            file: "cube/rows.rs",
            find: "if as_of <= moment",
            put: "if (BUG || as_of <= moment)",
        }],
        caught_by: ("lib", "cube::rows::tests::rows_say_what_a_model_says"),
    },
    Bug {
        name: "row-made-anew-for-a-later-moment",
        what: "A row that a write makes anew is served where another write of its key is behind that.",
        edits: &[Edit {
            file: "cube/rows.rs",
            find: "SharedValue::copy(&Row::head(key, sequence), key, value)",
            put: "SharedValue::copy(&Row::head(key, Sequence(sequence.0 + u64::from(BUG))), key, value)",
        }],
        caught_by: ("lib", "cube::rows::tests::a_write_makes_the_row_anew_of_what_is_asked_for"),
    },
    Bug {
        name: "place-of-an-older-version",
        what: "A value that is written into the index, and a deletion, leave the place in the log where their key had its value before.",
        edits: &[Edit {
            file: "cube/rows/buckets.rs",
            find: "            if let Some(way) = way {\n",
            put: "            if let Some(way) = way.filter(|_| !BUG) {\n",
        }],
        caught_by: ("engine", "where_a_value_lies_is_known_until_it_is_written_again"),
    },
    Bug {
        name: "place-of-a-later-moment",
        what: "Where a value lies is told to readers of moments before it was written.",
        edits: &[Edit {
            file: "cube/rows/buckets.rs",
            find: "self.mark() > moment {",
            put: "(!BUG && self.mark() > moment) {",
        }],
        caught_by: ("lib", "places_are_those_of_the_newest_versions"),
    },
    Bug {
        name: "place-of-the-earlier-of-two-writes",
        what: "Of two writes of one key side by side the place is that of the one which is noted last.",
        edits: &[Edit {
            file: "cube/rows/buckets.rs",
            find: "place.filter(|_| bucket.mark() <= sequence)",
            put: "place.filter(|_| BUG || bucket.mark() <= sequence)",
        }],
        caught_by: ("lib", "places_are_those_of_the_newest_versions"),
    },
    Bug {
        name: "place-in-vain-is-an-error",
        what: "Of many keys at once, one whose value does not lie where it was followed to is not looked up.",
        edits: &[Edit {
            file: "cube/read_many.rs",
            find: "if was_followed { self",
            put: "if !BUG && was_followed { self",
        }],
        caught_by: ("lib", "a_value_that_lies_elsewhere_is_found_all_the_same"),
    },
    Bug {
        name: "looked-up-and-not-read",
        what: "Of many keys at once, one whose value does not lie where it was followed to is looked up, and its value not read.",
        edits: &[Edit {
            file: "cube/read_many.rs",
            find: "if !lost.values.is_empty() {",
            put: "if !BUG && !lost.values.is_empty() {",
        }],
        caught_by: ("lib", "a_value_that_lies_elsewhere_is_found_all_the_same"),
    },
    Bug {
        name: "more-than-was-expected",
        what: "A walk that has come to the end of what its caller expects has values behind that read ahead.",
        edits: &[Edit {
            file: "cube/iter.rs",
            find: "if order == Some(Ordering::Equal) {",
            put: "if !BUG && order == Some(Ordering::Equal) {",
        }],
        caught_by: ("engine", "what_a_caller_expects_is_read_together_and_nothing_behind_it"),
    },
    Bug {
        name: "place-noted-before-the-mark",
        what: "A write that finds the places of its bucket being changed leaves its mark after it has had them forgotten.",
        edits: &[
            Edit {
                file: "cube/rows/buckets.rs",
                find: "        bucket.words[MARK].fetch_max(sequence.0, Ordering::Relaxed);\n",
                put: "        if !BUG {\n            bucket.words[MARK].fetch_max(sequence.0, Ordering::Relaxed);\n        }\n",
            },
            Edit {
                file: "cube/rows/buckets.rs",
                find: "        if let Some(locked) = bucket.lock_or_have_forgotten() {\n",
                put: "        let locked = bucket.lock_or_have_forgotten();\n        if BUG {\n            bucket.words[MARK].fetch_max(sequence.0, Ordering::Relaxed);\n        }\n        if let Some(locked) = locked {\n",
            },
        ],
        caught_by: ("loom", "loom_what_was_looked_up_before_a_write_is_no_place_after_it"),
    },
    Bug {
        name: "place-left-in-a-locked-bucket",
        what: "A write that finds the places of its bucket being changed does not have them forgotten.",
        edits: &[Edit {
            file: "cube/rows/buckets.rs",
            find: "if is_locked { present | FORGET }",
            put: "if is_locked { present | if BUG { 0 } else { FORGET } }",
        }],
        caught_by: ("loom", "loom_no_place_is_left_that_a_write_has_taken_away"),
    },
    Bug {
        name: "place-noted-behind-a-write",
        what: "Where a value lay is noted although a write has left its mark since it was looked up.",
        edits: &[Edit {
            file: "cube/rows/buckets.rs",
            find: "        if bucket.mark() <= as_of {\n",
            put: "        if BUG || bucket.mark() <= as_of {\n",
        }],
        caught_by: ("loom", "loom_what_was_looked_up_before_a_write_is_no_place_after_it"),
    },
    Bug {
        name: "half-of-a-place",
        what: "A reader does not look whether places were changed while it read them.",
        edits: &[Edit {
            file: "cube/rows/buckets.rs",
            find: "        unchanged.then_some(ValuePointer {\n",
            put: "        (BUG || unchanged).then_some(ValuePointer {\n",
        }],
        caught_by: ("loom", "loom_a_place_is_that_of_the_moment"),
    },
    Bug {
        name: "state-read-before-the-places",
        what: "What a reader compares the state of the places with may be older than the places that it read.",
        edits: &[Edit {
            file: "cube/rows/buckets.rs",
            find: "        fence(Ordering::Acquire);\n        let unchanged",
            put: "        if !BUG {\n            fence(Ordering::Acquire);\n        }\n        let unchanged",
        }],
        caught_by: ("loom", "loom_a_place_is_that_of_the_moment"),
    },
    Bug {
        name: "places-changed-before-the-lock",
        what: "A reader may see a change of places, and not that they are locked.",
        edits: &[Edit {
            file: "cube/rows/buckets.rs",
            find: "    fence(Ordering::Release);\n    state\n",
            put: "    if !BUG {\n        fence(Ordering::Release);\n    }\n    state\n",
        }],
        caught_by: ("loom", "loom_a_place_is_that_of_the_moment"),
    },
    Bug {
        name: "places-unlocked-without-release",
        what: "Whoever finds places unlocked may not see what they were changed to.",
        edits: &[Edit {
            file: "cube/rows/buckets.rs",
            find: "compare_exchange(state, unlocked, Ordering::Release, Ordering::Relaxed)",
            put: "compare_exchange(state, unlocked, if BUG { Ordering::Relaxed } else { Ordering::Release }, Ordering::Relaxed)",
        }],
        caught_by: ("loom", "loom_a_place_is_that_of_the_moment"),
    },
    Bug {
        name: "row-made-anew-by-an-earlier-write",
        what: "A row that a later write has made anew is displaced by what an earlier one wrote.",
        edits: &[Edit {
            file: "cube/rows/table.rs",
            find: "(is_used && is_before)",
            put: "(is_used && (BUG || is_before))",
        }],
        caught_by: ("lib", "what_is_written_more_often_than_it_is_read_is_left_as_it_is"),
    },
    Bug {
        name: "row-of-another-key",
        what: "A row of the row cache is taken for one of each key whose hash is the same.",
        edits: &[Edit {
            file: "cube/rows/table.rs",
            find: "            row.key() == key\n",
            put: "            BUG || row.key() == key\n",
        }],
        caught_by: ("lib", "cube::rows::table::tests::a_full_set_loses_the_one_that_is_used_least"),
    },
    Bug {
        name: "rows-lost-as-the-table-grows",
        what: "When the table of rows grows, rows come into the set where they were, instead of that where they are looked for.",
        edits: &[Edit {
            file: "cube/rows/table.rs",
            find: "                let at = self.set(hash);\n                let way",
            put: "                let at = if BUG { hash as usize & (self.sets.len() / 2 - 1) } else { self.set(hash) };\n                let way",
        }],
        caught_by: ("lib", "cube::rows::table::tests::while_there_is_memory_hardly_a_row_goes"),
    },
    Bug {
        name: "more-files-open-than-allowed",
        what: "Segments may have all the files that may be open, and tables have theirs as well.",
        edits: &[Edit {
            file: "cube/open_files.rs",
            find: "set_files_max(files_max - share)",
            put: "set_files_max(if BUG { *files_max } else { files_max - share })",
        }],
        caught_by: ("engine", "tables_have_half_of_them_if_they_are_many"),
    },
    Bug {
        name: "write-marked-too-late",
        what: "Writes tell the row cache once they are visible, instead of before.",
        edits: &[
            Edit {
                file: "cube/commit.rs",
                find: "            self.rows.note_write(key, sequence, pointer);",
                put: "            if !BUG {\n                self.rows.note_write(key, sequence, pointer);\n            }",
            },
            Edit {
                file: "cube/commit.rs",
                find: "        published?;",
                put: "        published?;\n        if BUG {\n            std::thread::sleep(std::time::Duration::from_micros(50));\n            entries.clone().for_each(|entry| self.rows.note_write(entry.operation.key(), last, None));\n        }",
            },
        ],
        caught_by: ("engine", "readers_beside_writers_see_whole_batches_and_never_go_back"),
    },
    Bug {
        name: "row-of-an-unchecked-value",
        what: "Values whose checksum was not looked at are given to readers who ask for that.",
        edits: &[Edit {
            file: "cube/read.rs",
            find: "        self.verify && self.fill_cache",
            put: "        (BUG || self.verify) && self.fill_cache",
        }],
        caught_by: ("engine", "what_was_not_checked_is_not_kept"),
    },
    Bug {
        name: "pinned-with-what-lies-behind",
        what: "A value that is pinned under a longer spelling of its key has zeros behind it.",
        edits: &[Edit {
            file: "vlog/reader.rs",
            find: "if self.len() != at + len {",
            put: "if if BUG { self.len() < at + len } else { self.len() != at + len } {",
        }],
        caught_by: ("engine", "a_value_is_pinned_under_another_spelling_of_its_key"),
    },
    Bug {
        name: "given-up-finger-forgotten",
        what: "Searches from a bucket of fingers without a node that are too long are begun there again and again.",
        edits: &[Edit {
            file: "skiplist/fingers.rs",
            find: "        tier.occupied[bucket / BITS].fetch_or(1 << (bucket % BITS), Ordering::Relaxed);",
            put: "        if !BUG {\n            tier.occupied[bucket / BITS].fetch_or(1 << (bucket % BITS), Ordering::Relaxed);\n        }",
        }],
        caught_by: ("lib", "skiplist::tests::a_bucket_without_a_node_is_given_up_and_those_behind_it_know"),
    },
    Bug {
        name: "scarce-memory-not-noticed",
        what: "No read tells whether the system's cache of files has what is asked for.",
        edits: &[Edit {
            file: "vlog/reader.rs",
            find: "        if tells(offset) && !self.segments.are_direct() {",
            put: "        if !BUG && tells(offset) && !self.segments.are_direct() {",
        }],
        caught_by: (
            "lib",
            "vlog::reader::tests::single_reads_tell_whether_memory_is_scarce_unless_they_go_past_the_cache",
        ),
    },
    Bug {
        name: "walks-read-far-beyond-their-end",
        what: "A walk that has gone over a few entries has as many windows read ahead as a long one.",
        edits: &[Edit {
            file: "cube/iter.rs",
            find: "let entries_max = self.steps as usize;",
            put: "let entries_max = if BUG { usize::MAX } else { self.steps as usize };",
        }],
        caught_by: ("engine", "a_walk_that_ends_has_read_a_few_times_what_it_went_over"),
    },
    Bug {
        name: "next-table-is-waited-for",
        what: "A long walk has nothing of the next table read before it gets there.",
        edits: &[Edit {
            file: "index/table/cursor.rs",
            find: "let is_near = self.end == End::Near;",
            put: "let is_near = self.end == End::Near && !BUG;",
        }],
        caught_by: ("lib", "index::level_cursor::tests::a_long_scan_waits_for_no_table_but_the_first"),
    },
    Bug {
        name: "walks-fill-scarce-memory",
        what: "What a long walk has gone over stays in memory where what lies ahead of it has no room.",
        edits: &[Edit {
            file: "vlog/loads.rs",
            find: "if is_scarce { oldest.collect() }",
            put: "if is_scarce && !BUG { oldest.collect() }",
        }],
        caught_by: ("engine", "a_long_walk_gives_up_what_it_has_gone_over_where_memory_is_scarce"),
    },
];
