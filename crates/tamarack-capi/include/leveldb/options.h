// How a database is opened, read and written: leveldb::Options, ReadOptions, WriteOptions.
//
// The fields are LevelDB's. Those of sizes and of checks have the defaults of Tamarack. What each one does,
// and where that differs from LevelDB, is told in docs/LEVELDB.md; nothing that is set is passed over without
// being told there.

#ifndef TAMARACK_LEVELDB_OPTIONS_H
#define TAMARACK_LEVELDB_OPTIONS_H

#include <cstddef>

#include "leveldb/export.h"

namespace leveldb {

class Cache;
class Comparator;
class Env;
class FilterPolicy;
class Logger;
class Snapshot;

// The numbers are LevelDB's; LZ4 is what compresses. 2, for Zstandard, is taken as well.
enum CompressionType : int { kNoCompression = 0x0, kSnappyCompression = 0x1 };

struct LEVELDB_EXPORT Options {
  TAMARACK_LEVELDB_INLINE Options();

  // The order of keys; must outlive the database. Default: BytewiseComparator().
  const Comparator* comparator;

  // Creates the database if there is none, instead of an error.
  bool create_if_missing = false;

  // An error if there is a database.
  bool error_if_exists = false;

  // Opening reads and checks the whole database.
  bool paranoid_checks = false;

  // Env::Default(), which is the default, or NULL. DB::Open refuses another one with NotSupported: Tamarack's
  // files are the operating system's.
  Env* env;

  // Is told what opening found, and errors that functions of the database cannot tell. NULL: nobody is. Must
  // outlive the database.
  Logger* info_log = nullptr;

  // Bytes of a memtable, 64 KiB to 1 GiB.
  size_t write_buffer_size = static_cast<size_t>(32) << 20;

  // Files that are open at the same time, 74 to 50,000.
  int max_open_files = 1000;

  // Says how large the cache of index blocks is. NULL: 64 MiB. A cache of the program's own kind does not say
  // it.
  Cache* block_cache = nullptr;

  // Bytes of an index block, 1 KiB to 1 MiB.
  size_t block_size = static_cast<size_t>(4) << 10;

  // Has no effect: blocks choose their restart points themselves.
  int block_restart_interval = 16;

  // Bytes of a table, 1 MiB to 1 GiB.
  size_t max_file_size = static_cast<size_t>(32) << 20;

  // Of values and of index blocks.
  CompressionType compression = kSnappyCompression;

  // Has no effect: a log goes on where it ended in any case.
  bool reuse_logs = false;

  // NewBloomFilterPolicy says how many bits filters have for each key. NULL: 10.
  const FilterPolicy* filter_policy = nullptr;
};

struct LEVELDB_EXPORT ReadOptions {
  ReadOptions() = default;

  // A value that is not what was written is an error.
  bool verify_checksums = true;

  // Index blocks that are read stay in the cache, and what a long walk reads in that of the kernel.
  bool fill_cache = true;

  // The moment to read at. NULL: the present.
  const Snapshot* snapshot = nullptr;
};

struct LEVELDB_EXPORT WriteOptions {
  WriteOptions() = default;

  // The write survives the death of the machine when it returns. Without, it survives that of the process.
  bool sync = false;
};

}  // namespace leveldb

#include "leveldb/comparator.h"
#include "leveldb/env.h"

namespace leveldb {

TAMARACK_LEVELDB_INLINE Options::Options() : comparator(BytewiseComparator()), env(Env::Default()) {}

}  // namespace leveldb

#endif
