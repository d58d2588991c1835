/* What every test program here uses: checks that name their line, and a few short ways to the interface.
 *
 * A program gets an empty directory as its argument, and runs its suites in it one after the other. Files
 * named leveldb_*.c hold what is LevelDB's: they compile against LevelDB's own header and pass with LevelDB,
 * too. Those named tamarack_*.c hold what Tamarack has beyond it or promises beyond it. */

#ifndef TAMARACK_TESTS_CHECK_H
#define TAMARACK_TESTS_CHECK_H

#include <leveldb/c.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the program unless the condition holds. */
#define CHECK(condition) \
  do {                   \
    if (!(condition)) failed(__FILE__, __LINE__, #condition); \
  } while (0)

/* Ends the program if there is an error. */
#define CHECK_OK(error) check_ok(__FILE__, __LINE__, error)

/* Ends the program unless there is an error whose text begins so and contains the second text; frees and
 * forgets it. */
#define CHECK_FAILS(error, begins, contains) check_fails(__FILE__, __LINE__, &(error), begins, contains)

/* Ends the program unless two numbers are equal, and shows them. */
#define CHECK_EQUAL(found, expected) \
  check_equal(__FILE__, __LINE__, #found, (long long)(found), (long long)(expected))

/* Ends the program unless the key has the value in the database; with NULL, unless it has none. */
#define CHECK_GET(db, key, value) check_get(__FILE__, __LINE__, db, key, value)

/* Ends the program unless the iterator stands on the entry; with NULL, unless it stands nowhere, without an
 * error. */
#define CHECK_AT(iterator, key, value) check_at(__FILE__, __LINE__, iterator, key, value)

void failed(const char* file, int line, const char* what);
void check_ok(const char* file, int line, const char* error);
void check_fails(const char* file, int line, char** error, const char* begins, const char* contains);
void check_equal(const char* file, int line, const char* what, long long found, long long expected);
void check_get(const char* file, int line, leveldb_t* db, const char* key, const char* value);
void check_at(const char* file, int line, const leveldb_iterator_t* iterator, const char* key,
              const char* value);

/* Says where databases are to be; run_suites does it as well. */
void begin_in(const char* directory);

/* The directory for the databases of a suite; does not exist yet. The text lives until the next call with
 * that name. */
const char* fresh(const char* name);

/* Options that create a database. To be destroyed by the caller. */
leveldb_options_t* creating(void);
/* A new database with these options, or with creating(). */
leveldb_t* open_with(const leveldb_options_t* options, const char* name);
leveldb_t* open_new(const char* name);

/* Writes and reads with default options; an error ends the program. */
void put(leveldb_t* db, const char* key, const char* value);
void put_bytes(leveldb_t* db, const char* key, size_t keylen, const char* value, size_t vallen);
void delete_key(leveldb_t* db, const char* key);
/* How many entries a walk over all of the database sees. */
size_t count(leveldb_t* db);

struct suite {
  const char* name;
  void (*run)(void);
};
/* Runs suites, or only the one that is named behind the directory. */
int run_suites(int argc, char** argv, const struct suite* suites, size_t number);

#endif
