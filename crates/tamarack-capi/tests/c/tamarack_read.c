/* Reads beyond LevelDB's: into a buffer, in place, of many keys, of a range, at a moment with a name. */

#include <stdlib.h>
#include <string.h>

#include <tamarack/c.h>

#include "check.h"

static void into_a_buffer(leveldb_t* db, const leveldb_readoptions_t* read) {
  char buffer[8] = "-------";
  size_t length = 77;
  char* error = NULL;
  CHECK(tamarack_get_into(db, read, "b", 1, buffer, 5, &length, &error) == 1);
  CHECK_OK(error);
  CHECK(length == 3 && memcmp(buffer, "two----", 8) == 0);
  CHECK(tamarack_get_into(db, read, "none", 4, buffer, 5, &length, &error) == 0);
  CHECK_OK(error);
  CHECK_EQUAL(length, 0);
  /* Too small: the length is told, and nothing is written. */
  CHECK(tamarack_get_into(db, read, "c", 1, buffer, 4, &length, &error) == 1);
  CHECK_OK(error);
  CHECK(length == 5 && memcmp(buffer, "two----", 8) == 0);
  CHECK(tamarack_get_into(db, read, "c", 1, NULL, 0, &length, &error) == 1 && length == 5);
  CHECK(tamarack_get_into(db, read, "c", 1, buffer, 5, &length, &error) == 1);
  CHECK(length == 5 && memcmp(buffer, "three--", 8) == 0);
  CHECK(tamarack_get_into(db, read, "empty", 5, NULL, 0, &length, &error) == 1 && length == 0);
}

static void in_place(leveldb_t* db, const leveldb_readoptions_t* read, tamarack_pinned_t* kept[2]) {
  char* error = NULL;
  size_t length = 77, again = 77;
  put(db, "pinned", "as it was");
  for (int index = 0; index < 2; index++) {
    kept[index] = tamarack_get_pinned(db, read, "pinned", 6, &error);
    CHECK_OK(error);
  }
  CHECK(tamarack_pinned_value(kept[0], &length) == tamarack_pinned_value(kept[1], &again));
  CHECK(length == 9 && again == 9);
  tamarack_pinned_t* empty = tamarack_get_pinned(db, read, "empty", 5, &error);
  CHECK(tamarack_pinned_value(empty, &length) != NULL && length == 0);
  tamarack_pinned_destroy(empty);
  CHECK(tamarack_get_pinned(db, read, "none", 4, &error) == NULL);
  CHECK_OK(error);
  tamarack_pinned_destroy(NULL);
  put(db, "pinned", "as it is");
  CHECK(memcmp(tamarack_pinned_value(kept[0], &length), "as it was", 9) == 0);
}

static void many_keys(leveldb_t* db, const leveldb_readoptions_t* read) {
  const char* keys[] = {"c", "none", "empty", "a"};
  const size_t lengths[] = {1, 4, 5, 1};
  const char* expected[] = {"three", NULL, "", "one"};
  char *values[4], *errors[4];
  size_t value_lengths[4];
  tamarack_multi_get(db, read, 4, keys, lengths, values, value_lengths, errors);
  for (int index = 0; index < 4; index++) {
    CHECK(errors[index] == NULL);
    CHECK((values[index] == NULL) == (expected[index] == NULL));
    if (expected[index] == NULL) continue;
    CHECK(value_lengths[index] == strlen(expected[index]));
    CHECK(memcmp(values[index], expected[index], value_lengths[index]) == 0);
    leveldb_free(values[index]);
  }
  CHECK_EQUAL(value_lengths[1], 0);
  tamarack_multi_get(db, read, 0, NULL, NULL, NULL, NULL, NULL);
}

static void ranges(leveldb_t* db, const leveldb_readoptions_t* read) {
  leveldb_iterator_t* iterator = tamarack_create_iterator_range(db, read, "b", 1, "d", 1, 0);
  leveldb_iter_seek_to_first(iterator);
  CHECK_AT(iterator, "b", "two");
  leveldb_iter_next(iterator);
  CHECK_AT(iterator, "c", "three");
  leveldb_iter_next(iterator);
  CHECK_AT(iterator, NULL, NULL);
  leveldb_iter_seek(iterator, "a", 1);
  CHECK_AT(iterator, "b", "two");
  leveldb_iter_seek_to_last(iterator);
  CHECK_AT(iterator, "c", "three");
  leveldb_iter_destroy(iterator);
  iterator = tamarack_create_iterator_range(db, read, NULL, 0, "b", 1, 1);
  leveldb_iter_seek_to_last(iterator);
  size_t length;
  CHECK(leveldb_iter_valid(iterator) && memcmp(leveldb_iter_key(iterator, &length), "a", 1) == 0);
  CHECK(leveldb_iter_value(iterator, &length) == NULL);
  char* error = NULL;
  leveldb_iter_get_error(iterator, &error);
  CHECK_FAILS(error, "Invalid argument: ", "keys_only");
  leveldb_iter_destroy(iterator);
}

