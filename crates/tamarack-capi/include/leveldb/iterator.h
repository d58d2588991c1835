// leveldb::Iterator: a walk over entries in the order of their keys.
//
// One that DB::NewIterator made sees the database as it was then. Several threads may ask one at the same
// time what it stands on; moving it while others use it needs a lock. Slices that it gives stay until it is
// moved or deleted.

#ifndef TAMARACK_LEVELDB_ITERATOR_H
#define TAMARACK_LEVELDB_ITERATOR_H

#include <cassert>

#include "leveldb/export.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace leveldb {

class LEVELDB_EXPORT Iterator {
 public:
  TAMARACK_LEVELDB_INLINE Iterator();

  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  // Calls what was registered for it.
  TAMARACK_LEVELDB_INLINE virtual ~Iterator();

  // Whether it stands on an entry.
  virtual bool Valid() const = 0;

  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  // To the first entry whose key is not before target.
  virtual void Seek(const Slice& target) = 0;

  // To the entry behind or before the one that it stands on. It must stand on one.
  virtual void Next() = 0;
  virtual void Prev() = 0;

  // What it stands on. It must stand on an entry. A value is read from disk by this call: where that fails
  // the value is empty, the iterator does not stand on an entry any more, and status() says why.
  virtual Slice key() const = 0;
  virtual Slice value() const = 0;

  // An error, where it stands nowhere for another reason than that there are no more entries.
  virtual Status status() const = 0;

  // To be called with these arguments when the iterator is deleted.
  using CleanupFunction = void (*)(void* arg1, void* arg2);
  TAMARACK_LEVELDB_INLINE void RegisterCleanup(CleanupFunction function, void* arg1, void* arg2);

 private:
  // The first is part of the iterator, as one is usually all there is. No function: none is registered.
  struct Cleanup {
    CleanupFunction function;
    void* arg1;
    void* arg2;
    Cleanup* next;
  };
  Cleanup first_cleanup_;
};

// An iterator over nothing. To be deleted by the caller.
LEVELDB_EXPORT TAMARACK_LEVELDB_INLINE Iterator* NewEmptyIterator();

// The same, with that status.
LEVELDB_EXPORT TAMARACK_LEVELDB_INLINE Iterator* NewErrorIterator(const Status& status);

}  // namespace leveldb

#include "tamarack/leveldb/nowhere.h"

namespace leveldb {

TAMARACK_LEVELDB_INLINE Iterator::Iterator() : first_cleanup_() {}

TAMARACK_LEVELDB_INLINE Iterator::~Iterator() {
  if (first_cleanup_.function == nullptr) return;
  first_cleanup_.function(first_cleanup_.arg1, first_cleanup_.arg2);
  for (Cleanup* cleanup = first_cleanup_.next; cleanup != nullptr;) {
    cleanup->function(cleanup->arg1, cleanup->arg2);
    Cleanup* next = cleanup->next;
    delete cleanup;
    cleanup = next;
  }
}

TAMARACK_LEVELDB_INLINE void Iterator::RegisterCleanup(CleanupFunction function, void* arg1, void* arg2) {
  assert(function != nullptr);
  if (first_cleanup_.function == nullptr) {
    first_cleanup_ = Cleanup{function, arg1, arg2, nullptr};
  } else {
    first_cleanup_.next = new Cleanup{function, arg1, arg2, first_cleanup_.next};
  }
}

TAMARACK_LEVELDB_INLINE Iterator* NewEmptyIterator() {
  return new tamarack::leveldb_v1::Nowhere(Status::OK());
}

TAMARACK_LEVELDB_INLINE Iterator* NewErrorIterator(const Status& status) {
  return new tamarack::leveldb_v1::Nowhere(status);
}

}  // namespace leveldb

#endif
