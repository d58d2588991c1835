/* Does one thing that no program may do, and must not live to say so. The program is to end by abort() with a
 * message. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tamarack/c.h>

#include "check.h"

static leveldb_t* db;
static leveldb_readoptions_t* read_options;
static leveldb_writeoptions_t* write_options;
static char* error;
static size_t length;

static void null_database(void) { leveldb_put(NULL, write_options, "a", 1, "b", 1, &error); }
static void null_options(void) { leveldb_get(db, NULL, "a", 1, &length, &error); }
static void null_key(void) { leveldb_put(db, write_options, NULL, 1, "b", 1, &error); }
static void null_name(void) { leveldb_property_value(db, NULL); }
static void null_errptr(void) {
  leveldb_options_t* options = leveldb_options_create();
  leveldb_open(options, fresh("none"), NULL);
}
static void null_result(void) { leveldb_get(db, read_options, "a", 1, NULL, &error); }
static void null_function(void) { leveldb_comparator_create(NULL, NULL, NULL, NULL); }
static void another_kind(void) { leveldb_iter_valid((leveldb_iterator_t*)write_options); }
static void twice(void) {
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_destroy(batch);
  leveldb_writebatch_destroy(batch);
}
static void closed(void) {
  leveldb_close(db);
  leveldb_put(db, write_options, "a", 1, "b", 1, &error);
}
static void no_durability(void) { tamarack_writeoptions_set_durability(write_options, 7); }
static void no_level(void) { leveldb_free(tamarack_check(db, -1)); }
static void too_long(void) { leveldb_put(db, write_options, "a", (size_t)-1, "b", 1, &error); }

int main(int argc, char** argv) {
  static const struct suite deeds[] = {
      {"null-database", null_database}, {"null-options", null_options},   {"null-key", null_key},
      {"null-name", null_name},         {"null-errptr", null_errptr},     {"null-result", null_result},
      {"null-function", null_function}, {"another-kind", another_kind},   {"twice", twice},
      {"closed", closed},
      {"no-durability", no_durability}, {"no-level", no_level},           {"too-long", too_long},
  };
  if (argc < 3) return 2;
  for (size_t index = 0; index < sizeof deeds / sizeof *deeds; index++) {
    if (strcmp(argv[2], deeds[index].name) != 0) continue;
    begin_in(argv[1]);
    db = open_new("misuse");
    read_options = leveldb_readoptions_create();
    write_options = leveldb_writeoptions_create();
    deeds[index].run();
    return 0;
  }
  return 2;
}
