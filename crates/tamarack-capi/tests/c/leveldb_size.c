/* Properties, approximate sizes and compaction. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static long number_of(leveldb_t* db, const char* property) {
  char* text = leveldb_property_value(db, property);
  CHECK(text != NULL);
  char* end;
  long number = strtol(text, &end, 10);
  CHECK(end != text && *end == 0);
  leveldb_free(text);
  return number;
}

static void properties(leveldb_t* db) {
  static const char* const unknown[] = {
      "",
      "leveldb.",
      "leveldb.no-such-property",
      "leveldb.stats2",
      "leveldb.num-files-at-level",
      "leveldb.num-files-at-level7",
      "leveldb.num-files-at-level-1",
      "leveldb.num-files-at-level+1",
      "leveldb.num-files-at-levelx",
      "stats",
      "\xff\xfe",
  };
  for (size_t index = 0; index < sizeof unknown / sizeof *unknown; index++) {
    CHECK(leveldb_property_value(db, unknown[index]) == NULL);
  }
  static const char* const texts[] = {"leveldb.stats", "leveldb.sstables"};
  for (size_t index = 0; index < sizeof texts / sizeof *texts; index++) {
    char* text = leveldb_property_value(db, texts[index]);
    CHECK(text != NULL && strlen(text) > 10);
    free(text);
  }
  CHECK(number_of(db, "leveldb.approximate-memory-usage") > 0);
  long tables = 0;
  for (int level = 0; level < 7; level++) {
    char name[64];
    snprintf(name, sizeof name, "leveldb.num-files-at-level%d", level);
    tables += number_of(db, name);
  }
  CHECK(tables > 0);
}

void size_suite(void) {
  leveldb_options_t* options = creating();
  leveldb_options_set_write_buffer_size(options, 100000);
  leveldb_t* db = open_with(options, "size");
  leveldb_options_destroy(options);
  char key[100], value[100];
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  char* error = NULL;
  for (int number = 0; number < 20000; number++) {
    int keylen = snprintf(key, sizeof key, "k%020d", number);
    int vallen = snprintf(value, sizeof value, "v%020d", number);
    leveldb_put(db, write, key, (size_t)keylen, value, (size_t)vallen, &error);
    CHECK_OK(error);
  }
  leveldb_writeoptions_destroy(write);
  static const char* const starts[] = {"a", "k00000000000000010000", "x", "b"};
  static const char* const limits[] = {"k00000000000000010000", "z", "y", "a"};
  static const size_t start_lengths[] = {1, 21, 1, 1}, limit_lengths[] = {21, 1, 1, 1};
  uint64_t sizes[4] = {77, 77, 77, 77};
  leveldb_approximate_sizes(db, 2, starts, start_lengths, limits, limit_lengths, sizes);
  CHECK(sizes[0] > 0 && sizes[0] < 10 << 20);
  CHECK(sizes[1] > 0 && sizes[1] < 10 << 20);
  CHECK_EQUAL(sizes[2], 77);
  leveldb_approximate_sizes(db, 4, starts, start_lengths, limits, limit_lengths, sizes);
  CHECK_EQUAL(sizes[2], 0);
  CHECK_EQUAL(sizes[3], 0);
  leveldb_approximate_sizes(db, 0, NULL, NULL, NULL, NULL, NULL);
  properties(db);

  /* Everything is deleted, and compacted away. */
  for (int number = 0; number < 20000; number++) {
    snprintf(key, sizeof key, "k%020d", number);
    delete_key(db, key);
  }
  leveldb_compact_range(db, "k", 1, "l", 1);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  CHECK_EQUAL(count(db), 0);
  uint64_t before = sizes[0];
  leveldb_approximate_sizes(db, 1, starts, start_lengths, limits, limit_lengths, sizes);
  CHECK(sizes[0] < before / 4);
  leveldb_close(db);
}
