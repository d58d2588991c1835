/* Comparators of a client: the order they give, the name that is stored, and their destructors. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

struct order {
  const char* name;
  int sign;
  int destroyed;
};

static int compare(void* state, const char* a, size_t alen, const char* b, size_t blen) {
  size_t shorter = alen < blen ? alen : blen;
  int difference = shorter == 0 ? 0 : memcmp(a, b, shorter);
  if (difference == 0) difference = alen < blen ? -1 : alen > blen;
  return difference * ((const struct order*)state)->sign;
}

static const char* name_of(void* state) { return ((const struct order*)state)->name; }

static void destroy(void* state) { ((struct order*)state)->destroyed++; }

static leveldb_comparator_t* make(struct order* order) {
  return leveldb_comparator_create(order, destroy, compare, name_of);
}

/* A name is any bytes; one that differs in the last is another. */
static void names(void) {
  char long_name[1001];
  memset(long_name, 'n', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = 0;
  const char* names[] = {"", "\xff\xfe", long_name};
  for (int index = 0; index < 3; index++) {
    struct order order = {names[index], 1, 0};
    leveldb_comparator_t* comparator = make(&order);
    leveldb_options_t* options = creating();
    leveldb_options_set_comparator(options, comparator);
    char path[32];
    snprintf(path, sizeof path, "comparator-name-%d", index);
    leveldb_t* db = open_with(options, path);
    put(db, "key", "value");
    leveldb_close(db);
    db = open_with(options, path);
    CHECK_GET(db, "key", "value");
    leveldb_close(db);
    char other[1100];
    snprintf(other, sizeof other, "%s", names[index]);
    if (index == 0) strcpy(other, "x");
    other[strlen(other) - 1] ^= 1;
    order.name = other;
    char* error = NULL;
    CHECK(leveldb_open(options, fresh(path), &error) == NULL);
    CHECK_FAILS(error, "Invalid argument: ", "");
    leveldb_options_destroy(options);
    leveldb_comparator_destroy(comparator);
  }
}

void comparator_suite(void) {
  names();
  struct order descending = {"test.descending", -1, 0}, other = {"test.other", -1, 0};
  leveldb_comparator_t* comparator = make(&descending);
  leveldb_comparator_t* another = make(&other);
  leveldb_options_t* options = creating();
  leveldb_options_set_comparator(options, comparator);
  leveldb_t* db = open_with(options, "comparator");
  char key[16];
  for (int number = 0; number < 500; number++) {
    snprintf(key, sizeof key, "%04d", number);
    put(db, key, key);
    if (number == 250) leveldb_compact_range(db, NULL, 0, NULL, 0);
  }
  put(db, "", "least");
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, read);
  int number = 499;
  for (leveldb_iter_seek_to_first(iterator); number >= 0; leveldb_iter_next(iterator)) {
    snprintf(key, sizeof key, "%04d", number--);
    CHECK_AT(iterator, key, key);
  }
  CHECK_AT(iterator, "", "least");
  leveldb_iter_next(iterator);
  CHECK_AT(iterator, NULL, NULL);
  leveldb_iter_seek(iterator, "0123x", 5);
  CHECK_AT(iterator, "0123", "0123");
  leveldb_iter_seek(iterator, "0123", 4);
  CHECK_AT(iterator, "0123", "0123");
  leveldb_iter_seek(iterator, "012", 3);
  CHECK_AT(iterator, "0119", "0119");
  leveldb_iter_destroy(iterator);
  leveldb_readoptions_destroy(read);
  leveldb_compact_range(db, "0400", 4, "0100", 4);
  CHECK_GET(db, "0333", "0333");
  leveldb_close(db);

  /* The database is opened with no other order than its own. */
  char* error = NULL;
  leveldb_options_set_comparator(options, another);
  CHECK(leveldb_open(options, fresh("comparator"), &error) == NULL);
  CHECK_FAILS(error, "Invalid argument: ", "test.descending");
  leveldb_options_t* plain = leveldb_options_create();
  CHECK(leveldb_open(plain, fresh("comparator"), &error) == NULL);
  CHECK_FAILS(error, "Invalid argument: ", "test.descending");
  leveldb_options_destroy(plain);

  /* It belongs to no database and no options, and can be used again. */
  leveldb_options_set_comparator(options, comparator);
  db = open_with(options, "comparator");
  CHECK_GET(db, "0499", "0499");
  leveldb_close(db);
  leveldb_options_destroy(options);
  CHECK_EQUAL(descending.destroyed, 0);
  leveldb_comparator_destroy(comparator);
  CHECK_EQUAL(descending.destroyed, 1);
  leveldb_comparator_destroy(another);
  CHECK_EQUAL(other.destroyed, 1);
}
