/* Objects that outlive each other, in orders that LevelDB leaves undefined. */

#include <stdlib.h>
#include <string.h>

#include "check.h"

static void an_iterator_goes_on_when_its_database_is_closed(void) {
  leveldb_options_t* options = creating();
  leveldb_t* db = open_with(options, "lifetime-iterator");
  put(db, "a", "1");
  put(db, "b", "2");
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, read);
  leveldb_iter_seek_to_first(iterator);
  leveldb_readoptions_destroy(read);
  leveldb_close(db);
  CHECK_AT(iterator, "a", "1");
  leveldb_iter_next(iterator);
  CHECK_AT(iterator, "b", "2");
  leveldb_iter_next(iterator);
  CHECK_AT(iterator, NULL, NULL);

  /* It holds the directory. */
  char* error = NULL;
  CHECK(leveldb_open(options, fresh("lifetime-iterator"), &error) == NULL);
  CHECK_FAILS(error, "IO error: lock ", "lifetime-iterator");
  leveldb_iter_destroy(iterator);
  db = open_with(options, "lifetime-iterator");
  CHECK_EQUAL(count(db), 2);
  leveldb_close(db);
  leveldb_options_destroy(options);
}

static void reading_at_a_released_snapshot_fails(void) {
  leveldb_t* db = open_new("lifetime-snapshot");
  put(db, "a", "1");
  const leveldb_snapshot_t* snapshot = leveldb_create_snapshot(db);
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  leveldb_readoptions_set_snapshot(read, snapshot);
  leveldb_iterator_t* before = leveldb_create_iterator(db, read);
  put(db, "a", "2");
  leveldb_release_snapshot(db, snapshot);
  char* error = NULL;
  size_t length;
  CHECK(leveldb_get(db, read, "a", 1, &length, &error) == NULL);
  CHECK_FAILS(error, "Invalid argument: ", "released");
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, read);
  leveldb_iter_seek_to_first(iterator);
  CHECK(!leveldb_iter_valid(iterator));
  leveldb_iter_get_error(iterator, &error);
  CHECK_FAILS(error, "Invalid argument: ", "released");
  leveldb_iter_destroy(iterator);

  /* An iterator that was made before holds the moment itself. */
  leveldb_iter_seek_to_first(before);
  CHECK_AT(before, "a", "1");
  leveldb_iter_destroy(before);
  leveldb_readoptions_set_snapshot(read, NULL);
  CHECK_GET(db, "a", "2");

  /* A snapshot may be released behind its database. */
  snapshot = leveldb_create_snapshot(db);
  leveldb_t* other = open_new("lifetime-other");
  leveldb_close(db);
  leveldb_release_snapshot(other, snapshot);
  leveldb_close(other);
  leveldb_readoptions_destroy(read);
}

static void a_snapshot_belongs_to_its_database(void) {
  leveldb_t* db = open_new("lifetime-mine");
  leveldb_t* other = open_new("lifetime-yours");
  const leveldb_snapshot_t* snapshot = leveldb_create_snapshot(db);
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  leveldb_readoptions_set_snapshot(read, snapshot);
  char* error = NULL;
  size_t length;
  CHECK(leveldb_get(other, read, "a", 1, &length, &error) == NULL);
  CHECK_FAILS(error, "Invalid argument: ", "");
  leveldb_readoptions_destroy(read);
  leveldb_release_snapshot(db, snapshot);
  leveldb_close(db);
  leveldb_close(other);
}

static int destroyed;

static void destroy(void* state) {
  (void)state;
  destroyed++;
}

static int compare(void* state, const char* a, size_t alen, const char* b, size_t blen) {
  (void)state;
  CHECK_EQUAL(destroyed, 0);
  return alen != blen ? (alen < blen ? -1 : 1) : memcmp(a, b, alen);
}

static const char* name(void* state) {
  (void)state;
  return "test.by-length";
}

static void a_comparator_stays_until_its_databases_are_closed(void) {
  leveldb_comparator_t* comparator = leveldb_comparator_create(NULL, destroy, compare, name);
  leveldb_options_t* options = creating();
  leveldb_options_set_comparator(options, comparator);
  leveldb_t* db = open_with(options, "lifetime-comparator");
  leveldb_comparator_destroy(comparator);
  CHECK_EQUAL(destroyed, 0);
  put(db, "aa", "1");
  put(db, "b", "2");
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  CHECK_GET(db, "aa", "1");
  CHECK_EQUAL(count(db), 2);
  leveldb_options_destroy(options);
  leveldb_close(db);
  CHECK_EQUAL(destroyed, 1);
}

static void a_comparator_that_is_gone_opens_nothing(void) {
  destroyed = 0;
  leveldb_comparator_t* comparator = leveldb_comparator_create(NULL, destroy, compare, name);
  leveldb_options_t* options = creating();
  leveldb_options_set_comparator(options, comparator);
  leveldb_t* db = open_with(options, "lifetime-gone");
  put(db, "aa", "1");
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, read);
  leveldb_readoptions_destroy(read);
  leveldb_comparator_destroy(comparator);
  leveldb_close(db);
  CHECK_EQUAL(destroyed, 0);
  leveldb_iter_seek(iterator, "a", 1);
  CHECK_AT(iterator, "aa", "1");
  leveldb_iter_destroy(iterator);
  CHECK_EQUAL(destroyed, 1);
  char* error = NULL;
  CHECK(leveldb_open(options, fresh("lifetime-gone"), &error) == NULL);
  CHECK_FAILS(error, "Invalid argument: ", "comparator");
  /* NULL is the order of bytes again. */
  leveldb_options_set_comparator(options, NULL);
  leveldb_close(open_with(options, "lifetime-bytes"));
  leveldb_options_destroy(options);
}

static void nothing_may_be_destroyed(void) {
  leveldb_close(NULL);
  leveldb_iter_destroy(NULL);
  leveldb_writebatch_destroy(NULL);
  leveldb_options_destroy(NULL);
  leveldb_readoptions_destroy(NULL);
  leveldb_writeoptions_destroy(NULL);
  leveldb_comparator_destroy(NULL);
  leveldb_filterpolicy_destroy(NULL);
  leveldb_cache_destroy(NULL);
  leveldb_env_destroy(NULL);
  leveldb_filterpolicy_destroy(leveldb_filterpolicy_create(NULL, NULL, NULL, NULL, NULL));
}

void lifetime_suite(void) {
  an_iterator_goes_on_when_its_database_is_closed();
  reading_at_a_released_snapshot_fails();
  a_snapshot_belongs_to_its_database();
  a_comparator_stays_until_its_databases_are_closed();
  a_comparator_that_is_gone_opens_nothing();
  nothing_may_be_destroyed();
}
