// What every C++ test program here uses: checks that name their line, and a few short ways to a database.
//
// A program gets an empty directory as its argument, and runs its suites in it one after the other. Files
// named leveldb_*.cc hold what is LevelDB's: they compile against LevelDB's own headers and pass with
// LevelDB, too. Those named tamarack_*.cc hold what Tamarack has beyond it, or does otherwise. All compile
// without exceptions and type information.

#ifndef TAMARACK_TESTS_CPP_CHECK_H
#define TAMARACK_TESTS_CPP_CHECK_H

#include <cstddef>
#include <iostream>
#include <memory>
#include <string>

#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/status.h"

// Ends the program unless the condition holds.
#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) check::Failed(__FILE__, __LINE__, #condition); \
  } while (0)

// Ends the program unless two values are equal, and shows them.
#define CHECK_EQUAL(found, expected) check::Equal(__FILE__, __LINE__, #found, found, expected)

// Ends the program if a status is an error.
#define CHECK_OK(status) check::Ok(__FILE__, __LINE__, status)

namespace check {

[[noreturn]] void Failed(const char* file, int line, const std::string& what);
void Ok(const char* file, int line, const leveldb::Status& status);

template <typename Found, typename Expected>
void Equal(const char* file, int line, const char* what, const Found& found, const Expected& expected) {
  if (found == expected) return;
  std::cerr << what << " is \"" << found << "\", not \"" << expected << "\"\n";
  Failed(file, line, what);
}

// The directory for a database of a suite; does not exist yet.
std::string Fresh(const std::string& name);

// Options that create a database.
leveldb::Options Creating();

using Database = std::unique_ptr<leveldb::DB>;
using Walk = std::unique_ptr<leveldb::Iterator>;

// Opens a database in Fresh(name); an error ends the program.
Database Open(const std::string& name, const leveldb::Options& options = Creating());

// Writes and reads with default options; an error but NotFound ends the program.
void Put(leveldb::DB* db, const leveldb::Slice& key, const leveldb::Slice& value);
// "NONE" if there is none.
std::string Get(leveldb::DB* db, const leveldb::Slice& key, const leveldb::Snapshot* snapshot = nullptr);
// All entries, as "key=value key=value".
std::string All(leveldb::DB* db, const leveldb::Snapshot* snapshot = nullptr);
// What an iterator stands on, as "key=value"; "NOWHERE" if it does not, and the error if there is one.
std::string At(const leveldb::Iterator* iterator);

// Tells a logger something, as leveldb::Log does, which LevelDB's shared library does not have.
void Tell(leveldb::Logger* logger, const char* format, ...);

struct Suite {
  const char* name;
  void (*run)();
};
// Runs suites, or only the one that is named behind the directory.
int Run(int argc, char** argv, const Suite* suites, size_t number);

}  // namespace check

#endif
