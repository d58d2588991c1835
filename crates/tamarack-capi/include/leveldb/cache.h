// leveldb::Cache: a memory of things under keys, limited in size, that forgets what was not used for longest.
//
// In Options it says how large the cache of the database is: each database that is opened with one has a
// cache of its own of that capacity. It holds what a program itself puts into it, and nothing of Tamarack's.
// Several threads may use one.

#ifndef TAMARACK_LEVELDB_CACHE_H
#define TAMARACK_LEVELDB_CACHE_H

#include <cstddef>
#include <cstdint>

#include "leveldb/export.h"
#include "leveldb/slice.h"

namespace leveldb {

class LEVELDB_EXPORT Cache;

// A cache of so many units of charge, which are bytes for a database. To be deleted by the caller.
LEVELDB_EXPORT TAMARACK_LEVELDB_INLINE Cache* NewLRUCache(size_t capacity);

class LEVELDB_EXPORT Cache {
 public:
  Cache() : unused_(nullptr) {}

  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // What it holds is given to its deleters. All handles must have been released.
  TAMARACK_LEVELDB_INLINE virtual ~Cache();

  // An entry in the hands of a program. It stays until it is released.
  struct Handle {};

  // Puts value under key, instead of one that was there, and hands the entry over. The deleter is called when
  // neither the cache nor anybody else has the entry any more.
  virtual Handle* Insert(const Slice& key, void* value, size_t charge,
                         void (*deleter)(const Slice& key, void* value)) = 0;
  // The entry of key, or NULL.
  virtual Handle* Lookup(const Slice& key) = 0;
  // Gives an entry back, once for each time it was handed over.
  virtual void Release(Handle* handle) = 0;
  virtual void* Value(Handle* handle) = 0;
  // Forgets the entry of key, if there is one.
  virtual void Erase(const Slice& key) = 0;
  // A number that no other call on this cache gives: a beginning for the keys of one of several users.
  virtual uint64_t NewId() = 0;
  // Forgets every entry that nobody has in hands.
  virtual void Prune() {}
  // The charges of all that it holds.
  virtual size_t TotalCharge() const = 0;

 private:
  friend class CacheLayout;

  // There is a field in LevelDB, and classes that programs have derived begin behind it.
  void* unused_;
};

}  // namespace leveldb

#include "tamarack/leveldb/lru_cache.h"

namespace leveldb {

TAMARACK_LEVELDB_INLINE Cache::~Cache() {}

TAMARACK_LEVELDB_INLINE Cache* NewLRUCache(size_t capacity) {
  return new tamarack::leveldb_v1::LruCache(capacity);
}

}  // namespace leveldb

#endif
