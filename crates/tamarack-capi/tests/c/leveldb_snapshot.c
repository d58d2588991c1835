/* Snapshots: what they see for gets and iterators, and when it ends. */

#include <stdlib.h>
#include <string.h>

#include "check.h"

static void check_read(leveldb_t* db, const leveldb_readoptions_t* read, const char* key, const char* value) {
  char* error = NULL;
  size_t length;
  char* found = leveldb_get(db, read, key, strlen(key), &length, &error);
  CHECK_OK(error);
  CHECK((found == NULL) == (value == NULL));
  CHECK(found == NULL || (length == strlen(value) && memcmp(found, value, length) == 0));
  free(found);
}

void snapshot_suite(void) {
  leveldb_t* db = open_new("snapshot");
  put(db, "changed", "1");
  put(db, "deleted", "1");
  const leveldb_snapshot_t* first = leveldb_create_snapshot(db);
  put(db, "changed", "2");
  delete_key(db, "deleted");
  put(db, "added", "2");
  const leveldb_snapshot_t* second = leveldb_create_snapshot(db);
  put(db, "changed", "3");
  leveldb_compact_range(db, NULL, 0, NULL, 0);

  leveldb_readoptions_t* read = leveldb_readoptions_create();
  leveldb_readoptions_set_snapshot(read, first);
  check_read(db, read, "changed", "1");
  check_read(db, read, "deleted", "1");
  check_read(db, read, "added", NULL);
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, read);
  leveldb_iter_seek_to_first(iterator);
  CHECK_AT(iterator, "changed", "1");
  leveldb_iter_next(iterator);
  CHECK_AT(iterator, "deleted", "1");
  leveldb_iter_next(iterator);
  CHECK_AT(iterator, NULL, NULL);
  leveldb_iter_destroy(iterator);

  leveldb_readoptions_set_snapshot(read, second);
  check_read(db, read, "changed", "2");
  check_read(db, read, "deleted", NULL);
  check_read(db, read, "added", "2");
  leveldb_release_snapshot(db, first);
  check_read(db, read, "changed", "2");
  leveldb_readoptions_set_snapshot(read, NULL);
  check_read(db, read, "changed", "3");
  leveldb_release_snapshot(db, second);
  leveldb_readoptions_destroy(read);
  leveldb_close(db);
}
