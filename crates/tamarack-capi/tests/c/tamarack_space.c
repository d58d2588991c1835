/* Flushes, compactions, garbage collection, and the figures that show them. */

#include <stdlib.h>
#include <string.h>

#include <tamarack/c.h>

#include "check.h"

static double figure(leveldb_t* db, const char* name) {
  double value = -1;
  CHECK(tamarack_stats_number(db, name, &value));
  return value;
}

void space_suite(void) {
  leveldb_options_t* options = creating();
  char* error = NULL;
  tamarack_options_set(options, "segment_bytes_max", "65536", &error);
  CHECK_OK(error);
  leveldb_options_set_compression(options, leveldb_no_compression);
  leveldb_t* db = open_with(options, "space");
  tamarack_gc_pause(db);
  char value[4000];
  for (int round = 0; round < 4; round++) {
    memset(value, 'a' + round, sizeof value);
    for (char key = 'A'; key < 'A' + 50; key++) put_bytes(db, &key, 1, value, sizeof value);
  }
  CHECK(figure(db, "flushes") == 0);
  tamarack_flush(db, &error);
  CHECK_OK(error);
  CHECK(figure(db, "flushes") == 1);
  tamarack_wait_idle(db, &error);
  CHECK_OK(error);
  tamarack_compact_range(db, NULL, 0, NULL, 0, &error);
  CHECK_OK(error);

  double before = figure(db, "log_bytes");
  char* report = tamarack_gc(db, 1.5, &error);
  CHECK_OK(error);
  CHECK(strstr(report, "\"segments\":") != NULL && strstr(report, "\"segments\":0") == NULL);
  leveldb_free(report);
  CHECK(figure(db, "log_bytes") < before);
  CHECK(figure(db, "collections") > 0);
  report = tamarack_gc(db, 0, &error);
  CHECK_OK(error);
  leveldb_free(report);
  CHECK(tamarack_gc(db, 0.5, &error) == NULL);
  CHECK_FAILS(error, "Invalid argument: ", "at least 1");
  tamarack_gc_resume(db, &error);
  CHECK_OK(error);
  tamarack_gc_resume(db, &error);
  CHECK_FAILS(error, "Invalid argument: ", "");

  tamarack_set_gc_bytes_per_second(db, 1u << 30);
  tamarack_set_gc_bytes_per_second(db, 0);
  CHECK(figure(db, "sortings") == 0);
  tamarack_sort_values(db, &error);
  CHECK_OK(error);
  CHECK(figure(db, "value_runs") <= 8);

  memset(value, 'd', sizeof value);
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  for (char key = 'A'; key < 'A' + 50; key++) {
    size_t length;
    char* found = leveldb_get(db, read, &key, 1, &length, &error);
    CHECK_OK(error);
    CHECK(found != NULL && length == sizeof value && memcmp(found, value, length) == 0);
    leveldb_free(found);
  }
  leveldb_readoptions_destroy(read);

  report = tamarack_stats(db);
  CHECK(report[0] == '{');
  CHECK(strstr(report, "\"levels\":[{") != NULL && strstr(report, "\"segments\":[{") != NULL);
  leveldb_free(report);
  double number = 77;
  CHECK(tamarack_stats_number(db, "block_cache.misses", &number) && number >= 0);
  number = 77;
  CHECK(!tamarack_stats_number(db, "no_such_figure", &number) && number == 77);
  CHECK(!tamarack_stats_number(db, "levels", &number) && number == 77);
  leveldb_close(db);
  leveldb_options_destroy(options);
}
