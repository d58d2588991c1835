/* Damaged bytes: an error in the place where LevelDB's clients look for one, and never another value. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tamarack/c.h>

#include "check.h"

/* Flips a bit in the middle of the text, in whichever segment of the database it is. */
static void damage(const char* name, const char* text) {
  DIR* directory = opendir(fresh(name));
  CHECK(directory != NULL);
  int found = 0;
  for (struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    if (strstr(entry->d_name, ".vlog") == NULL) continue;
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", fresh(name), entry->d_name);
    FILE* file = fopen(path, "r+");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    char* bytes = malloc((size_t)size + 1);
    rewind(file);
    CHECK(bytes != NULL && fread(bytes, 1, (size_t)size, file) == (size_t)size);
    for (long at = 0; at + (long)strlen(text) <= size && !found; at++) {
      if (memcmp(bytes + at, text, strlen(text)) != 0) continue;
      long middle = at + (long)strlen(text) / 2;
      CHECK(fseek(file, middle, SEEK_SET) == 0 && fputc(bytes[middle] ^ 1, file) != EOF);
      found = 1;
    }
    free(bytes);
    CHECK(fclose(file) == 0);
  }
  closedir(directory);
  CHECK(found);
}

void damage_suite(void) {
  leveldb_options_t* options = creating();
  char* error = NULL;
  tamarack_options_set(options, "inline_value_max", "0", &error);
  CHECK_OK(error);
  leveldb_options_set_compression(options, leveldb_no_compression);
  leveldb_t* db = open_with(options, "damage");
  put(db, "a", "the first value");
  put(db, "b", "the second value");
  put(db, "c", "the third value");
  tamarack_flush(db, &error);
  CHECK_OK(error);
  tamarack_close(db, &error);
  CHECK_OK(error);
  damage("damage", "the second value");

  db = open_with(options, "damage");
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  size_t length = 77;
  CHECK(leveldb_get(db, read, "b", 1, &length, &error) == NULL);
  CHECK_EQUAL(length, 0);
  CHECK_FAILS(error, "Corruption: ", ".vlog at offset ");
  CHECK_GET(db, "a", "the first value");

  /* Who does not want checksums to be checked gets what is there. */
  leveldb_readoptions_set_verify_checksums(read, 0);
  char* unchecked = leveldb_get(db, read, "b", 1, &length, &error);
  CHECK_OK(error);
  CHECK(unchecked != NULL && length == strlen("the second value"));
  CHECK(memcmp(unchecked, "the second value", length) != 0);
  leveldb_free(unchecked);
  leveldb_readoptions_set_verify_checksums(read, 1);

  /* The entry is not shown with another value: the iterator ends there and says why. */
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, read);
  leveldb_iter_seek_to_first(iterator);
  CHECK_AT(iterator, "a", "the first value");
  leveldb_iter_next(iterator);
  CHECK(leveldb_iter_valid(iterator));
  CHECK(leveldb_iter_value(iterator, &length) == NULL && length == 0);
  CHECK(!leveldb_iter_valid(iterator));
  CHECK(leveldb_iter_key(iterator, &length) == NULL);
  leveldb_iter_next(iterator);
  CHECK(!leveldb_iter_valid(iterator));
  leveldb_iter_get_error(iterator, &error);
  CHECK_FAILS(error, "Corruption: ", ".vlog at offset ");
  /* A seek forgets it. */
  leveldb_iter_seek(iterator, "c", 1);
  CHECK_AT(iterator, "c", "the third value");
  leveldb_iter_destroy(iterator);

  /* One key's damage is no other's. */
  const char* keys[] = {"a", "b", "c"};
  const size_t lengths[] = {1, 1, 1};
  char *values[3], *errors[3];
  size_t value_lengths[3];
  tamarack_multi_get(db, read, 3, keys, lengths, values, value_lengths, errors);
  CHECK(values[0] != NULL && errors[0] == NULL && value_lengths[0] == strlen("the first value"));
  CHECK(values[1] == NULL && value_lengths[1] == 0);
  CHECK_FAILS(errors[1], "Corruption: ", ".vlog at offset ");
  CHECK(values[2] != NULL && errors[2] == NULL);
  leveldb_free(values[0]);
  leveldb_free(values[2]);

  char* report = tamarack_check(db, tamarack_check_values);
  CHECK(strstr(report, "\"clean\":false") != NULL && strstr(report, "\"kind\":\"corruption\"") != NULL);
  leveldb_free(report);
  report = tamarack_check(db, tamarack_check_structure);
  CHECK(strstr(report, "\"clean\":true") != NULL);
  leveldb_free(report);
  leveldb_close(db);

  /* Paranoid checks do not open it, and a repair tells what is lost. */
  leveldb_options_set_paranoid_checks(options, 1);
  CHECK(leveldb_open(options, fresh("damage"), &error) == NULL);
  CHECK_FAILS(error, "Corruption: ", "");
  report = tamarack_repair(options, fresh("damage"), 1, &error);
  CHECK_OK(error);
  CHECK(strstr(report, "\"dry_run\":true") != NULL && strstr(report, "\"first_hex\":\"62\"") != NULL);
  leveldb_free(report);
  CHECK(leveldb_open(options, fresh("damage"), &error) == NULL);
  CHECK_FAILS(error, "Corruption: ", "");
  report = tamarack_repair(options, fresh("damage"), 0, &error);
  CHECK_OK(error);
  CHECK(strstr(report, "\"changed\":true") != NULL && strstr(report, "\"first_hex\":\"62\"") != NULL);
  CHECK(strstr(report, "\"may_be_older\":false") != NULL);
  leveldb_free(report);
  db = open_with(options, "damage");
  CHECK_GET(db, "a", "the first value");
  CHECK_GET(db, "b", NULL);
  CHECK_GET(db, "c", "the third value");
  leveldb_close(db);
  leveldb_readoptions_destroy(read);
  leveldb_options_destroy(options);
}
