/*
 * Writes databases with the real LevelDB, and prints what it finds in them: what the reader of this crate is compared with.
 *
 *     cc -std=c11 -D_POSIX_C_SOURCE=200809L -o leveldb leveldb.c -lleveldb
 *     ./leveldb golden DIR        the databases that lie beside this file, and their content, into DIR
 *     ./leveldb million DIR N     N entries that are left after overwrites and deletions, values of 0 to 20,000 bytes
 *     ./leveldb dump DIR          a line for each entry: key, tab, value, in hexadecimal; recovers the database first
 *     ./leveldb hold DIR          opens the database, prints a line, and keeps it open until standard input ends
 */
#include <leveldb/c.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *error;

static void must(int holds, const char *what) {
  if (!holds || error != NULL) {
    fprintf(stderr, "leveldb: %s: %s\n", what, error == NULL ? "failed" : error);
    exit(1);
  }
}

static leveldb_t *open_database(const char *directory, int snappy, size_t write_buffer, size_t block) {
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_compression(options, snappy ? leveldb_snappy_compression : leveldb_no_compression);
  leveldb_options_set_write_buffer_size(options, write_buffer);
  leveldb_options_set_block_size(options, block);
  leveldb_t *database = leveldb_open(options, directory, &error);
  must(database != NULL, directory);
  leveldb_options_destroy(options);
  return database;
}

static void put_bytes(leveldb_t *database, const char *key, size_t key_len, const char *value, size_t value_len) {
  static leveldb_writeoptions_t *options;
  if (options == NULL) options = leveldb_writeoptions_create();
  leveldb_put(database, options, key, key_len, value, value_len, &error);
  must(1, "put");
}

static void put(leveldb_t *database, const char *key, const char *value) {
  put_bytes(database, key, strlen(key), value, strlen(value));
}

static void delete_key(leveldb_t *database, const char *key) {
  static leveldb_writeoptions_t *options;
  if (options == NULL) options = leveldb_writeoptions_create();
  leveldb_delete(database, options, key, strlen(key), &error);
  must(1, "delete");
}

static void dump(const char *directory, FILE *out) {
  leveldb_t *database = open_database(directory, 1, 4 << 20, 4096);
  leveldb_readoptions_t *options = leveldb_readoptions_create();
  leveldb_readoptions_set_verify_checksums(options, 1);
  leveldb_iterator_t *iterator = leveldb_create_iterator(database, options);
  for (leveldb_iter_seek_to_first(iterator); leveldb_iter_valid(iterator); leveldb_iter_next(iterator)) {
    size_t len;
    const char *bytes = leveldb_iter_key(iterator, &len);
    for (size_t at = 0; at < len; at++) fprintf(out, "%02x", (unsigned char)bytes[at]);
    fputc('\t', out);
    bytes = leveldb_iter_value(iterator, &len);
    for (size_t at = 0; at < len; at++) fprintf(out, "%02x", (unsigned char)bytes[at]);
    fputc('\n', out);
  }
  leveldb_iter_get_error(iterator, &error);
  must(1, "iterate");
  leveldb_iter_destroy(iterator);
  leveldb_readoptions_destroy(options);
  leveldb_close(database);
}

/* Several tables' worth of blocks, compressed. */
static void golden_snappy(const char *directory) {
  leveldb_t *database = open_database(directory, 1, 64 << 10, 1024);
  for (int number = 0; number < 400; number++) {
    char key[32], value[128];
    snprintf(key, sizeof key, "fruit/%04d", number * 7 % 400);
    snprintf(value, sizeof value, "%d apples, %d apples, %d apples, and a pear", number, number, number);
    put(database, key, value);
  }
  leveldb_compact_range(database, NULL, 0, NULL, 0);
  leveldb_close(database);
}

/* Nothing but a log: puts, an overwrite, deletions, a batch. */
static void golden_log(const char *directory) {
  leveldb_t *database = open_database(directory, 1, 4 << 20, 4096);
  put(database, "a", "1");
  put(database, "b", "2");
  put(database, "a", "3");
  delete_key(database, "b");
  delete_key(database, "never there");
  put_bytes(database, "", 0, "the empty key", 13);
  put(database, "empty value", "");
  put_bytes(database, "\0\xff\n", 3, "\0\1\2", 3);
  leveldb_writebatch_t *batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "c", 1, "in a batch", 10);
  leveldb_writebatch_delete(batch, "a", 1);
  leveldb_writebatch_put(batch, "d", 1, "in a batch, too", 15);
  leveldb_writeoptions_t *options = leveldb_writeoptions_create();
  leveldb_write(database, options, batch, &error);
  must(1, "write");
  leveldb_writeoptions_destroy(options);
  leveldb_writebatch_destroy(batch);
  leveldb_close(database);
}