/* How many bytes of values are read for the first of a walk that is to show so many. */
static double bytes_of_a_value(leveldb_t* db, leveldb_readoptions_t* read, size_t expected) {
  double before = -1, after = -1;
  size_t length;
  CHECK(tamarack_stats_number(db, "value_read_bytes", &before));
  tamarack_readoptions_set_expected_entries(read, expected);
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, read);
  leveldb_iter_seek(iterator, "x00", 3);
  CHECK(leveldb_iter_value(iterator, &length) != NULL && length == 3000);
  leveldb_iter_destroy(iterator);
  tamarack_readoptions_set_expected_entries(read, 0);
  CHECK(tamarack_stats_number(db, "value_read_bytes", &after));
  return after - before;
}

static void expectations(leveldb_t* db, leveldb_readoptions_t* read) {
  char key[] = "x00", value[3001], *error = NULL;
  memset(value, 'x', 3000);
  value[3000] = 0;
  for (; key[1] < '2'; key[1]++) {
    for (key[2] = '0'; key[2] <= '9'; key[2]++) put(db, key, value);
  }
  tamarack_flush(db, &error);
  CHECK_OK(error);
  const double one = bytes_of_a_value(db, read, 1);
  CHECK(one > 0);
  CHECK(bytes_of_a_value(db, read, 20) == 20 * one);
  CHECK(bytes_of_a_value(db, read, 0) == one);
}

static void moments(leveldb_t* db, leveldb_readoptions_t* read) {
  const leveldb_snapshot_t* snapshot = tamarack_create_snapshot_named(db, "nightly");
  put(db, "a", "changed");
  char* stats = tamarack_stats(db);
  CHECK(strstr(stats, "\"name\":\"nightly\"") != NULL);
  leveldb_free(stats);
  leveldb_readoptions_set_snapshot(read, snapshot);
  const char* keys[] = {"a"};
  const size_t lengths[] = {1};
  char *value, *problem, *error = NULL, buffer[8];
  size_t length;
  tamarack_multi_get(db, read, 1, keys, lengths, &value, &length, &problem);
  CHECK(problem == NULL && value != NULL && length == 3 && memcmp(value, "one", 3) == 0);
  leveldb_free(value);
  leveldb_release_snapshot(db, snapshot);
  tamarack_multi_get(db, read, 1, keys, lengths, &value, &length, &problem);
  CHECK(value == NULL);
  CHECK_FAILS(problem, "Invalid argument: ", "released");
  CHECK(tamarack_get_into(db, read, "a", 1, buffer, sizeof buffer, &length, &error) == 0);
  CHECK_FAILS(error, "Invalid argument: ", "released");
  CHECK(tamarack_get_pinned(db, read, "a", 1, &error) == NULL);
  CHECK_FAILS(error, "Invalid argument: ", "released");
  stats = tamarack_stats(db);
  CHECK(strstr(stats, "nightly") == NULL);
  leveldb_free(stats);
  leveldb_readoptions_set_snapshot(read, NULL);
}

void read_suite(void) {
  leveldb_t* db = open_new("read");
  put(db, "a", "one");
  put(db, "b", "two");
  put(db, "c", "three");
  put(db, "empty", "");
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  tamarack_pinned_t* kept[2];
  size_t length;
  into_a_buffer(db, read);
  in_place(db, read, kept);
  many_keys(db, read);
  ranges(db, read);
  expectations(db, read);
  moments(db, read);
  leveldb_readoptions_destroy(read);
  leveldb_close(db);
  for (int index = 0; index < 2; index++) {
    CHECK(memcmp(tamarack_pinned_value(kept[index], &length), "as it was", 9) == 0 && length == 9);
    tamarack_pinned_destroy(kept[index]);
  }
}
