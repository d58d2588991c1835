/* Iterators: seeking, both directions, ends, one moment, from memory and from tables. */

#include <stdio.h>
#include <string.h>

#include "check.h"

static void walk(leveldb_t* db) {
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, read);
  CHECK_AT(iterator, NULL, NULL);
  leveldb_iter_seek_to_first(iterator);
  CHECK_AT(iterator, "box", "c");
  leveldb_iter_next(iterator);
  CHECK_AT(iterator, "foo", "hello");
  leveldb_iter_next(iterator);
  CHECK_AT(iterator, "zoo", "");
  leveldb_iter_prev(iterator);
  CHECK_AT(iterator, "foo", "hello");
  leveldb_iter_prev(iterator);
  CHECK_AT(iterator, "box", "c");
  leveldb_iter_prev(iterator);
  CHECK_AT(iterator, NULL, NULL);
  leveldb_iter_seek_to_last(iterator);
  CHECK_AT(iterator, "zoo", "");
  leveldb_iter_next(iterator);
  CHECK_AT(iterator, NULL, NULL);
  leveldb_iter_seek(iterator, "b", 1);
  CHECK_AT(iterator, "box", "c");
  leveldb_iter_seek(iterator, "box", 3);
  CHECK_AT(iterator, "box", "c");
  leveldb_iter_seek(iterator, "boxes", 5);
  CHECK_AT(iterator, "foo", "hello");
  leveldb_iter_seek(iterator, "", 0);
  CHECK_AT(iterator, "box", "c");
  leveldb_iter_seek(iterator, "zooo", 4);
  CHECK_AT(iterator, NULL, NULL);
  leveldb_iter_destroy(iterator);
  leveldb_readoptions_destroy(read);
}

static void many_entries(void) {
  enum { entries = 2000 };
  leveldb_t* db = open_new("iterator-many");
  char key[32], value[1100];
  memset(value, 'v', sizeof value);
  for (int number = 0; number < entries; number++) {
    snprintf(key, sizeof key, "%06d", number * 2);
    /* Of many lengths, so that values lie beside their keys and apart from them. */
    put_bytes(db, key, 6, value, (size_t)(number % 11) * 100);
    if (number == entries / 2) leveldb_compact_range(db, NULL, 0, NULL, 0);
  }
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  leveldb_readoptions_set_fill_cache(read, 0);
  leveldb_readoptions_set_verify_checksums(read, 1);
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, read);
  int number = 0;
  size_t length;
  for (leveldb_iter_seek_to_first(iterator); leveldb_iter_valid(iterator); leveldb_iter_next(iterator)) {
    snprintf(key, sizeof key, "%06d", number * 2);
    const char* found = leveldb_iter_key(iterator, &length);
    CHECK(length == 6 && memcmp(found, key, 6) == 0);
    found = leveldb_iter_value(iterator, &length);
    CHECK_EQUAL(length, (number % 11) * 100);
    CHECK(memcmp(found, value, length) == 0);
    number++;
  }
  CHECK_EQUAL(number, entries);
  for (leveldb_iter_seek_to_last(iterator); leveldb_iter_valid(iterator); leveldb_iter_prev(iterator)) {
    number--;
    snprintf(key, sizeof key, "%06d", number * 2);
    CHECK(memcmp(leveldb_iter_key(iterator, &length), key, 6) == 0);
    leveldb_iter_value(iterator, &length);
    CHECK_EQUAL(length, (number % 11) * 100);
  }
  CHECK_EQUAL(number, 0);
  for (number = 0; number < entries - 1; number += 37) {
    snprintf(key, sizeof key, "%06d", number * 2 + 1);
    leveldb_iter_seek(iterator, key, 6);
    snprintf(key, sizeof key, "%06d", number * 2 + 2);
    CHECK(leveldb_iter_valid(iterator) && memcmp(leveldb_iter_key(iterator, &length), key, 6) == 0);
  }
  leveldb_iter_destroy(iterator);
  leveldb_readoptions_destroy(read);
  leveldb_close(db);
}

void iterator_suite(void) {
  leveldb_t* db = open_new("iterator");
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, read);
  leveldb_iter_seek_to_first(iterator);
  CHECK_AT(iterator, NULL, NULL);
  leveldb_iter_seek_to_last(iterator);
  CHECK_AT(iterator, NULL, NULL);
  put(db, "foo", "hello");
  put(db, "box", "c");
  put(db, "zoo", "");
  put(db, "deleted", "1");
  delete_key(db, "deleted");
  /* It still sees the moment it was made at. */
  leveldb_iter_seek_to_first(iterator);
  CHECK_AT(iterator, NULL, NULL);
  leveldb_iter_destroy(iterator);

  walk(db);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  walk(db);
  iterator = leveldb_create_iterator(db, read);
  leveldb_iter_seek_to_first(iterator);
  put(db, "box", "new");
  put(db, "cat", "new");
  CHECK_AT(iterator, "box", "c");
  leveldb_iter_next(iterator);
  CHECK_AT(iterator, "foo", "hello");
  leveldb_iter_destroy(iterator);
  leveldb_readoptions_destroy(read);
  leveldb_close(db);
  many_entries();
}
