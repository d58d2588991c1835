/* What Tamarack has beyond LevelDB's C interface. The conventions are those of <leveldb/c.h>, and so are the
 * objects but one.
 *
 * Reports are JSON, one object each, as texts that the caller frees. Fields may be added to them; none goes,
 * or changes its meaning.
 */

#ifndef TAMARACK_C_H
#define TAMARACK_C_H

#include <leveldb/c.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library, such as "0.1.0". Not to be freed. */
const char* tamarack_version(void);

/* Options */

/* Sets one of Tamarack's own options by its name: those of tamarack::Options but comparator and listener,
 * such as "inline_value_max", "segment_bytes_max", "max_space_amplification", "gc" or "read_only". Numbers
 * are decimal; truth values are "true" and "false"; gc is "cost-benefit", "tail" or "off"; log_mode is
 * "auto", "mapped" or "plain"; codecs are "none", "lz4" and "zstd". Fails for a name that there is not and a
 * value of another kind. Whether a value lies in its range is told by leveldb_open. The last call for an
 * option counts, whether it is this one or LevelDB's. */
void tamarack_options_set(leveldb_options_t* options, const char* name, const char* value, char** errptr);

/* Durability */

enum {
  /* The write survives the death of the process: kill, crash, out of memory. The default. */
  tamarack_survives_process = 0,
  /* It survives that of the machine, too, and with it everything written before. */
  tamarack_survives_machine = 1
};
/* What a write survives when it returns. Another number stops the program. */
void tamarack_writeoptions_set_durability(leveldb_writeoptions_t* options, int durability);

/* Makes everything that was written so far survive the machine. */
void tamarack_sync(leveldb_t* db, char** errptr);

/* As leveldb_close, and tells failures. The database is closed in either case. */
void tamarack_close(leveldb_t* db, char** errptr);

/* What opening found in the log: {"log_bytes", "batches", "operations", "rewritten_bytes", "torn_tail": null
 * or {"segment", "offset", "ignored_bytes"}, "seconds"}. */
char* tamarack_recovery(leveldb_t* db);

/* Reads */

/* Whether key has a value, and its length. The value is put into buffer if that has room for all of it;
 * otherwise the buffer stays as it was. */
uint8_t tamarack_get_into(leveldb_t* db, const leveldb_readoptions_t* options, const char* key, size_t keylen,
                          char* buffer, size_t capacity, size_t* vallen, char** errptr);

/* A value in memory that is kept in place. */
typedef struct tamarack_pinned_t tamarack_pinned_t;

/* The value of key where it is in memory, without a copy if it was in a cache; NULL if there is none. It
 * stays what it was, whatever becomes of key and of db, until it is destroyed, and holds memory: itself, or
 * a block of a table if it is small enough to lie in one. Threads may share it. */
tamarack_pinned_t* tamarack_get_pinned(leveldb_t* db, const leveldb_readoptions_t* options, const char* key,
                                       size_t keylen, char** errptr);

/* Its bytes, which belong to it, and how many. */
const char* tamarack_pinned_value(const tamarack_pinned_t* pinned, size_t* vallen);

void tamarack_pinned_destroy(tamarack_pinned_t* pinned);

/* The values of keys at one moment, read from the device in parallel. Each of vals, vallens and errs has
 * num_keys elements, which are overwritten: a value to be freed, or NULL; its length; an error to be freed,
 * or NULL. */
void tamarack_multi_get(leveldb_t* db, const leveldb_readoptions_t* options, size_t num_keys,
                        const char* const* keys, const size_t* keylens, char** vals, size_t* vallens,
                        char** errs);

/* A snapshot that statistics call by a name. Released as any other. */
const leveldb_snapshot_t* tamarack_create_snapshot_named(leveldb_t* db, const char* name);

/* Iterators that are made with options from then on will be asked for about so many entries from where they are
 * put: the values of these are read together, and none behind them before it is asked for. It is no limit. 0, as
 * it is at first, says nothing. */
