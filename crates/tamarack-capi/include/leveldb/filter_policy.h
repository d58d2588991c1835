// leveldb::FilterPolicy: how tables are to remember, in few bits for each key, which keys they do not have.
//
// Tamarack has filters of its own kind. Of NewBloomFilterPolicy's, and of any policy with its name, it takes
// the number of bits for each key; a policy of another name is not asked. docs/LEVELDB.md says more.

#ifndef TAMARACK_LEVELDB_FILTER_POLICY_H
#define TAMARACK_LEVELDB_FILTER_POLICY_H

#include <string>

#include "leveldb/export.h"

namespace leveldb {

class Slice;

class LEVELDB_EXPORT FilterPolicy {
 public:
  TAMARACK_LEVELDB_INLINE virtual ~FilterPolicy();

  virtual const char* Name() const = 0;

  // Appends to destination a filter of the first n keys, some of which may be the same.
  virtual void CreateFilter(const Slice* keys, int n, std::string* destination) const = 0;

  // Must be true if the key was among those of the filter, and should be false otherwise.
  virtual bool KeyMayMatch(const Slice& key, const Slice& filter) const = 0;
};

// A Bloom filter; 10 bits for each key are wrong once in a hundred times. 0 is no filter. To be deleted by
// the caller, when no database is being opened with it.
LEVELDB_EXPORT TAMARACK_LEVELDB_INLINE const FilterPolicy* NewBloomFilterPolicy(int bits_per_key);

}  // namespace leveldb

#include "tamarack/leveldb/bloom.h"

namespace leveldb {

TAMARACK_LEVELDB_INLINE FilterPolicy::~FilterPolicy() {}

TAMARACK_LEVELDB_INLINE const FilterPolicy* NewBloomFilterPolicy(int bits_per_key) {
  return new tamarack::leveldb_v1::Bloom(bits_per_key);
}

}  // namespace leveldb

#endif
