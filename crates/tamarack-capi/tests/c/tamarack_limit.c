/* What Tamarack cannot take is refused, also where LevelDB's functions have no way to say so; and what they
 * leave undefined is defined. */

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <stdio.h>

#include "check.h"

enum { key_bytes_max = 65535 };

static void keys_have_a_longest_length(leveldb_t* db) {
  char* key = calloc(1, key_bytes_max + 1);
  CHECK(key != NULL);
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  char* error = NULL;
  leveldb_put(db, write, key, key_bytes_max, "v", 1, &error);
  CHECK_OK(error);
  leveldb_put(db, write, key, key_bytes_max + 1, "v", 1, &error);
  CHECK_FAILS(error, "Invalid argument: ", "65535");
  leveldb_delete(db, write, key, key_bytes_max + 1, &error);
  CHECK_FAILS(error, "Invalid argument: ", "65535");

  /* A batch tells when it is written, and nothing of it is. */
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "before", 6, "v", 1);
  leveldb_writebatch_put(batch, key, key_bytes_max + 1, "v", 1);
  leveldb_writebatch_t* other = leveldb_writebatch_create();
  leveldb_writebatch_append(other, batch);
  leveldb_write(db, write, batch, &error);
  CHECK_FAILS(error, "Invalid argument: ", "65535");
  leveldb_write(db, write, other, &error);
  CHECK_FAILS(error, "Invalid argument: ", "65535");
  CHECK_GET(db, "before", NULL);
  leveldb_writebatch_clear(batch);
  leveldb_writebatch_put(batch, "after", 5, "v", 1);
  leveldb_write(db, write, batch, &error);
  CHECK_OK(error);
  CHECK_GET(db, "after", "v");
  leveldb_writebatch_destroy(batch);
  leveldb_writebatch_destroy(other);
  leveldb_writeoptions_destroy(write);
  free(key);
}

/* What a batch is told while it is walked over. */
struct walk {
  leveldb_writebatch_t* batch;
  int puts, deletions;
};

static void on_put(void* state, const char* k, size_t klen, const char* v, size_t vlen) {
  (void)k, (void)klen, (void)v, (void)vlen;
  struct walk* walk = state;
  walk->puts++;
  if (walk->batch != NULL) leveldb_writebatch_delete(walk->batch, "added", 5);
}

static void on_delete(void* state, const char* k, size_t klen) {
  (void)k, (void)klen;
  ((struct walk*)state)->deletions++;
}

static void batches_may_be_appended_to_themselves_and_changed_in_a_walk(void) {
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "a", 1, "1", 1);
  leveldb_writebatch_append(batch, batch);
  struct walk walk = {batch, 0, 0};
  leveldb_writebatch_iterate(batch, &walk, on_put, on_delete);
  CHECK_EQUAL(walk.puts, 2);
  CHECK_EQUAL(walk.deletions, 0);
  walk = (struct walk){NULL, 0, 0};
  leveldb_writebatch_iterate(batch, &walk, on_put, on_delete);
  CHECK_EQUAL(walk.puts, 2);
  CHECK_EQUAL(walk.deletions, 2);
  leveldb_writebatch_destroy(batch);
}

static void an_iterator_that_stands_nowhere_moves_nowhere(leveldb_t* db) {
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, read);
  leveldb_iter_next(iterator);
  leveldb_iter_prev(iterator);
  CHECK_AT(iterator, NULL, NULL);
  size_t length = 77;
  CHECK(leveldb_iter_key(iterator, &length) == NULL && length == 0);
  length = 77;
  CHECK(leveldb_iter_value(iterator, &length) == NULL && length == 0);
  leveldb_iter_destroy(iterator);
  leveldb_readoptions_destroy(read);
}

static void compressions_that_are_none_are_refused(void) {
  leveldb_options_t* options = creating();
  char* error = NULL;
  leveldb_options_set_compression(options, 9);
  CHECK(leveldb_open(options, fresh("limit-compression"), &error) == NULL);
  CHECK_FAILS(error, "Invalid argument: ", "compression 9");
  leveldb_options_set_compression(options, 2);
  leveldb_close(open_with(options, "limit-compression"));
  leveldb_options_destroy(options);
}

static void write_file(const char* name, const char* text) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", fresh("limit-leveldb"), name);
  FILE* file = fopen(path, "w");
  CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void a_directory_of_leveldb_is_refused(void) {
  CHECK(mkdir(fresh("limit-leveldb"), 0700) == 0);
  write_file("CURRENT", "MANIFEST-000002\n");
  write_file("MANIFEST-000002", "edits");
  write_file("000003.log", "records");
  leveldb_options_t* options = creating();
  char* error = NULL;
  CHECK(leveldb_open(options, fresh("limit-leveldb"), &error) == NULL);
  CHECK_FAILS(error, "Invalid argument: ", "holds a LevelDB database");
  leveldb_repair_db(options, fresh("limit-leveldb"), &error);
  CHECK_FAILS(error, "Invalid argument: ", "holds a LevelDB database");
  leveldb_destroy_db(options, fresh("limit-leveldb"), &error);
  CHECK_FAILS(error, "Invalid argument: ", "holds a LevelDB database");
  leveldb_repair_db(options, fresh("limit-none"), &error);
  CHECK_FAILS(error, "Invalid argument: ", "holds no database");
  leveldb_options_destroy(options);
}

static void an_open_database_is_not_repaired(void) {
  leveldb_options_t* options = creating();
  leveldb_t* db = open_with(options, "limit-open");
  char* error = NULL;
  leveldb_repair_db(options, fresh("limit-open"), &error);
  CHECK_FAILS(error, "IO error: lock ", "limit-open");
  leveldb_close(db);
  leveldb_options_destroy(options);
}

static void directories_above_are_made(void) {
  leveldb_close(open_new("limit-above/of/it"));
  leveldb_options_t* options = leveldb_options_create();
  leveldb_close(open_with(options, "limit-above/of/it"));
  leveldb_options_destroy(options);
}

static void the_test_directory_is_where_temporary_files_are(void) {
  leveldb_env_t* env = leveldb_create_default_env();
  CHECK(unsetenv("TEST_TMPDIR") == 0 && mkdir(fresh("limit-temporary"), 0700) == 0);
  CHECK(setenv("TMPDIR", fresh("limit-temporary"), 1) == 0);
  char* directory = leveldb_env_get_test_directory(env);
  CHECK(directory != NULL && strncmp(directory, fresh("limit-temporary/"), strlen(fresh("limit-temporary/"))) == 0);
  leveldb_free(directory);
  CHECK(setenv("TMPDIR", "/dev/null", 1) == 0);
  CHECK(leveldb_env_get_test_directory(env) == NULL);
  CHECK(unsetenv("TMPDIR") == 0);
  leveldb_env_destroy(env);
}

void limit_suite(void) {
  leveldb_t* db = open_new("limit");
  keys_have_a_longest_length(db);
  batches_may_be_appended_to_themselves_and_changed_in_a_walk();
  an_iterator_that_stands_nowhere_moves_nowhere(db);
  leveldb_close(db);
  compressions_that_are_none_are_refused();
  a_directory_of_leveldb_is_refused();
  an_open_database_is_not_repaired();
  directories_above_are_made();
  the_test_directory_is_where_temporary_files_are();
}
