/* The rules of errptr: untouched by success, freed and replaced by a failure. Leaks and double frees are for
 * the tools that the program runs under. */

#include <stdlib.h>
#include <string.h>

#include "check.h"

void error_suite(void) {
  leveldb_options_t* missing = leveldb_options_create();
  char* error = NULL;
  CHECK(leveldb_open(missing, fresh("error-none"), &error) == NULL);
  CHECK(error != NULL && strncmp(error, "Invalid argument: ", 18) == 0);
  CHECK(strstr(error, "error-none") != NULL);

  /* A failure replaces the text. */
  CHECK(leveldb_open(missing, fresh("error-other"), &error) == NULL);
  CHECK(error != NULL && strstr(error, "error-other") != NULL);

  /* A text of the program's own is replaced as well. */
  free(error);
  error = strdup("mine");
  CHECK(error != NULL);
  CHECK(leveldb_open(missing, fresh("error-third"), &error) == NULL);
  CHECK(strstr(error, "error-third") != NULL);

  /* Success leaves it as it is. */
  leveldb_t* db = open_new("error");
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  char* before = error;
  leveldb_put(db, write, "key", 3, "value", 5, &error);
  CHECK(error == before && strstr(error, "error-third") != NULL);
  size_t length = 77;
  CHECK(leveldb_get(db, read, "none", 4, &length, &error) == NULL);
  CHECK(error == before && length == 0);
  free(error);
  leveldb_readoptions_destroy(read);
  leveldb_writeoptions_destroy(write);
  leveldb_options_destroy(missing);
  leveldb_close(db);
}
