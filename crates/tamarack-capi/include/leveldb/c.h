/* LevelDB's C interface, as of its version 1.23, over Tamarack.
 *
 * A program that was written for LevelDB's <leveldb/c.h> compiles with this one and links with -ltamarack or
 * -lleveldb. docs/LEVELDB.md in Tamarack's repository tells for each function and option whether it does the
 * same as in LevelDB. What Tamarack has beyond LevelDB is in <tamarack/c.h>.
 *
 * Conventions
 *
 * - Objects are pointers to incomplete types. Only functions of this library make them, and each kind has one
 *   that takes them back. After that the pointer must not be used; most programs that do are stopped with a
 *   message.
 * - Bytes are a pointer and a length. They may hold zeros, and nothing ends them. They are copied during the
 *   call.
 * - A function that can fail takes an errptr last. *errptr is NULL or a text from malloc() when it is called.
 *   After a failure it is a new text from malloc(), and the one before has been freed; otherwise it stays
 *   what it was. Texts begin with "Invalid argument: ", "Corruption: ", "IO error: " or "Not implemented: ".
 * - Truth values are uint8_t: 0 is false, everything else is true.
 * - No pointer may be NULL unless it says so here; the program is stopped with a message that names the
 *   function.
 *
 * Memory that a function gives away comes from malloc(); free() and leveldb_free() do the same. Every object
 * may be used by several threads at once.
 */

#ifndef TAMARACK_LEVELDB_C_H
#define TAMARACK_LEVELDB_C_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leveldb_t leveldb_t;
typedef struct leveldb_cache_t leveldb_cache_t;
typedef struct leveldb_comparator_t leveldb_comparator_t;
typedef struct leveldb_env_t leveldb_env_t;
typedef struct leveldb_filelock_t leveldb_filelock_t;
typedef struct leveldb_filterpolicy_t leveldb_filterpolicy_t;
typedef struct leveldb_iterator_t leveldb_iterator_t;
typedef struct leveldb_logger_t leveldb_logger_t;
typedef struct leveldb_options_t leveldb_options_t;
typedef struct leveldb_randomfile_t leveldb_randomfile_t;
typedef struct leveldb_readoptions_t leveldb_readoptions_t;
typedef struct leveldb_seqfile_t leveldb_seqfile_t;
typedef struct leveldb_snapshot_t leveldb_snapshot_t;
typedef struct leveldb_writablefile_t leveldb_writablefile_t;
typedef struct leveldb_writebatch_t leveldb_writebatch_t;
typedef struct leveldb_writeoptions_t leveldb_writeoptions_t;

/* A database. */

/* Opens the database in the directory name. NULL after a failure. One handle of one process may have it
 * open. */
leveldb_t* leveldb_open(const leveldb_options_t* options, const char* name, char** errptr);

/* NULL is let pass. Everything written is in the log before; tamarack_close() also tells failures. Iterators
 * that are still there can be used and must be destroyed; the directory can be opened again when the last of
 * them has been. */
void leveldb_close(leveldb_t* db);

void leveldb_put(leveldb_t* db, const leveldb_writeoptions_t* options, const char* key, size_t keylen,
                 const char* val, size_t vallen, char** errptr);

/* A key that is not there is no failure. */
void leveldb_delete(leveldb_t* db, const leveldb_writeoptions_t* options, const char* key, size_t keylen,
                    char** errptr);

/* All operations of the batch or none. The batch stays as it is. */
void leveldb_write(leveldb_t* db, const leveldb_writeoptions_t* options, leveldb_writebatch_t* batch,
                   char** errptr);

/* The value, to be freed by the caller, and its length. NULL and 0 if there is none, and after a failure. */
char* leveldb_get(leveldb_t* db, const leveldb_readoptions_t* options, const char* key, size_t keylen,
                  size_t* vallen, char** errptr);

/* Stands nowhere until it is sought. Sees the moment of this call, or that of the snapshot in options. */
leveldb_iterator_t* leveldb_create_iterator(leveldb_t* db, const leveldb_readoptions_t* options);

const leveldb_snapshot_t* leveldb_create_snapshot(leveldb_t* db);

/* Read options that still name the snapshot must not be read with; such reads fail with "Invalid argument:
 * ". */
