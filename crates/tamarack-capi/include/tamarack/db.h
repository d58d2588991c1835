// What Tamarack has beyond LevelDB, for programs that use it by <leveldb/db.h>: its own options, and the way
// from a leveldb::DB to the functions of <tamarack/c.h>.
//
//   leveldb::DB* db = nullptr;
//   leveldb::Status status = tamarack::Open(options, {{"max_space_amplification", "1.5"}}, "/var/lib/data",
//   &db); if (!status.ok()) return status; char* error = nullptr; char* report =
//   tamarack_gc(tamarack::HandleOf(db), 1.1, &error);

#ifndef TAMARACK_DB_H
#define TAMARACK_DB_H

#include <cstring>
#include <map>
#include <string>

#include "leveldb/db.h"
#include "tamarack/c.h"

namespace tamarack {

// As leveldb::DB::Open, with options of Tamarack's by name; tamarack_options_set() says which there are. They
// count more than those of options where both set the same.
inline leveldb::Status Open(const leveldb::Options& options,
                            const std::map<std::string, std::string>& settings, const std::string& name,
                            leveldb::DB** dbptr) {
  return leveldb_v1::Database::Open(options, name, dbptr, settings);
}

// The database for functions of <tamarack/c.h>. It belongs to db: it must not be closed, and goes with it.
// NULL if db is not one of DB::Open's, such as a fake of a test.
inline leveldb_t* HandleOf(leveldb::DB* db) {
  std::string bytes;
  leveldb_t* handle = nullptr;
  if (db->GetProperty(leveldb_v1::HandleProperty(), &bytes) && bytes.size() == sizeof handle) {
    std::memcpy(&handle, bytes.data(), sizeof handle);
  }
  return handle;
}

}  // namespace tamarack

#endif