void tamarack_readoptions_set_expected_entries(leveldb_readoptions_t* options, size_t entries);

/* An iterator over the keys from start up to but not including limit; NULL is before the first or behind the
 * last key. With keys_only it never reads values, and asking for one is an error. */
leveldb_iterator_t* tamarack_create_iterator_range(leveldb_t* db, const leveldb_readoptions_t* options,
                                                   const char* start, size_t startlen, const char* limit,
                                                   size_t limitlen, uint8_t keys_only);

/* Space */

/* Turns what is in memory into tables. */
void tamarack_flush(leveldb_t* db, char** errptr);

/* As leveldb_compact_range, and tells failures. */
void tamarack_compact_range(leveldb_t* db, const char* start, size_t startlen, const char* limit,
                            size_t limitlen, char** errptr);

/* Collects garbage until the database takes at most until bytes on disk for each live byte, or nothing more
 * can be freed; with 0, once. What was not flushed is not known to be dead. {"segments", "bytes_before",
 * "bytes_after", "records", "punched", "hole_bytes", "hidden"}. */
char* tamarack_gc(leveldb_t* db, double until, char** errptr);

/* Keeps garbage collection from beginning in the background, until it is resumed as often as it was
 * paused. */
void tamarack_gc_pause(leveldb_t* db);
void tamarack_gc_resume(leveldb_t* db, char** errptr);

/* Changes how many bytes a second garbage collection may copy, as the option gc_bytes_per_second does; 0 is
 * no limit. Holds until the database is closed. */
void tamarack_set_gc_bytes_per_second(leveldb_t* db, uint64_t bytes);

/* Sorts values by key now, until scans find no more than value_runs_max sorted runs of them anywhere; by
 * itself that is done while nothing is written. */
void tamarack_sort_values(leveldb_t* db, char** errptr);

/* Waits until flushes and compactions have nothing left to do. */
void tamarack_wait_idle(leveldb_t* db, char** errptr);

/* Copies, checks, repair */

/* Copies the database into the directory path, which must be empty or not there, while reads and writes go
 * on. Files are shared by hard links where the file system can. {"linked_files", "linked_bytes",
 * "copied_files", "copied_bytes"}. */
char* tamarack_checkpoint(leveldb_t* db, const char* path, char** errptr);

enum {
  tamarack_check_structure = 0,
  tamarack_check_checksums = 1,
  tamarack_check_liveness = 2,
  tamarack_check_values = 3
};
/* Checks what is on disk; each level includes those before it. {"clean", "tables", "segments", "entries",
 * "hidden_references", "records", "bytes_read", "quarantined_segments": those that garbage collection has
 * found damaged since the database was opened, "problems": [{"kind", "message", and for damage "file",
 * "offset", "expected", "found"}]}. Another number stops the program. */
char* tamarack_check(leveldb_t* db, int level);

/* As leveldb_repair_db, and tells what was done; with dry_run, what would be done. {"clean", "changed",
 * "dry_run", "manifest_whole", "tables", "damaged_tables", "index_rebuilt", "keys", "segments",
 * "damaged_segments", "copied_records", "copied_bytes", "log_operations", "damage": as problems above,
 * "lost": [{"first_hex", "last_hex", "operations", "may_be_older", "reason"}], "moved", "text": the same for
 * people}. */
char* tamarack_repair(const leveldb_options_t* options, const char* name, uint8_t dry_run, char** errptr);

/* Statistics */

/* All figures of tamarack::Stats under their names: amounts, counters from opening on, "block_cache",
 * "row_cache", "readers", "levels", "segments", "running_collections" and "warnings". */
char* tamarack_stats(leveldb_t* db);

/* One number of them by its name, such as "disk_bytes" or "block_cache.hits"; whether there is one. */
uint8_t tamarack_stats_number(leveldb_t* db, const char* name, double* value);

#ifdef __cplusplus
}
#endif

#endif
