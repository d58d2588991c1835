// leveldb::WriteBatch: operations that are written together, in their order.
//
// A copy is another batch. Several threads may read one; changing one while others use it needs a lock.

#ifndef TAMARACK_LEVELDB_WRITE_BATCH_H
#define TAMARACK_LEVELDB_WRITE_BATCH_H

#include <cstddef>
#include <string>

#include "leveldb/export.h"
#include "leveldb/status.h"

namespace leveldb {

class Slice;

class LEVELDB_EXPORT WriteBatch {
 public:
  // Who is told the operations of a batch.
  class LEVELDB_EXPORT Handler {
   public:
    TAMARACK_LEVELDB_INLINE virtual ~Handler();
    virtual void Put(const Slice& key, const Slice& value) = 0;
    virtual void Delete(const Slice& key) = 0;
  };

  TAMARACK_LEVELDB_INLINE WriteBatch();
  WriteBatch(const WriteBatch&) = default;
  WriteBatch& operator=(const WriteBatch&) = default;
  TAMARACK_LEVELDB_INLINE ~WriteBatch();

  // Sets key to value.
  TAMARACK_LEVELDB_INLINE void Put(const Slice& key, const Slice& value);

  // Removes key, if it is there.
  TAMARACK_LEVELDB_INLINE void Delete(const Slice& key);

  // Removes all operations from the batch.
  TAMARACK_LEVELDB_INLINE void Clear();

  // Bytes of the batch in memory.
  TAMARACK_LEVELDB_INLINE size_t ApproximateSize() const;

  // Adds the operations of source, which may be the batch itself.
  TAMARACK_LEVELDB_INLINE void Append(const WriteBatch& source);

  // Tells handler the operations. An error if one of them cannot be written by anybody: its key or value has
  // 4 GiB or more. Those before have been told then.
  TAMARACK_LEVELDB_INLINE Status Iterate(Handler* handler) const;

 private:
  // Programs reach into batches by a class of this name.
  friend class WriteBatchInternal;

  // As in LevelDB: see the header that follows.
  std::string rep_;
};

}  // namespace leveldb

#include "tamarack/leveldb/batch_format.h"

namespace leveldb {

TAMARACK_LEVELDB_INLINE WriteBatch::Handler::~Handler() {}

TAMARACK_LEVELDB_INLINE WriteBatch::WriteBatch() { Clear(); }

TAMARACK_LEVELDB_INLINE WriteBatch::~WriteBatch() {}

TAMARACK_LEVELDB_INLINE void WriteBatch::Put(const Slice& key, const Slice& value) {
  tamarack::leveldb_v1::BatchFormat::AddPut(&rep_, key, value);
}

TAMARACK_LEVELDB_INLINE void WriteBatch::Delete(const Slice& key) {
  tamarack::leveldb_v1::BatchFormat::AddDelete(&rep_, key);
}

TAMARACK_LEVELDB_INLINE void WriteBatch::Clear() { tamarack::leveldb_v1::BatchFormat::Clear(&rep_); }

TAMARACK_LEVELDB_INLINE size_t WriteBatch::ApproximateSize() const { return rep_.size(); }

TAMARACK_LEVELDB_INLINE void WriteBatch::Append(const WriteBatch& source) {
  tamarack::leveldb_v1::BatchFormat::Append(&rep_, source.rep_);
}

TAMARACK_LEVELDB_INLINE Status WriteBatch::Iterate(Handler* handler) const {
  return tamarack::leveldb_v1::BatchFormat::Iterate(rep_, handler);
}

}  // namespace leveldb

#endif
