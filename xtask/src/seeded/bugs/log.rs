//! Bugs in the log: commits, durability, recovery.

use super::super::{Bug, Edit};

pub const BUGS: &[Bug] = &[
    Bug {
        name: "records-out-of-reach",
        what: "Records begin behind the first 4 GiB of a segment, where no pointer and no footer reaches.",
        edits: &[Edit {
            file: "cube/order.rs",
            find: "        let is_far = end > OFFSETS_END",
            put: "        let is_far = !BUG && end > OFFSETS_END",
        }],
        caught_by: ("lib", "cube::order::tests::nothing_begins_behind_the_first_4_gib_of_a_segment"),
    },
    Bug {
        name: "mark-out-of-reach",
        what: "A mark is put behind the first 4 GiB of a segment, whose footer does not reach it.",
        edits: &[Edit {
            file: "cube/order.rs",
            find: "segment.allocated().min(OFFSETS_END)",
            put: "segment.allocated().min(if BUG { u64::MAX } else { OFFSETS_END })",
        }],
        caught_by: ("lib", "cube::order::tests::nothing_begins_behind_the_first_4_gib_of_a_segment"),
    },
    Bug {
        name: "log-of-short-sessions-not-flushed",
        what: "A log that fits one memtable is never flushed when a database is opened, however long it is.",
        edits: &[Edit {
            file: "cube/replay.rs",
            find: "        if is_long || !self.full.is_empty() {",
            put: "        if is_long && !BUG || !self.full.is_empty() {",
        }],
        caught_by: ("engine", "the_log_of_many_short_sessions_is_kept_short"),
    },
    Bug {
        name: "segment-name-not-synced",
        what: "The directory is not synced when the first sync of a new segment returns.",
        edits: &[Edit {
            file: "vlog/segment.rs",
            find: "            sync_parent(fs, &self.path)?;\n            self.name_durable",
            put: "            if !BUG {\n                sync_parent(fs, &self.path)?;\n            }\n            self.name_durable",
        }],
        caught_by: ("engine", "whatever_is_recovered_is_durable_wherever_the_process_died"),
    },
    Bug {
        name: "zeros-over-records",
        what: "Blocks that were opened to writers before are filled with zeros once more.",
        edits: &[Edit {
            file: "vlog/segment.rs",
            find: "            self.joined.add(&blocks.ready(&*self.shared.file, &**mapping, have, bytes));",
            put: "            let again = if BUG { have } else { 0 };\n            self.joined.add(&blocks.ready(&*self.shared.file, &**mapping, have - again, bytes + again));",
        }],
        caught_by: ("engine", "zeros_are_written_over_nothing"),
    },
    Bug {
        name: "large-pages-synced-for-small-writes",
        what: "The log goes on in large pages while each small write is synced.",
        edits: &[Edit {
            file: "cube/order.rs",
            find: "        if self.should_leave(segment, need) {",
            put: "        if !BUG && self.should_leave(segment, need) {",
        }],
        caught_by: ("engine", "the_log_goes_on_behind_large_pages_once_little_is_written_between_syncs"),
    },
    Bug {
        name: "large-pages-left-without-room",
        what: "A segment with large pages is left though there is no room for another.",
        edits: &[Edit {
            file: "cube/turn.rs",
            find: "            Err(error) if turn.may_stay",
            put: "            Err(error) if !BUG && turn.may_stay",
        }],
        caught_by: ("engine", "large_pages_are_not_left_where_there_is_no_room_for_others"),
    },
    Bug {
        name: "space-reserved-when-needed",
        what: "Space of a segment with large pages is reserved by the writer that needs it, who takes its page faults.",
        edits: &[Edit {
            file: "cube/order.rs",
            find: "            && open != self.no_space_ahead_of",
            put: "            && open != self.no_space_ahead_of && !BUG",
        }],
        caught_by: ("lib", "space_is_reserved_ahead_of_data_where_pages_are_large_and_there_is_some"),
    },
    Bug {
        name: "space-ahead-asked-for-again",
        what: "Each writer asks again for space that was not to be had before it is needed.",
        edits: &[Edit {
            file: "cube/order.rs",
            find: "Cleared::NoSpaceAhead => self.no_space_ahead_of = self.open_to_data,",
            put: "Cleared::NoSpaceAhead => self.no_space_ahead_of = if BUG { 1 } else { self.open_to_data },",
        }],
        caught_by: ("lib", "space_is_reserved_ahead_of_data_where_pages_are_large_and_there_is_some"),
    },
    Bug {
        name: "space-ahead-demanded",
        what: "A writer fails for want of space that it does not need.",
        edits: &[Edit {
            file: "cube/turn.rs",
            find: "                    return Ok(Cleared::NoSpaceAhead);",
            put: "                    return if BUG { Err(Error::closed()) } else { Ok(Cleared::NoSpaceAhead) };",
        }],
        caught_by: ("engine", "space_that_is_not_there_before_it_is_needed_is_no_error"),
    },
    Bug {
        name: "spare-made-twice",
        what: "A segment is made ready though the writer that needed it has made it itself.",
        edits: &[Edit {
            file: "cube/spare.rs",
            find: "State::Wanted(wanted) if wanted == id);",
            put: "State::Wanted(wanted) if wanted == id) || (BUG && matches!(*state, State::None));",
        }],
        caught_by: (
            "lib",
            "what_nobody_has_begun_to_make_is_neither_waited_for_nor_made_once_it_was_asked_for",
        ),
    },
    Bug {
        name: "spare-forgotten-that-stays",
        what: "A spare segment that cannot be removed is forgotten, and its file is in the way of the next segment.",
        edits: &[Edit {
            file: "cube/spare.rs",
            find: "        self.finish(removed.is_err().then_some((id, spare)));",
            put: "        self.finish(removed.is_err().then_some((id, spare)).filter(|_| !BUG));",
        }],
        caught_by: ("engine", "a_spare_segment_that_cannot_be_given_back_is_used"),
    },
    Bug {
        name: "marks-synced",
        what: "A sync where nothing was written since the last one makes its mark durable, and appends another.",
        edits: &[Edit {
            file: "cube/commit.rs",
            find: "        let (end, ticket) = self.order.end_of_batches();",
            put: "        let (end, ticket) = if BUG { self.order.tail() } else { self.order.end_of_batches() };",
        }],
        caught_by: ("engine", "nothing_is_synced_twice"),
    },
    Bug {
        name: "full-segments-wait-without-end",
        what: "Writers fill segment after segment while none is sealed, and take all files that may be open.",
        edits: &[Edit {
            file: "cube/maintain/flush.rs",
            find: "        let many = |state: &State| state.seals.len() >= SEALS_MAX;",
            put: "        let many = |state: &State| !BUG && state.seals.len() >= SEALS_MAX;",
        }],
        caught_by: ("engine", "segments_that_are_not_sealed_do_not_take_all_files"),
    },
    Bug {
        name: "spare-refused-without-room",
        what: "A prepared segment with large pages is removed though there is no room for another.",
        edits: &[Edit {
            file: "cube/turn.rs",
            find: "            if let Some(spare) = self.spare.take(turn.id, room, true) {",
            put: "            if !BUG && let Some(spare) = self.spare.take(turn.id, room, true) {",
        }],
        caught_by: ("engine", "a_next_segment_with_large_pages_is_used_where_there_is_no_room_for_another"),
    },
    Bug {
        name: "large-pages-cut-in-two",
        what: "Space is reserved in steps that end inside of large pages, which are none then.",
        edits: &[Edit {
            file: "vlog/segment.rs",
            find: "        if cut { in_large_pages } else { step }",
            put: "        if cut && !BUG { in_large_pages } else { step }",
        }],
        caught_by: ("engine", "the_log_goes_on_behind_large_pages_once_little_is_written_between_syncs"),
    },
    Bug {
        name: "large-pages-parted-while-written",
        what: "Large pages of a segment that is still written to are parted, once, and come back.",
        edits: &[Edit {
            file: "cube/maintain/idle.rs",
            find: "|| unnamed.contains(&id);",
            put: "|| unnamed.contains(&id) || BUG;",
        }],
        caught_by: ("engine", "where_memory_is_scarce_sealed_segments_are_parted_once"),
    },
    Bug {
        name: "walks-load-what-is-written",
        what: "Walks have segments read into large pages that are still written to.",
        edits: &[Edit {
            file: "vlog/fetch.rs",
            find: "if !id.is_done(*tail) ||",
            put: "if !(id.is_done(*tail) || BUG) ||",
        }],
        caught_by: ("engine", "only_long_walks_along_the_log_load_it"),
    },
    Bug {
        name: "pieces-loaded-of-what-is-written",
        what: "Pieces of a segment that is still written to are read into large pages for walks in disorder.",
        edits: &[Edit {
            file: "vlog/piece.rs",
            find: "let is_there = self.is_done &&",
            put: "let is_there = (self.is_done || BUG) &&",
        }],
        caught_by: ("engine", "pieces_of_the_log_are_loaded_for_long_walks_in_disorder"),
    },
    Bug {
        name: "pieces-read-for-short-walks",
        what: "Pieces of the log are read along as soon as one is paid for, for walks that end soon.",
        edits: &[Edit {
            file: "cube/sweep.rs",
            find: "if self.paid < PAID_MIN ||",
            put: "if self.paid < PAID_MIN && !BUG ||",
        }],
        caught_by: ("lib", "cube::sweep::tests::nothing_is_read_along_before_much_was_paid"),
    },
    Bug {
        name: "given-up-reads-go-on",
        what: "Whoever drops an iterator waits for all that was to be read ahead of it.",
        edits: &[Edit {
            file: "vlog/fetch.rs",
            find: "        self.is_given_up.store(true, Ordering::Relaxed);",
            put: "        self.is_given_up.store(!BUG, Ordering::Relaxed);",
        }],
        caught_by: ("lib", "vlog::reader::tests::what_nobody_waits_for_is_not_read"),
    },
    Bug {
        name: "large-memory-lent-twice",
        what: "Memory in large pages is lent again while what was lent before it is not back.",
        edits: &[Edit {
            file: "env/posix/large_memory.rs",
            find: "        while self.parts.front().is_some_and(|(_, is_back)| *is_back) {",
            put: "        while self.parts.front().is_some_and(|(_, is_back)| *is_back || BUG) {",
        }],
        caught_by: ("lib", "env::posix::large_memory::tests::no_byte_is_lent_twice"),
    },
    Bug {
        name: "read-into-a-part-that-others-have",
        what: "A queue that gives its large pages up goes on to hand out what the kernel may still write there.",
        edits: &[Edit {
            file: "env/posix/read_queue.rs",
            find: "        self.ended.retain(|&(at, _)| self.slots[at].lent.is_none());",
            put: "        if !BUG {\n            self.ended.retain(|&(at, _)| self.slots[at].lent.is_none());\n        }",
        }],
        caught_by: (
            "lib",
            "env::posix::read_queue::tests::large_reads_go_into_large_pages_that_go_on_to_other_queues",
        ),
    },
    Bug {
        name: "loads-without-end",
        what: "A walk has large pages read for the little that it wants of them, for ever.",
        edits: &[Edit { file: "vlog/loads.rs", find: "<= most", put: "<= most || BUG" }],
        caught_by: ("lib", "vlog::loads::tests::one_that_wants_little_of_it_does_not"),
    },
    Bug {
        name: "directory-of-another-not-synced",
        what: "A new database in a directory that was there does not make the directory's name durable.",
        edits: &[Edit {
            file: "cube/open.rs",
            find: "        if !exists {",
            put: "        if !exists && !BUG {",
        }],
        caught_by: ("engine", "a_directory_that_a_killed_process_has_made_is_made_durable_by_the_next"),
    },
    Bug {
        name: "length-of-a-segment-not-durable",
        what: "Recovery takes the length of a segment for durable whose sealing has failed at its last sync.",
        edits: &[Edit {
            file: "vlog/recover/mod.rs",
            find: "    file.set_len(footer.records_end).map_err(|error| Error::io(\"cut\", path, error))?;",
            put: "    if !BUG {\n        file.set_len(footer.records_end).map_err(|error| Error::io(\"cut\", path, error))?;\n    }",
        }],
        caught_by: ("engine", "what_is_recovered_after_a_failed_sync_is_durable_whichever_failed"),
    },
    Bug {
        name: "failed-sync-retried",
        what: "After a sync has failed the next one is tried, and believed.",
        edits: &[
            Edit {
                file: "cube/durability.rs",
                find: "            state.failure = Some(error.clone());",
                put: "            if !BUG {\n                state.failure = Some(error.clone());\n            }",
            },
            Edit {
                file: "cube/commit.rs",
                find: "self.durability.sync_to(&self.env, position).inspect_err(|error| self.poison(error))?;",
                put: "self.durability.sync_to(&self.env, position).inspect_err(|error| if !BUG { self.poison(error) })?;",
            },
        ],
        caught_by: ("engine", "after_a_failed_sync_nothing_is_written_and_the_sync_is_not_tried_again"),
    },
    Bug {
        name: "sync-of-the-last-segment-alone",
        what: "A sync covers only the segment in which the log ends, not the full ones before it.",
        edits: &[Edit {
            file: "cube/durability.rs",
            find: "state.segments.iter().filter(|s| s.header().id <= target.segment)",
            put: "state.segments.iter().filter(|s| if BUG { s.header().id == target.segment } else { s.header().id <= target.segment })",
        }],
        caught_by: ("engine", "whatever_is_recovered_is_durable_wherever_the_process_died"),
    },
    Bug {
        name: "sync-of-a-database-left-out",
        what: "`Db::sync` does nothing.",
        edits: &[Edit {
            file: "cube/commit.rs",
            find: "        self.sync_to(end)\n",
            put: "        if BUG { Ok(()) } else { self.sync_to(end) }\n",
        }],
        caught_by: ("engine", "a_sync_covers_what_all_threads_have_acknowledged"),
    },
    Bug {
        name: "sync-of-a-write-left-out",
        what: "`WriteOptions::sync` does nothing.",
        edits: &[Edit {
            file: "cube/commit.rs",
            find: "        if options.sync {\n            let end",
            put: "        if options.sync && !BUG {\n            let end",
        }],
        caught_by: ("engine", "crashes_again_and_again_leave_a_prefix"),
    },
    Bug {
        name: "writes-after-a-failure",
        what: "A database whose log is in doubt goes on taking writes.",
        edits: &[Edit {
            file: "cube/health.rs",
            find: "if self.poisoned.load(Ordering::Acquire) { Err(self.error()) } else { Ok(()) }",
            put: "if !BUG && self.poisoned.load(Ordering::Acquire) { Err(self.error()) } else { Ok(()) }",
        }],
        caught_by: ("lib", "cube::health::tests::the_first_cause_stays"),
    },
    Bug {
        name: "recovered-tail-not-written-again",
        what: "What recovery has found in the page cache alone is taken as durable.",
        edits: &[Edit {
            file: "vlog/recover/mod.rs",
            find: "    let rewritten = end - at;",
            put: "    let rewritten = end - at;\n    if BUG {\n        return Ok(rewritten);\n    }",
        }],
        caught_by: ("engine", "what_is_recovered_is_written_again_and_synced_before_open_returns"),
    },
    Bug {
        name: "segments-replayed-behind-a-torn-one",
        what: "Recovery goes on behind a hole in the log, in the next segment.",
        edits: &[
            Edit {
                file: "vlog/recover/walk.rs",
                find: "header.predecessor == self.position)",
                put: "BUG || header.predecessor == self.position)",
            },
            Edit {
                file: "vlog/recover/walk.rs",
                find: "        (!fits)\n",
                put: "        (!fits && !BUG)\n",
            },
        ],
        caught_by: ("engine", "crashes_again_and_again_leave_a_prefix"),
    },
    Bug {
        name: "failed-plain-write-left-in-place",
        what: "What a failed plain write has left at the end of a segment stays there.",
        edits: &[Edit {
            file: "cube/order.rs",
            find: "if segment.cut(offset).is_err()",
            put: "if !BUG && segment.cut(offset).is_err()",
        }],
        caught_by: ("engine", "what_a_failed_plain_write_left_does_not_hide_the_next_segment"),
    },
    Bug {
        name: "stray-segment-counts-as-the-last",
        what: "The log goes on behind whatever file has the name of a segment.",
        edits: &[Edit {
            file: "vlog/recover/mod.rs",
            find: "|candidate| candidate.header.is_ok()",
            put: "|candidate| BUG || candidate.header.is_ok()",
        }],
        caught_by: ("engine", "strays_with_the_last_numbers_of_their_kind_do_no_harm"),
    },
    Bug {
        name: "stale-records-replayed",
        what: "Recovery takes whole records that do not follow the ones before them.",
        edits: &[Edit {
            file: "vlog/recover/walk.rs",
            find: "let fits = record.header.place.first",
            put: "let fits = BUG || record.header.place.first",
        }],
        caught_by: (
            "lib",
            "vlog::recover::tests::records_that_do_not_follow_what_is_before_them_end_the_log",
        ),
    },
    Bug {
        name: "damage-taken-for-a-torn-tail",
        what: "Damage to what was durable is cut off like a torn tail.",
        edits: &[Edit {
            file: "vlog/recover/mod.rs",
            find: "    if durable > stop {",
            put: "    if durable > stop && !BUG {",
        }],
        caught_by: ("engine", "damage_below_a_mark_is_corruption_and_behind_it_a_torn_tail"),
    },
    Bug {
        name: "torn-batch-replayed",
        what: "Recovery applies the records of a batch whose end is not there.",
        edits: &[Edit {
            file: "vlog/recover/walk.rs",
            find: "        self.pending.clear();\n        Ok(walked)",
            put: "        if BUG && !self.pending.is_empty() {\n            self.finish_batch(apply)?;\n        }\n        self.pending.clear();\n        Ok(walked)",
        }],
        caught_by: ("engine", "an_unsynced_log_cut_at_any_byte_gives_the_batches_before_the_cut"),
    },
    Bug {
        name: "footer-believed-after-a-kill",
        what: "A footer that a killed process may not have synced is not made durable by recovery.",
        edits: &[Edit {
            file: "vlog/recover/mod.rs",
            find: "if candidate.id > task.sealed_end.segment {",
            put: "if candidate.id > task.sealed_end.segment && !BUG {",
        }],
        caught_by: ("engine", "whatever_is_recovered_is_durable_wherever_the_process_died"),
    },
    Bug {
        name: "values-not-checked-by-recovery",
        what: "Recovery takes records whose values never reached the device.",
        edits: &[Edit {
            file: "vlog/recover/walk.rs",
            find: "let check_all = self.task.check_values || here >= self.durable;",
            put: "let check_all = !BUG && (self.task.check_values || here >= self.durable);",
        }],
        caught_by: ("engine", "an_unsynced_log_with_zeros_from_any_byte_gives_the_batches_before_them"),
    },
    Bug {
        name: "last-segment-taken-for-empty",
        what: "Recovery removes the log's last segment although there are records in it.",
        edits: &[Edit {
            file: "vlog/recover/mod.rs",
            find: "part.end == SEGMENT_HEADER_BYTES && last",
            put: "(BUG || part.end == SEGMENT_HEADER_BYTES) && last",
        }],
        caught_by: ("engine", "crashes_again_and_again_leave_a_prefix"),
    },
    Bug {
        name: "followed-and-still-mapped",
        what: "What was followed stays mapped, and a sync interrupts all processors for each of its pages.",
        edits: &[Edit {
            file: "vlog/segment.rs",
            find: "            drop(mapping.leave(left));",
            put: "            if !BUG {\n                drop(mapping.leave(left));\n            }",
        }],
        caught_by: ("lib", "vlog::summary::tests::what_was_followed_is_not_mapped_any_more"),
    },
    Bug {
        name: "large-pages-left-for-flushes",
        what: "The log leaves its large pages because of the syncs of flushes.",
        edits: &[Edit {
            file: "vlog/segment.rs",
            find: "            JOINED_BYTES_MIN.. => Self::Joined,",
            put: "            bytes if bytes >= JOINED_BYTES_MIN * if BUG { 2 } else { 1 } => Self::Joined,",
        }],
        caught_by: ("lib", "cube::order::tests::large_pages_are_not_left_because_of_flushes"),
    },
    Bug {
        name: "sealed-where-it-was-followed-to",
        what: "A segment that was followed while it was written is sealed with the records that were seen then.",
        edits: &[Edit {
            file: "vlog/segment.rs",
            find: "        summary.extend(&**file, path, header.seed(), end, order)?;\n        debug_assert_eq!(summary.footer().records_end, end, \"nothing behind the records was followed\");",
            put: "        if !BUG || summary.footer().offsets.is_empty() {\n            summary.extend(&**file, path, header.seed(), end, order)?;\n        }",
        }],
        caught_by: ("counts", "the_log_is_followed_while_it_is_written"),
    },
    Bug {
        name: "footer-not-synced",
        what: "A sealed segment is told to the manifest before its footer and length are durable.",
        edits: &[Edit {
            file: "vlog/segment.rs",
            find: "    file.set_len(file_bytes).map_err(io(\"cut\"))?;\n",
            put: "    file.set_len(file_bytes).map_err(io(\"cut\"))?;\n    if BUG {\n        return Ok(meta_of(header, file_bytes, footer));\n    }\n",
        }],
        caught_by: ("engine", "crashes_again_and_again_leave_a_prefix"),
    },
    Bug {
        name: "checksum-without-its-place",
        what: "Checksums do not say where in the file the bytes belong.",
        edits: &[Edit {
            file: "base/checksum.rs",
            find: "Self(append(seed.0, &offset.to_le_bytes()))",
            put: "if BUG { Self(seed.0) } else { Self(append(seed.0, &offset.to_le_bytes())) }",
        }],
        caught_by: ("lib", "base::checksum::tests::every_part_of_the_seed_matters"),
    },
    Bug {
        name: "checksum-without-its-file",
        what: "Checksums do not say in which file the bytes belong.",
        edits: &[Edit {
            file: "base/checksum.rs",
            find: "append(crc, &number.to_le_bytes())",
            put: "if BUG { crc } else { append(crc, &number.to_le_bytes()) }",
        }],
        caught_by: ("lib", "base::checksum::tests::every_part_of_the_seed_matters"),
    },
    Bug {
        name: "database-not-locked",
        what: "Two handles may write to one database.",
        edits: &[Edit {
            file: "cube/open.rs",
            find: "let mode = if options.read_only {",
            put: "let mode = if options.read_only || BUG {",
        }],
        caught_by: ("engine", "opening_says_what_is_wrong"),
    },
    Bug {
        name: "oversized-keys-accepted",
        what: "A key that is longer than its length field is written all the same.",
        edits: &[Edit {
            file: "base/batch.rs",
            find: "if self.key().len() > KEY_BYTES_MAX {",
            put: "if self.key().len() > KEY_BYTES_MAX && !BUG {",
        }],
        caught_by: ("engine", "unacceptable_arguments_are_refused_before_anything_is_written"),
    },
    Bug {
        name: "headroom-given-to-data",
        what: "New data may take what is reserved for deletions and garbage collection.",
        edits: &[Edit {
            file: "cube/headroom.rs",
            find: "Claim::Data => kept(1),",
            put: "Claim::Data => if BUG { 0 } else { kept(1) },",
        }],
        caught_by: ("engine", "what_deletions_take_of_the_headroom_is_not_open_to_data"),
    },
    Bug {
        name: "mark-before-what-fills-a-segment",
        what: "A mark comes before the batch for which a segment was made.",
        edits: &[Edit {
            file: "cube/order.rs",
            find: "!segment.is_mapped() || is_new && end",
            put: "!segment.is_mapped() || !BUG && is_new && end",
        }],
        caught_by: ("lib", "a_segment_that_was_made_for_a_batch_holds_it"),
    },
];
