/* Destroying and repairing, locks, and the directory for tests. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static int there(const char* path) {
  struct stat found;
  return stat(path, &found) == 0;
}

static void destruction(void) {
  leveldb_options_t* options = creating();
  char* error = NULL;
  leveldb_destroy_db(options, fresh("management-none"), &error);
  CHECK_OK(error);
  leveldb_t* db = open_with(options, "management");
  put(db, "key", "value");
  leveldb_close(db);
  leveldb_destroy_db(options, fresh("management"), &error);
  CHECK_OK(error);
  CHECK(!there(fresh("management")));

  /* What is not the database's stays. */
  db = open_with(options, "management");
  CHECK_GET(db, "key", NULL);
  put(db, "key", "value");
  leveldb_close(db);
  char notes[4096];
  snprintf(notes, sizeof notes, "%s/notes.txt", fresh("management"));
  FILE* file = fopen(notes, "w");
  CHECK(file != NULL && fclose(file) == 0);
  leveldb_destroy_db(options, fresh("management"), &error);
  CHECK_OK(error);
  CHECK(there(notes));
  leveldb_options_set_create_if_missing(options, 0);
  CHECK(leveldb_open(options, fresh("management"), &error) == NULL);
  CHECK_FAILS(error, "Invalid argument: ", "does not exist");
  leveldb_options_destroy(options);
}

static void repair(void) {
  leveldb_options_t* options = creating();
  leveldb_options_set_write_buffer_size(options, 65536);
  leveldb_t* db = open_with(options, "management-repair");
  char key[16], value[200];
  memset(value, 'v', sizeof value - 1);
  value[sizeof value - 1] = 0;
  for (int number = 0; number < 1000; number++) {
    snprintf(key, sizeof key, "%06d", number);
    put(db, key, value);
  }
  leveldb_close(db);

  /* A whole database stays whole. */
  char* error = NULL;
  leveldb_repair_db(options, fresh("management-repair"), &error);
  CHECK_OK(error);
  db = open_with(options, "management-repair");
  CHECK_EQUAL(count(db), 1000);
  leveldb_close(db);

  /* Without CURRENT nothing opens it, and a repair brings it back. */
  char current[4096];
  snprintf(current, sizeof current, "%s/CURRENT", fresh("management-repair"));
  CHECK(unlink(current) == 0);
  leveldb_options_set_create_if_missing(options, 0);
  CHECK(leveldb_open(options, fresh("management-repair"), &error) == NULL);
  CHECK_FAILS(error, "", "");
  leveldb_repair_db(options, fresh("management-repair"), &error);
  CHECK_OK(error);
  db = open_with(options, "management-repair");
  CHECK_EQUAL(count(db), 1000);
  CHECK_GET(db, "000777", value);
  leveldb_close(db);
  leveldb_options_destroy(options);
}

static void locks(void) {
  leveldb_options_t* options = creating();
  leveldb_t* db = open_with(options, "management-lock");
  char* error = NULL;
  CHECK(leveldb_open(options, fresh("management-lock"), &error) == NULL);
  CHECK_FAILS(error, "IO error: lock ", "management-lock");
  leveldb_destroy_db(options, fresh("management-lock"), &error);
  CHECK_FAILS(error, "IO error: lock ", "management-lock");
  put(db, "key", "value");
  leveldb_close(db);
  db = open_with(options, "management-lock");
  CHECK_GET(db, "key", "value");
  leveldb_close(db);
  leveldb_options_destroy(options);
}

static void test_directory(void) {
  leveldb_env_t* env = leveldb_create_default_env();
  CHECK(setenv("TEST_TMPDIR", fresh("management-tests"), 1) == 0);
  char* directory = leveldb_env_get_test_directory(env);
  CHECK(directory != NULL && strcmp(directory, fresh("management-tests")) == 0);
  CHECK(there(directory));
  leveldb_free(directory);
  CHECK(unsetenv("TEST_TMPDIR") == 0);
  directory = leveldb_env_get_test_directory(env);
  CHECK(directory != NULL && strstr(directory, "leveldbtest-") != NULL && there(directory));
  leveldb_free(directory);
  leveldb_env_destroy(env);
}

void management_suite(void) {
  destruction();
  repair();
  locks();
  test_directory();
}
