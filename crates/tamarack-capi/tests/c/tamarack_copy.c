/* Checkpoints and checks. */

#include <stdlib.h>
#include <string.h>

#include <tamarack/c.h>

#include "check.h"

void copy_suite(void) {
  leveldb_t* db = open_new("copy");
  char* error = NULL;
  put(db, "key", "before");
  char* path = strdup(fresh("copy-of-it"));
  char* report = tamarack_checkpoint(db, path, &error);
  CHECK_OK(error);
  CHECK(strstr(report, "\"linked_files\":") != NULL && strstr(report, "\"copied_bytes\":") != NULL);
  leveldb_free(report);
  put(db, "key", "after");
  put(db, "other", "after");
  leveldb_options_t* options = leveldb_options_create();
  leveldb_t* copy = leveldb_open(options, path, &error);
  CHECK_OK(error);
  CHECK_GET(copy, "key", "before");
  CHECK_EQUAL(count(copy), 1);
  put(copy, "key", "elsewhere");
  CHECK_GET(db, "key", "after");

  CHECK(tamarack_checkpoint(db, path, &error) == NULL);
  CHECK_FAILS(error, "", "copy-of-it");
  for (int level = tamarack_check_structure; level <= tamarack_check_values; level++) {
    report = tamarack_check(copy, level);
    CHECK(strstr(report, "\"clean\":true") != NULL && strstr(report, "\"problems\":[]") != NULL);
    leveldb_free(report);
  }
  leveldb_close(copy);
  leveldb_close(db);
  leveldb_options_destroy(options);
  free(path);
}