void leveldb_release_snapshot(leveldb_t* db, const leveldb_snapshot_t* snapshot);

/* A text to be freed by the caller; NULL if there is no such property. There are leveldb.stats,
 * leveldb.sstables, leveldb.approximate-memory-usage, leveldb.num-files-at-level<N> for N from 0 to 6, and
 * the same with "tamarack." in front. */
char* leveldb_property_value(leveldb_t* db, const char* propname);

/* About how many bytes of disk the keys from each start up to but not including the limit take, values
 * included. What has not left memory yet does not count. */
void leveldb_approximate_sizes(leveldb_t* db, int num_ranges, const char* const* range_start_key,
                               const size_t* range_start_key_len, const char* const* range_limit_key,
                               const size_t* range_limit_key_len, uint64_t* sizes);

/* Both keys are in the range. NULL is before the first or behind the last key. Returns when it is done. */
void leveldb_compact_range(leveldb_t* db, const char* start_key, size_t start_key_len, const char* limit_key,
                           size_t limit_key_len);

/* A directory that holds a database, which must not be open. */

/* Removes the database's files, and the directory if nothing else is in it. No database is no failure. */
void leveldb_destroy_db(const leveldb_options_t* options, const char* name, char** errptr);

/* Makes a database that can be opened out of what is whole. Removes nothing; tamarack_repair() tells what is
 * lost. */
void leveldb_repair_db(const leveldb_options_t* options, const char* name, char** errptr);

/* Iterators. What they give as a key or value is there until the iterator is moved or destroyed. */

void leveldb_iter_destroy(leveldb_iterator_t*);
uint8_t leveldb_iter_valid(const leveldb_iterator_t*);
void leveldb_iter_seek_to_first(leveldb_iterator_t*);
void leveldb_iter_seek_to_last(leveldb_iterator_t*);
/* To the first key that is not before k. */
void leveldb_iter_seek(leveldb_iterator_t*, const char* k, size_t klen);
/* Do nothing if the iterator is not valid. */
void leveldb_iter_next(leveldb_iterator_t*);
void leveldb_iter_prev(leveldb_iterator_t*);
/* NULL if the iterator is not valid. A value is read by this call; where that fails it gives NULL, and the
 * iterator is not valid any more. */
const char* leveldb_iter_key(const leveldb_iterator_t*, size_t* klen);
const char* leveldb_iter_value(const leveldb_iterator_t*, size_t* vlen);
/* A failure, where the iterator is not valid for another reason than the end of the keys. */
void leveldb_iter_get_error(const leveldb_iterator_t*, char** errptr);

/* Batches. What cannot be written, such as a key of 64 KiB, is told by leveldb_write. */

leveldb_writebatch_t* leveldb_writebatch_create(void);
void leveldb_writebatch_destroy(leveldb_writebatch_t*);
void leveldb_writebatch_clear(leveldb_writebatch_t*);
void leveldb_writebatch_put(leveldb_writebatch_t*, const char* key, size_t klen, const char* val,
                            size_t vlen);
void leveldb_writebatch_delete(leveldb_writebatch_t*, const char* key, size_t klen);
/* Calls put or deleted for each operation, in their order. */
void leveldb_writebatch_iterate(const leveldb_writebatch_t*, void* state,
                                void (*put)(void*, const char* k, size_t klen, const char* v, size_t vlen),
                                void (*deleted)(void*, const char* k, size_t klen));
/* Adds what source holds. The two may be the same. */
void leveldb_writebatch_append(leveldb_writebatch_t* destination, const leveldb_writebatch_t* source);

/* How a database is opened. What is not set has Tamarack's default, but that a database is not created unless
 * that is asked for, and that values are compressed. */

