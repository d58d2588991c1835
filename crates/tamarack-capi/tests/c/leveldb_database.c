/* Writing, reading, deleting, reopening. */

#include <stdlib.h>
#include <string.h>

#include "check.h"

static void keys_and_values_of_any_bytes(leveldb_t* db) {
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  char* error = NULL;
  size_t length = 77;
  put_bytes(db, "a\0b", 3, "v\0w", 3);
  char* value = leveldb_get(db, read, "a\0b", 3, &length, &error);
  CHECK_OK(error);
  CHECK(value != NULL && length == 3 && memcmp(value, "v\0w", 3) == 0);
  free(value);
  CHECK_GET(db, "a", NULL);

  /* No bytes are a value, and a key. */
  put_bytes(db, "", 0, "", 0);
  value = leveldb_get(db, read, "", 0, &length, &error);
  CHECK_OK(error);
  CHECK(value != NULL && length == 0);
  free(value);

  /* A value is given without a zero behind it, and one larger than any buffer comes back whole. */
  size_t large = 3000000;
  char* bytes = malloc(large);
  CHECK(bytes != NULL);
  for (size_t at = 0; at < large; at++) bytes[at] = (char)(at * 31 + at / 251);
  put_bytes(db, "large", 5, bytes, large);
  value = leveldb_get(db, read, "large", 5, &length, &error);
  CHECK_OK(error);
  CHECK(value != NULL && length == large && memcmp(value, bytes, large) == 0);
  free(value);
  free(bytes);
  leveldb_readoptions_destroy(read);
}

static void writes_with_sync(leveldb_t* db) {
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  char* error = NULL;
  leveldb_writeoptions_set_sync(write, 1);
  leveldb_put(db, write, "synced", 6, "1", 1, &error);
  CHECK_OK(error);
  leveldb_delete(db, write, "no such key", 11, &error);
  CHECK_OK(error);
  leveldb_writeoptions_set_sync(write, 0);
  leveldb_put(db, write, "later", 5, "2", 1, &error);
  CHECK_OK(error);
  leveldb_writeoptions_destroy(write);
  CHECK_GET(db, "synced", "1");
  CHECK_GET(db, "later", "2");
}

void database_suite(void) {
  leveldb_t* db = open_new("database");
  CHECK_GET(db, "key", NULL);
  put(db, "key", "value");
  CHECK_GET(db, "key", "value");
  put(db, "key", "other");
  CHECK_GET(db, "key", "other");
  delete_key(db, "key");
  CHECK_GET(db, "key", NULL);
  keys_and_values_of_any_bytes(db);
  writes_with_sync(db);
  put(db, "kept", "yes");
  size_t entries = count(db);
  leveldb_close(db);

  leveldb_options_t* options = leveldb_options_create();
  db = open_with(options, "database");
  leveldb_options_destroy(options);
  CHECK_GET(db, "kept", "yes");
  CHECK_GET(db, "key", NULL);
  CHECK_EQUAL(count(db), entries);
  leveldb_close(db);

  CHECK_EQUAL(leveldb_major_version(), 1);
  CHECK_EQUAL(leveldb_minor_version(), 23);
  leveldb_free(NULL);
}
