/* See check.h. */

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* root;

void failed(const char* file, int line, const char* what) {
  fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
  exit(1);
}

void check_ok(const char* file, int line, const char* error) {
  if (error != NULL) {
    fprintf(stderr, "%s:%d: an error: %s\n", file, line, error);
    exit(1);
  }
}

void check_fails(const char* file, int line, char** error, const char* begins, const char* contains) {
  if (*error == NULL || strncmp(*error, begins, strlen(begins)) != 0 || strstr(*error, contains) == NULL) {
    fprintf(stderr, "%s:%d: expected \"%s...%s...\", found %s\n", file, line, begins, contains,
            *error == NULL ? "no error" : *error);
    exit(1);
  }
  free(*error);
  *error = NULL;
}

void check_equal(const char* file, int line, const char* what, long long found, long long expected) {
  if (found != expected) {
    fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", file, line, what, found, expected);
    exit(1);
  }
}

static int same(const char* bytes, size_t length, const char* text) {
  return length == strlen(text) && memcmp(bytes, text, length) == 0;
}

void check_get(const char* file, int line, leveldb_t* db, const char* key, const char* value) {
  leveldb_readoptions_t* options = leveldb_readoptions_create();
  char* error = NULL;
  size_t length = 77;
  char* found = leveldb_get(db, options, key, strlen(key), &length, &error);
  check_ok(file, line, error);
  if (value == NULL ? found != NULL || length != 0 : found == NULL || !same(found, length, value)) {
    fprintf(stderr, "%s:%d: %s has %s of %zu bytes, not %s\n", file, line, key,
            found == NULL ? "no value" : "a value", length, value == NULL ? "none" : value);
    exit(1);
  }
  leveldb_free(found);
  leveldb_readoptions_destroy(options);
}

void check_at(const char* file, int line, const leveldb_iterator_t* iterator, const char* key,
              const char* value) {
  char* error = NULL;
  leveldb_iter_get_error(iterator, &error);
  check_ok(file, line, error);
  if (key == NULL) {
    if (leveldb_iter_valid(iterator)) failed(file, line, "the iterator stands nowhere");
    return;
  }
  if (!leveldb_iter_valid(iterator)) failed(file, line, "the iterator stands on an entry");
  size_t length;
  const char* found = leveldb_iter_key(iterator, &length);
  if (!same(found, length, key)) {
    fprintf(stderr, "%s:%d: the key is %.*s, not %s\n", file, line, (int)length, found, key);
    exit(1);
  }
  found = leveldb_iter_value(iterator, &length);
  if (!same(found, length, value)) {
    fprintf(stderr, "%s:%d: the value of %s is %.*s, not %s\n", file, line, key, (int)length, found, value);
    exit(1);
  }
}

void begin_in(const char* directory) { root = directory; }

const char* fresh(const char* name) {
  static char path[4096];
  int length = snprintf(path, sizeof path, "%s/%s", root, name);
  CHECK(length > 0 && (size_t)length < sizeof path);
  return path;
}

leveldb_options_t* creating(void) {
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  return options;
}

leveldb_t* open_with(const leveldb_options_t* options, const char* name) {
  char* error = NULL;
  leveldb_t* db = leveldb_open(options, fresh(name), &error);
  CHECK_OK(error);
  CHECK(db != NULL);
  return db;
}

leveldb_t* open_new(const char* name) {
  leveldb_options_t* options = creating();
  leveldb_t* db = open_with(options, name);
  leveldb_options_destroy(options);
  return db;
}

void put(leveldb_t* db, const char* key, const char* value) {
  put_bytes(db, key, strlen(key), value, strlen(value));
}

void put_bytes(leveldb_t* db, const char* key, size_t keylen, const char* value, size_t vallen) {
  leveldb_writeoptions_t* options = leveldb_writeoptions_create();
  char* error = NULL;
  leveldb_put(db, options, key, keylen, value, vallen, &error);
  CHECK_OK(error);
  leveldb_writeoptions_destroy(options);
}

void delete_key(leveldb_t* db, const char* key) {
  leveldb_writeoptions_t* options = leveldb_writeoptions_create();
  char* error = NULL;
  leveldb_delete(db, options, key, strlen(key), &error);
  CHECK_OK(error);
  leveldb_writeoptions_destroy(options);
}

size_t count(leveldb_t* db) {
  leveldb_readoptions_t* options = leveldb_readoptions_create();
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, options);
  size_t entries = 0;
  leveldb_iter_seek_to_first(iterator);
  for (; leveldb_iter_valid(iterator); leveldb_iter_next(iterator)) entries++;
  char* error = NULL;
  leveldb_iter_get_error(iterator, &error);
  CHECK_OK(error);
  leveldb_iter_destroy(iterator);
  leveldb_readoptions_destroy(options);
  return entries;
}

int run_suites(int argc, char** argv, const struct suite* suites, size_t number) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s DIRECTORY [SUITE]\n", argv[0]);
    return 2;
  }
  begin_in(argv[1]);
  size_t run = 0;
  for (size_t index = 0; index < number; index++) {
    if (argc > 2 && strcmp(argv[2], suites[index].name) != 0) continue;
    suites[index].run();
    printf("%s: passed\n", suites[index].name);
    run++;
  }
  if (run == 0) fprintf(stderr, "there is no such suite\n");
  return run == 0;
}