leveldb_options_t* leveldb_options_create(void);
void leveldb_options_destroy(leveldb_options_t*);
/* NULL: by bytes, which is the default. */
void leveldb_options_set_comparator(leveldb_options_t*, leveldb_comparator_t*);
/* NULL: no filter. */
void leveldb_options_set_filter_policy(leveldb_options_t*, leveldb_filterpolicy_t*);
void leveldb_options_set_create_if_missing(leveldb_options_t*, uint8_t);
void leveldb_options_set_error_if_exists(leveldb_options_t*, uint8_t);
/* Opening then reads and checks the whole database. */
void leveldb_options_set_paranoid_checks(leveldb_options_t*, uint8_t);
/* There is one env; NULL will do. */
void leveldb_options_set_env(leveldb_options_t*, leveldb_env_t*);
/* No function makes a logger: NULL. */
void leveldb_options_set_info_log(leveldb_options_t*, leveldb_logger_t*);
void leveldb_options_set_write_buffer_size(leveldb_options_t*, size_t);
void leveldb_options_set_max_open_files(leveldb_options_t*, int);
/* NULL: one of the default size. */
void leveldb_options_set_cache(leveldb_options_t*, leveldb_cache_t*);
void leveldb_options_set_block_size(leveldb_options_t*, size_t);
/* Has no effect. */
void leveldb_options_set_block_restart_interval(leveldb_options_t*, int);
void leveldb_options_set_max_file_size(leveldb_options_t*, size_t);

/* LZ4 is what compresses where LevelDB would use Snappy. 2, for Zstandard, is taken as well. */
enum { leveldb_no_compression = 0, leveldb_snappy_compression = 1 };
void leveldb_options_set_compression(leveldb_options_t*, int);

/* The order of keys: compare gives less than, equal to or greater than zero. The database stores the name and
 * is opened with no other. Many threads call compare, until the comparator is destroyed and the last database
 * with it closed; then the destructor is called, which may be NULL. */

leveldb_comparator_t* leveldb_comparator_create(
    void* state, void (*destructor)(void*),
    int (*compare)(void*, const char* a, size_t alen, const char* b, size_t blen),
    const char* (*name)(void*));
void leveldb_comparator_destroy(leveldb_comparator_t*);

/* Filters. Those of Tamarack spare reads whatever the policy; of functions that a client passes, only the
 * destructor is ever called. */

leveldb_filterpolicy_t* leveldb_filterpolicy_create(
    void* state, void (*destructor)(void*),
    char* (*create_filter)(void*, const char* const* key_array, const size_t* key_length_array, int num_keys,
                           size_t* filter_length),
    uint8_t (*key_may_match)(void*, const char* key, size_t length, const char* filter, size_t filter_length),
    const char* (*name)(void*));
void leveldb_filterpolicy_destroy(leveldb_filterpolicy_t*);
leveldb_filterpolicy_t* leveldb_filterpolicy_create_bloom(int bits_per_key);

/* How reads are done. */

leveldb_readoptions_t* leveldb_readoptions_create(void);
void leveldb_readoptions_destroy(leveldb_readoptions_t*);
/* Default: 1. */
void leveldb_readoptions_set_verify_checksums(leveldb_readoptions_t*, uint8_t);
/* Default: 1. */
void leveldb_readoptions_set_fill_cache(leveldb_readoptions_t*, uint8_t);
/* NULL: the present. */
void leveldb_readoptions_set_snapshot(leveldb_readoptions_t*, const leveldb_snapshot_t*);

/* How writes are done. */

leveldb_writeoptions_t* leveldb_writeoptions_create(void);
void leveldb_writeoptions_destroy(leveldb_writeoptions_t*);
/* Without, a write survives the death of the process; with it, that of the machine, too. Default: 0. */
void leveldb_writeoptions_set_sync(leveldb_writeoptions_t*, uint8_t);

/* Caches. Each database that is opened with one has that many bytes for itself. */

leveldb_cache_t* leveldb_cache_create_lru(size_t capacity);
void leveldb_cache_destroy(leveldb_cache_t* cache);

/* The operating system. */

leveldb_env_t* leveldb_create_default_env(void);
void leveldb_env_destroy(leveldb_env_t*);
/* The directory in the environment variable TEST_TMPDIR, or one for this user, which is made. A text to be
 * freed by the caller; NULL if it cannot be made. */
char* leveldb_env_get_test_directory(leveldb_env_t*);

/* Frees what a function of this library has given away. NULL is let pass. */
void leveldb_free(void* ptr);

/* 1 and 23: the version of the interface. */
int leveldb_major_version(void);
int leveldb_minor_version(void);

#ifdef __cplusplus
}
#endif

#endif