/* Tables of several levels, with versions and deletions that hide what is below them, and a log on top. */
static void golden_compacted(const char *directory) {
  char key[32], value[64];
  for (int round = 0; round < 4; round++) {
    /* Opening makes a table of the log that was left. */
    leveldb_t *database = open_database(directory, round % 2, 64 << 10, 1024);
    for (int number = round; number < 120; number += round + 1) {
      snprintf(key, sizeof key, "key%03d", number);
      snprintf(value, sizeof value, "round %d of key %d", round, number);
      if ((number + round) % 5 == 0) {
        delete_key(database, key);
      } else {
        put(database, key, value);
      }
    }
    if (round == 1) leveldb_compact_range(database, NULL, 0, NULL, 0);
    leveldb_close(database);
  }
}

/* What a crash leaves: the writer ends without closing, and the last record lacks its last bytes. */
static void golden_torn(const char *directory) {
  pid_t child = fork();
  must(child >= 0, "fork");
  if (child == 0) {
    leveldb_t *database = open_database(directory, 1, 4 << 20, 4096);
    put(database, "kept", "whole");
    put(database, "also kept", "whole, too");
    put(database, "torn", "the last bytes of this never reached the disk");
    _exit(0);
  }
  must(waitpid(child, NULL, 0) == child, "wait");
  char path[4096];
  snprintf(path, sizeof path, "%s/000003.log", directory);
  FILE *log = fopen(path, "r");
  must(log != NULL && fseek(log, 0, SEEK_END) == 0, path);
  must(truncate(path, ftell(log) - 10) == 0, path);
  fclose(log);
}

static void golden(const char *directory) {
  static const struct {
    const char *name;
    void (*write)(const char *directory);
  } all[] = {{"snappy", golden_snappy}, {"log", golden_log}, {"compacted", golden_compacted}, {"torn", golden_torn}};
  for (size_t number = 0; number < sizeof all / sizeof *all; number++) {
    char path[2048], command[16384];
    snprintf(path, sizeof path, "%s/%s", directory, all[number].name);
    all[number].write(path);
    /* LevelDB changes what it opens, so it reads a copy. */
    snprintf(command, sizeof command, "rm -f %s/LOG %s/LOG.old && cp -r %s %s.copy", path, path, path, path);
    must(system(command) == 0, command);
    snprintf(command, sizeof command, "%s.tsv", path);
    FILE *out = fopen(command, "w");
    must(out != NULL, command);
    snprintf(command, sizeof command, "%s.copy", path);
    dump(command, out);
    must(fclose(out) == 0, "write");
    snprintf(command, sizeof command, "rm -r %s.copy", path);
    must(system(command) == 0, command);
  }
}

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

/* Mostly small values, some of some thousand bytes; half of each compresses. */
static size_t fill_value(char *value) {
  uint64_t dice = next_random() % 1000;
  size_t len = dice < 5 ? next_random() % 20000 : dice < 100 ? next_random() % 1000 : next_random() % 100;
  for (size_t at = 0; at < len; at++) value[at] = at % 2 ? 'v' : (char)next_random();
  return len;
}

static void million(const char *directory, uint64_t entries) {
  leveldb_t *database = open_database(directory, 1, 4 << 20, 4096);
  static char value[20000];
  char key[64];
  /* A quarter more than are to be left, each fourth of which is overwritten, and each fifth then deleted. */
  uint64_t written = entries + entries / 4;
  for (uint64_t pass = 0; pass < 3; pass++) {
    for (uint64_t number = 0; number < written; number++) {
      /* Out of order, for 2^31 - 1 is a prime that divides no count of entries. */
      uint64_t place = number * 2147483647u % written;
      if (pass == 1 && place % 4 != 0) continue;
      if (pass == 2 && place % 5 != 0) continue;
      snprintf(key, sizeof key, "user/%010llu/%llx", (unsigned long long)place, (unsigned long long)place * place);
      if (pass == 2) {
        delete_key(database, key);
      } else {
        size_t len = fill_value(value);
        put_bytes(database, key, strlen(key), value, len);
      }
    }
  }
  /* What is left in the log. */
  put(database, "zzz", "the last");
  delete_key(database, "zzz");
  leveldb_close(database);
}

int main(int count, char **arguments) {
  if (count == 3 && strcmp(arguments[1], "golden") == 0) {
    golden(arguments[2]);
  } else if (count == 4 && strcmp(arguments[1], "million") == 0) {
    million(arguments[2], strtoull(arguments[3], NULL, 10));
  } else if (count == 3 && strcmp(arguments[1], "dump") == 0) {
    dump(arguments[2], stdout);
    must(fflush(stdout) == 0, "write");
  } else if (count == 3 && strcmp(arguments[1], "hold") == 0) {
    leveldb_t *database = open_database(arguments[2], 1, 4 << 20, 4096);
    puts("open");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    leveldb_close(database);
  } else {
    fprintf(stderr, "usage: leveldb golden DIR | million DIR N | dump DIR | hold DIR\n");
    return 2;
  }
  return 0;
}
