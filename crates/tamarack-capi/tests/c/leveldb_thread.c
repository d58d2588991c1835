/* Threads that write, read, walk and take snapshots in one database, with options and batches of their own
 * and shared ones. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { threads = 4, rounds = 150 };

struct work {
  leveldb_t* db;
  const leveldb_readoptions_t* read;
  const leveldb_writeoptions_t* write;
  int number;
};

/* Each round writes two keys together; whoever looks sees both of one round. */
static void write_pair(const struct work* work, int round) {
  char key[32], value[32], *error = NULL;
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  size_t length = (size_t)snprintf(value, sizeof value, "%d", round);
  for (char side = 'a'; side <= 'b'; side++) {
    size_t keylen = (size_t)snprintf(key, sizeof key, "pair-%d-%c", work->number, side);
    leveldb_writebatch_put(batch, key, keylen, value, length);
  }
  leveldb_write(work->db, work->write, batch, &error);
  CHECK_OK(error);
  leveldb_writebatch_destroy(batch);
}

static void check_pairs(leveldb_t* db, const leveldb_readoptions_t* read) {
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, read);
  leveldb_iter_seek(iterator, "pair-", 5);
  while (leveldb_iter_valid(iterator)) {
    size_t length, other;
    const char* value = leveldb_iter_value(iterator, &length);
    char* first = malloc(length + 1);
    CHECK(first != NULL);
    memcpy(first, value, length);
    leveldb_iter_next(iterator);
    CHECK(leveldb_iter_valid(iterator));
    value = leveldb_iter_value(iterator, &other);
    CHECK(length == other && memcmp(first, value, length) == 0);
    free(first);
    leveldb_iter_next(iterator);
  }
  char* error = NULL;
  leveldb_iter_get_error(iterator, &error);
  CHECK_OK(error);
  leveldb_iter_destroy(iterator);
}

static void* run(void* argument) {
  const struct work* work = argument;
  char key[32], *error = NULL;
  for (int round = 0; round < rounds; round++) {
    write_pair(work, round);
    size_t keylen = (size_t)snprintf(key, sizeof key, "own-%d-%d", work->number, round);
    leveldb_put(work->db, work->write, key, keylen, key, keylen, &error);
    CHECK_OK(error);
    size_t length;
    char* value = leveldb_get(work->db, work->read, key, keylen, &length, &error);
    CHECK_OK(error);
    CHECK(value != NULL && length == keylen && memcmp(value, key, length) == 0);
    free(value);
    if (round % 10 == 0) check_pairs(work->db, work->read);
    if (round % 50 == 0) {
      const leveldb_snapshot_t* snapshot = leveldb_create_snapshot(work->db);
      leveldb_readoptions_t* read = leveldb_readoptions_create();
      leveldb_readoptions_set_snapshot(read, snapshot);
      check_pairs(work->db, read);
      leveldb_readoptions_destroy(read);
      leveldb_release_snapshot(work->db, snapshot);
    }
  }
  return NULL;
}

void thread_suite(void) {
  leveldb_t* db = open_new("thread");
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  pthread_t running[threads];
  struct work works[threads];
  for (int number = 0; number < threads; number++) {
    works[number] = (struct work){db, read, write, number};
    CHECK(pthread_create(&running[number], NULL, run, &works[number]) == 0);
  }
  for (int number = 0; number < threads; number++) CHECK(pthread_join(running[number], NULL) == 0);
  CHECK_EQUAL(count(db), threads * (rounds + 2));
  leveldb_writeoptions_destroy(write);
  leveldb_readoptions_destroy(read);
  leveldb_close(db);
}
