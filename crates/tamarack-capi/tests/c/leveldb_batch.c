/* Write batches: order, atomicity, iteration, appending, clearing. */

#include <stdio.h>
#include <string.h>

#include "check.h"

/* What the callbacks were told, as text. */
struct told {
  char text[512];
  size_t length;
};

static void tell(struct told* told, const char* kind, const char* k, size_t klen, const char* v,
                 size_t vlen) {
  int more = snprintf(told->text + told->length, sizeof told->text - told->length, "%s(%.*s,%.*s)", kind,
                      (int)klen, k, (int)vlen, v);
  CHECK(more > 0);
  told->length += (size_t)more;
}

static void on_put(void* state, const char* k, size_t klen, const char* v, size_t vlen) {
  tell(state, "put", k, klen, v, vlen);
}

static void on_delete(void* state, const char* k, size_t klen) { tell(state, "delete", k, klen, "", 0); }

static void on_delete_nothing(void* state, const char* k, size_t klen) { (void)state, (void)k, (void)klen; }

static void check_content(const leveldb_writebatch_t* batch, const char* expected) {
  struct told told = {"", 0};
  leveldb_writebatch_iterate(batch, &told, on_put, on_delete);
  if (strcmp(told.text, expected) != 0) fprintf(stderr, "the batch holds %s, not %s\n", told.text, expected);
  CHECK(strcmp(told.text, expected) == 0);
}

static void contents(void) {
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  check_content(batch, "");
  leveldb_writebatch_put(batch, "a", 1, "1", 1);
  leveldb_writebatch_delete(batch, "b", 1);
  leveldb_writebatch_put(batch, "", 0, "", 0);
  check_content(batch, "put(a,1)delete(b,)put(,)");

  leveldb_writebatch_t* other = leveldb_writebatch_create();
  leveldb_writebatch_append(other, batch);
  check_content(other, "put(a,1)delete(b,)put(,)");
  leveldb_writebatch_clear(batch);
  check_content(batch, "");
  check_content(other, "put(a,1)delete(b,)put(,)");
  leveldb_writebatch_append(other, batch);
  leveldb_writebatch_put(batch, "c", 1, "3", 1);
  leveldb_writebatch_append(batch, other);
  check_content(batch, "put(c,3)put(a,1)delete(b,)put(,)");
  leveldb_writebatch_destroy(other);
  leveldb_writebatch_destroy(batch);
}

/* Appends the batch that is walked over to another. */
struct copy {
  const leveldb_writebatch_t* from;
  leveldb_writebatch_t* to;
};

static void copy_at_put(void* state, const char* k, size_t klen, const char* v, size_t vlen) {
  (void)k, (void)klen, (void)v, (void)vlen;
  const struct copy* copy = state;
  leveldb_writebatch_append(copy->to, copy->from);
}

static void a_batch_can_be_read_in_a_walk_over_it(void) {
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "a", 1, "1", 1);
  leveldb_writebatch_delete(batch, "b", 1);
  struct copy copy = {batch, leveldb_writebatch_create()};
  leveldb_writebatch_iterate(batch, &copy, copy_at_put, on_delete_nothing);
  check_content(copy.to, "put(a,1)delete(b,)");
  check_content(batch, "put(a,1)delete(b,)");
  leveldb_writebatch_destroy(copy.to);
  leveldb_writebatch_destroy(batch);
}

void batch_suite(void) {
  contents();
  a_batch_can_be_read_in_a_walk_over_it();
  leveldb_t* db = open_new("batch");
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  char* error = NULL;
  leveldb_write(db, write, batch, &error);
  CHECK_OK(error);
  CHECK_EQUAL(count(db), 0);

  /* Within a batch the last operation on a key wins. */
  leveldb_writebatch_put(batch, "twice", 5, "1", 1);
  leveldb_writebatch_put(batch, "twice", 5, "2", 1);
  leveldb_writebatch_put(batch, "gone", 4, "1", 1);
  leveldb_writebatch_delete(batch, "gone", 4);
  leveldb_write(db, write, batch, &error);
  CHECK_OK(error);
  CHECK_GET(db, "twice", "2");
  CHECK_GET(db, "gone", NULL);

  /* Writing takes nothing out of it: it can be written again. */
  check_content(batch, "put(twice,1)put(twice,2)put(gone,1)delete(gone,)");
  put(db, "twice", "3");
  leveldb_write(db, write, batch, &error);
  CHECK_OK(error);
  CHECK_GET(db, "twice", "2");

  /* Without clearing it would hold the earlier operations as well. */
  leveldb_writebatch_clear(batch);
  leveldb_writebatch_put(batch, "alone", 5, "1", 1);
  delete_key(db, "twice");
  leveldb_write(db, write, batch, &error);
  CHECK_OK(error);
  CHECK_GET(db, "twice", NULL);
  CHECK_EQUAL(count(db), 1);
  leveldb_writebatch_destroy(batch);
  leveldb_writeoptions_destroy(write);
  leveldb_close(db);
}
