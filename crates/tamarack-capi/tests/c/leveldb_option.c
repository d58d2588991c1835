/* Every setter of options, with data behind it: what is written under any of them is read back. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void destroy(void* state) { ++*(int*)state; }

static const char* filter_name(void* state) {
  (void)state;
  return "test.filter";
}

/* A filter that lets every key through. */
static char* create_filter(void* state, const char* const* keys, const size_t* lengths, int number,
                           size_t* length) {
  (void)state;
  (void)keys;
  (void)lengths;
  (void)number;
  *length = 4;
  char* filter = malloc(4);
  CHECK(filter != NULL);
  memcpy(filter, "fake", 4);
  return filter;
}

static uint8_t may_match(void* state, const char* key, size_t keylen, const char* filter, size_t length) {
  (void)state;
  (void)key;
  (void)keylen;
  CHECK(length == 4 && memcmp(filter, "fake", 4) == 0);
  return 1;
}

static void write_and_read(const leveldb_options_t* options, const char* name) {
  leveldb_t* db = open_with(options, name);
  char key[16], value[300];
  for (int number = 0; number < 400; number++) {
    snprintf(key, sizeof key, "%05d", number);
    memset(value, 'a' + number % 26, sizeof value - 1);
    value[(size_t)number % (sizeof value - 1)] = 0;
    put(db, key, value);
  }
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  for (int number = 0; number < 400; number++) {
    snprintf(key, sizeof key, "%05d", number);
    memset(value, 'a' + number % 26, sizeof value - 1);
    value[(size_t)number % (sizeof value - 1)] = 0;
    CHECK_GET(db, key, value);
    snprintf(key, sizeof key, "%05dx", number);
    CHECK_GET(db, key, NULL);
  }
  leveldb_close(db);
  /* Opened again, with everything checked. */
  leveldb_options_t* again = leveldb_options_create();
  leveldb_options_set_paranoid_checks(again, 1);
  db = open_with(again, name);
  CHECK_EQUAL(count(db), 400);
  leveldb_close(db);
  leveldb_options_destroy(again);
}

static void sizes(void) {
  leveldb_options_t* options = creating();
  leveldb_cache_t* cache = leveldb_cache_create_lru(100000);
  leveldb_env_t* env = leveldb_create_default_env();
  leveldb_options_set_env(options, env);
  leveldb_options_set_info_log(options, NULL);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_write_buffer_size(options, 100000);
  leveldb_options_set_max_open_files(options, 100);
  leveldb_options_set_block_size(options, 1024);
  leveldb_options_set_block_restart_interval(options, 8);
  leveldb_options_set_max_file_size(options, 3 << 20);
  leveldb_options_set_paranoid_checks(options, 1);
  write_and_read(options, "option-sizes");
  /* Values out of range are brought into it; a cache may have no room at all. */
  leveldb_cache_t* none = leveldb_cache_create_lru(0);
  leveldb_options_set_cache(options, none);
  leveldb_options_set_write_buffer_size(options, 0);
  leveldb_options_set_max_open_files(options, 0);
  leveldb_options_set_block_size(options, 0);
  leveldb_options_set_max_file_size(options, 0);
  write_and_read(options, "option-least");
  leveldb_options_destroy(options);
  leveldb_cache_destroy(cache);
  leveldb_cache_destroy(none);
  leveldb_env_destroy(env);
}

static void filters(void) {
  int destroyed = 0;
  leveldb_filterpolicy_t* policies[] = {
      leveldb_filterpolicy_create_bloom(10),
      leveldb_filterpolicy_create(&destroyed, destroy, create_filter, may_match, filter_name),
  };
  for (int index = 0; index < 2; index++) {
    leveldb_options_t* options = creating();
    leveldb_options_set_filter_policy(options, policies[index]);
    write_and_read(options, index == 0 ? "option-bloom" : "option-filter");
    leveldb_options_set_filter_policy(options, NULL);
    leveldb_options_destroy(options);
    CHECK_EQUAL(destroyed, 0);
    leveldb_filterpolicy_destroy(policies[index]);
  }
  CHECK_EQUAL(destroyed, 1);
}

static void compressions(void) {
  leveldb_options_t* options = creating();
  leveldb_options_set_compression(options, leveldb_no_compression);
  write_and_read(options, "option-plain");
  leveldb_options_set_compression(options, leveldb_snappy_compression);
  write_and_read(options, "option-snappy");
  leveldb_options_destroy(options);
}

static void creation(void) {
  leveldb_options_t* options = leveldb_options_create();
  char* error = NULL;
  CHECK(leveldb_open(options, fresh("option-creation"), &error) == NULL);
  CHECK_FAILS(error, "Invalid argument: ", "does not exist (create_if_missing is false)");
  /* Any number but 0 is true. */
  leveldb_options_set_create_if_missing(options, 128);
  leveldb_options_set_error_if_exists(options, 1);
  leveldb_close(open_with(options, "option-creation"));
  CHECK(leveldb_open(options, fresh("option-creation"), &error) == NULL);
  CHECK_FAILS(error, "Invalid argument: ", "exists (error_if_exists is true)");
  leveldb_options_set_error_if_exists(options, 0);
  leveldb_close(open_with(options, "option-creation"));
  leveldb_options_destroy(options);
}

void option_suite(void) {
  creation();
  sizes();
  filters();
  compressions();
}
