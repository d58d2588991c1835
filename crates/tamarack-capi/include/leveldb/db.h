// leveldb::DB: a database in a directory.
//
// Several threads may use one. Keys have at most 65,535 bytes and values at most 4 GiB less one; longer ones
// are InvalidArgument. A program may derive classes of its own, such as fakes for its tests.

#ifndef TAMARACK_LEVELDB_DB_H
#define TAMARACK_LEVELDB_DB_H

#include <cstdint>
#include <cstdio>
#include <string>

#include "leveldb/export.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"

namespace leveldb {

// The version of the interface.
static const int kMajorVersion = 1;
static const int kMinorVersion = 23;

class WriteBatch;

// A moment of a database, made and released by it.
class LEVELDB_EXPORT Snapshot {
 protected:
  TAMARACK_LEVELDB_INLINE virtual ~Snapshot();
};

// The keys from start up to but not including limit.
struct LEVELDB_EXPORT Range {
  Range() = default;
  Range(const Slice& s, const Slice& l) : start(s), limit(l) {}

  Slice start;
  Slice limit;
};

class LEVELDB_EXPORT DB {
 public:
  // Opens the database in the directory name. It is to be deleted by the caller; after an error there is
  // none, and *dbptr is NULL. One handle of one process may have it open.
  TAMARACK_LEVELDB_INLINE static Status Open(const Options& options, const std::string& name, DB** dbptr);

  DB() = default;

  DB(const DB&) = delete;
  DB& operator=(const DB&) = delete;

  // Closes it. Everything written is in the log before. Iterators that are still there can be used and must
  // be deleted; the directory can be opened again when the last of them has been.
  TAMARACK_LEVELDB_INLINE virtual ~DB();

  // Sets key to value. What derived classes inherit of this and the next writes a batch of one operation.
  virtual Status Put(const WriteOptions& options, const Slice& key, const Slice& value) = 0;

  // Removes key. That it is not there is no error.
  virtual Status Delete(const WriteOptions& options, const Slice& key) = 0;

  // Does all operations of a batch or none. With NULL, turns what is in memory into tables.
  virtual Status Write(const WriteOptions& options, WriteBatch* updates) = 0;

  // The value of key. NotFound if there is none; *value is what it was then.
  virtual Status Get(const ReadOptions& options, const Slice& key, std::string* value) = 0;

  // Stands nowhere until it is sought. Sees the moment of this call, or that of the snapshot in options. To
  // be deleted by the caller.
  virtual Iterator* NewIterator(const ReadOptions& options) = 0;

  // The present moment, to read at later. To be released by the caller.
  virtual const Snapshot* GetSnapshot() = 0;
  virtual void ReleaseSnapshot(const Snapshot* snapshot) = 0;

  // A text about the database; false if there is no such property. There are "leveldb.stats",
  // "leveldb.sstables", "leveldb.approximate-memory-usage", "leveldb.num-files-at-level<N>" for N from 0 to
  // 6, and the same with "tamarack." in front.
  virtual bool GetProperty(const Slice& property, std::string* value) = 0;

  // About how many bytes of disk the keys of n ranges take, values included. What has not left memory yet
  // does not count.
  virtual void GetApproximateSizes(const Range* range, int n, uint64_t* sizes) = 0;

  // Compacts the keys between two, which count; NULL is before the first or behind the last. Returns when it
  // is done.
  virtual void CompactRange(const Slice* begin, const Slice* end) = 0;
};

// Removes the database's files, and the directory if nothing else is in it. No database is no error.
LEVELDB_EXPORT TAMARACK_LEVELDB_INLINE Status DestroyDB(const std::string& name, const Options& options);

// Makes a database that can be opened out of what is whole of a damaged one. Removes nothing.
LEVELDB_EXPORT TAMARACK_LEVELDB_INLINE Status RepairDB(const std::string& dbname, const Options& options);

}  // namespace leveldb

#include "leveldb/write_batch.h"
#include "tamarack/leveldb/database.h"

namespace leveldb {

TAMARACK_LEVELDB_INLINE Snapshot::~Snapshot() {}

TAMARACK_LEVELDB_INLINE DB::~DB() {}

TAMARACK_LEVELDB_INLINE Status DB::Open(const Options& options, const std::string& name, DB** dbptr) {
  return tamarack::leveldb_v1::Database::Open(options, name, dbptr);
}

TAMARACK_LEVELDB_INLINE Status DB::Put(const WriteOptions& options, const Slice& key, const Slice& value) {
  WriteBatch batch;
  batch.Put(key, value);
  return Write(options, &batch);
}

TAMARACK_LEVELDB_INLINE Status DB::Delete(const WriteOptions& options, const Slice& key) {
  WriteBatch batch;
  batch.Delete(key);
  return Write(options, &batch);
}

TAMARACK_LEVELDB_INLINE Status DestroyDB(const std::string& name, const Options& options) {
  return tamarack::leveldb_v1::Destroy(options, name);
}

TAMARACK_LEVELDB_INLINE Status RepairDB(const std::string& dbname, const Options& options) {
  return tamarack::leveldb_v1::Repair(options, dbname);
}

}  // namespace leveldb

#endif
