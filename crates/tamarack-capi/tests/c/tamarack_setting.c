/* Options of Tamarack's by name, and that they take effect. */

#include <stdlib.h>
#include <string.h>

#include <tamarack/c.h>

#include "check.h"

static void refused(leveldb_options_t* options, const char* name, const char* value, const char* contains) {
  char* error = NULL;
  tamarack_options_set(options, name, value, &error);
  CHECK_FAILS(error, "Invalid argument: ", contains);
}

static double figure(leveldb_t* db, const char* name) {
  double value = -1;
  CHECK(tamarack_stats_number(db, name, &value));
  return value;
}

void setting_suite(void) {
  CHECK(strchr(tamarack_version(), '.') != NULL);
  leveldb_options_t* options = leveldb_options_create();
  char* error = NULL;
  refused(options, "no_such_option", "1", "no_such_option");
  refused(options, "memtable_bytes", "many", "memtable_bytes");
  refused(options, "memtable_bytes", "-1", "memtable_bytes");
  refused(options, "gc", "never", "cost-benefit");
  refused(options, "\xff", "1", "UTF-8");

  /* The last word counts, whichever function has it. */
  tamarack_options_set(options, "create_if_missing", "true", &error);
  CHECK_OK(error);
  tamarack_options_set(options, "inline_value_max", "0", &error);
  CHECK_OK(error);
  leveldb_options_set_write_buffer_size(options, 1 << 30);
  tamarack_options_set(options, "memtable_bytes", "4096", &error);
  CHECK_OK(error);
  leveldb_t* db = open_with(options, "setting");
  char value[1000];
  memset(value, 'v', sizeof value);
  for (char key = 'a'; key <= 'z'; key++) put_bytes(db, &key, 1, value, sizeof value);
  for (int round = 0; round < 200; round++) put_bytes(db, "key", 3, value, 100);
  tamarack_wait_idle(db, &error);
  CHECK_OK(error);
  CHECK(figure(db, "flushes") > 0);
  /* No value is inline. */
  CHECK_GET(db, "none", NULL);
  double reads = figure(db, "value_reads");
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  size_t length;
  leveldb_free(leveldb_get(db, read, "key", 3, &length, &error));
  CHECK_OK(error);
  CHECK(figure(db, "value_reads") == reads + 1);
  leveldb_close(db);

  /* A value out of range is told when the database is opened. */
  tamarack_options_set(options, "memtable_bytes", "1", &error);
  CHECK_OK(error);
  CHECK(leveldb_open(options, fresh("setting"), &error) == NULL);
  CHECK_FAILS(error, "Invalid argument: ", "memtable_bytes");
  leveldb_options_set_write_buffer_size(options, 65536);

  /* Read-only, several may have it open, and none can write. */
  tamarack_options_set(options, "read_only", "true", &error);
  CHECK_OK(error);
  db = open_with(options, "setting");
  leveldb_t* second = open_with(options, "setting");
  double cached = figure(second, "block_cache.bytes");
  leveldb_readoptions_set_fill_cache(read, 0);
  leveldb_free(leveldb_get(second, read, "a", 1, &length, &error));
  CHECK_OK(error);
  CHECK(figure(second, "block_cache.bytes") == cached);
  leveldb_readoptions_set_fill_cache(read, 1);
  leveldb_free(leveldb_get(second, read, "a", 1, &length, &error));
  CHECK_OK(error);
  CHECK(figure(second, "block_cache.bytes") > cached);
  CHECK_EQUAL(count(second), 27);
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  leveldb_put(db, write, "key", 3, "v", 1, &error);
  CHECK_FAILS(error, "IO error: ", "read-only");
  leveldb_close(second);
  leveldb_close(db);
  leveldb_writeoptions_destroy(write);
  leveldb_readoptions_destroy(read);
  leveldb_options_destroy(options);
}
