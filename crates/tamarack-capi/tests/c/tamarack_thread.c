/* Objects that threads share where LevelDB asks each to have its own: every call is done as a whole. */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <tamarack/c.h>

#include "check.h"

enum { threads = 4, steps = 500 };

struct shared {
  leveldb_iterator_t* iterator;
  leveldb_writebatch_t* batch;
  leveldb_options_t* options;
};

static void* run(void* argument) {
  const struct shared* shared = argument;
  for (int step = 0; step < steps; step++) {
    size_t length;
    leveldb_iter_value(shared->iterator, &length);
    CHECK_EQUAL(length, 100);
    leveldb_iter_next(shared->iterator);
    leveldb_writebatch_put(shared->batch, "key", 3, "value", 5);
    leveldb_options_set_write_buffer_size(shared->options, (size_t)1 << 20);
  }
  return NULL;
}

static void on_put(void* state, const char* k, size_t klen, const char* v, size_t vlen) {
  CHECK(klen == 3 && vlen == 5 && memcmp(k, "key", 3) == 0 && memcmp(v, "value", 5) == 0);
  ++*(int*)state;
}

static void on_delete(void* state, const char* k, size_t klen) {
  (void)state, (void)k, (void)klen;
  CHECK(0);
}

void sharing_suite(void) {
  leveldb_t* db = open_new("sharing");
  char key[16], value[100];
  memset(value, 'v', sizeof value);
  for (int number = 0; number <= threads * steps; number++) {
    snprintf(key, sizeof key, "%06d", number);
    put_bytes(db, key, 6, value, sizeof value);
  }
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  struct shared shared = {leveldb_create_iterator(db, read), leveldb_writebatch_create(), creating()};
  leveldb_iter_seek_to_first(shared.iterator);
  pthread_t running[threads];
  for (int index = 0; index < threads; index++) {
    CHECK(pthread_create(&running[index], NULL, run, &shared) == 0);
  }
  for (int index = 0; index < threads; index++) CHECK(pthread_join(running[index], NULL) == 0);

  /* No step and no operation was lost. */
  size_t length;
  const char* found = leveldb_iter_key(shared.iterator, &length);
  snprintf(key, sizeof key, "%06d", threads * steps);
  CHECK(length == 6 && memcmp(found, key, 6) == 0);
  int puts = 0;
  leveldb_writebatch_iterate(shared.batch, &puts, on_put, on_delete);
  CHECK_EQUAL(puts, threads * steps);
  leveldb_iter_destroy(shared.iterator);
  leveldb_writebatch_destroy(shared.batch);
  leveldb_options_destroy(shared.options);
  leveldb_readoptions_destroy(read);
  leveldb_close(db);
}
